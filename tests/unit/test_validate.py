"""The studies of `benchmarks.validate`: pages have their tables, and a run replaces a case."""

import multiprocessing.dummy
from dataclasses import replace

import pandas as pd
import pytest

from benchmarks.validate import study
from benchmarks.validate.__main__ import measured, run
from scripts.filling import filled


@pytest.mark.parametrize("module", measured(), ids=lambda module: module.__name__.split(".")[-1])
def test_pages_have_the_tables_of_the_results(module):
    for page, tables in module.tables().items():
        text = page.read_text(encoding="utf-8")
        assert filled(text, tables) == text, f"{page.name}: run benchmarks.validate pages"
        assert all(f"<!-- {name} -->" in text for name in tables)


def square(case: str, seed: int) -> list[dict]:
    return [{"case": case, "seed": seed, "value": int(case) ** 2}]


def test_a_run_replaces_the_rows_of_its_cases(tmp_path, monkeypatch):
    monkeypatch.setattr(study, "RESULTS", tmp_path)
    # Threads start at once.
    monkeypatch.setattr(multiprocessing, "get_context", lambda _: multiprocessing.dummy)
    squares = study.Study("squares", "case", ("2", "3"), square)
    run(squares, ["2", "3"], draws=2, processes=1)
    run(replace(squares, first=5), ["3"], draws=1, processes=1)
    expected = pd.DataFrame({"case": [2, 2, 3], "seed": [0, 1, 5], "value": [4, 4, 9]})
    pd.testing.assert_frame_equal(squares.table(), expected)
