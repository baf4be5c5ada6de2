"""The token files of Baidu-ULTR as Baidu published them, `part-00000.gz`: lines of text.

A query is a line of at most three columns, of which the second has its tokens. The lines behind it
are its results, with address, title, abstract and click in columns 2, 3, 4 and 6 of many. Tabs
separate columns, and the byte 1 token ids. As in the UvA's files, results without content leave a
gap in positions, and "what other people searched" leaves none.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import md5
from pathlib import Path

import pyarrow as pa

from twotowers.errors import InputError
from twotowers.files.batches import opened_text

SEPARATOR = "\x01"
EMPTY, SEARCHED = "21429", SEPARATOR.join(["3742", "11492", "12169", "5061", "16905"])
"""The title of a result without content, and that of "what other people searched"."""
OFFSET = 10
"""The first token id of the UvA's files. Those below are of special tokens, which no text has."""
TOKENS = pa.list_(pa.int64())
COLUMNS = {
    "query_no": pa.int64(), "query_md5": pa.string(), "url_md5": pa.string(),
    "position": pa.int64(), "click": pa.int64(),
    "query": TOKENS, "title": TOKENS, "abstract": TOKENS,
}  # fmt: skip
"""What is read, with the names of the UvA's files."""


def read_lines(path: str | Path, *, rows: int) -> Iterator[pa.RecordBatch]:
    """The results of a file, with `COLUMNS`: whole queries, at least `rows` results at a time.

    A file whose name ends in `.gz` is unpacked.

    Example:
        >>> lines = ["7\\t4\\x015", "1\\tabc\\t8\\t9\\x019\\t0\\t1", "2\\tdef\\t21429\\t-\\t0\\t0"]
        >>> _ = Path("part-00000").write_text("\\n".join(lines))
        >>> (batch,) = read_lines("part-00000", rows=100)
        >>> [batch[name].to_pylist() for name in ("query", "position", "abstract", "click")]
        [[[14, 15]], [1], [[19, 19]], [1]]
    """
    results: list[tuple] = []
    number, position, name, query = -1, 0, "", []
    with opened_text(path, encoding="utf-8") as file:
        for at, line in enumerate(file, 1):
            cells = line.rstrip("\n").split("\t")
            try:
                if len(cells) <= 3:
                    name, query = _md5(cells[1]), _tokens(cells[1])
                    number, position = number + 1, 0
                    if len(results) >= rows:
                        yield _batch(results)
                        results = []
                    continue
                _, address, title, abstract, _, click = cells[:6] if number >= 0 else []
                if title == SEARCHED:
                    continue
                position += 1
                if title == EMPTY:
                    continue
                shown = number, name, address, position, int(click)
                results.append((*shown, query, _tokens(title), _tokens(abstract)))
            except (ValueError, IndexError) as error:
                raise InputError(
                    f"line {at}: {line[:60]!r} is no query, and no result of one",
                    path=path,
                    expected="the token files of Baidu-ULTR (https://huggingface.co/datasets/"
                    "philipphager/baidu-ultr-pretrain)",
                ) from error
    if results:
        yield _batch(results)


def _batch(found: list[tuple]) -> pa.RecordBatch:
    columns = zip(COLUMNS.items(), zip(*found, strict=True), strict=True)
    return pa.RecordBatch.from_pydict(
        {name: pa.array(each, kind) for (name, kind), each in columns}
    )


def _tokens(text: str) -> list[int]:
    return [int(token) + OFFSET for token in text.split(SEPARATOR) if token.strip()]


def _md5(text: str) -> str:
    """As the UvA's files have it: of ids between spaces."""
    return md5(text.replace(SEPARATOR, " ").encode(), usedforsecurity=False).hexdigest()
