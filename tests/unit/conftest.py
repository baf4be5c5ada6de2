"""Unit tests: the same examples every time, and quick compilation."""

import jax
from hypothesis import settings

# No deadline, since first calls compile.
settings.register_profile("two-towers", deadline=None, derandomize=True)
settings.load_profile("two-towers")

# These tests compile many small programs and run each a few times only: half the time. The
# workflow tests compile as users do.
jax.config.update("jax_disable_most_optimizations", True)
