"""Clicks that a page cannot have: on documents that it does not show, or several on one."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from twotowers.errors import InputError, check_choice
from twotowers.files.columns import is_text

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
    "pages_without_user": "pages whose user is not known, each as of a user of its own",
    "pages_without_time": "pages whose time is not known, taken for that of the page before",
    "pages_without_id": "queries without a query_id",
    "impressions_without_document": "impressions that name no document",
    "pages_without_text": "pages without the text of their query",
    "pages_without_documents": "pages without documents",
    "pages_without_positions": "pages whose positions are not known",
}
"""What readers leave out, or doubt, in words."""


def left_out(seen: Mapping[str, int], above: float = 0.0) -> Iterator[str]:
    """What a reader left out of a log, or doubts, a line each, from what it counted.

    Only what is a larger share than `above` of all clicks, pages, or impressions; if above 0,
    without what nothing was lost by: further clicks on a document, positions, users and times that
    are missing, and bots.
    """
    clicks = ("clicks", "clicks_without_query", "clicks_without_document")
    inside = (
        "repeated_clicks", "pages_missing_positions", "pages_without_user", "pages_without_time",
    )  # fmt: skip
    kept = (*inside, "pages_of_bots")
    wholes = {
        each: (each, *(n for n in LEFT_OUT if n.startswith(each)))
        for each in ("pages", "impressions")
    }
    for name, words in LEFT_OUT.items():
        of = wholes.get(name.partition("_")[0], clicks)
        whole = sum(seen.get(each, 0) for each in of if each not in inside)
        share = seen.get(name, 0) / max(whole, 1)
        if share > above and not (above and name in kept):
            yield f"{words}: {seen[name]:,} ({share:.0%})"


class Tally:
    """Drops and counts such clicks, or refuses them: `strays` and `repeats` are 'drop' or 'error'.

    `strays` are clicks on documents that are not on the page, `repeats` further clicks on a
    document of one page. `seen` has the numbers of pages, clicks, repeated_clicks and
    clicks_off_page so far. The number of kept clicks is `clicks` less the other two. Also
    pages_left_out, if there are any.
    """

    def __init__(self, path: object, *, strays: str = "drop", repeats: str = "drop"):
        for field, choice in (("strays", strays), ("repeats", repeats)):
            check_choice(choice, CHOICES, field=field)
        self.path, self.strays, self.repeats = path, strays, repeats
        self.seen = dict.fromkeys(("pages", "clicks", "repeated_clicks", "clicks_off_page"), 0)

    def add(self, name: str, number: int) -> None:
        """Count more of something that there need not be."""
        if number:
            self.seen[name] = self.seen.get(name, 0) + number

    def users(self, users: pa.Array, times: np.ndarray | int = 1) -> pa.Array:
        """[pages] users. A page, or `times` equal ones, without a user is one of its own."""
        if pa.types.is_floating(users.type):  # As pandas has whole numbers, some of them missing.
            users = users.cast(pa.int64())
        missing = pc.is_null(users)
        if is_text(users.type):
            missing = pc.or_kleene(missing, pc.equal(users, "")).fill_null(True)
        lack = missing.to_numpy(zero_copy_only=False)
        if not lack.any():
            return users
        before = self.seen.get("pages_without_user", 0)
        self.add("pages_without_user", int((lack * times).sum()))
        own = -1 - before - np.cumsum(lack)
        own = [f"page without a user {-each}" for each in own] if is_text(users.type) else own
        return pc.if_else(missing, pa.array(own, users.type), users)

    def numbers(
        self, clicks: np.ndarray, where: Callable[[int], str], times: np.ndarray | int = 1
    ) -> np.ndarray:
        """[shown] whether each shown document was clicked, from its number of clicks.

        `where` gives the place of an index in words, such as 'row 3'; `times` [shown] is how many
        equal pages show the document.
        """
        more = clicks > 1
        if self.repeats == "error" and more.any():
            at = int(np.flatnonzero(more)[0])
            raise self._refused(where(at), f"{clicks[at]} clicks on one document", "repeats")
        self.seen["clicks"] += int((clicks * times).sum())
        self.seen["repeated_clicks"] += int(((clicks - 1) * times)[more].sum())
        return clicks > 0

    def page(self, documents: list, listed: list, where: str, times: int = 1) -> list[bool]:
        """Whether each document of a page was clicked, from the clicked documents in any order.

        `documents` are all different, `where` is the page in words, such as 'record 3', and it is
        `times` equal pages.
        """
        self.seen["pages"] += times
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
        self.seen["clicks"] += len(listed) * times
        self.seen["clicks_off_page"] += strays * times
        self.seen["repeated_clicks"] += repeated * times
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
        self.add("pages_left_out", 1)
        return True

    def listed(self, pages: Iterable[tuple[str, Any, list, list]]) -> Iterator[tuple]:
        """Pages with query, documents and clicks, from those that list the clicked documents.

        Each has its place in words, query, documents and clicked documents. Pages that list a
        document twice are left out.
        """
        for where, query, documents, clicked in pages:
            if not self.left_out(documents, where):
                yield query, documents, self.page(documents, clicked, where)

    def pages(self, documents: pa.Array, listed: pa.Array, row: int, times: np.ndarray) -> pa.Array:
        """`page` for many pages: two lists per page -> a list of bool per page."""
        clicked = []
        rows = zip(documents.to_pylist(), listed.to_pylist(), times.tolist(), strict=True)
        for number, (shown, chosen, number_of) in enumerate(rows, start=row + 1):
            if chosen and len(set(shown)) < len(shown):
                raise InputError(
                    f"row {number}: a document is listed twice, so a click does not say where",
                    path=self.path,
                    field="documents",
                    expected="each document once per page",
                )
            clicked.append(self.page(shown, chosen, f"row {number}", number_of))
        return pa.array(clicked, pa.list_(pa.bool_()))

    def _refused(self, where: str, message: str, setting: str) -> InputError:
        return InputError(
            f"{where}: {message}",
            path=self.path,
            field="clicks",
            expected=f"no such clicks, or {setting}='drop' to drop and count them",
        )
