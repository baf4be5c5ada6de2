"""Reader of TianGong-ST, the search sessions of Sogou (Chen et al., CIKM 2019).

The owners give the file, `sogousessiontrack2020.xml`, on request only. Its layout is known from
programs that read it:

    session(num)                          repeated, in a root element of any name
      interaction(num)                    one result page
        query, query_id                   'q' and a number
        results
          result(rank)                    rank from 1
            url, docid, title, vtype      'd' and a number; '<v1>#<v2>'
            relevance                     scores of six click models
        clicked                           absent where nothing was clicked
          click
            rank

In `vtype`, v1 names the kind of result ('-1': an ordinary one). v2 looks like the height at which
the result was drawn ('-1': not measured). Chen et al. 2024 use both as bias factors (Section 5.2
and Appendix D.2).
"""

from __future__ import annotations

import re
from array import array
from pathlib import Path
from xml.parsers import expat

import numpy as np
import pyarrow as pa

from twotowers.errors import InputError
from twotowers.logs.counting import count_cells
from twotowers.logs.strays import Tally

SESSION, PAGE, RESULT, CLICK = "session", "interaction", "result", "click"
RANK = "rank"
QUERY_ID = (PAGE, "query_id")
DOCUMENT_ID = (RESULT, "docid")
VERTICAL_TYPE = (RESULT, "vtype")
CLICKED_RANK = (CLICK, RANK)
LEAVES = {QUERY_ID, DOCUMENT_ID, VERTICAL_TYPE, CLICKED_RANK}
# These lines are skipped. They are not needed, and their free text may not be well-formed.
IGNORED = re.compile(rb"\s*<(query|url|title|TACM|PSCM|THCM|UBM|DBN|POM)>.*</\1>\s*")

MOST_BYTES = 1 << 20
NUMBER = re.compile(r"[a-z]?(\d{1,18})", re.ASCII)
HIGHEST_RANK = 1_000


def read_tiangong(path: str | Path) -> pa.Table:
    """Read the sessions, one result page at a time.

    A result counts as clicked at most once per page. Clicks at ranks that the page does not have
    are dropped. `twotowers.logs.counting.seen` gives the numbers of both. A document may be on a
    page twice, since results without an address share one id.

    Args:
        path: The XML file. Document type declarations are refused, and so are entities.

    Returns:
        The log, in the form of `count_cells`, with bias factors position, v1 and v2. The
        metadata has sessions, pages, empty_pages, clicks, repeated_clicks and clicks_off_page.
    """
    path = Path(path)
    if not path.is_file():
        raise InputError("there is no such file", path=path, expected="an XML file")
    pages = _Pages(path)
    with path.open("rb") as file:
        while line := file.readline(MOST_BYTES):
            # A skipped line keeps its line end, so that line numbers in messages are right.
            pages.feed(b"\n" if IGNORED.fullmatch(line) else line)
    return pages.log()


