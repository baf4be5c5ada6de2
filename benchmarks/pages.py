"""Results -> pages: tables between markers, and plots. No number on a page is typed."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks import beside_clax, beside_pyclick, clickmodels, fits, gpu, scaling
from benchmarks.limits import extrapolations, predicted
from benchmarks.measure import ROOT
from scripts.filling import fill_page, filled, markdown
from twotowers.report.charts import Curves
from twotowers.report.figures import save

PAGES = ("benchmarks/README.md", "benchmarks/clickmodels.md", "docs/scaling.md")
RESULTS = ROOT / "benchmarks" / "results"

Results = dict[str, dict]
"""For each part: `machine` and `rows`."""


def read(folder: Path = RESULTS) -> Results:
    """The results so far."""
    return {path.stem: json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))}


def tables(results: Results) -> dict[str, str]:
    """Every table by its place. One without measurements says so."""
    return {name: table.of(results) for name, table in TABLES.items()}


def fill(text: str, results: Results) -> str:
    """The page with new tables."""
    return filled(text, tables(results))


def write(results: Results) -> None:
    """Fill all pages, and draw."""
    for name in PAGES:
        fill_page(ROOT / name, tables(results))
    if "fits" in results:
        draw_fits(results["fits"]["rows"], ROOT / "benchmarks" / "fits.svg")
    if "scaling" in results:
        draw_scaling(results["scaling"]["rows"], ROOT / "docs" / "scaling.svg")


def where(machine: dict) -> str:
    """A line with date and machine. The results have the versions of all packages, too."""
    return (
        f"*{machine['date']}; {machine['processor']}, {machine['cores']} cores, "
        f"load {machine['load']:g}.*"
    )


def digits(value: float) -> str:
    """Three significant digits, with separators of thousands."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def yes(value: bool) -> str:
    return "yes" if value else "no"


FORMS: dict[str, Callable] = {"#": digits, "?": yes, "upper": str.upper, "": str}
"""How a value is written, if not by a format of Python such as `.2f`."""


def cell(value, form: str) -> str:
    """A value as a text; a missing one is a dash."""
    if value is None:
        return "–"
    return FORMS[form](value) if form in FORMS else format(value, form)


@dataclass(frozen=True)
class Table:
    """A table of a page.

    Attributes:
        part: whose machine is stated below it.
        columns: for each column its heading, `= key` of the rows if that is another, and `: form`
            if values are not written as they are; see `FORMS`.
        rows: rows of the part -> rows of the table.
        needs: parts without which there is no table; then `rows` gets all results.
    """

    part: str
    columns: str | Callable[[list[dict]], str]
    rows: Callable = list
    needs: tuple[str, ...] = ()

    def of(self, results: Results) -> str:
        body = "Not measured yet."
        if {self.part, *self.needs} <= set(results):
            rows = self.rows(results if self.needs else results[self.part]["rows"])
            columns = self.columns if isinstance(self.columns, str) else self.columns(rows)
            parsed = []
            for column in columns.split(" | "):
                named, _, form = column.partition(" : ")
                heading, _, key = named.partition(" = ")
                parsed.append((heading.strip(), (key or heading).strip(), form.strip()))
            texts = ([cell(row.get(key), form) for _, key, form in parsed] for row in rows)
            body = markdown([heading for heading, *_ in parsed], texts)
        machine = f"\n\n{where(results[self.part]['machine'])}" if self.part in results else ""
        return body + machine


def fit_table(part: str, baselines: tuple[str, ...], references: tuple[str, ...]) -> Table:
    columns = (
        "tower | fit = method | lowest validation NLL = lowest : .5f | "
        "to the target, s = to_target : # | epochs | an epoch, s = per_epoch : # | "
        "peak memory, GB = peak_gb : .2f"
    )
    for name in references:
        columns += f" | position bias, off {name} = off {name} : .3f"
    for name in baselines:
        columns += f" | times faster than {name} = against {name} : #"
    return Table(part, columns, lambda rows: fits.summary(rows, baselines, references))


