"""What several modules of the chapter share: which models EM fits, and a prior."""

HIDDEN = ("pbm", "ubm", "dcm", "ccm", "dbn", "sdbn")
"""Models that EM fits."""

NINTH = 0.111111
"""The mean of the prior of the thesis's baseline."""
