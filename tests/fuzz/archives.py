"""Tar archives near valid ones: hostile members, damaged headers, damaged compression."""

from __future__ import annotations

import dataclasses
import gzip
import hashlib
import io
import tarfile
from random import Random

from tests.fuzz.mutations import mutate
from twotowers import SPLITS
from twotowers.datasets.sources import Source, source

NAME = "sample.tar.gz"
FILES = tuple(f"sample/{split}.txt" for split in SPLITS)
PUBLIC = dataclasses.replace(
    source("istella_s"),
    url=f"https://example.org/{NAME}",
    splits=dict(zip(SPLITS, FILES, strict=True)),
    files_sha256=dict.fromkeys(SPLITS),
)
BLOCK = tarfile.BLOCKSIZE
CHECKSUM = slice(148, 156)

NAMES = (
    *("../outside", "/tmp/outside", "a/../../outside", "..", ".", "", "/", "./x", "a//b", "a/"),
    *("~", NAME, FILES[0], "sample", "sample/train.txt/deeper", "x" * 300, "a\nb", "a b'\"", "é"),
    *("\udcff", "a\\..\\b", "C:/x", "-rf", "con", "a\0b", "/".join("d" * 60)),
)
TYPES = (
    *(tarfile.REGTYPE, tarfile.AREGTYPE, tarfile.LNKTYPE, tarfile.SYMTYPE, tarfile.CHRTYPE),
    *(tarfile.BLKTYPE, tarfile.DIRTYPE, tarfile.FIFOTYPE, tarfile.CONTTYPE, tarfile.GNUTYPE_SPARSE),
    *(tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK, tarfile.XHDTYPE, tarfile.XGLTYPE, b"Z"),
)


def source_of(archive: bytes) -> Source:
    """A public source whose archive this is: all that its checksum keeps out comes in."""
    return dataclasses.replace(PUBLIC, sha256=hashlib.sha256(archive).hexdigest())


def draw(rng: Random) -> bytes:
    """One archive."""
    text = bytearray(members(rng))
    if rng.random() < 0.5:
        for _ in range(rng.randint(1, 4)):
            damage_header(text, rng)
    if rng.random() < 0.2:
        text = bytearray(mutate(bytes(text), [bytes(text)], [bytes(BLOCK), b"ustar\x0000"], rng))
    packed = gzip.compress(bytes(text), 1, mtime=0)
    return mutate(packed, [packed], [b"\x1f\x8b"], rng) if rng.random() < 0.2 else packed


def members(rng: Random) -> bytes:
    """A tar of the three files and up to three members of any name, kind and size."""
    buffer = io.BytesIO()
    kind = rng.choice([tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
    with tarfile.open(fileobj=buffer, mode="w", format=kind, errors="surrogateescape") as archive:
        for name in FILES:
            add(archive, tarfile.TarInfo(name), rng)
        for _ in range(rng.choice([0, 0, 1, 2, 3])):
            member = tarfile.TarInfo(rng.choice(NAMES))
            member.type = rng.choice(TYPES)
            member.linkname = rng.choice(NAMES)
            add(archive, member, rng)
    return buffer.getvalue()


def add(archive: tarfile.TarFile, member: tarfile.TarInfo, rng: Random) -> None:
    content = rng.randbytes(rng.choice([0, 1, 30, 600]))
    member.size = len(content)
    try:
        archive.addfile(member, io.BytesIO(content))
    except (ValueError, UnicodeError):  # a name that this kind of tar cannot hold
        archive.addfile(tarfile.TarInfo("plain"))


def damage_header(text: bytearray, rng: Random) -> None:
    """Change a field of a block, and mend the block's checksum so that it is believed."""
    start = BLOCK * rng.randrange(len(text) // BLOCK)
    field = rng.choice([(0, 100), (100, 8), (124, 12), (124, 12), (156, 1), (157, 100), (345, 155)])
    at = start + field[0] + rng.randrange(field[1])
    text[at] = rng.choice([0, 0xFF, 0x80, 0x37, 0x2F, 0x2E, rng.randrange(256)])
    if field[0] == 124 and rng.random() < 0.5:
        size = rng.choice([-512, -1, 0, 1, 10**4, 10**9, 2**62, -(2**62)])
        text[start + 124 : start + 136] = bytes([0xFF if size < 0 else 0x80]) + (
            size % 2**88
        ).to_bytes(11)
    block = text[start : start + BLOCK]
    block[CHECKSUM] = b" " * 8
    text[start + CHECKSUM.start : start + CHECKSUM.stop] = b"%06o\0 " % sum(block)
