"""Identifiability of TianGong-ST with positions and vertical types v1#v2 as bias factors.

To be seen: thousands of components with both parts of the type, fewer with either, and one with
positions alone. Takes a second.
"""

from __future__ import annotations

import pandas as pd

from papers.chen2024.panels import rows
from papers.chen2024.tables import booktabs, count
from twotowers.results.statistics import compare

FACTORS = {
    "v1, v2, position": "$(v_1, v_2, $ position$)$",
    "v1, position": "$(v_1, $ position$)$",
    "v2, position": "$(v_2, $ position$)$",
    "position": "position only",
}
KEYS = ["factors", "metric"]


def table(results: pd.DataFrame, published: pd.DataFrame) -> pd.DataFrame:
    """One row per choice of bias factors, metric and source."""
    where = {"factors": list(FACTORS), "metric": ["bias_factors", "components"]}
    ours = rows(results, "verticals", **where)
    return compare(ours, published, KEYS, setting="verticals", **where)


def tex(table: pd.DataFrame) -> str:
    """A booktabs table: bias factors and components, ours and (grey) the paper's."""
    cells = table.set_index([*KEYS, "source"])["value"].to_dict()
    body = []
    for factors, name in FACTORS.items():
        texts = [name]
        for metric in ("bias_factors", "components"):
            texts.append(count(cells.get((factors, metric, "reproduced"))))
            texts.append(
                rf"\textcolor{{gray}}{{{count(cells.get((factors, metric, 'published')))}}}"
            )
        connected = cells[factors, "components", "reproduced"] == 1
        body.append(" & ".join([*texts, "yes" if connected else "no"]) + r" \\")
    headings = ["Bias factors", r"\# factors", "paper", r"\# components", "paper", "Identifiable?"]
    return booktabs(headings, body, columns="lrrrrl")
