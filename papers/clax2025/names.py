"""What several modules of the chapter share: which models EM fits, a prior, names in texts."""

from twotowers.models.names import MODELS

HIDDEN = ("pbm", "ubm", "dcm", "ccm", "dbn", "sdbn")
"""Models that EM fits."""

NINTH = 0.111111
"""The mean of the prior of the thesis's baseline."""

CALLED = {name: name.upper() for name in (*MODELS, "mixture")}
"""What models are called in texts."""
