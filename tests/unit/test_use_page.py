"""docs/use.md and docs/logs.md have the tables that the benchmark's results give."""

import re

import pytest

from benchmarks.use import PAGES, tables
from scripts.filling import filled


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_page_has_the_tables_of_the_results(page):
    text = page.read_text(encoding="utf-8")
    assert filled(text, tables()) == text


def test_debiasing_is_seen_to_pay_nowhere():
    rows = [line.split(" | ") for line in tables()["debiased"].splitlines()[2:]]
    ends = {row[0]: re.findall(r"\((\S+) to (\S+)\)", " ".join(row[1:])) for row in rows}
    assert [len(each) for each in ends.values()] == [3] * 4
    assert all(float(low) <= 0 for each in ends.values() for low, _ in each)
    worse = [name for name, each in ends.items() if any(float(high) < 0 for _, high in each)]
    assert worse == ["| LightGBM, its own less LightGBM, clicks"]
