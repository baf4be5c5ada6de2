"""What the public functions and the commands take by default."""

PRIOR = "rate"
"""The prior of click models (`twotowers.fits.fitting`)."""
MEAN = 0.5
"""The mean of a prior, if a user gives its strength only."""
FEATURE, BIAS = ("query", "document"), ("position",)
"""Columns of the feature vector, and of the bias factor."""
SURE = 0.01
"""Level of tests of a log. Each says something false of one log in a hundred."""
TEST = 0.2
"""The share of pages that a comparison holds out."""
ESTIMATORS = (
    *("automatic", "conditional", "sequential", "odds"),
    *("all_pairs", "adjacent_chain", "pivot_one"),
)
"""Names of the estimators of propensities, the default first. Commands show them before anything
that computes is imported."""
WEIGHED_BY = (*(name for name in ESTIMATORS if name != "odds"), "pbm")
"""What weights may follow from. By ratios of odds a click cannot be weighed."""
STRAY = 0.01
"""Share of clicks, or of pages, that is worth a warning."""
