"""Reader of the Yandex sample of 20 queries.

The sample comes with PyClick. It is cut from the log of Yandex's Relevance Prediction
Challenge (WSCD 2012). Result pages are separated by `;`. Each is
`<query>_<region>\\t<document>,<document>,... : <document> , <document>`: the shown documents in
order of position, then the clicked documents in order of time.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from twotowers.errors import InputError
from twotowers.files.batches import opened_text
from twotowers.logs.sessions import Stream, page_batches
from twotowers.logs.strays import Tally

LAYOUT = "PyClick's trainSample, pages separated by ;"

# Result pages of a query differ by region, so a query of the log is a query and a region.
REGIONS = 10_000
CHUNK = 1 << 20
"""Characters that are read at a time."""
PAGE = re.compile(
    r"(\d{1,14})_(\d{1,4})\t(\d{1,18}(?:,\d{1,18})*) :\s*(\d{1,18}(?: , \d{1,18})*)?", re.ASCII
)


def read(path: str | Path, *, strays: str = "drop", repeats: str = "drop") -> Stream:
    """Read the sample page by page.

    The path is that of the file, `trainSample` in PyClick. A document counts as clicked at most
    once per page, so that clicks never exceed impressions. `query` is the source's query number
    times 10,000 plus its region.
    """
    tally = Tally(path, strays=strays, repeats=repeats)
    return Stream(page_batches(tally.listed(_pages(Path(path)))), tally.seen)


def _pages(path: Path) -> Iterator[tuple[str, int, list[int], list[int]]]:
    """The record of each result page, its query, documents shown and documents clicked."""
    number = 0
    for number, record in enumerate(_records(path), start=1):
        yield f"record {number}", *_page(record.strip(), number, path)
    if not number:
        raise InputError("the file holds no record", path=path, expected=EXPECTED)


def _records(path: Path) -> Iterator[str]:
    """The texts between semicolons. An empty text after the last one is left out."""
    with opened_text(path, encoding="ascii") as file:
        rest = ""
        while text := file.read(CHUNK):
            *records, rest = (rest + text).split(";")
            yield from records
    if rest.strip():
        yield rest


EXPECTED = "<query>_<region>, a tab, <document>,<document>,... : <document> , <document>"


def _page(record: str, number: int, path: Path) -> tuple[int, list[int], list[int]]:
    """Query, documents shown and documents clicked of one result page."""
    match = PAGE.fullmatch(record)
    if not match:
        shown = repr(record if len(record) <= 40 else record[:40] + "...")
        raise InputError(f"record {number}: {shown} was found", path=path, expected=EXPECTED)
    query, region, page, listed = match.groups()
    documents = [int(document) for document in page.split(",")]
    clicks = [int(document) for document in listed.split(",")] if listed else []
    return int(query) * REGIONS + int(region), documents, clicks
