"""Where a result came from: digests of its code, and the version of the project.

Standard library only, so that a Snakefile can use it.
"""

import ast
import hashlib
import subprocess
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from twotowers.public import PUBLIC
from twotowers.root import ROOT

PACKAGES = ("twotowers", "papers")


def code_version(root: Path = ROOT) -> str:
    """The commit, or "unknown" without git.

    It ends in "-dirty" if a tracked file differs from the commit, or if git does not track a file
    of `PACKAGES`.
    """
    try:
        version = _git(root, "describe", "--always", "--dirty", "--abbrev=12")
        others = _git(root, "ls-files", "--others", "--exclude-standard", "--", *PACKAGES)
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    # What `make record` writes is evidence, and no code.
    code = [path for path in others.splitlines() if "/recorded/" not in path]
    return f"{version}-dirty" if code and not version.endswith("-dirty") else version


def _git(root: Path, *command: str) -> str:
    done = subprocess.run(["git", "-C", root, *command], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def code_digest(*sources: str | Path, root: Path = ROOT) -> str:
    """A digest of the given files and of every module of PACKAGES that they import.

    A module's data, `<module>.yaml` beside it, belong to it. The digest of a Python file is that of
    its syntax tree without docstrings, so that reworded comments and docstrings change no digest.
    """
    files = sorted(_closure([root / source for source in sources], root))
    digests = "".join(f"{path.relative_to(root)} {_read(path)[0]}\n" for path in files)
    return hashlib.sha256(digests.encode()).hexdigest()[:16]


def _closure(paths: Iterable[Path], root: Path) -> set[Path]:
    files, waiting = set(), list(paths)
    while waiting:
        path = waiting.pop()
        if path not in files:
            files.add(path)
            waiting += _imports(path, root)
    return files


@cache
def _imports(path: Path, root: Path) -> list[Path]:
    """The project's files that one file imports, and the data of its name beside it."""
    _, names = _read(path)
    # The law of a stand-in, and the table of sources, are data beside the module that reads them.
    data = [path.with_suffix(".yaml")] if path.suffix == ".py" else []
    files = [file for name in sorted(names) for file in _files(name, root)]
    return files + [file for file in data if file.is_file()]


def _files(module: str, root: Path) -> Iterator[Path]:
    """The files of a module. A public name is the module that it comes from."""
    package, _, name = module.partition(".")
    if package not in PACKAGES:
        return
    if package == "twotowers" and name in PUBLIC:
        module = f"{package}.{PUBLIC[name]}"
    path = root.joinpath(*module.split("."))
    for candidate in (path.with_suffix(".py"), path / "__init__.py"):
        if candidate.is_file():
            yield candidate


@cache
def _read(path: Path) -> tuple[str, set[str]]:
    """The digest of a file, and what it imports by name."""
    if path.suffix != ".py":
        return hashlib.sha256(path.read_bytes()).hexdigest(), set()
    tree, names = ast.parse(path.read_text(), filename=str(path)), set()
    for node in _statements(tree):
        if isinstance(node, ast.Import):
            modules = {alias.name for alias in node.names}
            names |= modules
            # `import twotowers` may use any public name; `from twotowers import LOG` may not.
            if "twotowers" in modules:
                names.update(f"twotowers.{each}" for each in PUBLIC)
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
        body = getattr(node, "body", None)
        if isinstance(body, list):
            # Of the module, class, function or attribute.
            node.body = [each for each in body if not _is_docstring(each)]
    return hashlib.sha256(ast.dump(tree).encode()).hexdigest(), names


def _statements(tree: ast.Module) -> Iterator[ast.AST]:
    """All statements. A walk through expressions, too, would take ten times as long."""
    waiting = [tree]
    while waiting:
        yield (node := waiting.pop())
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue  # No job runs it.
        for block in ("body", "orelse", "finalbody", "handlers", "cases"):
            waiting += getattr(node, block, ())


def _is_docstring(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )
