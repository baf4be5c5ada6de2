"""Whether a click log can give propensities, and what to do with it: one page."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from twotowers.analysis.propensities import Propensities
from twotowers.diagnosis.evidence import Evidence, gather
from twotowers.diagnosis.facts import facts_of, tables_of
from twotowers.diagnosis.page import (
    SIGNS,
    Recommendation,
    Words,
    check_page,
    recommendations,
    sections,
    write_page,
)
from twotowers.diagnosis.rules import RED
from twotowers.errors import check_names
from twotowers.files.artefacts import Source
from twotowers.fits.defaults import BIAS
from twotowers.logs.click_log import as_log
from twotowers.logs.features import read_features
from twotowers.logs.frames import Native, native
from twotowers.report.shown import Shown

COLUMNS = ("section", "name", "value", "low", "high", "unit", "meaning", "reason")


@dataclass(frozen=True, eq=False, repr=False)
class Diagnosis(Shown):
    """Whether a click log is sound and can give propensities. `diagnose` makes one.

    `print` shows the recommendations, `save` writes the page.

    Attributes:
        recommendations: three answers, each with question, colour ("green", "amber" or "red"),
            answer and action.
        page: everything on the page, as data.
        evidence: what was measured.
        kind: the library of the frames that answers come in.
        source: of the log, which `save` does not replace.
    """

    recommendations: tuple[Recommendation, ...]
    page: dict[str, Any]
    evidence: Evidence
    kind: str
    source: Source

    @property
    def red(self) -> bool:
        """Whether a recommendation is red."""
        return any(each.colour == RED for each in self.recommendations)

    @property
    def propensities(self) -> Propensities:
        """The curve."""
        return self.evidence.product

    def frame(self) -> Native:
        """Every single number of the page.

        Returns:
            a frame: section, name, value, low, high (95 % interval), unit, meaning, and reason (why
            there is no value or no interval). `tables` has the others.
        """
        rows = [
            {"section": section["name"], **fact}
            for section in self.page["sections"]
            for fact in section["facts"]
        ]
        table = pd.DataFrame(rows, columns=[*COLUMNS])
        return native(table.astype(dict.fromkeys(("value", "low", "high"), float)), self.kind)

    def tables(self) -> dict[str, Native]:
        """The tables of the page by name, as frames."""
        return {
            name: native(table, self.kind)
            for own in tables_of(self.evidence).values()
            for name, table in own.items()
        }

    def save(self, path: str | Path) -> None:
        """Write the page, and all of its numbers beside it, with the ending .json.

        Raises:
            InputError: another ending than .html, a file of both is the log itself, or there is
                a .json file that is not of a diagnosis.
        """
        check_page(path, self.source)
        write_page(self.page, path, self.propensities.picture())

    def _repr_html_(self) -> str:
        return self.propensities.picture() + super()._repr_html_()

    def lines(self) -> Iterator[str]:
        """What is printed."""
        for each in self.recommendations:
            yield f"{SIGNS[each.colour]} {each.colour:<6}{each.question}"
            yield from (f"         {each.answer}", f"         -> {each.action}")


def diagnose(log: object, features: object = None, bias: Sequence[str] = BIAS) -> Diagnosis:
    """Is a log sound, can it give propensities, and what to do with it?

    Args:
        log: a log of `read_log`, or what `read_log` takes. The order of its pages is taken for
            time.
        features: a frame or a path with the columns query and document, and a column per feature,
            a number each. Two-tower models of them are tested on some queries.
        bias: columns that together name the bias factor, such as ["position", "device"].

    Returns:
        three recommendations, and the numbers behind them, each with a unit, an interval or a
        reason why there is none, and what it means.

    Raises:
        InputError: an argument is unknown, a column is missing, a row of the log is wrong, or the
            log has no click.

    Example:
        >>> import pyarrow as pa
        >>> pages = {"query": [k // 4 for k in range(400)],
        ...          "documents": [["a", "b"], ["b", "a"]] * 200,
        ...          "clicks": [[1, 0], [1, 1], [0, 1], [0, 0]] * 100}
        >>> diagnosis = diagnose(pa.table(pages))
        >>> diagnosis.recommendations[0].colour
        'green'
    """
    bias = check_names(bias, field="bias")
    log = as_log(log)
    known = None if features is None else read_features(features)
    evidence = gather(log, bias, features=known)
    words = Words(evidence)
    answers = recommendations(evidence, words)
    page = {
        "title": str(log.source),
        "about": [f"Read as {log.layout}."],
        "recommendations": [vars(each) for each in answers],
        "sections": sections(evidence, words, answers[2], facts_of(evidence), tables_of(evidence)),
    }
    return Diagnosis(answers, page, evidence, log.kind, log.source)
