"""Claims 15, 16 and 33: what Section 5.4 says of the web store, whose logs nobody else has."""

import pandas as pd

from twotowers.claims.claims import Claims, Measured, NotTestable
from twotowers.claims.conditions import holds

CLAIMS = Claims()


@CLAIMS.add(
    "15", "table2", "Sec. 5.4, Table 2",
    "On the Chrome Web Store's logs both remedies rank better than PAL",
    holds("measured on these logs"),
)  # fmt: skip
@CLAIMS.add(
    "16", "table3", "Sec. 5.4, Table 3",
    "In four weeks online GradRev has a higher click rate than PAL, and more users who click",
    holds("measured in this store"),
)  # fmt: skip
@CLAIMS.add(
    "33", "table3", "Sec. 5.4, Table 3",
    "In four weeks online Biased has a higher click rate than PAL, and fewer users who click",
    holds("measured in this store"),
)  # fmt: skip
def proprietary(results: pd.DataFrame) -> Measured:
    raise NotTestable("the store's logs are proprietary; our item is a proxy, on a simulated store")
