"""docs/reliability.md, made of the tests' `fault` marks.

.venv/bin/python -m tests.reliability
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from twotowers import ROOT
from twotowers.artefacts import atomic

PAGE = ROOT / "docs" / "reliability.md"
MARK = "pytest.mark.fault"
INTRODUCTION = """\
# What is survived

Each row is shown by the test that it names, which carries the row's words as a mark; this page is
written by `.venv/bin/python -m tests.reliability`, and a test fails when it differs from the
marks. "The same bytes" are those of an undisturbed run, in every csv and svg that the row's run
draws. Kills in greater number: [soak.md](soak.md).

| fault or input | what happens | test |
|---|---|---|
"""


def marks(path: Path) -> Iterator[tuple[str, str, str]]:
    """Fault, outcome and test of each mark in a file: on a function, or on one of its cases.

    A mark whose words are not literal, or that is on no test, is an error (ValueError).
    """
    tree = ast.parse(path.read_text())
    owners = {
        id(call): function.name
        for function in tree.body
        if isinstance(function, ast.FunctionDef)
        for decorator in function.decorator_list
        for call in ast.walk(decorator)
    }
    for call in ast.walk(tree):
        if isinstance(call, ast.Call) and ast.unparse(call.func) == MARK:
            if id(call) not in owners:
                raise ValueError(f"{path}:{call.lineno}: a fault mark that is on no test")
            fault, outcome = map(ast.literal_eval, call.args)
            yield fault, outcome, owners[id(call)]


def page() -> str:
    """The page, as the marks have it."""
    rows = []
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        name = path.relative_to(ROOT)
        for fault, outcome, test in marks(path):
            rows.append(f"| {fault} | {outcome} | [{test}](../{name}) |\n")
    return INTRODUCTION + "".join(rows)


if __name__ == "__main__":
    with atomic(PAGE) as temporary:
        temporary.write_text(page())
