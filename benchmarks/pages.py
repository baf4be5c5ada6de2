"""Results -> pages: tables between markers, and plots. No number on a page is typed.

A page is prose with places for tables, `<!-- name -->` to `<!-- /name -->`. `fill` puts the table
of that name there. A table without measurements says so.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks import beside_clax, beside_pyclick, clickmodels, fits, gpu, scaling
from benchmarks.limits import extrapolations, predicted
from benchmarks.measure import PACKAGES, ROOT
from twotowers.files.artefacts import atomic
from twotowers.report.charts import Curves
from twotowers.report.figures import save

PAGES = ("benchmarks/README.md", "benchmarks/clickmodels.md", "docs/scaling.md")
RESULTS = ROOT / "benchmarks" / "results"

Results = dict[str, dict]
"""For each part: `machine` and `rows`."""


def read(folder: Path = RESULTS) -> Results:
    """The results so far."""
    return {path.stem: json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))}


def fill(text: str, results: Results) -> str:
    """The page with new tables.

    Raises:
        KeyError: the page has a place for an unknown table.
    """

    def block(match: re.Match) -> str:
        name = match[1]
        part, make = TABLES[name]
        body = make(results) if part in results else "Not measured yet."
        stated = f"\n\n{where(results[part]['machine'])}" if part in results else ""
        return f"<!-- {name} -->\n{body}{stated}\n<!-- /{name} -->"

    return re.sub(r"<!-- ([\w-]+) -->.*?<!-- /\1 -->", block, text, flags=re.S)


def write(results: Results) -> None:
    """Fill all pages, and draw."""
    for name in PAGES:
        page = ROOT / name
        text = fill(page.read_text(), results)
        with atomic(page) as temporary:
            temporary.write_text(text)
    if "fits" in results:
        draw_fits(results["fits"]["rows"], ROOT / "benchmarks" / "fits.svg")
    if "scaling" in results:
        draw_scaling(results["scaling"]["rows"], ROOT / "docs" / "scaling.svg")


def where(machine: dict) -> str:
    """A line with machine, date and versions."""
    versions = ", ".join(f"{package} {machine[package]}" for package in PACKAGES)
    return (
        f"*{machine['date']}; {machine['processor']}, {machine['cores']} cores, "
        f"load {machine['load']:g} at the start; Python {machine['python']}, {versions}.*"
    )


def markdown(rows: list[dict], columns: dict[str, tuple[str, Callable]]) -> str:
    """A table of the rows.

    Args:
        rows: values by key.
        columns: heading -> key and format. A missing value is a dash.
    """

    def cell(row: dict, key: str, form: Callable) -> str:
        value = row.get(key)
        return "–" if value is None else form(value)

    lines = ["| " + " | ".join(columns) + " |", "|---" * len(columns) + "|"]
    for row in rows:
        cells = (cell(row, key, form) for key, form in columns.values())
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def digits(value: float) -> str:
    """Three significant digits, with separators of thousands."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def yes(value: bool) -> str:
    return "yes" if value else "no"


def whole(value: int) -> str:
    return f"{value:,}"


def fit_table(
    part: str, baselines: tuple[str, ...], references: tuple[str, ...]
) -> Callable[[Results], str]:
    columns = {
        "tower": ("tower", str),
        "fit": ("method", str),
        "sessions": ("sessions", whole),
        "lowest validation NLL": ("lowest", "{:.5f}".format),
        "to the target, s": ("to_target", digits),
        "epochs": ("epochs", str),
        "an epoch, s": ("per_epoch", digits),
        "compilation, s": ("compilation", digits),
        "peak memory, GB": ("peak_gb", "{:.2f}".format),
        **{
            f"position bias, off {reference}": (f"off {reference}", "{:.3f}".format)
            for reference in references
        },
        **{
            f"times faster than {baseline}": (f"against {baseline}", digits)
            for baseline in baselines
        },
    }
    return lambda results: markdown(
        fits.summary(results[part]["rows"], baselines, references), columns
    )