class _Pages:
    """Collects the rows of all pages, from the events of the XML parser."""

    def __init__(self, path: Path):
        self.path = path
        self.parser = expat.ParserCreate()
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.StartDoctypeDeclHandler = self._refuse
        self.open: list[str] = []
        self.text: list[str] = []
        self.tally = Tally(path)
        self.seen = {"sessions": 0, "pages": 0, "empty_pages": 0}
        self.page: dict = {}
        self.result: dict = {}
        self.query, self.document = array("q"), array("q")
        self.position, self.clicked = array("i"), array("b")
        self.names: tuple[dict[str, int], dict[str, int]] = ({}, {})
        self.vertical = (array("i"), array("i"))

    def feed(self, text: bytes, last: bool = False) -> None:
        try:
            self.parser.Parse(text, last)
        except InputError:
            raise
        except (LookupError, ValueError) as error:
            raise self._error(f"cannot be used: {error}", "encoding", "UTF-8") from error
        except expat.ExpatError as error:
            raise InputError(
                f"not well-formed: {expat.ErrorString(error.code)}",
                path=self.path,
                line=error.lineno,
                expected="XML, whole and in UTF-8 or the encoding it declares",
            ) from error

    def log(self) -> pa.Table:
        self.feed(b"", last=True)
        if not self.query:
            raise InputError(
                "the file holds no result",
                path=self.path,
                expected=f"<{SESSION}>, <{PAGE}> and <{RESULT}> elements",
            )
        return count_cells(
            np.array(self.query),
            np.array(self.document),
            np.array(self.position),
            np.ones(len(self.query), np.int64),
            np.array(self.clicked),
            vertical={
                name: pa.array(list(names), pa.string()).take(pa.array(code))
                for name, code, names in zip(("v1", "v2"), self.vertical, self.names, strict=True)
            },
            seen=self.seen | self.tally.seen,
        )

    def _refuse(self, *declaration: object) -> None:
        raise self._error("declares a document type", "doctype", "plain elements, no entities")

    def _start(self, element: str, attributes: dict[str, str]) -> None:
        parent = self.open[-1] if self.open else None
        self.open.append(element)
        if (parent, element) in LEAVES:
            self.text = []
            self.parser.CharacterDataHandler = self.text.append
        elif element == RESULT:
            self.result = {RANK: self._rank(attributes.get(RANK))}
        elif element == PAGE:
            if self.page:
                raise self._error("starts within another one", PAGE, "one after the other")
            self.page = {"results": {}, "clicks": []}
        elif element == SESSION:
            self.seen["sessions"] += 1

    def _end(self, element: str) -> None:
        self.open.pop()
        leaf = (self.open[-1] if self.open else None, element)
        if leaf in LEAVES:
            self.parser.CharacterDataHandler = None
            self._leaf(leaf, "".join(self.text).strip())
        elif element == RESULT:
            self._add_result()
        elif element == PAGE:
            self._add_page()

    def _leaf(self, leaf: tuple[str, str], text: str) -> None:
        if leaf == QUERY_ID:
            self.page[QUERY_ID] = self._id(text, leaf)
        elif leaf == DOCUMENT_ID:
            self.result[DOCUMENT_ID] = self._id(text, leaf)
        elif leaf == VERTICAL_TYPE:
            first, mark, second = text.partition("#")
            if not mark:
                raise self._error(f"{text[:40]!r} is not a vertical type", leaf[1], "<v1>#<v2>")
            self.result[VERTICAL_TYPE] = first, second
        else:
            self._need_page(leaf)["clicks"].append(self._rank(text))

    def _add_result(self) -> None:
        for leaf in (DOCUMENT_ID, VERTICAL_TYPE):
            if leaf not in self.result:
                raise self._error(f"a <{RESULT}> without one ends here", leaf[1], f"<{leaf[1]}>")
        results = self._need_page((PAGE, RESULT))["results"]
        rank = self.result[RANK]
        if rank in results:
            raise self._error(f"{rank} is the rank of two results", RANK, "one result per rank")
        results[rank] = self.result

    def _add_page(self) -> None:
        if QUERY_ID not in self.page:
            raise self._error(f"an <{PAGE}> without one ends here", QUERY_ID[1], f"<{QUERY_ID[1]}>")
        results = self.page["results"]
        self.seen["empty_pages"] += not results
        clicked = self.tally.page(list(results), self.page["clicks"], "the page")
        for (rank, result), chosen in zip(results.items(), clicked, strict=True):
            self.query.append(self.page[QUERY_ID])
            self.document.append(result[DOCUMENT_ID])
            self.position.append(rank)
            self.clicked.append(chosen)
            for name, code, names in zip(
                result[VERTICAL_TYPE], self.vertical, self.names, strict=True
            ):
                code.append(names.setdefault(name, len(names)))
        self.page = {}

    def _need_page(self, leaf: tuple[str, str]) -> dict:
        if not self.page:
            raise self._error("is outside of any page", leaf[1], f"to be inside <{PAGE}>")
        return self.page

    def _id(self, text: str, leaf: tuple[str, str]) -> int:
        found = NUMBER.fullmatch(text)
        if not found:
            expected = "at most one letter, then up to 18 digits"
            raise self._error(f"{text[:40]!r} is not an id", leaf[1], expected)
        return int(found[1])

    def _rank(self, text: str | None) -> int:
        rank = int(text) if text and re.fullmatch(r"\d{1,9}", text, re.ASCII) else 0
        if not 1 <= rank <= HIGHEST_RANK:
            what = "is missing" if text is None else f"{text[:40]!r} is out of range"
            raise self._error(what, RANK, f"a whole number in 1..{HIGHEST_RANK}")
        return rank

    def _error(self, message: str, field: str, expected: str) -> InputError:
        line = self.parser.CurrentLineNumber
        return InputError(message, path=self.path, line=line, field=field, expected=expected)
