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

import re
import sys
from array import array
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pyarrow as pa

from twotowers.errors import InputError
from twotowers.logs.counted import count_cells
from twotowers.logs.strays import Tally

# These lines are skipped. They are not needed, and their free text may not be well-formed.
IGNORED = re.compile(rb"\s*<(query|url|title|TACM|PSCM|THCM|UBM|DBN|POM)>.*</\1>\s*")

MOST_BYTES = 1 << 20
NUMBER = re.compile(r"[a-z]?(\d{1,18})", re.ASCII)
RANK = re.compile(r"[1-9]\d{0,2}|1000", re.ASCII)


def read_tiangong(path: str | Path) -> pa.Table:
    """Read the sessions, in the form of `count_cells`, with bias factors position, v1 and v2.

    A result counts as clicked at most once per page. Clicks at ranks that the page does not have
    are dropped. The metadata has both numbers: sessions, pages, empty_pages, clicks,
    repeated_clicks and clicks_off_page. A document may be on a page twice, since results without an
    address share one id. Document type declarations and entities are refused.
    """
    path = Path(path)
    if not path.is_file():
        raise InputError("there is no such file", path=path, expected="an XML file")
    pages = _Pages(path)
    parser = ElementTree.XMLParser(target=pages)
    try:
        with path.open("rb") as file:
            while line := file.readline(MOST_BYTES):
                pages.line += 1
                # A skipped line keeps its line end, so that line numbers in messages are right.
                parser.feed(b"\n" if IGNORED.fullmatch(line) else line)
        parser.close()
    except ElementTree.ParseError as error:
        raise InputError(
            f"not well-formed: {error.msg}",
            path=path,
            line=error.position[0],
            expected="XML, whole and in UTF-8 or the encoding it declares",
        ) from error
    except (LookupError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise pages.error(f"cannot be used: {error}", "encoding", "UTF-8") from error
    return pages.log()


class _Pages(ElementTree.TreeBuilder):
    """Collects the rows of all pages. A page is forgotten when it ends."""

    def __init__(self, path: Path):
        super().__init__()
        self.path, self.line = path, 0
        self.tally = Tally(path)
        self.seen = {"sessions": 0, "empty_pages": 0}
        self.columns = array("q"), array("i"), array("b"), array("q"), [], []

    def log(self) -> pa.Table:
        query, position, clicked, document, *kinds = self.columns
        if not query:
            raise InputError(
                "the file holds no result",
                path=self.path,
                expected="<session>, <interaction> and <result> elements",
            )
        columns = {
            "query": np.array(query),
            "document": np.array(document),
            "position": np.array(position),
            **dict(zip(("v1", "v2"), kinds, strict=True)),
            "impressions": np.ones(len(query), np.int64),
            "clicks": np.array(clicked),
        }
        return count_cells(columns, self.tally.seen | self.seen)

    def doctype(self, *declaration: object) -> None:
        raise self.error("declares a document type", "doctype", "plain elements, no entities")

    def end(self, tag: str) -> ElementTree.Element:
        element = super().end(tag)
        if tag == "interaction":
            self._add(element)
            element.clear()
        elif tag == "session":
            self.seen["sessions"] += 1
            element.clear()
        return element

    def _add(self, page: ElementTree.Element) -> None:
        query, results = self._id(page, "query_id"), {}
        for result in page.iter("result"):
            rank = self._rank(result.get("rank"))
            if rank in results:
                raise self.error(f"{rank} is the rank of two results", "rank", "a result per rank")
            kind = self._text(result, "vtype")
            first, mark, second = kind.partition("#")
            if not mark:
                raise self.error(f"{kind[:40]!r} is not a vertical type", "vtype", "<v1>#<v2>")
            results[rank] = self._id(result, "docid"), sys.intern(first), sys.intern(second)
        ranks = [self._rank(click.findtext("rank")) for click in page.iter("click")]
        clicked = self.tally.page(list(results), ranks, "the page")
        self.seen["empty_pages"] += not results
        for (rank, result), chosen in zip(results.items(), clicked, strict=True):
            for column, value in zip(self.columns, (query, rank, chosen, *result), strict=True):
                column.append(value)

    def _id(self, element: ElementTree.Element, field: str) -> int:
        text = self._text(element, field)
        match = NUMBER.fullmatch(text)
        if not match:
            expected = "at most one letter, then up to 18 digits"
            raise self.error(f"{text[:40]!r} is not an id", field, expected)
        return int(match[1])

    def _rank(self, text: str | None) -> int:
        if text is None or not RANK.fullmatch(text.strip()):
            what = "is missing" if text is None else f"{text[:40]!r} is out of range"
            raise self.error(what, "rank", "a whole number in 1..1000")
        return int(text)

    def _text(self, element: ElementTree.Element, field: str) -> str:
        text = element.findtext(field)
        if text is None:
            raise self.error(f"a <{element.tag}> without one ends here", field, f"<{field}>")
        return text.strip()

    def error(self, message: str, field: str, expected: str) -> InputError:
        """An error of the page that ends at this line."""
        return InputError(message, path=self.path, line=self.line, field=field, expected=expected)
