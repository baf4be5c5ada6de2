"""Models, methods, towers and heads that a paper of a test brings along."""

from pathlib import Path


def write_own(root: Path, paper: str, family: str, name: str, text: str) -> None:
    """Write the file of a paper's own kind below a root, such as `papers/own/models/mine.py`."""
    path = root / "papers" / paper / family / f"{name}.py"
    path.parent.mkdir(parents=True)
    path.write_text(text)
