"""Charts of long tables: one look for curves and dots everywhere, drawn by seaborn.

A drawing makes `Curves` or `Dots` of its table, takes their plot, adds what is its own, and puts
it on a figure:

    chart = Curves(table, by={"temperature": symbols("τ", table["temperature"])})
    plot = chart.plot("position").label(x="Rank", y="Position bias")
    return chart.figure(plot)

The plot is a `seaborn.objects.Plot`. What is drawn is what the table holds: seaborn estimates
nothing. The column `source` says in which voice a row is drawn:

- reproduced: solid, coloured, with markers, and whiskers from `low` to `high`, or a band on long
  curves;
- published: thin, dashed and faded, dots are open, so that it does not compete;
- truth: black and dotted, a reference line without markers.

Curves named after numbers have colours from dark to light; others have colours of their own. Each
has a marker, so that curves differ in greyscale print and with every common colour
blindness.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from numbers import Real

import numpy as np
import pandas as pd
import seaborn as sns
import seaborn.objects as so
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from twotowers.intervals import quantile
from twotowers.report import comparison
from twotowers.report.figures import GREY, PAGE_WIDTH, STYLE, page, style

SOURCES = (*comparison.SOURCES, comparison.TRUTH)
PANELS = {"reproduced": "Reproduced", "published": "Published"}
"""Titles of panels of ours and of the published."""
Names = Mapping[str, Mapping[Hashable, str]]
"""One column, and the names of those of its values that are drawn, in their order."""

# Seaborn's colours for words, without those that are too light on white, such as its yellow.
CATEGORICAL = tuple(sns.color_palette("colorblind").as_hex()[k] for k in (0, 3, 2, 4, 9, 5, 7))
DARK_TO_LIGHT = ("#2A1657", "#2A5CA8", "#238B6E", "#CC8212")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", "p", ">")

FEW_SEEDS = 9
"""Up to so many seeds a whisker or a band is one standard deviation over them."""
SHORT = 12
"""Points of a curve that each have a marker and a whisker: bands would hide each other."""
BAND_ALPHA = 0.18
REPRODUCED = {"linewidth": 1.4, "linestyle": "-"}
PUBLISHED = {"linewidth": 0.9, "linestyle": (0, (4, 2)), "alpha": 0.6}
TRUTH = {"linewidth": 1.1, "linestyle": ":", "color": "black"}
DOT = {"pointsize": 4.2, "edgecolor": "white", "edgewidth": 0.4}


def symbols(symbol: str, values: Iterable[float]) -> dict[float, str]:
    """Names of the distinct numbers of a column, in their order: 'τ = 0', 'τ = 1'."""
    return {value: f"{symbol} = {_number(value)}" for value in _distinct(values)}


def _distinct(values: Iterable[float]) -> list[float]:
    """The distinct values in their order, without missing ones."""
    return sorted(pd.Series(values).dropna().unique())


def ticks(at: Iterable[float], *, log: bool = False, percent: bool = False) -> so.Continuous:
    """A scale with a tick at each of a few values."""
    places = _distinct(at)
    label = (lambda share, _: _number(100 * share)) if percent else _number
    return so.Continuous(trans="log" if log else None).tick(at=places, minor=0).label(like=label)


def ranks(plot: so.Plot, last: int) -> so.Plot:
    """The plot with ranks, which are counted from 1, along its x axis."""
    scale = ticks([1, *range(5, int(last) + 1, 5)])
    return plot.scale(x=scale).limit(x=(0.5, last + 0.5)).label(x="Rank")


def _number(value: float, _: int | None = None) -> str:
    return f"{value:g}".replace("-", "−")


def in_panels(table: pd.DataFrame) -> pd.DataFrame:
    """The table with its sources as panels (PANELS) of one voice; the published lose intervals."""
    ends = table[["low", "high"]].where(table["source"] == SOURCES[0], axis="index")
    return table.assign(panel=table["source"], source=SOURCES[0], **ends)


def with_truth(table: pd.DataFrame, keys: Sequence[str], truth: Callable) -> pd.DataFrame:
    """Append the truth at each place, which the columns `keys` make, to the table."""
    places = table[list(keys)].drop_duplicates()
    return pd.concat([table, places.assign(value=truth(places), source="truth")], ignore_index=True)


@dataclass(frozen=True)
class Chart:
    """What is drawn, and how its curves and panels are distinguished.

    Attributes:
        table: Columns value, low, high and source (reproduced, published or truth), and those
            named below; one row per point. The truth belongs to no curve.
        by: The column that tells curves apart.
        col, row: The columns that make columns and rows of panels.
        interval: What a band or a whisker is called.
        truth: What the dotted line is called: the truth, or another reference.
    """

    table: pd.DataFrame
    by: Names
    col: Names = field(default_factory=dict)
    row: Names = field(default_factory=dict)
    interval: str = "95 % interval"
    truth: str = "truth"

    @cached_property
    def rows(self) -> pd.DataFrame:
        """The rows that have names, with their names instead of their values."""
        table, named = self.table.reset_index(drop=True), {**self.by, **self.col, **self.row}
        # Seaborn takes no whole numbers that may be missing.
        numbers = table.select_dtypes("number").dtypes
        gaps = numbers[numbers.map(pd.api.types.is_extension_array_dtype)]
        table = table.astype(dict.fromkeys(gaps.index, float))
        truth = table["source"] == "truth"
        for column, names in named.items():
            kinds = pd.CategoricalDtype(list(dict.fromkeys(names.values())), ordered=True)
            table = table.assign(**{column: table[column].map(names.get).astype(kinds)})
            table = table[table[column].notna() | (truth & (column in self.by))]
            truth = truth[table.index]
        voices = {source: table["value"].where(table["source"] == source) for source in SOURCES}
        return table.assign(**voices)

    @property
    def colours(self) -> dict[str, str]:
        """Each curve's colour, drawn or not: from dark to light where curves are numbers."""
        (names,) = self.by.values()
        ordered = len(names) > 1 and all(isinstance(value, Real) for value in names)
        palette = sns.blend_palette(DARK_TO_LIGHT, len(names)).as_hex() if ordered else CATEGORICAL
        return {name: palette[k % len(palette)] for k, name in enumerate(names.values())}

    @property
    def drawn(self) -> list[str]:
        """The curves that have rows."""
        (by,) = self.by
        return [name for name in self.colours if (self.rows[by] == name).any()]

    @property
    def markers(self) -> dict[str, str]:
        """Each curve's marker."""
        return {name: MARKERS[k % len(MARKERS)] for k, name in enumerate(self.colours)}

    def figure(
        self,
        plot: so.Plot,
        *,
        width: float = PAGE_WIDTH,
        height: float = 2.2,
        also: Sequence[Artist] = (),
    ) -> Figure:
        """A figure of equal panels, `height` inches each, and one legend above them."""
        lines = max((len(names) for names in self.row.values()), default=1)
        figure = page(lines * height + 0.55, width=width)
        self.onto(figure, plot, also=also)
        return figure

    def onto(
        self, figure: Figure | SubFigure, plot: so.Plot, *, also: Sequence[Artist] = ()
    ) -> None:
        """Draw the plot's panels, and their legend, on a figure or a part of one."""
        with style():
            plot.theme(STYLE).on(figure).plot()
            for axes in figure.axes:
                if not axes.has_data():
                    axes.text(0.5, 0.5, "no results", transform=axes.transAxes, ha="center")
                if self.row:
                    _row_in_label(axes)
            _legend(figure, [*self.legend(), *also])

    def legend(self) -> list[Artist]:
        """Entries of the curves that are drawn, and of the voices that they are drawn in."""
        colours, markers = self.colours, self.markers
        entries = [_entry(name, colours[name], markers[name]) for name in self.drawn]
        if self._has_intervals():
            entries.append(self._interval())
        if self._has("published"):
            if self._has("reproduced"):
                entries.append(_entry("reproduced", GREY, self._dot))
            entries.append(
                _entry("published", GREY, self._dot, markerfacecolor="white", **PUBLISHED)
            )
        if self._has("truth"):
            entries.append(Line2D([], [], label=self.truth, **TRUTH))
        return entries

    def _has(self, source: str) -> bool:
        return bool(self.rows[source].notna().any())

    def _has_intervals(self) -> bool:
        drawn = self.rows["source"].isin(self._with_intervals)
        return bool(self.rows.loc[drawn, "low"].notna().any())

    def bare(self, **axes: str) -> so.Plot:
        """A plot with these axes, the chart's looks and panels, and no layer yet."""
        (by,) = self.by
        facets = {way: column for way in ("col", "row") for column in getattr(self, way)}
        order = {
            way: list(dict.fromkeys(getattr(self, way)[column].values()))
            for way, column in facets.items()
        }
        plot = so.Plot(self.rows, **axes, color=by, marker=by)
        plot = plot.facet(**facets, order=order) if facets else plot
        return plot.scale(
            color=so.Nominal(self.colours, order=list(self.colours)),
            marker=so.Nominal(self.markers, order=list(self.markers)),
        )


