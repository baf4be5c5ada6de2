"""Claims 31 to 33, our own: what standard errors by the observed information are worth.

The thesis gives no errors. A nominal share of .95 is met within .03: of 2,000 documents the share
has a standard error of .005, of which one must leave room for the normal law of a few clicks.
"""

import pandas as pd

from twotowers.claims.claims import OURS, Claims, Measured, NotTestable
from twotowers.claims.conditions import above, at_least, at_most, counted
from twotowers.claims.statistics import select
from twotowers.models.names import MODELS

CLAIMS = Claims(origin=OURS)

OF_DOCUMENTS = ("attraction", "satisfaction")
"""Parts of which each document has its own."""


@CLAIMS.add(
    "31", "uncertainty", "Ours",
    "95 % intervals of counting and EM hold the truth of documents about as often as they say",
    at_least("every model and part of documents: coverage", 0.92),
    at_most("every model and part of documents: coverage", 0.98),
    documents=True, models={"dctr", "pbm", "cm", "ubm", "dcm", "ccm", "dbn", "sdbn"},
)  # fmt: skip
@CLAIMS.add(
    "32", "uncertainty", "Ours",
    "So do those of what all documents share",
    # Of few parameters each; a share of .85 is 3 of 20 outside, where 1 is expected.
    counted(at_least("every model: coverage of positions and of what there is once", 0.85)),
    documents=False, models={"gctr", "rctr", "pbm", "ubm", "dcm", "ccm", "dbn"},
)  # fmt: skip
def of_parts(results: pd.DataFrame, documents: bool, models: set[str]) -> Measured:
    values = _coverage(results, "interval")
    values = values[values.index.get_level_values("part").isin(OF_DOCUMENTS) == documents]
    settings = values.index.get_level_values("setting")
    if lacking := models - {setting.split("-")[1] for setting in settings}:
        raise NotTestable(f"no coverage of {', '.join(sorted(lacking))}")
    return [values, values] if documents else values


@CLAIMS.add(
    "33", "uncertainty", "Ours",
    "Where gradient descent stops early, intervals at its end hold the truth less often",
    above("PBM and DBN: coverage of attraction by EM", 1, "times that by gradient descent"),
)  # fmt: skip
def of_gradient(results: pd.DataFrame) -> Measured:
    pairs = []
    for prefix in ("interval", "stopped"):
        values = _coverage(results, prefix)
        settings = [f"{prefix}-{name}" for name in ("pbm", "dbn")]
        try:
            pairs.append(values.loc[[(setting, "attraction") for setting in settings]])
        except KeyError:
            raise NotTestable(f"no coverage of {', '.join(settings)}") from None
    return [tuple(pairs)]


def _coverage(results: pd.DataFrame, prefix: str) -> pd.Series:
    if "part" not in results:
        raise NotTestable("no intervals")
    settings = [f"{prefix}-{name}" for name in MODELS]
    rows = select(results, setting=settings, metric="coverage")
    return rows.groupby(["setting", "part"])["value"].mean()