def scaling_table(grid: str, *sizes: str, most: tuple[int, ...] = (), beside: str = "") -> Table:
    """A row per size, with both towers.

    Seconds are relative to the first size of the same tower and temperature.

    Args:
        grid: Of the part `scaling`.
        sizes: What differs between its rows.
        most: Numbers of sessions to show; all if empty.
        beside: Another grid with the same first size, whose seconds are shown, too.
    """

    def make(rows: list[dict]) -> list[dict]:
        found, first = {}, {}
        for row in (row for row in rows if row["grid"] == grid):
            tower, seconds = row["tower"], row["seconds"] / row["epochs"]
            start = first.setdefault((tower, row["temperature"]), seconds)
            if most and row["sessions"] not in most:
                continue
            own = found.setdefault(tuple(row[size] for size in sizes), row | {"peak": 0})
            own |= {f"{tower} epoch": seconds, f"{tower} relative": seconds / start}
            own["peak"] = max(own["peak"], row["peak_gb"])
        for row in (row for row in rows if row["grid"] == beside):
            own = found[(row[sizes[0]],)]
            own[f"{row['tower']} beside"] = row["seconds"] / row["epochs"]
        return list(found.values())

    columns = "".join(f"{size}{'' if size == 'temperature' else ' : ,'} | " for size in sizes)
    columns += "".join(
        f"{tower}, s = {tower} epoch : # | relative = {tower} relative : .2f | "
        for tower in scaling.TOWERS
    )
    if beside:
        columns += "".join(f"{t}, {beside}, s = {t} beside : # | " for t in scaling.TOWERS)
    return Table("scaling", f"{columns}data, GB = data_gb : # | most memory, GB = peak : .2f", make)


def chosen(what: str) -> Callable[[list[dict]], list[dict]]:
    """The rows of one kind."""
    return lambda rows: [row for row in rows if row["what"] == what]


def with_ratio(rows: list[dict]) -> list[dict]:
    return [row | {"ratio": row["all step"] / row["used step"]} for row in chosen("step")(rows)]


def with_rates(rows: list[dict]) -> list[dict]:
    """Per temperature: the plain simulator, and counts at its size and at the largest."""
    plain = {row["temperature"]: row for row in rows if row["simulator"] != "counts"}
    largest = {row["temperature"]: row["sessions"] for row in rows}  # Sizes grow.
    found = []
    for row in rows:
        if row["sessions"] not in (
            plain[row["temperature"]]["sessions"],
            largest[row["temperature"]],
        ):
            continue
        slow, rate = plain[row["temperature"]], row["sessions"] / row["seconds"]
        faster = rate * slow["seconds"] / slow["sessions"]
        found.append(row | {"rate": round(rate), "faster": faster})
    return found


def best_updates(rows: list[dict]) -> list[dict]:
    """Of each model and way to update, the learning rate with the lowest validation loss."""
    best: dict[tuple, dict] = {}
    for row in chosen("fit")(rows):
        found = best.setdefault((row["model"], row["update"]), row)
        if row["validation"] < found["validation"]:
            best[row["model"], row["update"]] = row
    return [row for row in best.values() if row["update"] != "all rows, Adam"]


def ends_of_lanes(results: Results) -> list[dict]:
    """The limits of the fewest and of the most lanes."""
    rows = predicted(results)
    ends = {min(row["lanes"] for row in rows), max(row["lanes"] for row in rows)}
    return [row for row in rows if row["lanes"] in ends]


def with_hourly(rows: list[dict]) -> list[dict]:
    average = "a job, on average"
    return [
        row | {"hourly": 3600 / row["seconds"] if average in row["what"] else None} for row in rows
    ]


def sizes_of_sessions(rows: list[dict]) -> str:
    sizes = [key.split()[1] for key in rows[0] if key.startswith("seconds")]
    columns = [f"{int(size):,} sessions, s = seconds {size} : #" for size in sizes]
    columns += [f"{int(sizes[-1]):,} sessions, GB = fit_gb {sizes[-1]} : .2f"]
    return " | ".join(["model : upper", *columns])


REPLAYS = ("replay, samples", "replay, arrays")