def scaling_table(grid: str, *sizes: str) -> Callable[[Results], str]:
    """Rows of one grid, each relative to the first of its tower and temperature."""

    def make(results: Results) -> str:
        rows, first = [], {}
        for row in (row for row in results["scaling"]["rows"] if row["grid"] == grid):
            start = first.setdefault((row["tower"], row["temperature"]), row)
            relative = row["seconds"] / start["seconds"]
            rows.append(row | {"relative": relative, "epoch": row["seconds"] / row["epochs"]})
        columns = {
            "tower": ("tower", str),
            **{size: (size, whole if size != "temperature" else str) for size in sizes},
            "an epoch, s": ("epoch", digits),
            "relative": ("relative", "{:.2f}".format),
            "data, GB": ("data_gb", digits),
            "peak memory, GB": ("peak_gb", "{:.2f}".format),
        }
        return markdown(rows, columns)

    return make


def steps_table(results: Results) -> str:
    """A row per size of the table, with the times of both updates in one run."""
    rows = [row for row in results["rows"]["rows"] if row["what"] == "step"]
    for row in rows:
        row["ratio"] = row["all step"] / row["used step"]
    columns = {
        "rows of the table": ("table", whole),
        "a step on all rows, s": ("all step", digits),
        "on used rows, s": ("used step", digits),
        "ratio": ("ratio", digits),
        "an epoch besides, all rows, s": ("all epoch", digits),
        "used rows, s": ("used epoch", digits),
        "peak memory, all rows, GB": ("all peak_gb", "{:.2f}".format),
        "used rows, GB": ("used peak_gb", "{:.2f}".format),
    }
    return markdown(rows, columns)


def updates_table(results: Results) -> str:
    columns = {
        "model": ("model", str),
        "pairs": ("pairs", whole),
        "updates": ("update", str),
        "learning rate": ("learning_rate", str),
        "epochs": ("epochs", str),
        "validation loss": ("validation", "{:.5f}".format),
        "held-out perplexity": ("perplexity", "{:.4f}".format),
    }
    return markdown([row for row in results["rows"]["rows"] if row["what"] == "fit"], columns)


def simulator_table(results: Results) -> str:
    rows = results["simulator"]["rows"]
    plain = {row["temperature"]: row for row in rows if row["simulator"] != "counts"}
    for row in rows:
        slow = plain[row["temperature"]]
        row["rate"] = row["sessions"] / row["seconds"]
        row["faster"] = row["rate"] * slow["seconds"] / slow["sessions"]
    columns = {
        "temperature": ("temperature", str),
        "simulator": ("simulator", str),
        "sessions": ("sessions", whole),
        "s": ("seconds", digits),
        "sessions a second": ("rate", lambda rate: whole(round(rate))),
        "times faster": ("faster", digits),
        "peak memory, GB": ("peak_gb", "{:.2f}".format),
    }
    return markdown(rows, columns)


def counting_table(results: Results) -> str:
    columns = {
        "counted by": ("engine", str),
        "version": ("version", str),
        "impressions": ("impressions", whole),
        "cells": ("cells", whole),
        "s": ("seconds", digits),
        "its plain scan, s": ("scan", digits),
        "peak memory, GB": ("peak_gb", "{:.2f}".format),
    }
    return markdown(results["counting"]["rows"], columns)


SHORT = {"model": ("model", str.upper)}


def clickmodels_table(results: Results) -> str:
    columns = SHORT | {
        "distinct pages": ("distinct", whole),
        "pairs": ("pairs", whole),
        "reading, s": ("read", digits),
        "statistics, s": ("statistics", digits),
        "estimation, s": ("estimation", digits),
        "in all, s": ("seconds", digits),
        "CLAX on an A6000, s": ("published", str),
        "times faster": ("faster", digits),
        "cycles": ("cycles", str),
        "conditional perplexity": ("conditional", "{:.4f}".format),
        "... converged": ("converged", "{:.4f}".format),
        "scan or group-by, s": ("plain", digits),
        "times as long": ("times", digits),
        "peak memory, GB": ("fit_gb", "{:.2f}".format),
    }
    return markdown(clickmodels.longest(results["clickmodels"]["rows"]), columns)


def clax_table(results: Results) -> str:
    columns = SHORT | {
        "sessions": ("sessions", whole),
        "ours, s": ("own", digits),
        "CLAX, s": ("seconds", digits),
        "epochs": ("epochs", str),
        "stopped by itself": ("ended", yes),
        "times faster": ("faster", digits),
        "conditional perplexity": ("own_conditional", "{:.4f}".format),
        "CLAX's": ("conditional", "{:.4f}".format),
        "reached": ("reached", yes),
    }
    return markdown(beside_clax.compared(results["beside_clax"]["rows"]), columns)


