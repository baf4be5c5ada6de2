"""Unit tests use the same examples every time, and compile quickly."""

import jax
from hypothesis import settings

# No deadline, since first calls compile.
settings.register_profile("two-towers", deadline=None, derandomize=True)
settings.load_profile("two-towers")

# These tests compile many small programs and run each only a few times. Quick compilation halves
# their time. The workflow tests compile as users do.
jax.config.update("jax_disable_most_optimizations", True)
