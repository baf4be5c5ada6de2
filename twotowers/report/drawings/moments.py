"""Means and standard deviations over runs: a LaTeX table, ours above the printed row."""

from collections.abc import Mapping, Sequence

import pandas as pd

from twotowers.claims.statistics import measured, select, with_most
from twotowers.claims.statistics import moments as over_runs
from twotowers.report.latex import booktabs, moment

Blocks = Sequence[Mapping[str, Sequence]]
Columns = Mapping[str, Sequence[Sequence]]


def table(
    results: pd.DataFrame,
    published: pd.DataFrame,
    *,
    needs: Sequence[str],
    rows: Sequence[str],
    blocks: Blocks,
    metrics: Mapping[str, str],
    keys: Sequence[str],
    across: Columns | None = None,
    where: Mapping | None = None,
    most: str | None = None,
    order: Mapping[str, Sequence] | None = None,
) -> pd.DataFrame:
    """One row per line of the table, metric, statistic and source; see `moments`.

    Args:
        needs: What the item needs.
        rows: The lanes that make a line; `setting` where each line is a setting.
        blocks: Of lines, from heading to the values of `rows`, with a rule between blocks.
        metrics: From metrics to the headings of their columns.
        keys: The key columns of the csv.
        across: A lane of which each value has a column, and these values with their headings.
        where: Values of further lanes, by column.
        most: A lane of which only the largest value is taken.
        order: From key columns to their values in the order of the csv.
    """
    lines = [values for block in blocks for values in block.values()]
    lanes = {
        lane: list(dict.fromkeys(values))
        for lane, values in zip(rows, zip(*lines, strict=True), strict=True)
    }
    lanes |= {lane: [value for value, _ in values] for lane, values in (across or {}).items()}
    where = {**lanes, **(where or {}), "metric": list(metrics)}
    ours = with_most(measured(results, needs, **where), most)
    # Where nothing is printed, the printed numbers may lack the lanes.
    theirs = select(select(published, setting=list(needs)), **where)
    return over_runs(ours, theirs, keys, order)


def tex(
    table: pd.DataFrame,
    *,
    rows: Sequence[str],
    blocks: Blocks,
    metrics: Mapping[str, str],
    across: Columns | None = None,
    digits: Mapping[str, int] | None = None,
    marks: Mapping[float, str] | None = None,
) -> str:
    """A booktabs table: two lines per row, the printed one in grey.

    Args:
        digits: From metrics that are printed as powers of ten, without deviation, to their digits.
        marks: From values of the statistic `change` to what stands behind a mean.
    """
    keys = [*rows, "source", "metric", *(across or {}), "statistic"]
    cells = table.set_index(keys)["value"].to_dict()
    columns = _columns(metrics, across)
    body = []
    for number, block in enumerate(blocks):
        body += [r"\midrule"] if number else []
        for name, line in block.items():
            for source, whose in (("reproduced", "ours"), ("published", "paper")):
                texts = [whose]
                for column in columns:
                    key, power = (*line, source, *column), (digits or {}).get(column[0], 0)
                    bound = cells.get((*key, "upper bound"))
                    mean, sd = (cells.get((*key, what)) for what in ("mean", "sd"))
                    value = mean if bound is None else bound
                    mark = (marks or {}).get(cells.get((*key, "change")), "")
                    texts.append(moment(value, sd, digits=power, bound=bound is not None) + mark)
                body.append([name if source == "reproduced" else "", *texts])
    return booktabs(["Method", "", *columns.values()], body, columns="ll" + "r" * len(columns))


def _columns(metrics: Mapping[str, str], across: Columns | None) -> dict[tuple, str]:
    """Each column's metric, and value of the lane across, with its heading."""
    if not across:
        return {(metric,): name for metric, name in metrics.items()}
    (values,) = across.values()
    return {
        (metric, value): name if len(metrics) == 1 else f"{of}, {name}"
        for metric, of in metrics.items()
        for value, name in values
    }
