"""What chapter 5 claims, each claim with its conditions and its judge.

The README says what git shows of when thresholds were set.
"""

from papers.clax2025.judges import compression, features, fits, scale, theory, uncertainty
from twotowers.claims.claims import in_order

CLAIMS = in_order(
    fits.CLAIMS,
    theory.CLAIMS,
    compression.CLAIMS,
    scale.CLAIMS,
    features.CLAIMS,
    uncertainty.CLAIMS,
)
