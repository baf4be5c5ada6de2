"""Put small faults into code, by a seed, and count those that the nearest tests see.

    python -m benchmarks.mutations --number 60 --seed 1 twotowers/models twotowers/fitting

A fault changes one expression: a comparison, a sign, an operator, a number, `and` and `or`, or a
name such as that of a metric. `nearest` says which tests of a module are asked.
"""

import argparse
import ast
import copy
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from twotowers.root import ROOT

COMPARE = {
    ast.Lt: ast.GtE, ast.GtE: ast.Lt, ast.Gt: ast.LtE, ast.LtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
COMPUTE = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult}
CALLS = {"below": "above", "above": "below", "at_most": "at_least", "at_least": "at_most"}
CALLS |= {"min": "max", "max": "min", "any": "all", "all": "any", "log": "exp", "log1p": "expm1"}


def mutants(tree: ast.AST, words: list[str]) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Expressions, each with a faulty one. A word is replaced by the next of `words`."""
    skipped = {id(node) for node in _texts(tree)}
    for node in ast.walk(tree):
        if id(node) in skipped or not isinstance(node, ast.expr):
            continue
        other = copy.deepcopy(node)
        match other:
            case ast.Compare(ops=[one]) if type(one) in COMPARE:
                other.ops = [COMPARE[type(one)]()]
            case ast.BinOp(op=one) if type(one) in COMPUTE:
                other.op = COMPUTE[type(one)]()
            case ast.BoolOp(op=one):
                other.op = ast.Or() if isinstance(one, ast.And) else ast.And()
            case ast.UnaryOp(op=ast.USub() | ast.Not()):
                other = other.operand
            case ast.Constant(value=bool() as value):
                other.value = not value
            case ast.Constant(value=int() | float() as value):
                other.value = value + 1 if value in (0, 1) else value * 2
            case ast.Constant(value=str() as value) if value in words and len(words) > 1:
                other.value = words[(words.index(value) + 1) % len(words)]
            case ast.Name(id=name) if name in CALLS:
                other.id = CALLS[name]
            case ast.Attribute(attr=name) if name in CALLS:
                other.attr = CALLS[name]
            case _:
                continue
        yield node, other


def _texts(tree: ast.AST) -> Iterator[ast.AST]:
    """Nodes that compute no result: annotations, f-strings, and what is raised or asserted."""
    for node in ast.walk(tree):
        parts = [node] if isinstance(node, (ast.JoinedStr, ast.Raise, ast.Assert)) else []
        parts += [getattr(node, name, None) for name in ("annotation", "returns")]
        for part in filter(None, parts):
            yield from ast.walk(part)


def changed(source: str, node: ast.expr, other: ast.expr) -> str:
    """The source with an expression replaced."""
    lines = source.encode().splitlines(keepends=True)
    first, last = node.lineno - 1, node.end_lineno - 1
    head = b"".join(lines[:first]) + lines[first][: node.col_offset]
    tail = lines[last][node.end_col_offset :] + b"".join(lines[last + 1 :])
    return (head + f"({ast.unparse(other)})".encode() + tail).decode()


def drawn(paths: list[Path], number: int, seed: int) -> list[tuple[Path, ast.expr, ast.expr]]:
    """So many mutants, of modules in proportion to what there is to change in them."""
    every = []
    for path in paths:
        tree = ast.parse(path.read_text())
        texts = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)]
        texts = {text for text in texts if isinstance(text, str)}
        words = sorted(text for text in texts if re.fullmatch(r"[\w@-]+", text, re.ASCII))
        every += [(path, *pair) for pair in mutants(tree, words)]
    return random.Random(seed).sample(every, number)


def nearest(path: Path, most: int) -> list[str]:
    """The test files of a module: those that import it, then those that import a module which does,
    and then those that name it, what it defines, or its package; and the test of its examples."""
    name, source = ".".join(path.with_suffix("").parts), (ROOT / path).read_text()
    public = [node.name for node in ast.parse(source).body if hasattr(node, "name")]
    sought = rf"\b({'|'.join([name, path.stem, *public, name.rpartition('.')[0]])})\b"
    users = [
        _imports(".".join(each.relative_to(ROOT).with_suffix("").parts))
        for each in (ROOT / "twotowers").rglob("*.py")
        if re.search(rf'{_imports(name)}|"{path.stem}"', each.read_text())
    ]
    ways = [rf"{_imports(name)}|\btt\.({'|'.join(public) or '0'})\b", "|".join(users) or "0^"]
    ranks = {}
    for test in sorted((ROOT / "tests" / "unit").glob("test_*.py")):
        text, own = test.read_text(), test.stem == f"test_{path.stem}"
        found = own, *(bool(re.search(way, text)) for way in ways), len(re.findall(sought, text))
        ranks |= {str(test.relative_to(ROOT)): found} if any(found) else {}
    ranked = sorted(ranks, key=ranks.get, reverse=True)
    examples = f"tests/unit/test_docstrings.py::test_examples_run[{name}]"
    return [*ranked[:most], *([examples] if ">>>" in source else [])]


def _unneeded(folder: str, _: list[str]) -> set[str]:
    """What no test needs. It is at the top only, since a package may have such a name."""
    return {".git", ".cache", "results", "figures"} if Path(folder) == ROOT else set()


def _imports(name: str) -> str:
    """A pattern of texts that import a module."""
    parent, _, stem = name.rpartition(".")
    return rf"from {parent} import [^\n]*\b{stem}\b|\b{name}\b"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("paths", nargs="+", help="folders or files of the project")
    parser.add_argument("--number", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--files", type=int, default=4, help="test files for a module, at most")
    options = parser.parse_args()
    given = [Path(path) for path in options.paths]
    paths = [file for path in given for file in ([path] if path.suffix else path.rglob("*.py"))]
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider"]
    how, killed = {"capture_output": True, "env": os.environ | {"PYTHONPATH": "."}}, 0
    with tempfile.TemporaryDirectory() as folder:
        copied = Path(folder) / "project"
        shutil.copytree(ROOT, copied, symlinks=True, ignore=_unneeded)
        for path, node, other in drawn(sorted(paths), options.number, options.seed):
            source = (copied / path).read_text()
            (copied / path).write_text(changed(source, node, other))
            run = subprocess.run([*command, *nearest(path, options.files)], cwd=copied, **how)
            (copied / path).write_text(source)
            killed += run.returncode == 1
            said = {0: "survived", 1: "killed"}.get(run.returncode, f"error {run.returncode}")
            change = f"{ast.unparse(node)} -> {ast.unparse(other)}"
            print(said, f"{path}:{node.lineno}", change.replace("\n", " ")[:120], flush=True)
    print(f"{killed} of {options.number} killed")


if __name__ == "__main__":
    main()
