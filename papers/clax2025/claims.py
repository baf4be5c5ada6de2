"""What chapter 5 claims, each claim with its conditions and its judge.

Thresholds were set from the published values before any of ours were seen.
"""

from papers.clax2025.judges import compression, features, fits, theory, uncertainty
from twotowers.results.claims import in_order

CLAIMS = in_order(
    fits.CLAIMS, theory.CLAIMS, compression.CLAIMS, features.CLAIMS, uncertainty.CLAIMS
)
