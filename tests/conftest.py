"""Settings for all tests."""

from hypothesis import settings

# The same examples every time, and no deadline: first calls compile.
settings.register_profile("two-towers", deadline=None, derandomize=True)
settings.load_profile("two-towers")
