"""What the functions of the face and the commands take unless told."""

PRIOR = "rate"
"""The prior of click models (`twotowers.face.priors`)."""
MEAN = 0.5
"""The mean of a prior whose strength alone is told."""
FEATURE, BIAS = ("query", "document"), ("position",)
"""Columns of the feature vector, and of the bias factor."""
TEST = 0.2
"""The share of pages that a comparison holds out."""
