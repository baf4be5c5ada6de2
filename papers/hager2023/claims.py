"""What the chapter claims, each claim with its conditions and its judge.

Thresholds are from the printed Table 2.2 where it decides. The README says what git shows of when
they were set, and which were changed.

The thesis tests over ten runs. That there is no significant difference (11, 12, 16) needs ten.
"""

from papers.hager2023.judges import grid, theory
from twotowers.claims.claims import in_order

CLAIMS = in_order(theory.CLAIMS, grid.CLAIMS)
"""All claims, by number."""
