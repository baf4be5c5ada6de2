"""Results of the settings an item needs -> its csv, and its figure or LaTeX table."""

from scripts.runner import run
from twotowers.errors import InputError
from twotowers.experiment.kinds import build_drawing
from twotowers.files.artefacts import atomic
from twotowers.results import published
from twotowers.results.longform import read_results


def main(inputs, outputs, *, paper: str, drawing: dict, note: str, caption: str):
    parameters = {key: value for key, value in drawing.items() if key != "kind"}
    item = build_drawing(drawing["kind"], paper, **parameters)
    table = item.table(read_results(inputs), published.bands(paper))
    if table.empty:
        raise InputError(
            f"{drawing['kind']!r} finds nothing to draw in the results",
            field="draw",
            expected="a metric, lanes and values that the settings have",
        )
    with atomic(outputs.csv) as path:
        table.to_csv(path, index=False, float_format="%.6g", lineterminator="\n")
    if hasattr(item, "tex"):
        with atomic(outputs.tex) as path:
            path.write_text(f"% {note}\n{item.tex(table)}")
    else:
        # Tables do not need the drawing library, which is slow to import.
        from twotowers.report.figures import save, source_note

        figure = item.draw(table)
        source_note(figure, note)
        save(figure, [outputs.pdf, outputs.svg])


if "snakemake" in globals():
    run(main, snakemake)  # noqa: F821
