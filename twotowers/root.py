"""The project's folder, which holds the Snakefile and the papers."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def relative(path: Path, root: Path) -> str:
    """A file, relative to its project. A paper outside this one, in `root`, uses the library's."""
    return str(path.relative_to(ROOT if path.is_relative_to(ROOT) else root))
