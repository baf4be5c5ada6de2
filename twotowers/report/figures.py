"""The page that a figure is drawn on: one style, and files that are the same byte for byte."""

import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from textwrap import wrap

import matplotlib as mpl
import seaborn as sns
from matplotlib.figure import Figure
from matplotlib.transforms import Bbox

from twotowers.files.artefacts import atomic

COLUMN_WIDTH = 3.35
"""Inches: one column of a two-column paper."""
PAGE_WIDTH = 7.0
"""Inches: the full width of a two-column paper."""

GREY, INK = "#8A8F96", "#24282D"

STYLE = {
    **sns.axes_style("whitegrid"),
    **sns.plotting_context("paper", font_scale=0.85),
    # DejaVu ships with matplotlib: the same letters on every machine.
    "font.sans-serif": ["DejaVu Sans"],
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.7,
    "axes.edgecolor": GREY,
    "grid.color": "#E3E6EA",
    "text.color": INK,
    "axes.labelcolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "legend.frameon": False,
    "legend.columnspacing": 1.0,
    "legend.handlelength": 1.8,
    # Hints would make text narrower where the layout is computed than it is in the files.
    "text.hinting": "none",
    # Editable TrueType text in the pdf; outlines in the svg, so that no viewer's fonts matter.
    "pdf.fonttype": 42,
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
    with mpl.rc_context(), warnings.catch_warnings():
        # Seaborn 0.13.2 passes pandas a keyword that pandas 3 no longer needs.
        warnings.filterwarnings("ignore", "The copy keyword is deprecated")
        mpl.rcdefaults()
        mpl.rcParams.update(STYLE)
        yield


def page(height: float, *, width: float = PAGE_WIDTH) -> Figure:
    """An empty figure of that many inches.

    Made without pyplot: nothing stays registered in a global list, and no display is asked for.
    """
    with style():
        return Figure(figsize=(width, height), layout="constrained")


def source_note(figure: Figure, text: str) -> None:
    """A footer that travels with the figure, such as 'Stand-in data, scale laptop, seed 2021'."""
    size = 6.5
    lines = wrap(text, int(20 * figure.get_figwidth()))
    strip = (0.5 + 1.2 * len(lines)) * size / 72 / figure.get_figheight()
    engine = figure.get_layout_engine()
    if engine is not None:
        # Constrained layout ignores free text: keep a strip of the page for it.
        engine.set(rect=(0, strip, 1, 1 - strip))  # pyrefly: ignore[unexpected-keyword]
    bottom = 0.25 * size / 72 / figure.get_figheight()
    look = {"fontsize": size, "color": "#5B626B", "ha": "left", "va": "bottom"}
    figure.text(0.005, bottom, "\n".join(lines), **look)


def save(figure: Figure, paths: Iterable[str | Path]) -> None:
    """Write a figure to each path, in the format of its suffix, the same bytes every time."""
    _settle(figure)
    for path in map(Path, paths):
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
    for part in figure.subfigs:
        part.bbox_relative.set_points(part.bbox_relative.get_points().round(6))
    for axes in figure.axes:
        axes.set_position(Bbox(axes.get_position().get_points().round(6)))
