"""Results of the settings an item needs -> its csv, and its figure or LaTeX table."""

from importlib import import_module

import pandas as pd

from scripts.runner import paper_module, run
from twotowers.files.artefacts import atomic
from twotowers.report.figures import save, source_note
from twotowers.results.longform import read_results


def main(inputs, outputs, *, paper: str, item: str, note: str, caption: str):
    drawing = import_module(f"papers.{paper}.items.{item}")
    published = paper_module(paper, "published")
    bands = published.bands() if published else pd.DataFrame()
    table = drawing.table(read_results(inputs), bands)
    with atomic(outputs.csv) as path:
        table.to_csv(path, index=False, float_format="%.6g", lineterminator="\n")
    if hasattr(drawing, "tex"):
        with atomic(outputs.tex) as path:
            path.write_text(f"% {note}\n{drawing.tex(table)}")
    else:
        figure = drawing.draw(table)
        source_note(figure, note)
        save(figure, [outputs.pdf, outputs.svg])


if "snakemake" in globals():
    run(main, snakemake)  # noqa: F821
