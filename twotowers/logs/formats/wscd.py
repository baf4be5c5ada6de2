"""The text of Yandex's Relevance Prediction Challenge (WSCD 2012), read and written.

Columns are separated by tabs. A result page is a line `SessionID Time Q QueryID RegionID URL...`,
with the documents in order of position. A click is a line `SessionID Time C URLID`. It belongs to
the latest page of its session. PyClick's YandexRelPredChallengeParser and MassiveClicks read this
text. NAVER's CLARA logs have the same form.
"""

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


def read(path: str | Path, *, strays: str = "drop", repeats: str = "drop") -> Stream:
    """Read the text, page by page. Ids are text. The query is QueryID. The region is not kept."""
    tally = Tally(path, strays=strays, repeats=repeats)
    return Stream(page_batches(tally.listed(_pages(Path(path)))), tally.seen)


def _pages(path: Path) -> Iterator[tuple[str, str, list[str], list[str]]]:
    """The line of each result page, its query, documents shown and documents clicked."""
    page, own = None, ""
    with opened_text(path, encoding="utf-8") as file:
        for number, line in enumerate(iter(lambda: file.readline(LONGEST_LINE), ""), start=1):
            match line.rstrip("\r\n\t").split("\t"):
                case [session, _, "Q", query, _, *shown] if shown and all([query, *shown]):
                    if page is not None:
                        yield page
                    page, own = (f"line {number}", query, shown, []), session
                case [session, _, "C", document] if page is not None and own == session:
                    page[3].append(document)
                case [session, _, "C", _]:
                    raise InputError(
                        f"a click of session {session[:40]!r}, which has no page here",
                        path=path,
                        line=number,
                        field="SessionID",
                        expected="clicks after the page of their session",
                    )
                case _:
                    raise InputError(
                        f"{line.rstrip()[:60]!r} was found",
                        path=path,
                        line=number,
                        field="TypeOfAction",
                        expected="SessionID Time Q QueryID RegionID URL... or "
                        "SessionID Time C URLID, separated by tabs",
                    )
    if page is None:
        raise InputError("the file holds no page", path=path, expected="lines of a log")
    yield page


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
                    file.write(f"{page}\t0\tQ\t{query}\t0\t{shown}\n")
                    file.writelines(f"{page}\t0\tC\t{each}\n" for each in clicked)
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
