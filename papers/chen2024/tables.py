"""What the tables of this paper share: their rows, and booktabs in the order printed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from papers.chen2024.panels import DATASETS, moments, rows
from twotowers.results.statistics import compare, select

CONTEXT_METRICS = {
    "mcc": "MCC",
    "ndcg@5": "nDCG@5",
    "ndcg@10": "nDCG@10",
    "click_mse": "Click MSE",
    "test_ndcg@5": "test nDCG@5",
    "test_ndcg@10": "test nDCG@10",
}
CONTEXT_KEYS = ["dataset", "method", "variant", "start", "metric"]
COUNT_KEYS = ["dataset", "amount", "metric"]
STATISTICS = ("mean", "sd", "upper bound")


def context_table(
    results: pd.DataFrame, published: pd.DataFrame, starts: Sequence[str]
) -> pd.DataFrame:
    """`moments` of both contextual studies, for some ways to start the observation model."""
    where = {
        "method": ["naive", "dla"],
        "variant": ["plain", "merging"],
        "start": list(starts),
        "metric": list(CONTEXT_METRICS),
    }
    ours = [rows(results, f"contexts-{name}", dataset=name, **where) for name in DATASETS]
    settings = [f"contexts-{name}" for name in DATASETS]
    theirs = select(published, setting=settings, **where)
    return moments(pd.concat(ours, ignore_index=True), theirs, CONTEXT_KEYS)


def context_tex(table: pd.DataFrame, starts: Sequence[str], *, digits: int) -> str:
    """The rows of Tables 2 and 6, a block per data set; starts are named where there are two."""
    marks = {"ones": r" $\mathcal{I}$", "random": r" $\mathcal{R}$"} if len(starts) > 2 else {}
    lines, rules = {}, []
    for dataset, name in DATASETS.items():
        block = {(dataset, "naive", "plain", "none"): f"{name}: No debias"}
        for variant, repair in (("plain", ""), ("merging", " + Node merging")):
            for start in starts[1:]:
                block[dataset, "dla", variant, start] = f"DLA{marks.get(start, '')}{repair}"
        rules += [next(iter(block))] if lines else []
        lines |= block
    return moments_tex(
        table,
        lines=lines,
        index=CONTEXT_KEYS[:-1],
        metrics=CONTEXT_METRICS,
        digits=digits,
        rules=rules,
    )


def statistics_table(
    results: pd.DataFrame, published: pd.DataFrame, metrics: Mapping[str, str]
) -> pd.DataFrame:
    """Counts of both data sets and of their graphs with 5,000 context types, beside the printed."""
    where = {"sweep": "statistics", "metric": list(metrics)}
    settings = [f"connectivity-{name}" for name in DATASETS]
    ours = [rows(results, setting, **where) for setting in settings]
    table = pd.concat(ours, ignore_index=True)
    return compare(table, published, COUNT_KEYS, setting=settings, **where)


def statistics_tex(table: pd.DataFrame, metrics: Mapping[str, str]) -> str:
    """A booktabs table: a row per count, per data set ours and (grey) the paper's."""
    cells = table.set_index(["dataset", "metric", "source"])["value"].to_dict()
    body = []
    for metric, name in metrics.items():
        texts = [name]
        for dataset in DATASETS:
            texts.append(count(cells.get((dataset, metric, "reproduced"))))
            texts.append(grey(count(cells.get((dataset, metric, "published")))))
        body.append(" & ".join(texts) + r" \\")
    headings = [""]
    for name in DATASETS.values():
        headings += [name, grey("paper")]
    return booktabs(headings, body, columns="l" + "rr" * len(DATASETS))


def moments_tex(
    table: pd.DataFrame,
    *,
    lines: Mapping[tuple, str],
    index: Sequence[str],
    metrics: Mapping[str, str],
    digits: int = 1,
    rules: Sequence[tuple] = (),
) -> str:
    """A booktabs table of `moments`: ours above the printed row (grey), mean and deviation.

    Args:
        table: The rows of `moments`.
        lines: From the values of `index` to a row's heading, in printed order.
        index: The columns that make a row.
        metrics: From metric to column heading; of 'click_mse' only the mean is shown.
        digits: Significant digits of the click MSE.
        rules: Keys of `lines` with a rule above.
    """
    cells = table.set_index([*index, "source", "metric", "statistic"])["value"].to_dict()
    body = []
    for key, heading in lines.items():
        body += [r"\midrule"] if key in rules else []
        for source, whose in (("reproduced", "ours"), ("published", "paper")):
            texts = [
                _moment(
                    *(cells.get((*key, source, metric, name)) for name in STATISTICS),
                    digits=digits if metric == "click_mse" else None,
                )
                for metric in metrics
            ]
            if source == "published":
                whose, *texts = map(grey, [whose, *texts])
            body.append(" & ".join([heading if source == "reproduced" else "", whose, *texts]))
            body[-1] += r" \\"
    return booktabs(["Method", "", *metrics.values()], body, columns="ll" + "r" * len(metrics))


def _moment(
    mean: float | None, spread: float | None, bound: float | None, *, digits: int | None
) -> str:
    if bound is not None:
        return f"$< {_scientific(bound, 1)}$"
    if mean is None:
        return "--"
    if digits is not None:
        return f"${_scientific(mean, digits)}$"
    tail = "" if spread is None else rf" \pm {spread:.3f}".replace(" 0.", " .")
    return f"${mean:.3f}{tail}$"


def _scientific(number: float, digits: int) -> str:
    if number == 0:
        return "0"
    mantissa, exponent = f"{number:.{digits - 1}e}".split("e")
    power = f"10^{{{int(exponent)}}}"
    return power if float(mantissa) == 1 else rf"{mantissa} \times {power}"


def booktabs(headings: Sequence[str], body: Sequence[str], *, columns: str) -> str:
    """A whole tabular; `body` holds its lines, with their own line ends and rules."""
    return "\n".join(
        [
            "% Needs the packages booktabs and xcolor.",
            rf"\begin{{tabular}}{{{columns}}}",
            r"\toprule",
            " & ".join(headings) + r" \\",
            r"\midrule",
            *body,
            r"\bottomrule",
            r"\end{tabular}",
            "",
        ]
    )


def count(number: float | None) -> str:
    """A whole number as LaTeX, with separators; a dash where there is none."""
    return "--" if number is None or pd.isna(number) else f"${number:,.0f}$".replace(",", "{,}")


def grey(text: str) -> str:
    """A published number stands behind ours."""
    return rf"\textcolor{{gray}}{{{text}}}"
