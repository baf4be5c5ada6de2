"""Inputs that are nearly valid: bytes, words of the format or pieces of others are put in."""

from collections.abc import Sequence
from random import Random

ANY_WORDS = (
    *(b"\0", b"\n", b"\r\n", b"\r", b"\t", b" ", b"", b"\xef\xbb\xbf", b"\xff\xfe", b"\xc3\x28"),
    *(b"0", b"-1", b"1e999", b"nan", b"inf", b"9" * 18, b"9" * 19, b"2147483648", b"1_0", b"0x10"),
    *(b"'", b'"', b"\\", b"{}", b"%s", b"../../x", "é".encode(), "٣".encode(), "\u2028".encode()),
)
MOST_REPEATS = 300


def mutate(seed: bytes, others: Sequence[bytes], words: Sequence[bytes], rng: Random) -> bytes:
    """Change a valid input, the seed, in up to about eight places: words of the format and pieces
    of other inputs are put in. One input in ten stays as it is."""
    text = bytearray(seed)
    while rng.random() < (0.9 if text == seed else 0.4):
        start, other = rng.randint(0, len(text)), rng.choice(others)
        stop = start + int(rng.expovariate(0.2)) * rng.randint(0, 1)
        at = rng.randint(0, len(other))
        pieces = [rng.choice(words), rng.choice(words), rng.choice(ANY_WORDS), rng.randbytes(1)]
        pieces += [b"", other[at : at + rng.randint(1, 60)]]
        pieces.append(bytes(text[start:stop]) * int(1 + MOST_REPEATS ** rng.random()))
        text[start:stop] = rng.choice(pieces)
        if rng.random() < 0.05:
            del text[start:]
    return bytes(text)
