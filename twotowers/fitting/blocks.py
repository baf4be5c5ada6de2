"""Work on blocks of rows, on all cores, with results in order.

Blocks are small enough for the processor's cache. NumPy lets threads work side by side.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Found = TypeVar("Found")

CELLS = 1 << 15
"""Entries of an array that is worked on at a time."""


def cores() -> int:
    """How many threads may work: OMP_NUM_THREADS, as the pipeline's jobs have it, or all cores."""
    asked = os.environ.get("OMP_NUM_THREADS", "")
    if asked.isdecimal() and int(asked):
        return int(asked)
    # Not every system says which cores a process may use.
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def blocks(rows: int, width: int = 1) -> list[slice]:
    """Slices of at most CELLS entries, of an array [rows, width]; one at least."""
    size = max(CELLS // max(width, 1), 1)
    return [slice(start, start + size) for start in range(0, max(rows, 1), size)]


def in_order(work: Callable[[slice], Found], parts: list[slice]) -> Iterator[Found]:
    """The work's result for each part, in order. Only a few results wait at a time.

    Example:
        >>> [int(part) for part in in_order(lambda rows: rows.start, [slice(0, 5), slice(5, 9)])]
        [0, 5]
    """
    threads = min(cores(), len(parts))
    if threads == 1:
        yield from map(work, parts)
        return
    with ThreadPoolExecutor(threads) as pool:
        waiting = deque()
        for part in parts:
            waiting.append(pool.submit(work, part))
            if len(waiting) > 4 * threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
