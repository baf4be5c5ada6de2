"""Data sets: where they come from, how their files are read, how the papers prepare them."""
