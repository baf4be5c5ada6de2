"""Try many inputs on a reader.

    python -m tests.fuzz letor --inputs 1000000 --seed 1
    python -m tests.fuzz config --seed 1 --only 4711       # one of them again, with its traceback

Input number n of a seed is always the same. The command prints the numbers of tried, accepted and
refused inputs, the rate, and each kind of fault with the number of its first input. The exit status
is 1 if there was a fault. Inputs are tried in a process of their own, so that an input that kills
the process is a fault, too.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from tests.fuzz.engine import BATCH, drawn, fuzz
from tests.fuzz.targets import TARGETS

STALLED_S = 60


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("target", choices=TARGETS)
    parser.add_argument("--inputs", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int, help="the number of one input to try again")
    options = parser.parse_args()
    target = TARGETS[options.target]
    if options.only is not None:
        text = drawn(options.target, options.seed, options.only)
        print(text)
        with tempfile.TemporaryDirectory() as folder:
            print("accepted" if target.accepts(text, Path(folder)) else "refused")
        return 0

    started, tally = time.monotonic(), Counter()
    first: dict[str, int] = {}
    start = 0
    while start < options.inputs:
        start = _run(options, start, tally, first)
    seconds = time.monotonic() - started
    print(
        f"{options.target}: {options.inputs:,} inputs of seed {options.seed} in {seconds:,.0f} s, "
        f"{options.inputs / seconds:,.0f} a second; {tally['accepted']:,} accepted, "
        f"{tally['refused']:,} refused, {tally['files']:,} files; faults of {len(first)} kinds"
    )
    for fault, number in first.items():
        print(f"  {tally[fault]:,} x {fault} (first: --only {number})")
    return bool(first)


def _run(options, start: int, tally: Counter, first: dict[str, int]) -> int:
    """Try inputs from `start` in a process of their own. Returns the number to go on from."""
    context = multiprocessing.get_context("fork")
    reports, sender = context.Pipe(duplex=False)
    worker = context.Process(
        target=fuzz, args=(options.target, options.seed, start, options.inputs, sender.send)
    )
    worker.start()
    sender.close()
    reached, fault = start, "the process was killed"
    while reached < options.inputs:
        if not reports.poll(STALLED_S):
            fault = f"no end after {STALLED_S} s"
            break
        try:
            reached, counts, faults = reports.recv()
        except EOFError:
            break
        tally.update(counts)
        for kind, number in faults:
            tally[kind] += 1
            first.setdefault(kind, number)
    else:
        worker.join()
        return reached
    worker.kill()
    worker.join()
    fault = f"{fault} ({worker.exitcode}) within the batch from here"
    tally[fault] += 1
    first.setdefault(fault, reached)
    return reached + BATCH


if __name__ == "__main__":
    sys.exit(main())
