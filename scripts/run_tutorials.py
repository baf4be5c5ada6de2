"""Run the tutorials of docs/ and coming_from.md, and write into them what they print.

    python -m scripts.run_tutorials

Blocks of a page run one after the other in one folder: `sh` in a shell, `python` in one
interpreter. The `text` block behind a block is what it prints. A block of `python xgboost` runs
where xgboost is installed, else the page keeps what it says.

These lines stand in for myst-nb, which would bring Jupyter into the lock, and notebooks that GitHub
and a diff show badly.
"""

import io
import math
import os
import re
import subprocess
import sys
import tempfile
from contextlib import chdir, redirect_stdout
from importlib.util import find_spec
from pathlib import Path

from twotowers.files.artefacts import atomic
from twotowers.root import ROOT

DOCS = ROOT / "docs"
PAGES = [*sorted(DOCS.glob("tutorial_*.md")), DOCS / "coming_from.md", DOCS / "towers.md"]
BLOCK = re.compile(
    r"^```(?P<kind>sh|python)(?: (?P<needs>\w+))?\n(?P<code>.*?)^```\n(?:\n```text\n.*?^```\n)?",
    re.MULTILINE | re.DOTALL,
)
NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")
COMMAND = f'twotowers() {{ {sys.executable} -m twotowers "$@"; }}\n'


def ran(text: str, folder: Path) -> str:
    """The page with what its blocks print in this folder."""
    names = {"__name__": "__main__"}

    def printed(block: re.Match) -> str:
        if block["needs"] and not find_spec(block["needs"]):
            return block[0]
        if block["kind"] == "sh":
            command = ["bash", "-euo", "pipefail", "-c", COMMAND + block["code"]]
            path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
            said = subprocess.run(
                command, env=os.environ | {"PYTHONPATH": path}, stdout=subprocess.PIPE, check=True
            ).stdout.decode()
        else:
            with redirect_stdout(io.StringIO()) as stdout:
                exec(block["code"], names)  # noqa: S102 (our own documentation)
            said = stdout.getvalue()
        code = block[0].partition("\n```\n")[0] + "\n```\n"
        return code + (f"\n```text\n{said.rstrip()}\n```\n" if said else "")

    with chdir(folder):
        return BLOCK.sub(printed, text)


def same(one: str, other: str) -> bool:
    """Whether two pages say the same; a number may differ by one of its last digit, or by rounding.

    Example:
        >>> same("0.25 of 1,000", "0.26 of 1,000"), same("0.25", "0.27"), same("0.2", "0.25")
        (True, False, False)
    """
    if NUMBER.sub("0", one) != NUMBER.sub("0", other):
        return False
    numbers = zip(NUMBER.findall(one), NUMBER.findall(other), strict=True)
    return all(_near(*(each.replace(",", "") for each in pair)) for pair in numbers)


def _near(one: str, other: str) -> bool:
    # Processors round differently, which shows in numbers of 16 digits.
    if math.isclose(float(one), float(other), rel_tol=1e-12):
        return True
    digits = {len(number.partition(".")[2]) for number in (one, other)}
    return len(digits) == 1 and abs(float(one) - float(other)) < 1.5 * 10.0 ** -digits.pop()


def main() -> None:
    """Run all tutorials, and write them."""
    for page in PAGES:
        with tempfile.TemporaryDirectory() as folder:
            text = ran(page.read_text(encoding="utf-8"), Path(folder))
        with atomic(page) as temporary:
            temporary.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
