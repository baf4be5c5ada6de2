"""The page of faults survived says what the tests' marks say."""

import pytest

from tests import reliability


def test_the_page_has_not_drifted_from_the_marks():
    assert reliability.PAGE.read_text() == reliability.page(), (
        "run .venv/bin/python -m tests.reliability"
    )


def test_at_least_25_faults_are_shown():
    assert reliability.page().count("\n| ") >= 25 + 1


def test_marks_of_functions_and_of_cases(tmp_path):
    path = tmp_path / "test_a.py"
    path.write_text(
        "@pytest.mark.parametrize('x', [pytest.param(1, marks=pytest.mark.fault('a', 'b'))])\n"
        "@pytest.mark.fault('c', 'd' 'e')\n"
        "def test_x(x): ...\n"
    )
    assert set(reliability.marks(path)) == {("a", "b", "test_x"), ("c", "de", "test_x")}


def test_a_mark_without_a_test_is_an_error(tmp_path):
    path = tmp_path / "test_a.py"
    path.write_text("CASES = [pytest.mark.fault('a', 'b')]\n")
    with pytest.raises(ValueError, match=r"test_a\.py:1"):
        list(reliability.marks(path))
