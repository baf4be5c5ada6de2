"""Inputs near valid ones, with bytes, words of the format or pieces of other inputs anywhere."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

ANY_WORDS = (
    *(b"\0", b"\n", b"\r\n", b"\r", b"\t", b" ", b"", b"\xef\xbb\xbf", b"\xff\xfe", b"\xc3\x28"),
    *(b"0", b"-1", b"1e999", b"nan", b"inf", b"9" * 18, b"9" * 19, b"2147483648", b"1_0", b"0x10"),
    *(b"'", b'"', b"\\", b"{}", b"%s", b"../../x", "é".encode(), "٣".encode(), "\u2028".encode()),
)
MOST_REPEATS = 300


def mutate(seed: bytes, others: Sequence[bytes], words: Sequence[bytes], rng: Random) -> bytes:
    """Change a valid input in up to about eight places. One input in ten stays as it is.

    Args:
        seed: the valid input.
        others: inputs whose pieces may be spliced in.
        words: of the format.
        rng: draws the changes and their places.
    """
    text = bytearray(seed)
    while rng.random() < (0.9 if text == seed else 0.4):
        rng.choice(EDITS)(text, others, rng.choice((words, words, ANY_WORDS)), rng)
    return bytes(text)


def _span(length: int, rng: Random) -> slice:
    """A piece of a text, mostly a short one."""
    start = rng.randint(0, length)
    return slice(start, min(length, start + int(rng.expovariate(0.2))))


def _byte(text, others, words, rng):
    if text:
        text[rng.randrange(len(text))] = rng.randrange(256)


def _word(text, others, words, rng):
    text[_span(len(text), rng)] = rng.choice(words)


def _insert(text, others, words, rng):
    at = rng.randint(0, len(text))
    text[at:at] = rng.choice(words)


def _delete(text, others, words, rng):
    del text[_span(len(text), rng)]


def _cut(text, others, words, rng):
    del text[rng.randint(0, len(text)) :]


def _repeat(text, others, words, rng):
    where = _span(len(text), rng)
    text[where] = text[where] * int(1 + MOST_REPEATS ** rng.random())


def _splice(text, others, words, rng):
    other = rng.choice(others)
    start = rng.randint(0, len(other))
    text[_span(len(text), rng)] = other[start : start + rng.randint(1, 60)]


EDITS = (_byte, _word, _insert, _word, _insert, _delete, _cut, _repeat, _splice)
