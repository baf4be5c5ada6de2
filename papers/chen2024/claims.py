"""What Chen et al. (2024) claim, each claim with its conditions and its judge.

Thresholds come from the paper's sentences and printed numbers. One that the paper does not print is
ours, and says so beside its number. The README says what git shows of when they were set.
Comparisons are between means over seeds, each of which is one of the paper's runs.
"""

from papers.chen2024.judges import connectivity, contexts, repairs, synthetic, theory
from twotowers.claims.claims import in_order

JUDGES = synthetic, repairs, connectivity, contexts, theory
CLAIMS = in_order(*(judges.CLAIMS for judges in JUDGES))
