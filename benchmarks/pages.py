"""Results -> tables of the pages. A program writes every number in them."""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks import beside_clax, clickmodels, gpu
from benchmarks.measure import ROOT
from scripts.filling import markdown

PAGES = ("benchmarks/README.md", "benchmarks/clickmodels.md")
RESULTS = ROOT / "benchmarks" / "results"

Results = dict[str, dict]
"""For each part: `machine` and `rows`."""


def read(folder: Path = RESULTS) -> Results:
    return {path.stem: json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))}


def texts(results: Results) -> dict[str, str]:
    """The table of each part that has results, by its name on the page."""
    return {name: each.text(results) for name, each in TABLES.items() if each.part in results}


def digits(value: float) -> str:
    """Three significant digits, with separators of thousands."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def yes(value: bool) -> str:
    return "yes" if value else "no"


FORMS: dict[str, Callable] = {"#": digits, "?": yes, "upper": str.upper, "": str}
"""How a value is written, if not by a format of Python such as `.2f`."""


def cell(value, form: str) -> str:
    """A value as a text; a missing one is a dash."""
    if value is None or value != value:
        return "–"
    return FORMS[form](value) if form in FORMS else format(value, form)


def table(rows: Iterable[Mapping], columns: str) -> str:
    """Rows in Markdown.

    Args:
        rows: by key.
        columns: for each column its heading, `= key` of the rows if that is another, and `: form`
            if values are not written as they are; see `FORMS`.
    """
    parsed = []
    for column in columns.split(" | "):
        named, _, form = column.partition(" : ")
        heading, _, key = named.partition(" = ")
        parsed.append((heading.strip(), (key or heading).strip(), form.strip()))
    texts = ([cell(row.get(key), form) for _, key, form in parsed] for row in rows)
    return markdown([heading for heading, *_ in parsed], texts)


@dataclass(frozen=True)
class Table:
    """A table of a page.

    Attributes:
        part: whose rows it has, and whose machine is stated below it.
        columns: as `table` takes them.
        rows: rows of the part -> rows of the table.
    """

    part: str
    columns: str
    rows: Callable[[list[dict]], list[dict]] = list

    def text(self, results: Results) -> str:
        rows = self.rows(results[self.part]["rows"])
        machines = [row["machine"] for row in rows if "machine" in row]  # of a run of its own
        of = (machines or [results[self.part]["machine"]])[0]
        where = f"{of['date']}; {of['processor']}, {of['cores']} cores, load {of['load']:g}."
        return f"{table(rows, self.columns)}\n\n*{where}*"


TABLES: dict[str, Table] = {
    "counting": Table(
        "counting",
        "counted by = engine | cells : , | s = seconds : # | a plain scan, s = scan : # | "
        "peak memory, GB = peak_gb : .2f",
    ),
    "curves": Table(
        "curves",
        "displays = impressions : , | program | s = seconds : # | "
        "s of processors = processor : # | peak memory, GB = peak_gb : .2f",
    ),
    "clickmodels": Table(
        "clickmodels",
        "model : upper | reading, s = read : # | all, s = seconds : # | "
        "CLAX on an A6000, s = published | times faster = faster : # | "
        "conditional perplexity = conditional : .4f | ... converged = converged : .4f | "
        "scan or group-by, s = plain : # | peak memory, GB = fit_gb : .2f",
        clickmodels.against_clax,
    ),
    "clickmodels-clax": Table(
        "beside_clax",
        "model : upper | from the file, s = file : # | CLAX, s = clax file : # | "
        "times faster = faster file : # | conditional perplexity = conditional : .4f | "
        "CLAX's = clax conditional : .4f | reached : ? | at the optimum = optimum : .4f",
        beside_clax.compared,
    ),
    "clickmodels-errors": Table(
        "clickmodels",
        "model : upper | probabilities = number : , | EM, s = estimation : # | "
        "errors, s = errors : # | peak memory, GB = peak_gb : .2f",
        lambda rows: [row for row in rows if row["what"] == "errors"],
    ),
    "streaming": Table(
        "streaming",
        "sessions : , | model : upper | by | how | s = seconds : # | epochs | "
        "conditional perplexity = conditional : .4f | peak memory, GB = peak_gb : .2f",
    ),
    "gpu": Table(
        "gpu",
        " = what | fits : , | s = seconds : #"
        + "".join(f" | {metric}, off GPU = {metric} off : .2g" for metric in gpu.COMPARED),
        lambda rows: [row for row in rows if row["what"] == "all fits" or "seed" in row["what"]],
    ),
}
"""The table at each place."""
