"""One look for every figure, files that are the same byte for byte, and shared panels.

A figure is drawn inside `style()`, its panels by `position_bias_panel` or `line_panel`,
its legend once by `shared_legend`, and written by `save`. Three voices, everywhere alike:

- reproduced: solid, coloured, with markers and a 95 % band;
- published: thin, dashed, half faded to grey, so that it lies behind and does not compete;
- truth: black and dotted, a reference line without markers.

Temperatures are ordered, so their colours run from dark to light, and each has a marker
of its own: the order survives greyscale print and every common colour blindness.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from matplotlib.transforms import Bbox

from twotowers.errors import InputError, nearest
from twotowers.files.artefacts import atomic

COLUMN_WIDTH = 3.35
"""Inches: one column of a two-column paper."""
PAGE_WIDTH = 7.0
"""Inches: the full width of a two-column paper."""

CATEGORICAL = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#A87900", "#000000")
"""Okabe and Ito's colours, the yellow left out (unreadable on white), the orange darkened."""
MARKERS = ("o", "s", "^", "D", "v", "P", "X")

_ANCHORS = (0.0, 0.333, 0.666, 1.0)
_ORDERED = LinearSegmentedColormap.from_list(
    "temperature",
    list(zip(_ANCHORS, ("#2A1657", "#2A5CA8", "#238B6E", "#CC8212"), strict=True)),
)

GREY = "#8A8F96"
INK = "#24282D"
REPRODUCED = {"linewidth": 1.4, "markersize": 3.6, "linestyle": "-", "zorder": 3}
PUBLISHED = {"linewidth": 0.9, "linestyle": (0, (4, 2)), "zorder": 2}
TRUTH = {"color": "black", "linewidth": 1.1, "linestyle": ":", "zorder": 4}
BAND_ALPHA = 0.18

_STYLE = {
    "font.family": "sans-serif",
    # DejaVu ships with matplotlib: the same letters on every machine.
    "font.sans-serif": ["DejaVu Sans"],
    "mathtext.fontset": "dejavusans",
    "font.size": 8.0,
    "axes.titlesize": 8.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.labelsize": 8.0,
    "xtick.labelsize": 7.5,
    "ytick.labelsize": 7.5,
    "legend.fontsize": 7.5,
    "legend.frameon": False,
    "legend.handlelength": 2.2,
    "legend.columnspacing": 1.4,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": GREY,
    "axes.linewidth": 0.7,
    "xtick.color": INK,
    "ytick.color": INK,
    "xtick.major.width": 0.7,
    "ytick.major.width": 0.7,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#E3E6EA",
    "grid.linewidth": 0.6,
    "axes.unicode_minus": True,
    "figure.facecolor": "white",
    "axes.facecolor": "white",
    "savefig.facecolor": "white",
    "savefig.dpi": 200,
    # Editable TrueType text in the pdf; outlines in the svg, so that no viewer's fonts matter.
    "pdf.fonttype": 42,
    "ps.fonttype": 42,
    "svg.fonttype": "path",
    # Element names in an svg are hashes; a fixed salt makes them the same in every run.
    "svg.hashsalt": "two-towers",
}

# None drops an entry: neither the date nor the version of the software may change a file.
_METADATA = {
    ".pdf": {"Creator": None, "Producer": None, "CreationDate": None},
    ".svg": {"Creator": None, "Date": None},
    ".png": {"Software": None},
}


@contextmanager
def style() -> Iterator[None]:
    """Draw in the project's style inside the block, whatever the user's matplotlibrc says."""
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(_STYLE)
        yield


@dataclass(frozen=True)
class Look:
    """How one curve is told from its neighbours, in colour and without."""

    colour: str
    marker: str
    label: str

    @property
    def muted(self) -> str:
        """The colour half way to grey, for the published counterpart."""
        mixed = 0.45 * np.array(to_rgb(self.colour)) + 0.55 * np.array(to_rgb(GREY))
        return to_hex(mixed)


def temperature_look(temperature: float) -> Look:
    """The look of one temperature in [0, 1]; the same in every figure, whichever are drawn."""
    nearest_anchor = int(np.argmin(np.abs(np.array(_ANCHORS) - temperature)))
    return Look(
        colour=to_hex(_ORDERED(float(temperature))),
        marker=MARKERS[nearest_anchor],
        label=f"τ = {temperature:g}",
    )


def categorical_looks(values: Iterable[Hashable]) -> dict[Hashable, Look]:
    """A look for each distinct value, in order of first appearance."""
    distinct = list(dict.fromkeys(values))
    return {
        value: Look(
            colour=CATEGORICAL[index % len(CATEGORICAL)],
            marker=MARKERS[index % len(MARKERS)],
            label=str(value),
        )
        for index, value in enumerate(distinct)
    }


