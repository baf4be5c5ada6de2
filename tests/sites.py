"""Made-up pages: a paper with very long texts, and a site of any number of papers."""

from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd

from twotowers.claims.claims import CONTRADICTED, NOT_TESTABLE, PAPER, REPRODUCED
from twotowers.claims.data_provenance import REAL, SIMULATION, STAND_IN
from twotowers.report import figures
from twotowers.report.comparison import SOURCES
from twotowers.report.drawings import position_bias
from twotowers.report.latex import booktabs
from twotowers.report.pages import CLAIM_COLUMNS, write_overview, write_paper, write_scales

TEMPERATURES = (0, 0.333, 0.666, 1)
SETTINGS = ("misfit-linear", "misfit-omitted", "misfit-expert")
LONG = "a setting with a remarkably_long_name_without_any_place_to_break_it_across_lines"
PROVENANCE = {
    "datasets": {"mslr30k": STAND_IN},
    "scale": "laptop",
    "seeds": [2021, 2022, 2023],
    "version": "0.1.0-12-g7e674a0",
    "seconds": 83.2,
    "megabytes": 2140.0,
}
METRICS = ("DCG@1", "DCG@3", "DCG@5", "DCG@10", "MRR@10", "NLL")
WHOSE = ("ours", "paper")
RUN = {"scale": "laptop", "version": "0.1.0-12-g7e674a0"}


def bias_table(settings=SETTINGS) -> pd.DataFrame:
    """Made-up position bias: the truth, displaced the more, the lower the temperature."""
    grid = pd.MultiIndex.from_product(
        [settings, TEMPERATURES, range(1, 26), SOURCES],
        names=["setting", "temperature", "position", "source"],
    ).to_frame(index=False)
    logs = np.log(grid["position"])
    shift = 1 + (0.35 - 0.4 * grid["temperature"]) + grid["setting"].map(len) / 60 - 0.25
    value = -logs * shift - 0.05 * (grid["source"] == "published") * logs
    band = 0.02 + 0.02 * logs
    return grid.assign(value=value, low=value - band, high=value + band, n=3, metric="bias")


def long_table() -> pd.DataFrame:
    """Two hundred rows whose names hardly fit anywhere."""
    rows = pd.DataFrame({"setting": LONG, "query-document pair": range(200), "strength": -0.333})
    rows["relevance model"] = np.where(rows.index % 2, "embedding", LONG)
    rows = rows.assign(value=np.linspace(-3.2, 0, 200), low=np.nan, high=np.nan)
    parts = [rows.assign(source=source) for source in SOURCES]
    return pd.concat(parts, ignore_index=True)


@cache
def drawn(settings: tuple[str, ...]) -> dict[str, bytes]:
    """A row of panels of position bias, by ending."""
    figure = position_bias.draw(
        bias_table(settings), settings=dict(zip(settings, settings, strict=True))
    )
    figures.source_note(figure, "Stand-in data (mslr30k), scale laptop, seeds 2021–2023")
    with TemporaryDirectory() as folder:
        files = {ending: Path(folder) / f"drawn.{ending}" for ending in ("svg", "pdf")}
        figures.save(figure, [*files.values()])
        return {ending: file.read_bytes() for ending, file in files.items()}


def draw(folder: Path, name: str, settings=SETTINGS) -> dict[str, str]:
    """Write a row of panels of position bias; returns the item's files, relative to `folder`."""
    contents = {"csv": b"value\n"} | drawn(tuple(settings))
    for ending, content in contents.items():
        (folder / f"{name}.{ending}").write_bytes(content)
    return {ending: f"{name}.{ending}" for ending in ("csv", "pdf", "svg")}


def claim(number: str, item: str, verdict=REPRODUCED, **other) -> dict:
    """One judged claim."""
    row = {
        "paper": "sample2025",
        "claim": number,
        "item": item,
        "origin": PAPER,
        "statement": "The estimate is displaced further from the truth, the less the rankings "
        "are randomised (linear tower on non-linear relevance)",
        "where": "Sec. 8.2, Fig. 3",
        "measured": "displacement .402 > .121 > .055 (tau 0, .333, .666); err -.613 to -.114",
        "authors": "displacement .812 > .141 > .062 (tau 0, .333, .666); err -1.914 to -.211",
        "authors_verdict": "holds",
        "authors_held": "printed means",
        "expected": "grows strictly as tau falls; at tau 0 below the truth from position 5 on",
        "verdict": verdict,
        "cause": "",
        "held": "",
        "reason": "",
        "stands_on": STAND_IN,
        "contradiction": "our data or setting differ" if verdict == CONTRADICTED else "",
        "judge": "papers/sample2025/judges/fits.py:81 recovered",
    }
    return {**row, **other}


