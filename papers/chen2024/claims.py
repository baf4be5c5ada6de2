"""What Chen et al. (2024) claim, each claim with its conditions and its judge.

Thresholds come from the paper's sentences and printed numbers, and do not move. A threshold that
the paper does not print is ours; README.md lists those, and says which were set when.
Comparisons are between means over seeds, each of which is one of the paper's runs.
"""

from papers.chen2024.judges import (
    connectivity,
    contexts,
    redrawn,
    repairs,
    synthetic,
    theorems,
    theory,
)
from twotowers.results.claims import in_order

CLAIMS = in_order(
    synthetic.CLAIMS,
    repairs.CLAIMS,
    redrawn.CLAIMS,
    connectivity.CLAIMS,
    contexts.CLAIMS,
    theory.CLAIMS,
    theorems.CLAIMS,
)
