"""What answers look like in a notebook, and the picture of a curve."""

from collections.abc import Iterator, Sequence
from html import escape
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00")
"""Of curves. Colour-blind readers can distinguish them (Okabe and Ito 2008)."""
WIDTH, HEIGHT, LEFT, BELOW, ABOVE = 480, 280, 46, 40, 26
"""Of a picture, and its margins, in its own units."""
ROW = 18
"""Height of a row of the legend, which has two curves."""
MOST_TICKS = 8


class Shown:
    """An answer that a notebook shows as `print` does, instead of its arrays."""

    def lines(self) -> Iterator[str]:
        """What is printed."""
        raise NotImplementedError

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"


class Line(NamedTuple):
    """A curve: [points] position, estimate, low and high, and what it is of."""

    label: str
    position: np.ndarray
    estimate: np.ndarray
    low: np.ndarray
    high: np.ndarray


class Drawn(Shown):
    """An answer with a picture of its curves."""

    def curves(self) -> tuple[list[Line], str]:
        """Curves, and what is estimated, in words."""
        raise NotImplementedError

    def plot(self, axes: Any = None) -> Any:
        """Draw the curve with its intervals: a curve for each combination of the bias features
        other than the position, such as the device.

        Args:
            axes: of matplotlib; new ones unless given.

        Returns:
            the axes.
        """
        if axes is None:
            from matplotlib import pyplot  # here: the rest needs no pictures

            _, axes = pyplot.subplots()
        lines, measure = self.curves()
        for line in lines:
            ends = np.abs([line.estimate - line.low, line.high - line.estimate])
            axes.errorbar(line.position, line.estimate, ends, marker="o", label=line.label or None)
        axes.set(xlabel="position", ylabel=measure, ylim=(0, None))
        if axes.get_legend_handles_labels()[1]:
            axes.legend()
        return axes

    def picture(self) -> str:
        """The same as SVG, without matplotlib, as notebooks and the page of `diagnose` show it."""
        return picture(*self.curves())

    def _repr_html_(self) -> str:
        return self.picture() + super()._repr_html_()


def lines_of(table: pd.DataFrame, bias: Sequence[str]) -> list[Line]:
    """A curve for each combination of the bias features other than the position.

    The table has the bias features, estimate, low and high. Rows without an estimate are left out.
    Without a position, rows are counted from 1.
    """
    table = table[np.isfinite(table["estimate"])]
    if "position" not in bias:
        table, bias = table.assign(position=np.arange(1, len(table) + 1)), ["position"]
    others = [name for name in bias if name != "position"]
    lines = []
    for key, own in table.groupby(others, sort=True) if others else [((), table)]:
        columns = own.sort_values("position")[list(Line._fields[1:])]
        lines.append(Line(", ".join(map(str, key)), *columns.to_numpy(float).T))
    return lines


def picture(lines: Sequence[Line], label: str = "examination") -> str:
    """Draw curves with their intervals over positions, as the text of an SVG element.

    The text is "" if no curve has a point. `label` says what is estimated.
    """
    if not any(len(line.position) for line in lines):
        return ""
    ends = np.concatenate([line.position for line in lines])
    first, last = ends.min(), max(ends.max(), ends.min() + 1)
    seen = np.concatenate([np.fmin(line.high, 1.5 * line.estimate) for line in lines])
    top = float(np.nanmax(np.append(seen, 1.0)))
    step = 0.25 if top <= 1.5 else 0.5 if top <= 3 else float(np.ceil(top / 5))
    top = step * np.ceil(top / step - 1e-9)

    def x(position: float) -> float:
        return round(LEFT + 10 + (WIDTH - LEFT - 22) * (position - first) / (last - first), 1)

    def y(value: float) -> float:
        share = min(value, top) / top
        return round(HEIGHT - BELOW - (HEIGHT - BELOW - ABOVE) * share, 1)

    every = max(int(np.ceil((last - first + 1) / MOST_TICKS)), 1)
    curves = []
    for number, line in enumerate(lines):
        shift = 3 * (number - (len(lines) - 1) / 2)  # Intervals of several curves do not overlap.
        points = [
            (x(p) + shift, *map(y, (e, low, high)))
            for p, e, low, high in zip(*line[1:4], np.nan_to_num(line.high, nan=0), strict=True)
        ]
        curves.append((line.label, points))
    from twotowers.report.rendering import environment  # here: printing needs no templates

    size = {"width": WIDTH, "height": HEIGHT, "left": LEFT, "row": ROW, "colours": COLOURS}
    return (
        environment()
        .get_template("curves.svg.j2")
        .render(
            **size,
            curves=curves,
            named=sum(bool(name) for name, _ in curves),
            label=label,
            ticks=[(value, y(value)) for value in np.arange(0, top + step / 2, step)],
            places=[(value, x(value)) for value in np.arange(first, last + 1, every)],
        )
    )
