"""What the chapter claims, each claim with its conditions and its judge.

Thresholds were set before our results were seen, from the printed Table 2.2 where it decides. The
README lists the exceptions, 11 to 14 and 23 to 26.

The thesis tests over ten runs. Its own test decides claims 11 and 12, and needs ten.
"""

from papers.hager2023.judges import analyses, grid, theory
from twotowers.results.claims import in_order

CLAIMS = in_order(theory.CLAIMS, grid.CLAIMS, analyses.CLAIMS)
"""All claims, by number."""
