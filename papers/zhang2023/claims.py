"""What Zhang et al. (2023) claim, each claim with its conditions and its judge.

Conditions are from the printed tables where these decide. The README says what git shows of when
they were set, and which were changed. A claim that fails on the paper's own table says so under
"authors".
"""

from papers.zhang2023.judges import ours, table1, theory, tuning
from twotowers.claims.claims import in_order

CLAIMS = in_order(table1.CLAIMS, tuning.CLAIMS, theory.CLAIMS, ours.CLAIMS)
"""All claims, by number."""
