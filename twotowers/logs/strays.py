"""Clicks that a page cannot have: on documents that it does not show, or several on one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping

import numpy as np
import pyarrow as pa

from twotowers.errors import InputError, check_choice

CHOICES = ("drop", "error")
LEFT_OUT = {
    "clicks_off_page": "clicks on documents that are not on their page",
    "clicks_without_query": "clicks of queries that the log does not have",
    "clicks_without_document": "clicks that name no document",
    "clicks_at_other_positions": "clicks at another position than that of their document",
    "repeated_clicks": "further clicks on a document",
    "pages_missing_positions": "pages that miss positions, and keep those of their documents",
    "pages_of_bots": "pages of users, or pages, that are out of line",
    "pages_left_out": "pages that list a document twice",
    "pages_without_text": "pages without the text of their query",
    "pages_without_documents": "pages without documents",
    "pages_without_positions": "pages whose positions are not known",
}
"""What readers leave out, or doubt, in words."""


def left_out(seen: Mapping[str, int], above: float = 0.0) -> Iterator[str]:
    """What a reader left out of a log, or doubts, a line each.

    Args:
        seen: what it counted.
        above: only what is a larger share of all clicks, or pages; then without what nothing was
            lost by: further clicks on a document, positions that are missing, and bots.

    Example:
        >>> [*left_out({"clicks": 9, "clicks_off_page": 3, "clicks_without_query": 1})]
        ['clicks on documents that are not on their page: 3 (30%)', \
'clicks of queries that the log does not have: 1 (10%)']
        >>> [*left_out({"pages": 8, "pages_of_bots": 2, "pages_missing_positions": 9})]
        ['pages that miss positions, and keep those of their documents: 9 (90%)', \
'pages of users, or pages, that are out of line: 2 (20%)']
    """
    clicks = ("clicks", "clicks_without_query", "clicks_without_document")
    pages = ("pages", *(name for name in LEFT_OUT if name.startswith("pages")))
    inside = ("repeated_clicks", "pages_missing_positions")
    kept = (*inside, "pages_of_bots")
    for name, words in LEFT_OUT.items():
        of = pages if name in pages else clicks
        whole = sum(seen.get(each, 0) for each in of if each not in inside)
        share = seen.get(name, 0) / max(whole, 1)
        if share > above and not (above and name in kept):
            yield f"{words}: {seen[name]:,} ({share:.0%})"


class Tally:
    """Drops and counts such clicks, or refuses them.

    Args:
        path: the file, for messages.
        strays: 'drop' or 'error': clicks on documents that are not on the page.
        repeats: 'drop' or 'error': further clicks on a document of one page.

    Attributes:
        seen: numbers of pages, clicks, repeated_clicks and clicks_off_page so far. The number of
            kept clicks is `clicks` less `repeated_clicks` less `clicks_off_page`. Also
            pages_left_out, if there are any.
    """

    def __init__(self, path: object, *, strays: str = "drop", repeats: str = "drop"):
        for field, choice in (("strays", strays), ("repeats", repeats)):
            check_choice(choice, CHOICES, field=field)
        self.path, self.strays, self.repeats = path, strays, repeats
        self.seen = dict.fromkeys(("pages", "clicks", "repeated_clicks", "clicks_off_page"), 0)

    def numbers(self, clicks: np.ndarray, where: Callable[[int], str]) -> np.ndarray:
        """Whether each shown document was clicked, from its number of clicks.

        Args:
            clicks: [shown] whole numbers from 0.
            where: index -> the place in words, such as 'row 3'.

        Returns:
            [shown] bool.
        """
        more = clicks > 1
        if self.repeats == "error" and more.any():
            at = int(np.flatnonzero(more)[0])
            raise self._refused(where(at), f"{clicks[at]} clicks on one document", "repeats")
        self.seen["clicks"] += int(clicks.sum())
        self.seen["repeated_clicks"] += int((clicks - 1)[more].sum())
        return clicks > 0

    def page(self, documents: list, listed: list, where: str) -> list[bool]:
        """Whether each document of a page was clicked, from the clicked documents in any order.

        Args:
            documents: the shown documents, all different.
            listed: the clicked documents.
            where: the page in words, such as 'record 3'.

        Returns:
            a value per document.
        """
        self.seen["pages"] += 1
        if not listed:
            return [False] * len(documents)
        chosen, shown = set(listed), set(documents)
        strays = sum(document not in shown for document in listed)
        repeated = len(listed) - strays - len(chosen & shown)
        if strays and self.strays == "error":
            stray = next(document for document in listed if document not in shown)
            raise self._refused(where, f"{stray!r} is clicked and not on the page", "strays")
        if repeated and self.repeats == "error":
            raise self._refused(where, "a document is clicked more than once", "repeats")
        self.seen["clicks"] += len(listed)
        self.seen["clicks_off_page"] += strays
        self.seen["repeated_clicks"] += repeated
        return [document in chosen for document in documents]

    def left_out(self, documents: list, where: str) -> bool:
        """Whether a page lists a document twice, and so is left out.

        A click in such a log names a document, so it is not known which of the two was clicked.
        Pages without clicks are left out, too: others would have too few.
        """
        if len(set(documents)) == len(documents):
            return False
        if self.repeats == "error":
            twice = next(each for each, times in Counter(documents).items() if times > 1)
            raise self._refused(where, f"{twice!r} is listed twice", "repeats")
        self.seen["pages_left_out"] = self.seen.get("pages_left_out", 0) + 1
        return True

    def pages(self, documents: pa.Array, listed: pa.Array, row: int) -> pa.Array:
        """`page` for many pages: two lists per page -> a list of bool per page."""
        clicked = []
        pairs = zip(documents.to_pylist(), listed.to_pylist(), strict=True)
        for number, (shown, chosen) in enumerate(pairs, start=row + 1):
            if chosen and len(set(shown)) < len(shown):
                raise InputError(
                    f"row {number}: a document is listed twice, so a click does not say where",
                    path=self.path,
                    field="documents",
                    expected="each document once per page",
                )
            clicked.append(self.page(shown, chosen, f"row {number}"))
        return pa.array(clicked, pa.list_(pa.bool_()))

    def _refused(self, where: str, message: str, setting: str) -> InputError:
        return InputError(
            f"{where}: {message}",
            path=self.path,
            field="clicks",
            expected=f"no such clicks, or {setting}='drop' to drop and count them",
        )
