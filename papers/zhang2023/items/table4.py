"""Table 4: a column per adversarial label; of each policy both winners and the printed row."""

from collections.abc import Sequence

import pandas as pd

from papers.zhang2023.winners import POLICIES, SOURCES, beside_printed, on_common_grid
from twotowers.report.latex import booktabs

LABELS = {"yahoo-utility": "Utility", "yahoo-gradrev": "Click", "yahoo-prediction": "Prediction"}


def table(results: pd.DataFrame, published: pd.DataFrame, *, needs: Sequence[str]) -> pd.DataFrame:
    return beside_printed(on_common_grid(results, needs), published, needs)


def tex(table: pd.DataFrame) -> str:
    wide = table.pivot(
        index=["mixing_weight", "source", "chosen_by"], columns="setting", values="value"
    )
    body = []
    for weight, policy in POLICIES.items():
        body += [r"\midrule"] * bool(body)
        for place, said in SOURCES.items():
            numbers = (f"{wide.loc[(weight, *place), label]:.4f}" for label in LABELS)
            body.append([policy, said, *numbers])
            policy = ""
    return booktabs(["policy", "", *LABELS.values()], body, columns="llrrr")
