"""Figures: the same bytes in every process, an order that survives greyscale, checked tables."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex, to_rgb

from twotowers.report import charts, figures

TRUTH = -np.log(np.arange(1, 26))


def table(x="position", xs=range(1, 26), **columns) -> pd.DataFrame:
    """One curve at temperature 0 and one at 1, reproduced and published."""
    rows = pd.MultiIndex.from_product(
        [(0, 1), xs, ("reproduced", "published")], names=["temperature", x, "source"]
    ).to_frame(index=False)
    value = -rows[x].abs() - rows["temperature"]
    return rows.assign(value=value, low=value - 0.1, high=value + 0.1, **columns)


def chart(rows=None, **options) -> charts.Curves:
    names = {"temperature": charts.symbols("τ", [0, 1])}
    return charts.Curves(table() if rows is None else rows, **{"by": names, **options})


def drawn(rows=None, x="position", **options):
    """A single panel of curves; returns figure and axes."""
    curves = chart(rows, **options)
    figure = curves.figure(curves.plot(x), width=figures.COLUMN_WIDTH)
    return figure, figure.axes[0]


def coloured(axes, colour):
    """The lines of a colour."""
    return [line for line in axes.lines if to_hex(line.get_color()) == to_hex(colour)]


def test_the_last_digits_of_the_layout_are_not_kept(tmp_path):
    """They depend on memory addresses: seldom, so that comparing two processes may miss it."""
    figure = figures.page(3)
    axes = figure.subplots(1, 3)
    figures.source_note(figure, "Stand-in data")
    figures.save(figure, [tmp_path / "a.svg"])
    places = np.array([panel.get_position().extents for panel in axes.flat])
    np.testing.assert_array_equal(places, places.round(6))
    left, bottom, right, _ = places.T
    assert (left[1:] > right[:-1]).all(), "side by side"
    assert bottom.min() > figure.texts[0].get_window_extent().y1 / figure.bbox.height


def test_numbers_run_from_dark_to_light_each_with_a_marker():
    looks = chart(by={"temperature": charts.symbols("τ", [0, 0.333, 0.666, 1])})
    # Rec. 709 luma: the grey of a colour in a greyscale print.
    grey = [np.dot(to_rgb(colour), [0.2126, 0.7152, 0.0722]) for colour in looks.colours.values()]
    assert (np.diff(grey) > 0.08).all()
    assert max(grey) < 0.7  # still seen on white
    assert len(set(looks.markers.values())) == 4


def test_every_voice_is_once_in_the_legend_above_all_panels():
    rows = pd.concat([table(setting=name) for name in "abc"])
    rows = charts.with_truth(rows, ["setting", "position"], lambda at: -np.log(at["position"]))
    settings = {"setting": {name: name.upper() for name in "abc"}}
    figure, _ = drawn(rows, col=settings)
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert labels == ["τ = 0", "τ = 1", "95 % interval", "reproduced", "published", "truth"]
    assert len(figure.legends) == 1
    assert [axes.get_title("left") for axes in figure.axes] == ["A", "B", "C"]
    truth = [coloured(axes, "black") for axes in figure.axes]
    for (line,) in truth:
        np.testing.assert_array_equal(line.get_xdata(), np.arange(1, 26))
        np.testing.assert_allclose(line.get_ydata(), TRUTH, rtol=0, atol=1e-12)


def test_what_is_drawn_is_what_the_table_holds():
    """No mean, no interval of seaborn's: values, and bands from low to high."""
    _, axes = drawn()
    ours = table().query("source == 'reproduced' and temperature == 1")
    _, line = coloured(axes, chart().colours["τ = 1"])  # the published lies behind
    np.testing.assert_allclose(line.get_ydata(), ours["value"])
    band = axes.patches[1].get_xy()
    for x, low, high in zip(ours["position"], ours["low"], ours["high"], strict=True):
        ends = band[np.isclose(band[:, 0], x), 1]
        np.testing.assert_allclose([ends.min(), ends.max()], [low, high])


def test_dots_have_whiskers_from_low_to_high_and_open_ones_are_published():
    rows = table(xs=(1, 2, 3)).query("temperature == 0 or source == 'reproduced'")
    dots = charts.Dots(rows, {"temperature": charts.symbols("τ", [0, 1])})
    (axes,) = dots.figure(dots.plot("position")).axes
    *whiskers, points = axes.collections
    ends = np.concatenate([np.array(each.get_segments())[:, :, 1] for each in whiskers])
    expected = rows[["low", "high"]].to_numpy()
    np.testing.assert_allclose(np.sort(ends, axis=0), np.sort(expected, axis=0))
    np.testing.assert_allclose(np.sort(points.get_offsets()[:, 1]), np.sort(rows["value"]))
    opened = points.get_facecolors()[:, 3] == 0
    assert opened.sum() == 3
    at = points.get_offsets()[:, 0]
    assert len(np.unique(at.round(6))) == 9, "side by side"


@pytest.mark.parametrize("type_", ["Int64", "Int32", "UInt8"])
@pytest.mark.parametrize("kind", [charts.Curves, charts.Dots])
def test_whole_numbers_with_gaps_are_drawn_where_they_are(kind, type_):
    rows = table("position", (1, 2, 4, 5)).astype({"position": type_})
    rows.loc[rows["position"] == 5, "position"] = pd.NA
    drawn = kind(rows, by={"temperature": charts.symbols("τ", rows["temperature"])})
    plot = drawn.plot("position").scale(x=charts.ticks(rows["position"]))
    (axes,) = drawn.figure(plot).axes
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["1", "2", "4"]
    assert charts.symbols("α", [0, -0.5]) == {-0.5: "α = −0.5", 0: "α = 0"}


def test_a_panel_without_results_says_so():
    names = {"setting": {"a": "A", "b": "B"}}
    figure, _ = drawn(table(setting="a"), col=names)
    assert [[text.get_text() for text in axes.texts] for axes in figure.axes] == [
        [],
        ["no results"],
    ]