@dataclass(frozen=True)
class Curves(Chart):
    """Lines with bands; the published lie behind them, the truth before them.

    Of few seeds, whose number is `n`, ends are one standard deviation from the mean: the interval
    of a mean over three seeds would fill a panel.
    """

    _dot = ""

    def __post_init__(self) -> None:
        table = self.table
        ours = table[table["source"] == SOURCES[0]]
        if "n" in table and 2 <= ours["n"].max() <= FEW_SEEDS:
            n = table["n"].where(table["n"] > 1).astype(float)
            sd = (table["high"] - table["low"]) / 2 * np.sqrt(n) / quantile(n - 1)
            table = table.assign(low=table["value"] - sd, high=table["value"] + sd)
            object.__setattr__(self, "table", table)
            object.__setattr__(self, "interval", "± 1 sd over seeds")

    _with_intervals = SOURCES[:1]

    def plot(self, x: str) -> so.Plot:
        """The curves along a column of numbers."""
        plot = self.bare(x=x)
        if self._has("published"):
            plot = plot.add(so.Line(**PUBLISHED), y="published", marker=None, legend=False)
        if self._has("reproduced"):
            if self._has_intervals():
                ends = so.Range(linewidth=0.9) if self._whiskers else so.Band(alpha=BAND_ALPHA)
                place = {"y": "reproduced", "ymin": "low", "ymax": "high", "marker": None}
                plot = plot.add(ends, legend=False, **place)
            plot = plot.add(so.Line(**REPRODUCED), y="reproduced", marker=None, legend=False)
            plot = plot.add(so.Dot(**DOT), y=self._marked(x), legend=False)
        if self._has("truth"):
            black = {"color": None, "marker": None}
            plot = plot.add(so.Line(**TRUTH), y="truth", legend=False, **black)
        return plot.label(y="")

    @property
    def _ours(self) -> pd.DataFrame:
        return self.rows[self.rows["source"] == "reproduced"]

    @property
    def _whiskers(self) -> bool:
        places = self._ours.groupby([*self.by, *self.col, *self.row], observed=True)
        return bool(places.size().max() <= SHORT)

    def _marked(self, x: str) -> pd.Series:
        """The values that get a marker; all of a short curve.

        On a long curve a marker at each point makes a bar. A few, staggered by curve, tell curves
        apart even where they coincide.
        """
        (by,) = self.by
        curve = self._ours.groupby([by, *self.col, *self.row], observed=True)[x]
        every = np.where(curve.transform("size") > SHORT, 5, 1)
        staggered = (curve.rank() - 1 - self._ours[by].cat.codes) % every == 0
        return self._ours["value"].where(staggered)

    def _interval(self) -> Artist:
        if self._whiskers:
            return _whisker(self.interval)
        drawn = [self.colours[name] for name in self.drawn]
        colour = drawn[0] if len(drawn) == 1 else GREY
        return Patch(facecolor=colour, alpha=2 * BAND_ALPHA, linewidth=0, label=self.interval)