OF_NOTHING = {"claims": (), "brief": None, "digest": "", "findings": (), "replaced": {}}
"""What a page may lack."""


def item(name: str, title: str, files: dict, table: pd.DataFrame, claims=(), **other) -> dict:
    """An item of the made-up paper."""
    fields = {
        "caption": "Position bias estimated from clicks on rankings of four temperatures, mean "
        "over seeds with 95 % intervals; published means dashed, the truth −ln k dotted.",
        "compared": "As in print.",
        "expected": "Only fully random rankings (τ = 1) come close to the truth; the lower the "
        "temperature, the further below it the estimate lies.",
        "kind": "figure" if "svg" in files else "table",
        "highlight": None,
        "needs": ["misfit-linear"],
        "provenance": PROVENANCE,
    }
    own = {"name": name, "title": title, "files": files, "table": table, "claims": claims}
    return {**own, "headings": {}, "names": {}, **fields, **other}


def paper(folder: Path, key: str) -> dict:
    """A paper of seven items; its drawings lie in `folder`."""
    judged = partial(claim, paper=key)
    folder.mkdir(parents=True)
    for name in ("README.md", "judges/fits.py"):
        path = folder / "papers" / "sample2025" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("What differs, and why.\n")
    methods = [["Pointwise Regression", whose, *["$0.435 \\pm .002$"] * 6] for whose in WHOSE]
    printed = booktabs(["Method", "", *METRICS], methods * 9, columns="llrrrrrr")
    (folder / "table1.tex").write_text(printed)
    (folder / "table1.csv").write_text("value\n")
    texts = {kind: f"table1.{kind}" for kind in ("csv", "tex")}
    ends = {"position": [5, 10, 25]}
    alone = bias_table(SETTINGS[:1])
    items = [
        item(
            "fig2",
            "Well-specified models recover the truth",
            draw(folder, "fig2"),
            bias_table(),
            [judged("1a", "fig2"), judged("1b", "fig2", stands_on=SIMULATION)],
            highlight=ends,
        ),
        item(
            "fig3",
            "Misspecified models are confounded by the logging policy",
            draw(folder, "fig3"),
            bias_table(),
            [judged("5b", "fig3", CONTRADICTED, reason="fails: less than half of the error")],
            highlight=ends,
        ),
        item("fig3a", "One column wide", draw(folder, "fig3a", SETTINGS[:1]), alone),
        item(
            "fig7",
            "Nothing is published",
            draw(folder, "fig7"),
            bias_table().query("source == 'reproduced'"),
            [judged("10", "fig7", NOT_TESTABLE, measured="", reason="no results at strength .333")],
            highlight={"position": [5], "setting": list(SETTINGS[:1])},
        ),
        item("table1", f"Two hundred rows of {LONG}", texts, long_table()),
        item("appendixA", "Bias features beyond position", texts, long_table().head(20)),
        item("identification", LONG, texts, long_table().tail(20), [judged("13", "")]),
    ]
    return dict(
        OF_NOTHING,
        key=key,
        title="Unidentified and Confounded? A Made-up Paper with a Title of Ordinary Length",
        citation=f"Ann Author, Bo Writer. NIL 2025, https://doi.example/{LONG}",
        items=items,
        settings=[
            {
                "name": "misfit-linear",
                "kind": "setting",
                "text": f"log: {{name: {LONG}, {LONG}: 3}}",
                "provenance": PROVENANCE,
                "gates": (),
            }
        ],
        provenance={**PROVENANCE, "seconds": 812.4},
        root=".",
        brief={
            "question": "Can the model tell relevance from position bias?",
            "authors": "It can where documents swap positions, and no policy misleads it then.",
            "doubt": f"What was fitted to {LONG}.",
            "claims": ("1a", "5b", "10"),
        },
        claims=[
            judged("11", "", stands_on=REAL, statement="Rankings of a real log are confounded")
        ],
    )


def site(folder: Path, papers: int = 1) -> Path:
    """Write a site of papers that differ in their names; returns the overview."""
    keys = [f"sample{2025 + number}" for number in range(papers)]
    for key in keys:
        write_paper(paper(folder / key, key), folder / key)
    # Written after the overview, which links them.
    (folder / "claims.csv").write_text(",".join(CLAIM_COLUMNS) + "\n")
    write_overview(folder, keys, **RUN)
    write_scales(folder.parent)
    return folder / "index.html"
