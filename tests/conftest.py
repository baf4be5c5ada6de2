"""Tests run as jobs of scale smoke do, with a shared cache of compiled programs."""

import gc
import os
from pathlib import Path

import pytest

from twotowers.workflow.compiling import QUICKLY

ROOT = Path(__file__).resolve().parents[1]

gc.disable()  # while modules are imported
os.environ.setdefault("XLA_FLAGS", QUICKLY)
# Jobs have one thread, too. With more, the threads of two workers would wait for each other.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(ROOT / ".cache" / "jax"))
# Small programs, too: from the cache, tests that compile take half the time.
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give all tests of a file to one worker, so that their fixtures are made once.

    The tests of the pipeline are the longest, so they begin first.
    """
    for item in items:
        if item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group(item.path.stem))
    items.sort(key=lambda item: item.get_closest_marker("workflow") is None)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Look for garbage in what tests make, and not again and again in all that was imported."""
    gc.freeze()
    gc.enable()
