"""What the functions of the face and the commands take unless told."""

PRIOR = (2.0, 0.5)
"""The prior of click models and its mean: one imagined click in two trials of every probability."""
FEATURE, BIAS = ("query", "document"), ("position",)
"""Columns of the feature vector, and of the bias factor."""
TEST = 0.2
"""The share of pages that a comparison holds out."""
