"""A mark that a sentence of Section 3.6.1 leaves out."""

import pandas as pd

from papers.hager2024.claims import RANKING, marks
from twotowers.claims.findings import Finding

METHODS = {"regression-em": "RegressionEM", "two-tower": "two-tower", "point-ips": "IPS"}


def marked(results, authors):
    counts = {
        name: {"better": int(signs.gt(0).sum()), "worse": int(signs.lt(0).sum())}
        for method, name in METHODS.items()
        for signs in [marks(authors, [method], RANKING)]
    }
    table = pd.DataFrame(counts).T.rename_axis("pointwise method")
    others = table["better"].drop("RegressionEM").sum()
    losses = table["worse"]["RegressionEM"]
    return table, {"others": others, "losses": "without" if losses == 0 else f"with {losses}"}


FINDINGS = [
    Finding(
        "14",
        "In detail, we observe that the pointwise two-tower and IPS models do not consistently and "
        "significantly improve performance compared to the naive pointwise loss – IPS is even "
        "significantly worse on both BERT features – and RegressionEM is the only pointwise ULTR "
        "method that brings small but sometimes significant improvements.",
        "Section 3.6.1; significant differences from Naive in Tables 3.3 to 3.5",
        "Minor: {others} gains of two-tower models and IPS are marked as well, so that "
        "RegressionEM is not the only one. They are not consistent, as the sentence says. "
        "RegressionEM has gains {losses} losses.",
        marked,
        arguable=True,
    )
]
