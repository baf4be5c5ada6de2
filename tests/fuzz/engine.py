"""Draws inputs and tries them. A reader must accept or refuse; anything else is a fault."""

from __future__ import annotations

import re
import resource
import signal
import tempfile
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random

from tests.fuzz.targets import TARGETS

BATCH = 64
MOST_SECONDS = 5
"""CPU time, so that a busy machine makes no faults."""
MOST_MEMORY = 3 << 30


def drawn(name: str, seed: int, number: int) -> bytes:
    """The input of that number."""
    return TARGETS[name].draw(Random(f"{name} {seed} {number}"))


def fuzz(
    name: str,
    seed: int,
    start: int,
    stop: int,
    report: Callable[[tuple[int, Counter, list[tuple[str, int]]]], object],
) -> None:
    """Try inputs start ... stop - 1, each within MOST_MEMORY and MOST_SECONDS.

    Args:
        name: of the target.
        seed: of the inputs.
        start: the number of the first input.
        stop: the number after the last input.
        report: called after each batch with the number reached, counts of accepted and refused
            inputs and of files, and (kind of fault, number of its input) of each fault.
    """
    resource.setrlimit(resource.RLIMIT_AS, (_address_space() + MOST_MEMORY,) * 2)
    with tempfile.TemporaryDirectory() as folder:
        for first in range(start, stop, BATCH):
            numbers = range(first, min(first + BATCH, stop))
            report((numbers.stop, *try_batch(name, seed, numbers, Path(folder))))


def try_batch(
    name: str, seed: int, numbers: range, folder: Path
) -> tuple[Counter, list[tuple[str, int]]]:
    """Counts and faults of some inputs, as `fuzz` reports them."""
    before = signal.signal(signal.SIGPROF, _too_slow)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return _try_batch(name, seed, numbers, folder)
    finally:
        signal.signal(signal.SIGPROF, before)


def _try_batch(name: str, seed: int, numbers: range, folder: Path):
    target = TARGETS[name]
    inputs = [drawn(name, seed, number) for number in numbers]
    files = target.join(inputs)
    counts, faults = Counter(files=len(files)), []
    try:
        for text in files:
            accepted = _accepts(target, text, folder)
            counts["accepted" if accepted else "refused"] += 1
    except Exception as joined:
        # Try the inputs one by one, to find the faulty ones.
        counts = Counter(files=len(inputs))
        for number, text in zip(numbers, inputs, strict=True):
            try:
                accepted = _accepts(target, text, folder)
                counts["accepted" if accepted else "refused"] += 1
            except Exception as alone:
                faults.append((_kind(alone), number))
        return counts, faults or [(f"joined with others, {_kind(joined)}", numbers.start)]
    # Files with several inputs hold accepted ones.
    counts["accepted"] = len(inputs) - counts["refused"]
    return counts, faults


def _accepts(target, text: bytes, folder: Path) -> bool:
    signal.setitimer(signal.ITIMER_PROF, MOST_SECONDS)
    try:
        return target.accepts(text, folder)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def _too_slow(*_: object) -> None:
    raise TimeoutError(f"more than {MOST_SECONDS} s")


def _kind(error: Exception) -> str:
    """The kind of a fault: its exception and place."""
    places = traceback.extract_tb(error.__traceback__)
    ours = [place for place in places if "twotowers" in Path(place.filename).parts] or places
    where = f"{Path(ours[-1].filename).name}:{ours[-1].lineno}"
    if isinstance(error, AssertionError):
        where += ": " + re.sub(r"\d+|'[^']*'|/\S+", "…", str(error).strip().split("\n")[0])[:80]
    return f"{type(error).__name__} at {where}"


def _address_space() -> int:
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
