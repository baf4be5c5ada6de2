"""What chapter 5 claims, each claim with its conditions and its judge.

The README says what git shows of when thresholds were set.
"""

from papers.clax2025.judges import compression, features, fits, theory
from twotowers.claims.claims import in_order

JUDGES = fits, theory, compression, features
CLAIMS = in_order(*(judges.CLAIMS for judges in JUDGES))