def panels(
    columns: int,
    rows: int = 1,
    *,
    width: float = PAGE_WIDTH,
    panel_height: float = 2.2,
    share_y: bool = True,
) -> tuple[Figure, np.ndarray]:
    """A figure of equal panels with shared axes.

    Where levels differ but shapes are to be compared, do not share y, and give the panels
    `equal_spans`.

    Built without pyplot: nothing stays registered in a global list, and no display is asked
    for. `constrained` layout leaves room for the legend and the footer.

    Returns:
        The figure, and its axes [rows, columns].
    """
    figure = Figure(figsize=(width, rows * panel_height + 0.55), layout="constrained")
    axes = figure.subplots(rows, columns, sharex=True, sharey=share_y, squeeze=False)
    return figure, axes


def equal_spans(axes: Iterable[Axes], *, at_least: float = 0.0) -> None:
    """Give panels that do not share y ranges of one length, each about its own data.

    A step of the same size then looks the same in every panel, whatever its level.

    Args:
        axes: The panels; empty ones are left alone.
        at_least: The smallest range, so that noise does not fill a panel that shows no effect.
    """
    drawn = [panel for panel in axes if panel.has_data()]
    ends = np.array([panel.get_ylim() for panel in drawn]).reshape(-1, 2)
    half = np.ptp(ends, axis=1).max(initial=at_least) / 2
    for panel, middle in zip(drawn, ends.mean(axis=1), strict=True):
        panel.set_ylim(middle - half, middle + half)


def drawable(axes: Axes, rows: pd.DataFrame) -> bool:
    """Whether there is anything to draw; if not, the panel says so."""
    if rows.empty:
        axes.text(0.5, 0.5, "no results", transform=axes.transAxes, ha="center", va="center")
    return not rows.empty


def position_bias_panel(
    axes: Axes, table: pd.DataFrame, *, truth: Sequence[float] | np.ndarray | None
) -> None:
    """Mean position bias over ranks, one curve per temperature, with 95 % bands.

    Args:
        axes: Where to draw.
        table: Columns position (1-based), temperature, value, low, high and source
            ('reproduced' or 'published'), one row per point.
        truth: [positions] the bias that the simulated users have, from rank 1 on; None where
            it is unknown.
    """
    draw_curves(axes, table, x="position", group="temperature", look=temperature_look)
    last = int(table["position"].max())
    if truth is not None:
        ranks = np.arange(1, len(truth) + 1)
        axes.plot(ranks, truth, label="truth", **TRUTH)
        last = max(last, len(truth))
    axes.set_xlim(0.5, last + 0.5)
    # Ranks are counted from 1, and 25 is where the published tables end.
    axes.set_xticks([1, *(tick for tick in range(5, last + 1, 5))])
    axes.set_xlabel("Rank")
    axes.set_ylabel("Position bias logit")


def line_panel(
    axes: Axes,
    table: pd.DataFrame,
    *,
    x: str,
    group: str = "temperature",
    xlabel: str | None = None,
    ylabel: str | None = "nDCG@10",
    ticks: Sequence[float] | None = None,
) -> None:
    """A measure against a swept condition, one curve per group, with 95 % bands.

    Args:
        axes: Where to draw.
        table: Columns `x`, `group`, value, low, high and source, one row per point.
        x: The swept column, such as 'strength'.
        group: The column that tells curves apart; temperatures get their ordered look,
            any other column a categorical one.
        xlabel, ylabel: Axis labels; by default the column's name, and nDCG@10.
        ticks: Where to put the ticks of the x axis; by default at the swept values when
            they are few.
    """
    _require(table, [group])
    looks = None if group == "temperature" else categorical_looks(table[group])
    look = temperature_look if looks is None else looks.__getitem__
    draw_curves(axes, table, x=x, group=group, look=look)
    swept = np.unique(table[x].to_numpy())
    if ticks is None and len(swept) <= 9:
        ticks = swept
    if ticks is not None:
        axes.set_xticks(ticks, [f"{tick:g}".replace("-", "−") for tick in ticks])
    axes.yaxis.set_major_locator(MaxNLocator(nbins=6, steps=[1, 2, 2.5, 5, 10]))
    axes.set_xlabel(xlabel or x.replace("_", " ").capitalize())
    if ylabel:
        axes.set_ylabel(ylabel)


def draw_curves(
    axes: Axes,
    table: pd.DataFrame,
    *,
    x: str,
    group: str,
    look: Callable[[Hashable], Look],
) -> None:
    """Draw every curve of a long table: reproduced with its band, published behind it.

    Args:
        axes: Where to draw.
        table: Columns `x`, `group`, value, low, high, source; one row per point.
        x: The column along the x axis.
        group: The column whose values are the curves.
        look: From a group's value to its look.

    Raises:
        InputError: a column is missing, a source is unknown, or a point occurs twice (which
            would draw a zigzag).
    """
    _require(table, [x, group, "value", "low", "high", "source"])
    _check_points(table, [x, group, "source"])
    for order, (value, rows) in enumerate(table.groupby(group, sort=True)):
        for source, curve in rows.sort_values(x).groupby("source"):
            _draw_curve(axes, curve, x=x, look=look(value), source=source, order=order)
    _key_entries(axes, table)


