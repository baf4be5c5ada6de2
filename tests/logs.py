"""Click logs of rows, and their readers, as tests ask them."""

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from twotowers.commands.logs import cell_columns
from twotowers.errors import InputError
from twotowers.logs.click_log import log_of_format
from twotowers.logs.log import Log
from twotowers.logs.opening import FORMATS, open_log
from twotowers.logs.sessions import Stream, write_sessions
from twotowers.root import ROOT

YANDEX = ROOT.parent / "shared" / "data" / "yandex_20_queries" / "trainSample"
needs_yandex = pytest.mark.skipif(
    not YANDEX.is_file(), reason="real data: ../shared/data is not on this machine"
)


def taken(path, format, **settings):
    """All pages, and the other counts."""
    if format not in FORMATS or FORMATS[format].counted:
        stream = open_log(path, format, **settings)
        return pa.Table.from_batches(stream.batches).to_pylist(), stream.seen
    log = log_of_format(path, format, **settings)
    return pa.Table.from_batches(log.batches()).to_pylist(), log.seen


def refused(path, format, **settings):
    with pytest.raises(InputError) as error:
        taken(path, format, **settings)
    if path.exists():
        assert str(path) in str(error.value)
    return error.value


def clicked_rows(pages: int, *queries: str) -> pd.DataFrame:
    """A row per shown document: b attracts, a does not; the second position is seen half."""
    rng, rows = np.random.default_rng(0), []
    for page in range(pages):
        for place, document in enumerate(rng.permutation(["a", "b", "c"]), start=1):
            chance = {"a": 0.1, "b": 0.8, "c": 0.4}[document] * {1: 1, 2: 0.5, 3: 0.4}[place]
            click = int(rng.random() < chance)
            rows.append((page, queries[page % len(queries)], document, place, click))
    names = ["session", "query", "document", "position", "clicks"]
    return pd.DataFrame(rows, columns=names)


def shop_rows(pages: int) -> pd.DataFrame:
    """The same of five queries, under a shop's names."""
    found = clicked_rows(pages, *(f"q{number}" for number in range(5)))
    return found.set_axis(["sid", "q", "sku", "rank", "click"], axis=1).assign(device="phone")


def to_sessions(path, out, *, format, **settings):
    """A log in any format as a sessions file; the number of pages."""
    return log_of_format(path, format, **settings).write(out)


def to_cells(path, out, *, format, bias=(), **settings):
    """A log in any format, counted with its lanes and its split; the number of cells."""
    log = log_of_format(path, format, **settings)
    return log.count(cell_columns(log, bias)).write(out)


def count_sessions(sessions, out, *, bias=()):
    """Pages, in a file or in batches, counted with their lanes and their split."""
    path = Path(out).with_suffix(".pages.parquet")
    if not isinstance(sessions, str | Path):
        write_sessions(path, sessions)
        sessions = path
    return to_cells(sessions, out, format="sessions", bias=bias)


def seen(log: pa.Table) -> dict[str, int]:
    """What the reader counted beside clicks, such as pages left out, from the log's metadata."""
    return {name.decode(): int(count) for name, count in (log.schema.metadata or {}).items()}


def cells_of(stream: Stream) -> pa.Table:
    """The cells of a stream; what its reader left out is metadata."""
    cells = Log.of_batches(stream.batches).count().table()
    return cells.replace_schema_metadata({name: str(each) for name, each in stream.seen.items()})


def counts_by_cell(cells: pa.Table) -> dict[tuple, tuple[int, int]]:
    """Impressions and clicks, the last two columns, by the others; no cell is there twice."""
    rows = [tuple(row.values()) for row in cells.to_pylist()]
    table = {row[:-2]: row[-2:] for row in rows}
    assert len(table) == len(rows)
    assert list(table) == sorted(table)
    return table
