"""Clicks that a page cannot have: on documents that are not on it, and more than one on one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa

from twotowers.errors import InputError, nearest

CHOICES = ("drop", "error")


class Tally:
    """Leaves out such clicks and counts them, or refuses them.

    Args:
        path: what an error names.
        strays: what becomes of a click on a document that is not on the page: drop, error.
        repeats: what becomes of a second click on a document of one page: drop, error.

    Attributes:
        seen: numbers of pages, clicks, repeated_clicks and clicks_off_page so far. The clicks
            that are kept are `clicks` less `repeated_clicks` less `clicks_off_page`.
    """

    def __init__(self, path: str | Path | None, *, strays: str = "drop", repeats: str = "drop"):
        for field, choice in (("strays", strays), ("repeats", repeats)):
            if choice not in CHOICES:
                raise InputError(f"{choice!r}", field=field, expected=nearest(choice, CHOICES))
        self.path, self.strays, self.repeats = path, strays, repeats
        self.seen = dict.fromkeys(("pages", "clicks", "repeated_clicks", "clicks_off_page"), 0)

    def numbers(self, clicks: np.ndarray, where: Callable[[int], str]) -> np.ndarray:
        """Clicked or not, from the number of clicks of each document shown.

        Args:
            clicks: [shown] whole numbers from 0.
            where: index -> words that name the place, as 'row 3'.

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
        """Clicked or not, from the documents of one page and those clicked, in any order.

        Args:
            documents: those shown; different from each other.
            listed: those clicked.
            where: words that name the page, as 'record 3'.

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

    def pages(self, documents: pa.Array, listed: pa.Array, row: int) -> pa.Array:
        """`page` of many pages: two lists a page -> a list of bool a page."""
        clicked = []
        pairs = zip(documents.to_pylist(), listed.to_pylist(), strict=True)
        for number, (shown, chosen) in enumerate(pairs, start=row + 1):
            if chosen and len(set(shown)) < len(shown):
                raise InputError(
                    f"row {number}: a document is listed twice, so a click does not say where",
                    path=self.path,
                    field="documents",
                    expected="a document once a page",
                )
            clicked.append(self.page(shown, chosen, f"row {number}"))
        return pa.array(clicked, pa.list_(pa.bool_()))

    def _refused(self, where: str, message: str, setting: str) -> InputError:
        return InputError(
            f"{where}: {message}",
            path=self.path,
            field="clicks",
            expected=f"none such, or {setting}='drop' to leave them out and count them",
        )
