"""What Hager et al. (2025) claim, each claim with its conditions and its judge.

Thresholds were set once, from the authors' published results or before ours were seen.
"""

from papers.hager2025.judges import fits, ours, theory
from twotowers.results.claims import in_order

CLAIMS = in_order(fits.CLAIMS, theory.CLAIMS, ours.CLAIMS)