def pyclick_table(results: Results) -> str:
    columns = SHORT | {
        "sessions": ("sessions", whole),
        "ours, s": ("seconds", digits),
        "cycles": ("cycles", str),
        "PyClick, a round, s": ("peer", digits),
        "rounds timed": ("rounds", str),
        f"{beside_pyclick.ROUNDS} rounds, s": ("all", digits),
        "times faster": ("faster", digits),
    }
    return markdown(beside_pyclick.compared(results["beside_pyclick"]["rows"]), columns)


def by_sessions_table(results: Results) -> str:
    rows = clickmodels.by_sessions(results["clickmodels"]["rows"])
    sizes = [key.split()[1] for key in rows[0] if key.startswith("seconds")]
    columns = SHORT | {f"{int(size):,} sessions, s": (f"seconds {size}", digits) for size in sizes}
    columns |= {
        f"{int(size):,} sessions, GB": (f"fit_gb {size}", "{:.2f}".format) for size in sizes
    }
    return markdown(rows, columns)


def longest_table(results: Results) -> str:
    columns = SHORT | {
        "sessions": ("sessions", whole),
        "pairs": ("pairs", whole),
        "reading, s": ("read", digits),
        "estimation, s": ("estimation", digits),
        "in all, s": ("seconds", digits),
        "peak memory, GB": ("fit_gb", "{:.2f}".format),
    }
    rows = [row for row in results["clickmodels_longest"]["rows"] if row["what"] == "fit"]
    return markdown(rows, columns)


def longlists_table(results: Results) -> str:
    columns = {
        "queries": ("queries", whole),
        "temperature": ("temperature", str),
        "layout": ("layout", str),
        "": ("what", str),
        "s": ("seconds", digits),
        "peak memory, GB": ("peak_gb", "{:.2f}".format),
        "cells shown": ("cells", whole),
        "cells held": ("held", whole),
        "all documents x positions": ("all_cells", whole),
        "... as two arrays of int64, GB": ("dense_gb", digits),
    }
    return markdown(results["longlists"]["rows"], columns)


def road_table(results: Results) -> str:
    rows = results["road"]["rows"]
    for row in rows:
        row["hourly"] = 3600 / row["seconds"] if "a job, on average" in row["what"] else None
    columns = {"": ("what", str), "s": ("seconds", digits), "an hour": ("hourly", digits)}
    return markdown(rows, columns)


def site_table(results: Results) -> str:
    columns = {
        "page": ("what", str),
        "papers": ("papers", whole),
        "items": ("items", whole),
        "read at a": ("width", str),
        "loaded, s": ("load", digits),
        "searched, a letter, s": ("search", digits),
        "page, kB": ("page_kb", digits),
    }
    return markdown(results["site"]["rows"], columns)


def gpu_table(results: Results) -> str:
    columns = {
        "": ("what", str),
        "jobs": ("jobs", str),
        "fits": ("fits", whole),
        "on": ("device", str),
        "s": ("seconds", digits),
        "a kernel ran": ("busy", "{:.0%}".format),
        "GPU memory, GB": ("gpu_gb", digits),
        **{f"{metric}, off GPU": (f"{metric} off", "{:.2g}".format) for metric in gpu.COMPARED},
    }
    return markdown(results["gpu"]["rows"], columns)


def roofline_table(results: Results) -> str:
    columns = {
        "square products, GFLOP/s": ("gemm_gflops", digits),
        "narrow products (first layer), GFLOP/s": ("narrow_gflops", digits),
        "copying, GB/s read and written": ("copy_gb_s", digits),
        "losses of cells, 10^9 a second": ("losses_g_s", digits),
        "gradients of them, 10^9 a second": ("gradients_g_s", digits),
    }
    return markdown(results["roofline"]["rows"], columns)


def limit_table(results: Results) -> str:
    if "scaling" not in results:
        return "Not measured yet."
    columns = {
        "tower": ("tower", str),
        "lanes": ("lanes", str),
        "products, s": ("products", digits),
        "cells, s": ("cells_time", digits),
        "bytes, s": ("bytes_time", digits),
        "limit, s": ("limit", digits),
        "measured, s": ("measured", digits),
        "limit / measured": ("share", "{:.0%}".format),
    }
    return markdown(predicted(results), columns)


