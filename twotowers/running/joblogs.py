"""One log per job: what ran, where, when, what it said, and how it ended.

    rule: fit
    script: scripts/fit_setting.py
    started: 2026-11-21T06:11:18+00:00
    ...
    <what the job prints>
    device: cpu
    ended: 2026-11-21T06:11:40+00:00
    seconds: 22.3
    memory: 912 MB
    outcome: done

Standard library only, so that a Snakefile can use it.
"""

from __future__ import annotations

import contextlib
import json
import logging
import platform
import re
import resource
import sys
import time
import traceback
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

DONE = "done"
PACKAGES = ("snakemake", "jax", "numpy", "scipy", "pandas", "lightgbm", "matplotlib")
"""Whose versions a log states: those that results may depend on."""

_FACT = re.compile(r"([a-z]+): (.*)")


@contextlib.contextmanager
def job_log(path: str | Path, facts: Mapping[str, object]) -> Iterator[None]:
    """Send stdout, stderr and the library's `logging` messages of a block to a job's log.

    Args:
        path: the log; written anew.
        facts: what is known before the job starts, a line each; keys are lower-case words.

    Raises:
        Exception: what the block raised, after its traceback and outcome are in the log.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    # Line by line, so that a job that is killed, or still runs, has said what it did.
    with (
        path.open("w", encoding="utf-8", buffering=1) as log,
        contextlib.redirect_stdout(log),
        contextlib.redirect_stderr(log),
        _messages(log),
    ):
        _write(log, facts | {"started": _now(), "versions": versions()})
        print(file=log)
        outcome, begin = "ended early", time.perf_counter()
        try:
            yield
            outcome = DONE
        except Exception as error:
            traceback.print_exc(file=log)
            outcome = f"failed: {cause(error)}"
            raise
        finally:
            took = f"{time.perf_counter() - begin:.1f}"
            end = {"device": device(), "ended": _now(), "seconds": took, "memory": memory()}
            _write(log, end | {"outcome": outcome})


def read(path: str | Path) -> dict[str, str]:
    """The facts in a job's log, the last one of each name; without 'outcome' if it was killed."""
    lines = Path(path).read_text(encoding="utf-8", errors="replace").splitlines()
    return dict(match.groups() for line in lines if (match := _FACT.fullmatch(line)))


def seconds(paths: Iterable[str | Path]) -> float | None:
    """What the jobs with these logs took, one after the other; None if a log does not say."""
    jobs = [read(path) if Path(path).exists() else {} for path in paths]
    known = all("seconds" in job for job in jobs)
    return sum(float(job["seconds"]) for job in jobs) if known else None


def failures(folder: str | Path, since: float) -> Iterator[tuple[Path, str]]:
    """Logs below `folder` written after `since` (seconds since 1970) of jobs that are not done.

    Returns:
        Pairs of log and cause, in the order of time.
    """
    logs = [path for path in Path(folder).rglob("*.log") if path.stat().st_mtime >= since]
    for path in sorted(logs, key=lambda path: path.stat().st_mtime):
        outcome = read(path).get("outcome", "ended without a word: killed, or out of memory")
        if outcome != DONE:
            yield path, outcome.removeprefix("failed: ")


def cause(error: Exception) -> str:
    """What went wrong, in one line."""
    return " ".join(f"{type(error).__name__}: {error}".split())


def versions() -> dict[str, str]:
    """Python's and the PACKAGES' versions, as far as they are installed."""
    found = {"Python": platform.python_version()}
    for name in PACKAGES:
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found


def device() -> str:
    """What JAX computes on; a job that has not imported it computes on the CPU."""
    if "jax" not in sys.modules:
        return "cpu"
    try:
        return ", ".join(sorted({device.device_kind for device in sys.modules["jax"].devices()}))
    except RuntimeError as error:
        return f"none, {cause(error)}"


def memory() -> str:
    """The most memory that this process has held so far."""
    unit = 1 if sys.platform == "darwin" else 1024
    return f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6:.0f} MB"


@contextlib.contextmanager
def _messages(log) -> Iterator[None]:
    """Let the library's messages through to the log, with the time of each."""
    handler = logging.StreamHandler(log)
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s", "%H:%M:%S"))
    logger = logging.getLogger("twotowers")
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)


def _write(log, facts: Mapping[str, object]) -> None:
    for name, value in facts.items():
        text = value if isinstance(value, str) else json.dumps(value, default=str)
        print(f"{name}: {text}", file=log)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
