"""Reader of the Yandex sample of 20 queries.

The sample comes with PyClick; it is cut from the log of Yandex's Relevance Prediction
Challenge (WSCD 2012). Result pages are separated by `;`, each
`<query>_<region>\\t<document>,<document>,... : <document> , <document>`: the documents in
order of position, then those clicked in order of time.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa

from twotowers.errors import InputError
from twotowers.logs.counting import count_cells

# Result pages of a query differ by region, so the two together are the log's query.
REGIONS = 10_000
PAGE = re.compile(r"(\d{1,14})_(\d{1,4})\t(\d{1,18}(?:,\d{1,18})*) :([ \d,]*)", re.ASCII)
CLICKS = re.compile(r"|\d{1,18}(?: , \d{1,18})*", re.ASCII)


def read_yandex(path: str | Path) -> pa.Table:
    """Read the sample.

    A click on a document is counted once a page, so that clicks never exceed impressions,
    and clicks on documents that are not on the page are left out. `seen` tells how many
    of each there were: the column `clicks` adds up to `clicks` less `repeated_clicks`
    less `clicks_off_page`.

    Args:
        path: The file, `trainSample` in PyClick.

    Returns:
        The log, as `count_cells` gives it; `query` is the source's query number times
        10,000 plus its region. Its metadata has pages, clicks, repeated_clicks and
        clicks_off_page.

    Raises:
        InputError: naming file, number of the record and its field, where a record is no
            result page or lists a document twice; and where there is no file, or no record.
    """
    path = Path(path)
    if not path.is_file():
        raise InputError("there is no such file", path=path, expected="result pages")
    records = path.read_text(encoding="ascii", errors="backslashreplace").split(";")
    if not records[-1].strip():
        records.pop()
    if not records:
        raise InputError("the file holds no record", path=path, expected=EXPECTED)

    queries, lengths, documents, clicked = [], [], [], []
    clicks = repeated = off_page = 0
    for number, record in enumerate(records, start=1):
        query, page, listed = _page(record.strip(), number, path)
        chosen = set(listed)
        queries.append(query)
        lengths.append(len(page))
        documents += page
        clicked += [document in chosen for document in page]
        shown = set(page)
        strays = sum(document not in shown for document in listed)
        clicks += len(listed)
        off_page += strays
        repeated += len(listed) - strays - len(chosen & shown)
    ends = np.cumsum(lengths)
    position = np.arange(1, ends[-1] + 1) - np.repeat(ends - lengths, lengths)
    return count_cells(
        np.repeat(np.array(queries, np.int64), lengths),
        np.array(documents, np.int64),
        position,
        np.ones(len(documents), np.int64),
        np.array(clicked, np.int64),
        seen={
            "pages": len(records),
            "clicks": clicks,
            "repeated_clicks": repeated,
            "clicks_off_page": off_page,
        },
    )


EXPECTED = "<query>_<region>, a tab, <document>,<document>,... : <document> , <document>"


def _page(record: str, number: int, path: Path) -> tuple[int, list[int], list[int]]:
    """Query, documents shown and documents clicked of one result page."""
    found = PAGE.fullmatch(record)
    if not found:
        raise _complaint(record, number, path)
    query, region, page, listed = found.groups()
    if not CLICKS.fullmatch(listed.strip()):
        raise InputError(
            f"record {number}: {_shown(listed)} is no list of clicks",
            path=path,
            field="clicks",
            expected="<document> , <document> ..., or nothing",
        )
    documents = [int(document) for document in page.split(",")]
    if len(set(documents)) < len(documents):
        twice = next(document for document, times in Counter(documents).items() if times > 1)
        # A click names a document: at which of the two positions it was would be a guess.
        raise InputError(
            f"record {number}: {twice} is listed twice",
            path=path,
            field="documents",
            expected="a document once a page",
        )
    clicks = [int(document) for document in listed.split(",")] if listed.strip() else []
    return int(query) * REGIONS + int(region), documents, clicks


def _complaint(record: str, number: int, path: Path) -> InputError:
    """What is wrong with a record that is no result page."""
    query, tab, rest = record.partition("\t")
    page, colon, _ = rest.partition(" :")
    if not tab or not re.fullmatch(r"\d{1,14}_\d{1,4}", query, re.ASCII):
        field, value = "query", query
        expected = "<query>_<region> of up to 14 and 4 digits, then a tab"
    elif not colon or not re.fullmatch(r"\d{1,18}(,\d{1,18})*", page, re.ASCII):
        field, value = "documents", page
        expected = "whole numbers separated by commas, then ' :'"
    else:
        field, value, expected = "clicks", rest[len(page) + len(colon) :], "whole numbers"
    return InputError(
        f"record {number}: {_shown(value)} was found",
        path=path,
        field=field,
        expected=expected,
    )


def _shown(value: str) -> str:
    return repr(value if len(value) <= 40 else value[:40] + "...")
