"""Figures: the same bytes in every process, an order that survives greyscale, checked tables."""

import os
import subprocess
import sys
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex, to_rgb

from twotowers.errors import InputError
from twotowers.report import figures

TRUTH = -np.log(np.arange(1, 26))
DRAW = """
import sys
import numpy as np, pandas as pd
from twotowers.report import figures
rows = pd.MultiIndex.from_product(
    [(0, .333, .666, 1), range(1, 26), ("reproduced", "published")],
    names=["temperature", "position", "source"],
).to_frame(index=False)
value = -np.log(rows["position"]) * (1.3 - .3 * rows["temperature"])
rows = rows.assign(value=value, low=value - .1, high=value + .1)
with figures.style():
    figure, axes = figures.panels(2)
    for panel in axes.flat:
        figures.position_bias_panel(panel, rows, truth=-np.log(np.arange(1, 26)))
    figures.shared_legend(figure)
    figures.source_note(figure, "Stand-in data, scale laptop, seeds 2021–2023")
figures.save(figure, sys.argv[1:])
"""


def table(x="position", xs=range(1, 26), **columns) -> pd.DataFrame:
    """One curve at temperature 0 and one at 1, reproduced and published."""
    rows = pd.MultiIndex.from_product(
        [(0, 1), xs, ("reproduced", "published")], names=["temperature", x, "source"]
    ).to_frame(index=False)
    value = -rows[x].abs() - rows["temperature"]
    return rows.assign(value=value, low=value - 0.1, high=value + 0.1, **columns)


def panel(draw, *arguments, **options):
    """A single panel drawn by `draw`; returns figure and axes."""
    with figures.style():
        figure, axes = figures.panels(1, width=figures.COLUMN_WIDTH)
        draw(axes[0, 0], *arguments, **options)
    return figure, axes[0, 0]


def test_the_last_digits_of_the_layout_are_not_kept(tmp_path):
    """They depend on memory addresses: seldom, so that comparing two processes may miss it."""
    with figures.style():
        figure, axes = figures.panels(3)
        figures.source_note(figure, "Stand-in data")
    figures.save(figure, [tmp_path / "a.svg"])
    places = np.array([panel.get_position().extents for panel in axes.flat])
    np.testing.assert_array_equal(places, places.round(6))
    left, bottom, right, _ = places.T
    assert (left[1:] > right[:-1]).all(), "side by side"
    assert bottom.min() > figure.texts[0].get_window_extent().y1 / figure.bbox.height


def test_two_processes_write_the_same_bytes(tmp_path):
    root = Path(__file__).parents[2]
    for run in "12":
        paths = [str(tmp_path / f"{run}.{kind}") for kind in ("svg", "pdf", "png")]
        # A different hash seed per process: no set or dict order may reach the file.
        environment = {**os.environ, "PYTHONHASHSEED": run, "PYTHONPATH": str(root)}
        subprocess.run([sys.executable, "-c", DRAW, *paths], check=True, env=environment)
    for kind in ("svg", "pdf", "png"):
        assert (tmp_path / f"1.{kind}").read_bytes() == (tmp_path / f"2.{kind}").read_bytes()


def test_files_name_neither_date_nor_software_version(tmp_path):
    figure, _ = panel(figures.position_bias_panel, table(), truth=TRUTH)
    figures.save(figure, [tmp_path / "a.svg", tmp_path / "a.pdf"])
    assert b"dc:date" not in (tmp_path / "a.svg").read_bytes()
    for name in ("a.svg", "a.pdf"):
        content = (tmp_path / name).read_bytes()
        assert b"Matplotlib v" not in content
        assert b"CreationDate" not in content


def test_pdf_text_is_truetype(tmp_path):
    figure, _ = panel(figures.position_bias_panel, table(), truth=TRUTH)
    figures.save(figure, [tmp_path / "a.pdf"])
    assert b"/Type3" not in (tmp_path / "a.pdf").read_bytes()


def test_an_unknown_format_is_refused_before_anything_is_written(tmp_path):
    figure, _ = panel(figures.position_bias_panel, table(), truth=None)
    with pytest.raises(InputError, match=r"cannot draw to '.jpeg'.*'.svg'"):
        figures.save(figure, [tmp_path / "a.jpeg"])
    assert list(tmp_path.iterdir()) == []


