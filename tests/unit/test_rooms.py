"""The rooms of the project: imports, lengths of modules, docstrings."""

from __future__ import annotations

import ast
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from twotowers.root import ROOT

LONGEST = 450
"""The most lines of a module. A longer one has more than one purpose."""
MODULES = sorted(
    path.relative_to(ROOT)
    for folder in ("twotowers", "papers", "scripts")
    for path in (ROOT / folder).rglob("*.py")
)
LIBRARY = [path for path in MODULES if path.parts[0] == "twotowers"]
ROOMS = [path for path in LIBRARY if path.name == "__init__.py" and len(path.parts) > 2]


def test_modules_are_found():
    assert len(LIBRARY) > 60
    assert len(ROOMS) > 10


def test_no_module_is_long():
    lines = {str(path): len((ROOT / path).read_text().splitlines()) for path in MODULES}
    assert {path: number for path, number in lines.items() if number > LONGEST} == {}


def test_rooms_export_nothing():
    # Every importer of a module would depend on all that its room exports. Only the library's face
    # exports names, each of which is imported when it is used.
    assert [str(path) for path in ROOMS if (ROOT / path).read_text()] == []


def test_every_module_of_the_library_says_what_it_is():
    trees = {path: ast.parse((ROOT / path).read_text()) for path in LIBRARY if path not in ROOMS}
    assert [str(path) for path, tree in trees.items() if not ast.get_docstring(tree)] == []


def test_the_architecture_has_every_room():
    page = (ROOT / "docs" / "architecture.md").read_text()
    rooms = {path.parts[1] for path in LIBRARY if path.parts[1] != "__init__.py"}
    names = {f"`{room}`" if room.endswith(".py") else f"`{room}/`" for room in rooms}
    assert {name for name in names if name not in page} == set()


def linted(folder: Path) -> subprocess.CompletedProcess:
    command = [Path(sys.executable).with_name("lint-imports"), "--no-logo", "--no-cache"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


@pytest.fixture
def copy(tmp_path) -> Path:
    for folder in ("twotowers", "papers"):
        unwanted = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=unwanted)
    shutil.copyfile(ROOT / "pyproject.toml", tmp_path / "pyproject.toml")
    return tmp_path


def test_rooms_are_in_order(copy):
    run = linted(copy)
    assert run.returncode == 0, run.stdout + run.stderr


@pytest.mark.parametrize(
    ("path", "text", "complaint"),
    [
        ("twotowers/logs/above.py", "import twotowers.towers.two_towers", "below BROKEN"),
        ("twotowers/models/above.py", "from twotowers.workflow import plan", "below BROKEN"),
        ("twotowers/rankers/above.py", "import twotowers.identifiability.graph", "below BROKEN"),
        ("twotowers/attic/__init__.py", "", "twotowers.attic"),
        ("twotowers/workflow/above.py", "import papers.chen2024.claims", "no Snakemake BROKEN"),
        ("twotowers/workflow/above.py", "import scripts.runner", "no Snakemake BROKEN"),
        ("twotowers/workflow/above.py", "from snakemake import io", "no Snakemake BROKEN"),
        ("papers/chen2024/above.py", "import papers.hager2025.claims", "each other BROKEN"),
    ],
)
def test_the_tool_notices_what_is_out_of_order(copy, path, text, complaint):
    (copy / path).parent.mkdir(exist_ok=True)
    (copy / path).write_text(text + "\n")
    run = linted(copy)
    assert run.returncode != 0
    assert complaint in run.stdout, run.stdout
