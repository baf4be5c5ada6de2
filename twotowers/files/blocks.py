"""Work on blocks of rows, on all cores, with results in order.

Blocks are small enough for the processor's cache. NumPy lets threads work side by side.
"""

import os
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from math import inf
from typing import TypeVar

Part = TypeVar("Part")
Result = TypeVar("Result")

CELLS = 1 << 17
"""How many entries of an array are worked on at a time. With fewer, threads wait for each other."""


def cores() -> int:
    """How many threads may work: the variable OMP_NUM_THREADS, which the pipeline sets to 1 for its
    jobs, or else the number of cores."""
    asked = os.environ.get("OMP_NUM_THREADS", "")
    if asked.isdecimal() and int(asked):
        return int(asked)
    # Not every system says which cores a process may use.
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def blocks(rows: int, width: int = 1) -> list[slice]:
    """Slices that divide an array [rows, width] into blocks of at most CELLS entries.

    There is always one slice, and a slice has one row or more.
    """
    size = max(CELLS // max(width, 1), 1)
    return [slice(start, start + size) for start in range(0, max(rows, 1), size)]


def in_order(
    work: Callable[[Part], Result], parts: list[Part], *, cells: float = inf
) -> Iterator[Result]:
    """Yield `work(part)` for each part, in the order of the parts.

    Threads are only a few parts ahead of what has been taken, so that few results are in memory. If
    all parts have CELLS entries together or fewer, this thread works by itself, because it takes
    longer to start others.
    """
    threads = min(cores(), len(parts)) if cells > CELLS else 1
    if threads <= 1:
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


def ahead(parts: Iterator[Part]) -> Iterator[Part]:
    """The parts. The next one is made by another thread while a caller works on one.

    A process that is forked meanwhile has no such thread, and must not go on with them.
    """
    with ThreadPoolExecutor(1) as pool:
        following = pool.submit(next, parts, None)
        while (part := following.result()) is not None:
            following = pool.submit(next, parts, None)
            yield part
