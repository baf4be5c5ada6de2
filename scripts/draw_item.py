"""Results of the settings an item needs -> its csv, and its figure or LaTeX table."""

from scripts.runner import job
from twotowers.claims import published
from twotowers.claims.statistics import read_results
from twotowers.errors import InputError, nearest
from twotowers.files.artefacts import atomic
from twotowers.report.drawing import Drawing


def check_metrics(drawing: dict, measured: set[str]) -> None:
    """Refuse a metric that no setting of the item measures: it would be missing from the drawing.

    Options `metric`, `metrics` and `columns` name metrics.
    """
    given = {name: drawing.get(name, ()) for name in ("metric", "metrics")}
    columns = [each for each in drawing.get("columns", ()) if isinstance(each, dict)]
    given["columns"] = [each["metric"] for each in columns if "metric" in each]
    for field, named in given.items():
        for metric in [named] if isinstance(named, str) else named:
            if metric not in measured:
                raise InputError(
                    f"{metric!r} is measured by no setting of the item",
                    field=f"draw.{field}",
                    expected=nearest(metric, measured),
                )


@job
def main(inputs, outputs, *, module: str, drawing: dict, paper: str, name: str, note: str):
    item = Drawing(module, drawing)
    results = read_results(inputs)
    check_metrics(drawing, set(results["metric"]))
    table = item.table(results, published.bands(paper, name))
    if table.empty:
        raise InputError(
            f"{module} finds nothing to draw in the results",
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
