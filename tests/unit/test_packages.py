"""The packages of the project: imports, lengths of modules, docstrings."""

import ast

from twotowers.root import ROOT

LONGEST = 450
"""The most lines of a module. A longer one has more than one purpose."""
MODULES = sorted(
    path.relative_to(ROOT)
    for folder in ("twotowers", "papers", "scripts")
    for path in (ROOT / folder).rglob("*.py")
)
LIBRARY = [path for path in MODULES if path.parts[0] == "twotowers"]
PACKAGES = [path for path in LIBRARY if path.name == "__init__.py" and len(path.parts) > 2]


def test_modules_are_found():
    assert len(LIBRARY) > 60
    assert len(PACKAGES) > 10


def test_no_module_is_long():
    lines = {str(path): len((ROOT / path).read_text().splitlines()) for path in MODULES}
    assert {path: number for path, number in lines.items() if number > LONGEST} == {}


def test_packages_export_nothing():
    # Every importer of a module would depend on all that its package exports. Only the public
    # API exports names, each of which is imported when it is used.
    assert [str(path) for path in PACKAGES if (ROOT / path).read_text()] == []


def test_every_module_of_the_library_says_what_it_is():
    trees = {path: ast.parse((ROOT / path).read_text()) for path in LIBRARY if path not in PACKAGES}
    assert [str(path) for path, tree in trees.items() if not ast.get_docstring(tree)] == []


def test_the_architecture_has_every_package():
    page = (ROOT / "docs" / "architecture.md").read_text()
    packages = {path.parts[1] for path in LIBRARY if path.parts[1] != "__init__.py"}
    names = {f"`{name}`" if name.endswith(".py") else f"`{name}/`" for name in packages}
    assert {name for name in names if name not in page} == set()