class Dots(Chart):
    """Dots with whiskers, those of one place side by side; the published are open."""

    _dot = "o"
    _with_intervals = SOURCES[:2]

    def plot(self, along: str, *, orient: str = "x", lines: bool = False) -> so.Plot:
        """The dots along a column, on the axis `orient`; `lines` join those of a curve."""
        value = {"x": "y", "y": "x"}[orient]
        voices, beside = list(SOURCES[:2]), so.Dodge(by=["fill", "color"], empty="drop")
        # The share of a place's width that its dots fill.
        share = 0.3 if pd.api.types.is_numeric_dtype(self.rows[along]) else 0.6
        width = pd.Series(share, self.rows.index)
        plot = self.bare(**{orient: along, value: "value"}, fill="source")
        plot = plot.scale(
            fill=so.Nominal([True, False], order=voices),
            linestyle=so.Nominal(["-", PUBLISHED["linestyle"]], order=voices),
            width=None,
        )
        layer = {"orient": orient, "width": width, "legend": False}
        if lines:
            joined = {"marker": None, "linestyle": "source"}
            plot = plot.add(so.Line(linewidth=1.1), beside, **joined, **layer)
        if self._has_intervals():
            ends = {f"{value}min": "low", f"{value}max": "high", "marker": None}
            plot = plot.add(so.Range(linewidth=0.9), beside, **ends, **layer)
        return plot.add(so.Dot(**DOT), beside, **layer)

    def _interval(self) -> Artist:
        return _whisker(self.interval)


def _legend(figure: Figure | SubFigure, entries: Sequence[Artist]) -> None:
    """One legend above all panels, in as few rows as its width allows."""
    for rows in range(1, len(entries) + 1):
        columns = -(-len(entries) // rows)
        legend = figure.legend(handles=entries, loc="outside upper center", ncols=columns)
        if legend.get_window_extent().width < 0.95 * figure.bbox.width:
            break
        legend.remove()


def _whisker(name: str) -> Line2D:
    return _entry(name, GREY, "|", linestyle="none", markeredgewidth=0.9)


def _entry(name: str, colour: str, marker: str, **look) -> Line2D:
    white = {"markeredgecolor": "white", "markeredgewidth": 0.4} if marker in MARKERS else {}
    look = {"markersize": 5, **white, **REPRODUCED, **look}
    if look.get("markerfacecolor"):
        look |= {"markeredgecolor": colour, "markeredgewidth": 0.8}
    return Line2D([], [], color=colour, marker=marker, label=name, **look)


def _row_in_label(axes: Axes) -> None:
    """Titles are 'column | row': leave the column's in the top row, and the row's at the left."""
    column, _, row = axes.get_title("left").rpartition(" | ")
    place = axes.get_subplotspec()
    axes.set_title(column if place.is_first_row() else "")
    if place.is_first_col():
        axes.set_ylabel(f"{row}\n{axes.get_ylabel()}")
