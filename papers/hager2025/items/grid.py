"""The full grid, as the authors publish it in their repository: every setting, strength,
temperature and weighting, with position bias at positions 5, 10 and 25 (truth: -1.609, -2.303,
-3.219), nDCG@10 of the fitted relevance tower and of the logging policy.

To be seen: reproduced and published agree to a few hundredths in the bias wherever a model is
identified and well specified; at temperature 1 the strength does not matter in any setting.
Takes a second.
"""

from __future__ import annotations

import pandas as pd

from papers.hager2025.panels import LANE
from papers.hager2025.published import SETTINGS
from twotowers.results.statistics import compare

POSITIONS = (5, 10, 25)
COLUMNS = {
    **{("position_bias", k): rf"$\theta_{{{k}}} - \theta_1$" for k in POSITIONS},
    ("ndcg@10", 0): "nDCG@10",
    ("policy_ndcg@10", 0): "policy nDCG@10",
}
"""From metric and position (0 for none) to the heading of its two columns."""


def table(results: pd.DataFrame, published: pd.DataFrame) -> pd.DataFrame:
    """One row per lane, metric and source: mean and 95 % interval over seeds."""
    keys = [*LANE, "metric", "position"]
    settings = list(SETTINGS.values())
    return pd.concat(
        [
            compare(
                results, published, keys,
                setting=settings, metric="position_bias", position=POSITIONS,
            ),
            compare(
                results, published, keys,
                setting=settings, metric=("ndcg@10", "policy_ndcg@10"),
            ),
        ],
        ignore_index=True,
    )  # fmt: skip


def tex(table: pd.DataFrame) -> str:
    """A booktabs longtable: a row per lane, reproduced beside published (in grey) per metric."""
    wide = table.fillna({"position": 0}).pivot(
        index=LANE, columns=["metric", "position", "source"], values="value"
    )
    lines = [*_head(), *_body(wide), r"\bottomrule", r"\end{longtable}"]
    return "\n".join(lines) + "\n"


def _head() -> list[str]:
    pairs = " & ".join(rf"\multicolumn{{2}}{{c}}{{{heading}}}" for heading in COLUMNS.values())
    first = 3
    rules = "".join(
        rf"\cmidrule(lr){{{first + 2 * i}-{first + 2 * i + 1}}}" for i in range(len(COLUMNS))
    )
    return [
        "% Needs the packages array, booktabs, longtable and xcolor.",
        r"\begin{longtable}{rr" + r"r>{\color{gray}}r" * len(COLUMNS) + "}",
        r"\toprule",
        rf" & & {pairs} \\ {rules}",
        r"$\alpha$ & $\tau$" + " & ours & paper" * len(COLUMNS) + r" \\",
        r"\midrule",
        r"\endhead",
    ]


def _body(wide: pd.DataFrame) -> list[str]:
    width = 2 + 2 * len(COLUMNS)
    lines = []
    for setting in SETTINGS.values():
        for weighting, name in (("none", "unweighted"), ("ips", "propensity weighted")):
            lanes = wide[
                (wide.index.get_level_values("setting") == setting)
                & (wide.index.get_level_values("weighting") == weighting)
            ]
            if lanes.empty:
                continue
            title = rf"\multicolumn{{{width}}}{{l}}{{\emph{{{setting}}}, {name}}} \\*"
            lines += [r"\addlinespace", title]
            lines += [_row(lane[1], lane[2], values) for lane, values in lanes.iterrows()]
    return lines


def _row(strength: float, temperature: float, values: pd.Series) -> str:
    cells = [
        _number(values.get((metric, position, source)))
        for metric, position in COLUMNS
        for source in ("reproduced", "published")
    ]
    return " & ".join([f"${strength:g}$", f"${temperature:g}$", *cells]) + r" \\"


def _number(value: float | None) -> str:
    return "--" if value is None or pd.isna(value) else f"${value:.3f}$"
