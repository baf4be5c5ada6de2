"""Unit tests compile many small programs and run each a few times only."""

import jax

# Half the time; the workflow tests compile as users do.
jax.config.update("jax_disable_most_optimizations", True)