def test_temperatures_run_from_dark_to_light_each_with_a_marker():
    looks = [figures.temperature_look(value) for value in (0, 0.333, 0.666, 1)]
    # Rec. 709 luma: what a greyscale print makes of a colour.
    grey = [np.dot(to_rgb(look.colour), [0.2126, 0.7152, 0.0722]) for look in looks]
    assert (np.diff(grey) > 0.08).all()
    assert max(grey) < 0.7  # still seen on white
    assert len({look.marker for look in looks}) == 4


def test_a_temperature_looks_the_same_whichever_are_drawn():
    alone = table().query("temperature == 1")
    _, axes = panel(figures.position_bias_panel, alone, truth=None)
    line = next(line for line in axes.lines if line.get_label() == "τ = 1")
    assert to_hex(line.get_color()) == figures.temperature_look(1).colour


def test_the_position_bias_panel_draws_every_voice_once_in_the_legend():
    with figures.style():
        figure, axes = figures.panels(3)
        for axis in axes.flat:
            figures.position_bias_panel(axis, table(), truth=TRUTH)
        figures.shared_legend(figure)
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert labels == ["τ = 0", "τ = 1", "95 % interval", "published", "truth"]
    assert [axis.get_ylabel() for axis in axes.flat] == ["Position bias logit", "", ""]


def test_the_truth_line_is_the_truth():
    _, axes = panel(figures.position_bias_panel, table(), truth=TRUTH)
    line = next(line for line in axes.lines if line.get_label() == "truth")
    np.testing.assert_array_equal(line.get_xdata(), np.arange(1, 26))
    np.testing.assert_array_equal(line.get_ydata(), TRUTH)


def test_rows_in_any_order_draw_the_same_curve():
    shuffled = table().sample(frac=1, random_state=0)
    curves = []
    for rows in (table(), shuffled):
        _, axes = panel(figures.position_bias_panel, rows, truth=None)
        curves.append([line.get_xydata() for line in axes.lines if len(line.get_xdata())])
    for ordered, other in zip(*curves, strict=True):
        np.testing.assert_array_equal(ordered, other)


def test_a_line_panel_marks_the_swept_values():
    rows = table("strength", (-1, -0.5, 0, 0.5, 1))
    _, axes = panel(figures.line_panel, rows, x="strength", xlabel="Strength α")
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["−1", "−0.5", "0", "0.5", "1"]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("Strength α", "nDCG@10")


def test_other_groups_than_temperatures_get_categorical_looks():
    rows = table("strength", (-1, 0, 1)).rename(columns={"temperature": "method"})
    rows["method"] = rows["method"].map({0: "naive", 1: "weighted"})
    _, axes = panel(figures.line_panel, rows, x="strength", group="method")
    colours = {line.get_label(): to_hex(line.get_color()).upper() for line in axes.lines}
    assert colours["naive"] == figures.CATEGORICAL[0]
    assert colours["weighted"] == figures.CATEGORICAL[1]


@pytest.mark.parametrize("column", ["position", "temperature", "value", "low", "high", "source"])
def test_a_missing_column_is_named(column):
    with pytest.raises(InputError, match=f"no column '{column}'"):
        panel(figures.position_bias_panel, table().drop(columns=column), truth=None)


def test_an_unknown_source_is_named():
    rows = table().replace({"source": {"published": "printed"}})
    with pytest.raises(InputError, match="unknown source 'printed'"):
        panel(figures.position_bias_panel, rows, truth=None)


def test_a_point_drawn_twice_is_refused():
    twice = pd.concat([table(), table().head(1)])
    with pytest.raises(InputError, match="drawn twice, the first at position 1, temperature 0"):
        panel(figures.position_bias_panel, twice, truth=None)


def test_the_style_ends_with_its_block():
    before = mpl.rcParams["font.size"]
    with figures.style():
        assert mpl.rcParams["font.size"] == 8.0
    assert mpl.rcParams["font.size"] == before


def test_the_footer_lies_below_the_axes():
    with figures.style():
        figure, axes = figures.panels(1)
        figures.position_bias_panel(axes[0, 0], table(), truth=TRUTH)
        figures.source_note(figure, "Stand-in data")
        figure.draw_without_rendering()
    note = figure.texts[0].get_window_extent()
    assert not note.overlaps(axes[0, 0].get_tightbbox())