def _draw_curve(
    axes: Axes, curve: pd.DataFrame, *, x: str, look: Look, source: str, order: int
) -> None:
    along, value = curve[x].to_numpy(), curve["value"].to_numpy()
    if source == "published":
        axes.plot(along, value, color=look.muted, **PUBLISHED)
        return
    low, high = (curve[end].to_numpy(dtype=float) for end in ("low", "high"))
    if np.isfinite(low).any():
        axes.fill_between(along, low, high, color=look.colour, alpha=BAND_ALPHA, linewidth=0)
    # On a long curve a marker at each point makes a bar; a few, staggered by curve, tell
    # them apart even where they coincide.
    every = (order, 5) if len(along) > 12 else 1
    axes.plot(
        along,
        value,
        color=look.colour,
        marker=look.marker,
        markevery=every,
        markeredgecolor="white",
        markeredgewidth=0.4,
        label=look.label,
        **REPRODUCED,
    )


def _key_entries(axes: Axes, table: pd.DataFrame) -> None:
    """Invisible artists that give the legend its entries for what is not a single curve."""
    if (table["source"] == "published").any():
        axes.plot([], [], color=GREY, label="published", **PUBLISHED)
    if table.loc[table["source"] == "reproduced", "low"].notna().any():
        axes.fill_between(
            [], [], [], color=GREY, alpha=2 * BAND_ALPHA, linewidth=0, label="95 % interval"
        )


def shared_legend(figure: Figure) -> None:
    """One legend above all panels, each label once, and inner axis labels removed."""
    entries: dict[str, object] = {}
    for axes in figure.axes:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            entries.setdefault(label, handle)
        axes.label_outer()
        if len(axes.get_shared_y_axes().get_siblings(axes)) == 1:
            axes.tick_params(labelleft=True)  # its numbers are not those of its neighbour
    late = [label for label in ("95 % interval", "published", "truth") if label in entries]
    labels = [label for label in entries if label not in late] + late
    # What fits beside each other at this width; a label takes about an inch.
    columns = min(len(labels), max(2, int(figure.get_figwidth() / 0.95)))
    figure.legend(
        [entries[label] for label in labels], labels, loc="outside upper center", ncols=columns
    )


def source_note(figure: Figure, text: str) -> None:
    """A footer that travels with the figure, such as 'Stand-in data, scale laptop, seed 2021'."""
    size = 6.5
    strip = 1.7 * size / 72 / figure.get_figheight()
    engine = figure.get_layout_engine()
    if engine is not None:
        # Constrained layout ignores free text: keep a strip of the page for it.
        engine.set(rect=(0, strip, 1, 1 - strip))
    figure.text(0.005, 0.25 * strip, text, fontsize=size, color="#5B626B", ha="left", va="bottom")


def save(figure: Figure, paths: Iterable[str | Path]) -> None:
    """Write a figure to each path, in the format of its suffix, the same bytes every time.

    Raises:
        InputError: a suffix other than .pdf, .svg or .png.
    """
    _settle(figure)
    for path in map(Path, paths):
        if path.suffix not in _METADATA:
            raise InputError(
                f"cannot draw to {path.suffix!r}",
                path=path,
                expected=nearest(path.suffix, _METADATA),
            )
        with style(), atomic(path) as temporary:
            figure.savefig(temporary, format=path.suffix[1:], metadata=_METADATA[path.suffix])


def _settle(figure: Figure) -> None:
    """Lay the panels out once, and round where they stand.

    Constrained layout solves for their places with a solver whose order of operations depends
    on memory addresses, so that the last digit, and with it every clip path's name, may differ
    from run to run.
    """
    with style():
        figure.draw_without_rendering()
    figure.set_layout_engine("none")
    for axes in figure.axes:
        axes.set_position(Bbox(axes.get_position().get_points().round(6)))


def _require(table: pd.DataFrame, columns: Iterable[str]) -> None:
    missing = [column for column in columns if column not in table.columns]
    if missing:
        raise InputError(
            f"no column {', '.join(map(repr, missing))}",
            expected=f"among the table's columns {', '.join(map(repr, table.columns))}",
        )


def _check_points(table: pd.DataFrame, keys: list[str]) -> None:
    unknown = set(table["source"]) - {"reproduced", "published"}
    if unknown:
        raise InputError(
            f"unknown source {sorted(map(str, unknown))[0]!r}",
            field="source",
            expected="'reproduced' or 'published'",
        )
    repeated = table[table.duplicated(keys)]
    if len(repeated):
        raise InputError(
            f"{len(repeated)} points are drawn twice, the first at "
            + ", ".join(f"{key} {repeated.iloc[0][key]}" for key in keys),
            expected="one panel's rows: one row per point",
        )
