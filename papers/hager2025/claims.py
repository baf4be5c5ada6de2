"""What Hager et al. (2025) claim, each claim with its conditions and its judge.

The README says what git shows of when thresholds were set, and which were changed.
"""

from papers.hager2025.judges import fits, ours, theory
from twotowers.claims.claims import in_order

CLAIMS = in_order(fits.CLAIMS, theory.CLAIMS, ours.CLAIMS)
