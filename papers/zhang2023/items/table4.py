"""Table 4: a row per policy, a column per adversarial label, ours beside the printed."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from papers.zhang2023.winners import POLICIES, on_common_grid, won
from twotowers.report.latex import booktabs
from twotowers.results.statistics import BAND, compare

LABELS = {"yahoo-utility": "Utility", "yahoo-gradrev": "Click", "yahoo-prediction": "Prediction"}
KEYS = ["setting", "mixing_weight", "metric"]


def table(results: pd.DataFrame, published: pd.DataFrame, *, needs: Sequence[str]) -> pd.DataFrame:
    """One row per policy, label and source."""
    fair = on_common_grid(results, needs)
    rows = pd.concat([won(fair, setting, "ndcg") for setting in needs])
    found = compare(rows, published, KEYS, setting=list(needs), metric="ndcg@5")
    return found[[*KEYS, "source", *BAND]]


def tex(table: pd.DataFrame) -> str:
    """A booktabs table."""
    wide = table.pivot(index="mixing_weight", columns=["setting", "source"], values="value")
    heads = " & ".join(rf"\multicolumn{{2}}{{c}}{{{name}}}" for name in LABELS.values())
    top = [rf"policy & {heads} \\" + "\n" + " & ours & paper" * len(LABELS)]
    body = []
    columns = [(label, source) for label in LABELS for source in ("reproduced", "published")]
    for weight, policy in POLICIES.items():
        numbers = " & ".join(f"{wide.loc[weight, column]:.4f}" for column in columns)
        body.append(rf"{policy} & {numbers} \\")
    return booktabs(top, body, columns="l" + "rr" * len(LABELS), packages=["booktabs"])