TABLES: dict[str, Table] = {
    "fits": fit_table("fits", REPLAYS, ("replay, arrays", "replay, arrays, averaged")),
    "pbm": fit_table("pbm", ("CLAX",), ("CLAX",)),
    "simulator": Table(
        "simulator",
        "temperature | simulator | sessions : , | s = seconds : # | sessions a second = rate : , | "
        "times faster = faster : # | peak memory, GB = peak_gb : .2f",
        with_rates,
    ),
    "counting": Table(
        "counting",
        "counted by = engine | version | impressions : , | cells : , | s = seconds : # | "
        "its plain scan, s = scan : # | peak memory, GB = peak_gb : .2f",
    ),
    "sessions": scaling_table("sessions", "temperature", "sessions", "cells", most=(10**6, 10**9)),
    "lanes": scaling_table("lanes", "lanes", beside="two jobs"),
    "clickmodels": Table(
        "clickmodels",
        "model : upper | distinct pages = distinct : , | pairs : , | reading, s = read : # | "
        "statistics, s = statistics : # | estimation, s = estimation : # | "
        "in all, s = seconds : # | CLAX on an A6000, s = published | "
        "times faster = faster : # | cycles | "
        "conditional perplexity = conditional : .4f | ... converged = converged : .4f | "
        "scan or group-by, s = plain : # | times as long = times : # | "
        "peak memory, GB = fit_gb : .2f",
        clickmodels.longest,
    ),
    "clickmodels-clax": Table(
        "beside_clax",
        "model : upper | sessions : , | from the file, s = file : # | CLAX, s = clax file : # | "
        "times faster = faster file : # | from arrays, s = arrays : # | "
        "CLAX, s = clax arrays : # | times faster = faster arrays : # | "
        "CLAX's epochs = clax epochs | "
        "stopped by itself = clax ended : ? | conditional perplexity = conditional : .4f | "
        "CLAX's = clax conditional : .4f | reached : ? | tolerance | "
        "at the optimum = optimum : .4f | "
        "log-likelihood a click = log_likelihood : .5f | CLAX's = clax log_likelihood : .5f",
        beside_clax.compared,
    ),
    "clickmodels-pyclick": Table(
        "beside_pyclick",
        "model : upper | sessions : , | ours, s = seconds : # | cycles | "
        "PyClick, a round, s = peer : # | rounds timed = rounds | "
        f"{beside_pyclick.ROUNDS} rounds, s = all : # | times faster = faster : #",
        beside_pyclick.compared,
    ),
    "clickmodels-sessions": Table("clickmodels", sizes_of_sessions, clickmodels.by_sessions),
    "clickmodels-longest": Table(
        "clickmodels_longest",
        "model : upper | pairs : , | reading, s = read : # | "
        "estimation, s = estimation : # | in all, s = seconds : # | peak memory, GB = fit_gb : .2f",
        chosen("fit"),
    ),
    "clickmodels-errors": Table(
        "clickmodels_errors",
        "model : upper | sessions : , | probabilities = number : , | "
        "with an error = told : .3f | EM, s = estimation : # | errors, s = errors : # | "
        "peak memory before, GB = fit_gb : .2f | with errors, GB = peak_gb : .2f",
    ),
    "steps": Table(
        "rows",
        "rows of the table = table : , | a step on all rows, s = all step : # | "
        "on used rows, s = used step : # | ratio : # | "
        "an epoch besides, all rows, s = all epoch : # | used rows, s = used epoch : # | "
        "peak memory, all rows, GB = all peak_gb : .2f | used rows, GB = used peak_gb : .2f",
        with_ratio,
    ),
    "updates": Table(
        "rows",
        "model | updates = update | learning rate = learning_rate | epochs | "
        "validation loss = validation : .5f | held-out perplexity = perplexity : .4f",
        best_updates,
    ),
    "longlists": Table(
        "longlists",
        "queries : , | temperature | layout |  = what | s = seconds : # | "
        "peak memory, GB = peak_gb : .2f | cells shown = cells : , | cells held = held : , | "
        "every cell as two int64, GB = dense_gb : #",
    ),
    "draws": Table("draws", " = what | an entry, ns = ns : # | times ours = ratio : #"),
    "road": Table("road", " = what | s = seconds : # | an hour = hourly : #", with_hourly),
    "site": Table(
        "site",
        "page = what | read at a = width | loaded, s = load : # | "
        "searched, a letter, s = search : # | page, kB = page_kb : #",
    ),
    "gpu": Table(
        "gpu",
        " = what | jobs | fits : , | on = device | s = seconds : # | a kernel ran = busy : .0% | "
        "GPU memory, GB = gpu_gb : #"
        + "".join(f" | {metric}, off GPU = {metric} off : .2g" for metric in gpu.COMPARED),
    ),
    "roofline": Table(
        "roofline",
        "square products, GFLOP/s = gemm_gflops : # | "
        "narrow products (first layer), GFLOP/s = narrow_gflops : # | "
        "copying, GB/s read and written = copy_gb_s : # | "
        "losses of cells, 10^9 a second = losses_g_s : # | "
        "gradients of them, 10^9 a second = gradients_g_s : #",
    ),
    "limits": Table(
        "roofline",
        "tower | lanes | products, s = products : # | cells, s = cells_time : # | "
        "bytes, s = bytes_time : # | limit, s = limit : # | measured, s = measured : # | "
        "limit / measured = share : .0%",
        ends_of_lanes,
        ("scaling",),
    ),
    "extrapolations": Table(
        "scaling",
        "log = what | simulation, s = simulation : # | "
        "an epoch over every query once, s = epoch : # | features, GB = features_gb : # | "
        "counts, GB = counts_gb : #",
        extrapolations,
        ("simulator",),
    ),
}
"""The table at each place."""


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
