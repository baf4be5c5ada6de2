"""The notebook of the documentation runs, and its last lines have something to show."""

import ast
import json
from contextlib import chdir

import pandas as pd

from twotowers.root import ROOT


def test_the_notebook_runs(tmp_path):
    cells = json.loads((ROOT / "docs" / "notebook.ipynb").read_text(encoding="utf-8"))["cells"]
    names, shown = {}, []
    with chdir(tmp_path):
        for cell in cells:
            if cell["cell_type"] != "code":
                continue
            assert cell["outputs"] == []  # A diff shows code alone.
            body = ast.parse("".join(cell["source"])).body
            last = body.pop() if isinstance(body[-1], ast.Expr) else None
            exec(compile(ast.Module(body, []), "cell", "exec"), names)  # noqa: S102 (our own documentation)
            if last is not None:
                value = compile(ast.Expression(last.value), "cell", "eval")
                shown.append(eval(value, names))  # noqa: S307
    html = [each._repr_html_() for each in shown if hasattr(each, "_repr_html_")]
    assert sum("<svg" in each for each in html) == 1
    assert (tmp_path / "qrels.txt").exists()
    weights = pd.read_csv(tmp_path / "weights.csv")
    assert len(weights) == 40_000
    curve = names["curve"].frame().set_index(["position", "device"])["estimate"]
    assert curve[10, "phone"] < curve[10, "desktop"]
