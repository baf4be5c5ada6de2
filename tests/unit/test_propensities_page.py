"""docs/propensities.md has the tables that its results give."""

import pandas as pd

from benchmarks import propensities


def test_the_page_has_the_tables_of_the_results():
    page = propensities.PAGE.read_text()
    found = propensities.judged(pd.read_csv(propensities.RESULTS))
    for name, table in {
        "coverage": propensities._coverage(found),
        "priors": propensities._priors(),
    }.items():
        assert f"<!-- {name} -->\n{table}\n<!-- /{name} -->" in page


def test_the_figure_is_the_same_again(tmp_path):
    found = propensities.judged(pd.read_csv(propensities.RESULTS))
    propensities.draw_coverage(found, tmp_path / "again.svg")
    assert (tmp_path / "again.svg").read_bytes() == propensities.PICTURE.read_bytes()
