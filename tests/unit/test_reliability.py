"""The page of what is survived says what the tests' marks say."""

import subprocess
import sys
from pathlib import Path

from tests.reliability import INTRODUCTION, PAGE, page
from twotowers.running.experiments import ROOT


def test_the_page_has_not_drifted_from_the_marks(tmp_path):
    """Collected in a process of its own, as the command does."""
    command = [sys.executable, "-m", "tests.reliability", str(tmp_path / "page")]
    subprocess.run(command, cwd=ROOT, check=True)
    text = PAGE.read_text()
    assert text == (tmp_path / "page").read_text(), "run .venv/bin/python -m tests.reliability"
    rows = text.removeprefix(INTRODUCTION).splitlines()
    assert len(rows) >= 25
    # A few that must be among them: of a case, of a test, and the second of a test.
    for fault in ("a wrong scale", "a full disk", "`kill -9` of the scheduler alone"):
        assert sum(row.startswith(f"| {fault} | ") for row in rows) == 1


def test_words_do_not_break_the_table():
    text = page([("a|b", "c", Path("tests/test_a.py"), "test_x")])
    assert text.removeprefix(INTRODUCTION) == "| a\\|b | c | [test_x](../tests/test_a.py) |\n"
