"""The text of Yandex's Relevance Prediction Challenge (WSCD 2012), read and written.

Columns are separated by tabs. A result page is a line `SessionID Time Q QueryID RegionID URL...`,
with the documents in order of position. A click is a line `SessionID Time C URLID`. It belongs to
the latest page of its session. PyClick's YandexRelPredChallengeParser and MassiveClicks read this
text. NAVER's CLARA logs have the same form.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from twotowers.errors import InputError
from twotowers.files.artefacts import atomic
from twotowers.files.batches import opened_text
from twotowers.logs.log import Log
from twotowers.logs.sessions import EQUAL, Stream, page_batches
from twotowers.logs.strays import Tally

LAYOUT = "the text of WSCD 2012: lines of pages and of clicks"

TEXTS = True
LONGEST_LINE = 1 << 20
PAGE, CLICK = "Q", "C"


def read(path: str | Path, *, strays: str = "drop", repeats: str = "drop") -> Stream:
    """Read the text, page by page. Ids are text. The query is QueryID. The region is not kept."""
    tally = Tally(path, strays=strays, repeats=repeats)
    return Stream(page_batches(_Lines(Path(path), tally).pages()), tally.seen)


class _Lines:
    """Groups lines into result pages: the line of a page, then those of its clicks."""

    def __init__(self, path: Path, tally: Tally):
        self.path, self.tally, self.line = path, tally, 0

    def pages(self) -> Iterator[tuple[str, list, list[bool]]]:
        if not self.path.is_file():
            raise InputError("there is no such file", path=self.path, expected="lines of a log")
        session, query, documents, listed, at = None, None, None, [], 0
        with opened_text(self.path, encoding="utf-8") as file:
            while line := file.readline(LONGEST_LINE):
                self.line += 1
                columns = line.rstrip("\r\n\t").split("\t")
                kind = columns[2] if len(columns) > 2 else None
                if kind == PAGE and len(columns) >= 6:
                    if documents is not None:
                        yield from self._page(query, documents, listed, at)
                    session, at, listed = columns[0], self.line, []
                    query = self._id(columns[3], "QueryID")
                    documents = [self._id(each, "URL") for each in columns[5:]]
                elif kind == CLICK and len(columns) == 4:
                    if session is None or columns[0] != session:
                        raise self._error(
                            f"a click of session {columns[0][:40]!r}, which has no page here",
                            "SessionID",
                            "clicks after the page of their session",
                        )
                    listed.append(self._id(columns[3], "URLID"))
                else:
                    raise self._error(
                        f"{line.rstrip()[:60]!r} was found",
                        "TypeOfAction",
                        "SessionID Time Q QueryID RegionID URL... or SessionID Time C URLID, "
                        "separated by tabs",
                    )
        if documents is None:
            raise InputError("the file holds no page", path=self.path, expected="lines of a log")
        yield from self._page(query, documents, listed, at)

    def _page(self, query, documents: list, listed: list, line: int) -> Iterator[tuple]:
        if not self.tally.left_out(documents, f"line {line}"):
            yield query, documents, self.tally.page(documents, listed, f"line {line}")

    def _id(self, text: str, field: str) -> str:
        if not text:
            raise self._error("is empty", field, "an id")
        return text

    def _error(self, message: str, field: str, expected: str) -> InputError:
        return InputError(message, path=self.path, line=self.line, field=field, expected=expected)


def write_wscd(log: Log, path: str | Path) -> int:
    """Write a log as this text, for PyClick; the number of pages.

    Sessions are numbered from 0. Times and regions are 0. Lane columns, the split, users and bias
    features are not written.
    """
    number = 0
    with atomic(path) as temporary, temporary.open("w", encoding="utf-8", newline="\n") as file:
        for batch in log.batches():
            columns = [batch[name].to_pylist() for name in ("query", "documents", "clicks")]
            times = batch[EQUAL].to_pylist() if EQUAL in batch.schema.names else [1] * len(batch)
            for query, documents, clicks, equal in zip(*columns, times, strict=True):
                _check(query, documents, clicks, number)
                shown = "\t".join(map(str, documents))
                clicked = [each for each, click in zip(documents, clicks, strict=True) if click]
                for page in range(number, number + equal):
                    file.write(f"{page}\t0\t{PAGE}\t{query}\t0\t{shown}\n")
                    file.writelines(f"{page}\t0\t{CLICK}\t{each}\n" for each in clicked)
                number += equal
    return number


def _check(query, documents: list, clicks: list, number: int) -> None:
    wrong = None
    if any(clicks) and len(set(documents)) < len(documents):
        wrong = "a document is listed twice", "documents", "each document once per page"
    else:
        for field, value in (("query", query), *(("documents", each) for each in documents)):
            if isinstance(value, str) and (
                value.strip() != value or value.splitlines() != [value] or "\t" in value
            ):
                wrong = f"{value[:40]!r}", field, "an id without tabs and line breaks"
    if wrong:
        message, field, expected = wrong
        raise InputError(f"row {number + 1}: {message}", field=field, expected=expected)
