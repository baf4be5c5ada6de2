"""Both remedies together beside each alone, under Oracle."""

from collections.abc import Sequence

import pandas as pd

from papers.zhang2023.winners import SOURCES, beside_printed, on_common_grid
from twotowers.report.latex import booktabs

NAMES = {"yahoo-gradrev": "GradRev", "yahoo-drop": "Drop", "yahoo-combination": "Drop + GradRev"}


def table(results: pd.DataFrame, published: pd.DataFrame, *, needs: Sequence[str]) -> pd.DataFrame:
    """One row per method, winner and source.

    The paper prints a difference only of both together, which is not drawn.
    """
    return beside_printed(on_common_grid(results, needs), published, needs, mixing_weight=1)


def tex(table: pd.DataFrame) -> str:
    wide = table.pivot(index="setting", columns=["source", "chosen_by"], values="value")
    wide = wide.loc[list(NAMES), list(SOURCES)]
    body = [
        [NAMES[setting], *("--" if pd.isna(value) else f"{value:.4f}" for value in row)]
        for setting, row in zip(wide.index, wide.to_numpy(), strict=True)
    ]
    return booktabs(["method", *SOURCES.values()], body, columns="lrrr")
