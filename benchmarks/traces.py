"""What a command runs and reads: functions, modules, and how often it opens a log.

    python -m benchmarks.traces

`sys.setprofile` counts what is called. A csv file is opened by Python, or by Arrow's reader.
"""

import sys
import tempfile
from collections.abc import Iterator
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pandas as pd
import pyarrow as pa

COMMANDS = (
    *("fit --model dctr", "fit --model dbn", "propensities", "identify"),
    *("weights --out weights.csv", "diagnose --out page.html"),
)


def write_log(path: Path, pages: int) -> None:
    """A csv file with a row per shown document, three on a page."""
    rng = np.random.default_rng(0)
    query = np.repeat(rng.integers(20, size=pages), 3)
    document = rng.permuted(np.tile(np.arange(3), (pages, 1)), axis=1).ravel()
    position = np.tile([1, 2, 3], pages)
    clicks = rng.random(3 * pages) < 0.6 / position / (1 + document)
    names = {"session": np.repeat(np.arange(pages), 3), "query": query, "document": document}
    pd.DataFrame(names | {"position": position, "clicks": clicks.astype(int)}).to_csv(
        path, index=False
    )


def traced(command: list[str], path: Path) -> dict[str, int]:
    """Functions and modules of the library that a command calls, and how often it opens the log.

    The command runs once before, so that nothing counts that is called by an import.
    """
    from twotowers.commands.main import main
    from twotowers.files import batches

    arguments = [command[0], str(path), *command[1:]]
    called: set[tuple[str, str]] = set()

    def profile(frame, event: str, _: object) -> None:
        module = frame.f_globals.get("__name__", "")
        if event == "call" and module.startswith("twotowers") and "<" not in frame.f_code.co_name:
            called.add((module, frame.f_code.co_qualname))

    def audit(event: str, given: tuple) -> None:
        opened.extend([event] * (tracing and event == "open" and str(given[0]) == str(path)))

    opened: list[str] = []
    tracing = False
    sys.addaudithook(audit)
    with redirect_stdout(StringIO()):
        main(arguments)
        tracing = True
        sys.setprofile(profile)
        batches._text.cache_clear()
        with patch.object(pa, "OSFile", wraps=pa.OSFile) as reader:
            main(arguments)
        sys.setprofile(None)
        tracing = False
    modules = {module for module, _ in called}
    reads = len(opened) + reader.call_count
    return {"functions": len(called), "modules": len(modules), "opened": reads}


def run(pages: int = 3_333) -> Iterator[dict]:
    """A row per command, on a log of so many pages."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "clicks.csv"
        write_log(path, pages)
        for command in COMMANDS:
            words = [str(Path(folder) / each) if "." in each else each for each in command.split()]
            yield {"command": command, **traced(words, path)}


if __name__ == "__main__":
    for row in run():
        print(row)
