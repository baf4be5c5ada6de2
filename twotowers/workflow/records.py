"""One log per job: what ran, where and when, its messages, and how it ended.

    rule: fit
    script: scripts/fit_setting.py
    started: 2026-11-21T06:11:18+00:00
    ...
    <what the job prints>
    device: cpu
    ended: 2026-11-21T06:11:40+00:00
    seconds: 22.3
    processor: 21.8
    memory: 912 MB
    outcome: done

Standard library only, so that a Snakefile can use it.
"""

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

PACKAGES = ("snakemake", "jax", "numpy", "scipy", "pandas", "lightgbm", "matplotlib")
"""A log states the versions of these packages: results may depend on them."""

_FACT = re.compile(r"([a-z]+): (.*)")


@contextlib.contextmanager
def job_log(path: str | Path, facts: Mapping[str, object]) -> Iterator[None]:
    """Send stdout, stderr and the library's `logging` messages of a block to a new log of a job.

    It begins with `facts`, a line each, whose keys are lower-case words.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    # Lines are written at once, so that the log of a killed or running job is readable.
    with (
        path.open("w", encoding="utf-8", buffering=1) as log,
        contextlib.redirect_stdout(log),
        contextlib.redirect_stderr(log),
        _messages(log),
    ):
        _write(log, facts | {"started": _now(), "versions": versions()})
        print(file=log)
        _forget_peak()
        outcome, begin, worked = "ended early", time.perf_counter(), time.process_time()
        try:
            yield
            outcome = "done"
        except Exception as error:
            traceback.print_exc(file=log)
            outcome = f"failed: {cause(error)}"
            raise
        finally:
            end = {
                "device": device(),
                "ended": _now(),
                "seconds": f"{time.perf_counter() - begin:.1f}",
                # Seconds on cores. Unlike the above, other programs hardly change them.
                "processor": f"{time.process_time() - worked:.1f}",
                "memory": f"{peak_memory() / 1e6:.0f} MB",
            }
            _write(log, end | {"outcome": outcome})


def read(path: str | Path) -> dict[str, str]:
    """The facts in a job's log, the last of each name. A killed job has no 'outcome'."""
    lines = Path(path).read_text(encoding="utf-8", errors="replace").splitlines()
    return dict(match.groups() for line in lines if (match := _FACT.fullmatch(line)))


def cost(paths: Iterable[str | Path]) -> dict[str, float | None]:
    """What the jobs with these logs took: `seconds` of a processor, and `megabytes` of the largest.

    Both are None if a log has no such line.
    """
    jobs = [read(path) if Path(path).exists() else {} for path in paths]
    if not all({"processor", "memory"} <= job.keys() for job in jobs):
        return {"seconds": None, "megabytes": None}
    return {
        "seconds": sum(float(job["processor"]) for job in jobs),
        "megabytes": max((float(job["memory"].split()[0]) for job in jobs), default=0.0),
    }


def failures(folder: str | Path, since: float) -> Iterator[tuple[Path, str]]:
    """Logs and causes of jobs that did not finish, if written after `since` (s since 1970)."""
    logs = [path for path in Path(folder).rglob("*.log") if path.stat().st_mtime >= since]
    for path in sorted(logs, key=lambda path: path.stat().st_mtime):
        outcome = read(path).get("outcome", "ended without a message: killed, or out of memory")
        if outcome != "done":
            yield path, outcome.removeprefix("failed: ")


def cause(error: Exception) -> str:
    """The error in one line."""
    return " ".join(f"{type(error).__name__}: {error}".split())


def versions() -> dict[str, str]:
    """The versions of Python and of the installed PACKAGES."""
    installed = {"Python": platform.python_version()}
    for name in PACKAGES:
        with contextlib.suppress(metadata.PackageNotFoundError):
            installed[name] = metadata.version(name)
    return installed


def device() -> str:
    """The device that JAX computes on. A job that has not imported JAX computes on the CPU."""
    if "jax" not in sys.modules:
        return "cpu"
    try:
        return ", ".join(sorted({device.device_kind for device in sys.modules["jax"].devices()}))
    except RuntimeError as error:
        return f"none, {cause(error)}"


def processor() -> str:
    """The name of this machine's processor."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def peak_memory() -> int:
    """Bytes of peak memory of this process since `_forget_peak`, or so far where that does
    nothing."""
    status = Path("/proc/self/status")
    if status.exists():
        # Unlike getrusage, this does not include the parent process.
        return 1024 * int(re.search(r"VmHWM:\s+(\d+) kB", status.read_text())[1])
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def _forget_peak() -> None:
    """Let the peak memory of this process start from what it has now. Only Linux knows how."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


@contextlib.contextmanager
def _messages(log) -> Iterator[None]:
    """Write the library's messages to the log, each with its time."""
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
