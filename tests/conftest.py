"""Tests run as jobs of scale smoke do, with a shared cache of compiled programs."""

import os
from pathlib import Path

from twotowers.workflow.compiling import QUICKLY

ROOT = Path(__file__).resolve().parents[1]

os.environ.setdefault("XLA_FLAGS", QUICKLY)
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(ROOT / ".cache" / "jax"))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.5")