def extrapolation_table(results: Results) -> str:
    if "simulator" not in results:
        return "Not measured yet."
    columns = {
        "log": ("what", str),
        "simulation, s": ("simulation", digits),
        "an epoch over every query once, s": ("epoch", digits),
        "features, GB": ("features_gb", digits),
        "counts, GB": ("counts_gb", digits),
    }
    return markdown(extrapolations(results), columns)


REPLAYS = ("replay, samples", "replay, arrays")

TABLES: dict[str, tuple[str, Callable[[Results], str]]] = {
    "fits": ("fits", fit_table("fits", REPLAYS, ("replay, arrays", "replay, arrays, averaged"))),
    "pbm": ("pbm", fit_table("pbm", ("CLAX",), ("CLAX",))),
    "simulator": ("simulator", simulator_table),
    "counting": ("counting", counting_table),
    "sessions": ("scaling", scaling_table("sessions", "temperature", "sessions", "cells")),
    "lanes": ("scaling", scaling_table("lanes", "lanes")),
    "two-jobs": ("scaling", scaling_table("two jobs", "lanes")),
    "queries": ("scaling", scaling_table("queries", "queries")),
    "documents": ("scaling", scaling_table("documents", "documents")),
    "width": ("scaling", scaling_table("width", "width")),
    "clickmodels": ("clickmodels", clickmodels_table),
    "clickmodels-clax": ("beside_clax", clax_table),
    "clickmodels-pyclick": ("beside_pyclick", pyclick_table),
    "clickmodels-sessions": ("clickmodels", by_sessions_table),
    "clickmodels-longest": ("clickmodels_longest", longest_table),
    "steps": ("rows", steps_table),
    "updates": ("rows", updates_table),
    "longlists": ("longlists", longlists_table),
    "road": ("road", road_table),
    "site": ("site", site_table),
    "gpu": ("gpu", gpu_table),
    "roofline": ("roofline", roofline_table),
    "limits": ("roofline", limit_table),
    "extrapolations": ("scaling", extrapolation_table),
}
"""For each table, the part whose machine is given below it, and its function."""


DRAWN = ("counts", "sessions", *REPLAYS)
"""Fits to draw. The curves of the others lie on top of these."""


def draw_fits(rows: list[dict], path: Path) -> None:
    """Validation loss against training time, a panel per tower."""
    rows = [fits.completed(row, rows) for row in rows if row["method"] in DRAWN]
    points = [
        {"tower": row["tower"], "method": row["method"], "seconds": seconds, "value": value}
        for row in rows
        for seconds, value in zip(row["seconds"], row["nll"], strict=True)
    ]
    towers = {row["tower"]: f"{row['tower']} tower" for row in rows}
    methods = {row["method"]: row["method"] for row in rows}
    chart = Curves(reproduced(points), by={"method": methods}, col={"tower": towers})
    plot = chart.plot("seconds").scale(x="log").share(y=False)
    figure = chart.figure(plot.label(x="seconds of training", y="validation NLL"), height=2.05)
    for axis, tower in zip(figure.axes, towers, strict=True):
        # The range of replay. Counts come from far above within a few epochs.
        losses = [r["nll"] for r in rows if r["tower"] == tower and r["method"] in REPLAYS]
        low, high = min(map(min, losses)), max(map(max, losses))
        room = 0.1 * (high - low) or 1
        axis.set_ylim(low - room, high + room)
    save(figure, [path])


def draw_scaling(rows: list[dict], path: Path) -> None:
    """Seconds of an epoch against each size. The other sizes are those of `scaling.BASE`."""
    rows = [row for row in rows if row["temperature"] == scaling.BASE["temperature"]]
    grids = [grid for grid in dict.fromkeys(row["grid"] for row in rows) if grid in scaling.BASE]
    points = [
        {
            "tower": row["tower"],
            "grid": row["grid"],
            "size": row[row["grid"]],
            "value": row["seconds"] / row["epochs"],
        }
        for row in rows
        if row["grid"] in grids
    ]
    towers = {tower: f"{tower} tower" for tower in scaling.TOWERS}
    chart = Curves(
        reproduced(points), by={"tower": towers}, col={"grid": {grid: grid for grid in grids}}
    )
    plot = chart.plot("size").scale(x="log", y="log").share(x=False)
    save(chart.figure(plot.label(x="", y="seconds an epoch"), height=1.65), [path])


def reproduced(points: list[dict]) -> pd.DataFrame:
    """The table of a chart whose curves have no bands."""
    return pd.DataFrame(points).assign(low=np.nan, high=np.nan, source="reproduced")
