"""docs/reliability.md, made of the `fault` marks of the tests.

.venv/bin/python -m tests.reliability
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from twotowers import ROOT
from twotowers.files.artefacts import atomic

PAGE = ROOT / "docs" / "reliability.md"
INTRODUCTION = """\
# What is survived

Each row is shown by the test that it names, which carries the row's words as a mark; this page is
written by `.venv/bin/python -m tests.reliability`, and a test fails when it differs from the
marks. "The same bytes" are those of an undisturbed run, in all that the test makes again. Kills
in greater number: [soak.md](soak.md). Damaged files in greater number: [fuzzing.md](fuzzing.md).

| fault or input | what happens | test |
|---|---|---|
"""


class Marks:
    """A plugin of pytest that notes (fault, outcome, file, test) of the tests it collects."""

    def __init__(self):
        self.rows = []

    def pytest_collection_finish(self, session):
        for item in session.items:
            file = item.path.relative_to(item.config.rootpath)
            for mark in reversed(list(item.iter_markers("fault"))):
                self.rows.append((*mark.args, file, item.originalname))


def rows(files: Iterable[Path]) -> list[tuple[str, str, Path, str]]:
    """Fault, outcome, file and test of each mark in test files, each once.

    Raises:
        RuntimeError: pytest cannot collect them.
    """
    marks = Marks()
    options = ["--collect-only", "-qq", "-p", "no:cacheprovider"]
    if pytest.main([*options, *map(str, files)], plugins=[marks]):
        raise RuntimeError("the tests cannot be collected; pytest says why")
    return list(dict.fromkeys(marks.rows))


def page(found: Iterable[tuple[str, str, Path, str]]) -> str:
    """The page, with a row for each of `rows`."""
    lines = []
    for fault, outcome, file, test in found:
        words = (text.replace("|", r"\|") for text in (fault, outcome))
        lines.append(f"| {' | '.join(words)} | [{test}](../{file}) |\n")
    return INTRODUCTION + "".join(lines)


if __name__ == "__main__":
    tests = sorted((ROOT / "tests").rglob("test_*.py"))
    text = page(rows(path for path in tests if "mark.fault" in path.read_text()))
    with atomic(Path(sys.argv[1]) if len(sys.argv) > 1 else PAGE) as temporary:
        temporary.write_text(text)
