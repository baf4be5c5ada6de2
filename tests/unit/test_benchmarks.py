"""The benchmarks: arithmetic, pages, and that each part runs."""

import json
import re
from importlib import import_module
from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks import clickmodels, measure, pages, traces
from benchmarks.__main__ import PARTS, main
from benchmarks.measure import ROOT, child, peak
from scripts.filling import filled
from twotowers.models.names import MODELS


@pytest.fixture
def here(monkeypatch, tmp_path):
    """What a part measures in processes of its own runs in this one, which has all imported."""

    def run(command, *, input, **options):
        module, function = command[-1].split(":")
        found = getattr(import_module(module), function)(**json.loads(input))
        return SimpleNamespace(stdout=json.dumps(found | {"peak_gb": peak()}))

    monkeypatch.setattr(measure, "subprocess", SimpleNamespace(run=run, PIPE=None))
    for module in ("__main__", "clickmodels"):
        monkeypatch.setattr(f"benchmarks.{module}.CACHE", tmp_path)


def test_a_log_is_opened_once(tmp_path):
    path = tmp_path / "clicks.csv"
    traces.write_log(path, 50)
    for model in ("dctr", "pbm"):
        assert traces.traced(["fit", "--model", model], path)["opened"] == 1


def test_a_child_has_its_own_peak_memory(tmp_path):
    held = np.ones(60_000_000)  # 480 MB here, not there
    log = {"path": str(tmp_path / "log.parquet"), "pages": 100, "queries": 3}
    found = child("benchmarks.counting:generate", **log)
    assert found["pages"] == 100
    assert 0.01 < found["peak_gb"] < held.nbytes / 1e9 < peak()


def test_pages_hold_what_was_measured():
    """A page is filled from the results beside it: filling it again changes nothing."""
    results = pages.read()
    for page in pages.PAGES:
        text = (ROOT / page).read_text()
        assert filled(text, pages.texts(results)) == text, f"{page}: run `make bench`"
        for table in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
            assert len({row.count("|") for row in table.splitlines()}) == 1, table
            assert table.count("\n") > 2, f"{page}: a table without rows"
    text = "".join((ROOT / page).read_text() for page in pages.PAGES)
    assert set(re.findall(r"<!-- ([\w-]+) -->", text)) == set(pages.TABLES)


def test_quick_parts_run_and_fill_their_tables(here, tmp_path):
    main(["counting", "--quick"])
    results = pages.read(tmp_path / "quick")
    assert set(results) == {"counting"} < set(PARTS)
    text = filled("<!-- counting -->\n<!-- /counting -->", pages.texts(results))
    assert text.count("\n| ") == 1 + 2
    assert {"twotowers", "DuckDB"} == {row["engine"] for row in results["counting"]["rows"]}
    json.dumps(results)


def test_click_models_are_fitted_from_their_files(here, tmp_path, monkeypatch, capsys):
    assert set(clickmodels.PUBLISHED) == set(MODELS)
    # By counting cells and pages, by EM of cells and of pages.
    some = {name: MODELS[name] for name in ("gctr", "cm", "pbm", "dbn")}
    monkeypatch.setattr(clickmodels, "MODELS", some)
    main(["clickmodels", "--quick"])
    rows = pages.read(tmp_path / "quick")["clickmodels"]["rows"]
    fitted = {row["model"]: row for row in rows if row["what"] == "fit"}
    assert set(fitted) == set(some)
    assert all(0 < row["read"] < row["seconds"] for row in fitted.values())
    assert fitted["dbn"]["rows"] < 2000 < fitted["pbm"]["pairs"]
    assert {row["pairs"] for row in fitted.values()} == {0, fitted["dbn"]["pairs"]}
    assert all(
        row["conditional"] == pytest.approx(row["converged"], abs=0.01)
        for row in fitted.values()
        if "converged" in row
    )
    assert {"plain scan", "group-by, DuckDB"} < {row["what"] for row in rows}
    assert "fitting dbn to 2,000 sessions" in capsys.readouterr().err
    errors = [row for row in rows if row["what"] == "errors"]
    pairs = fitted["dbn"]["pairs"]
    # With the documents', PBM has ten probabilities of examination, DBN one of continuation.
    assert [row["number"] for row in errors] == [pairs + 10, 2 * pairs + 1]
    # Examination of the first position has no error, since it fixes the scale.
    assert [row["with_error"] * row["number"] for row in errors] == [pairs + 9, 2 * pairs + 1]
