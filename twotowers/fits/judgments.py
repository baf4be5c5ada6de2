"""Graded relevance judgments from a fitted click model, for search engines and evaluation tools.

Evaluation tools take grade 0 for irrelevant and any other for relevant (precision in Quepid, in the
Search Relevance Workbench and in trec_eval), and compare grades over queries. So a document that
was examined and never clicked has grade 0, and grades mean the same in every query. Others are
graded by the lower end of their interval of relevance: the estimate of a document with little
evidence is mostly the prior, and its place among others says nothing. On simulated logs lists that
are sorted by such grades have a higher nDCG than by quantiles of the estimate (docs/use.md).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from numbers import Integral
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from twotowers.errors import InputError, check_choice, check_range
from twotowers.files.artefacts import atomic, check_target
from twotowers.files.tables import as_cell
from twotowers.fits.tables import pair_numbers
from twotowers.logs.click_log import ClickLog
from twotowers.logs.frames import PANDAS, Native, native
from twotowers.report.shown import Shown
from twotowers.report.words import numbered

if TYPE_CHECKING:
    from twotowers.fits.fit import Fit

GRADES, EXAMINATIONS = 4, 10.0
"""Defaults: grades 0 to 3, and examinations that a judgment needs at least."""
MOST_GRADES = 100
DIGITS = 9
"""Of relevance: what is equal to so many is a tie."""


@dataclass(frozen=True, eq=False)
class Judgments(Shown):
    """Graded query-document pairs. `Fit.judgments` makes one.

    Attributes:
        table: query, document, grade and what the grade rests on, as `frame` describes.
        left_out: number of shown pairs without a judgment, of which too little is known.
        thresholds: what is graded has to exceed them for the grades 1, 2, ...: the lower end of
            relevance; or relevance, which may equal them, if thresholds were given.
        by_low: whether the lower end of relevance is graded.
        kind: the library of the frame.
        log: the log behind them, which `write` does not replace; None of a fit that was loaded.
    """

    table: pa.Table
    left_out: int
    thresholds: tuple[float, ...]
    by_low: bool = True
    kind: str = PANDAS
    log: ClickLog | None = None

    def frame(self) -> Native:
        """A row per judged pair, the best of a query first.

        Returns:
            a frame: query, document, grade, relevance (the estimate), error, low, high,
            grade_low and grade_high (grades whose median relevance is within low and high),
            examinations (how often users examined the document, in expectation), impressions,
            clicks, shrinkage (the share of the estimate that the prior has: 0 none, 1 all), and
            doubt ("" or why relevance cannot be separated from where the document was shown;
            missing of a fit that was loaded, which does not know its log).
        """
        return native(self.table, self.kind)

    def write(self, path: str | Path, format: str = "trec") -> list[Path]:
        """Write the judgments, all or nothing.

        TREC's columns are divided by white space. If a query, or a document, has some, all of them
        are numbered, and a file beside has the numbers: `qrels.queries.tsv` for `qrels.txt`.

        Args:
            path: the file.
            format: "trec" (qrels: `query 0 document grade`), "csv" (`query,docid,rating`, as Quepid
                imports it), "ranklib" (`grade qid:1 # document`, without features, as the
                Elasticsearch plug-in reads it), "rre" (Rated Ranking Evaluator; name your index
                and template in it), or "opensearch" (the body of a request that imports judgments
                into the Search Relevance Workbench).

        Returns:
            the files.

        Raises:
            InputError: the format is unknown, an id has several lines where the format has one,
                there is no such folder, or a file is the log itself.
        """
        check_choice(format, FORMATS, field="format")
        columns = [self.table[name].to_pylist() for name in ("query", "document", "grade")]
        files: dict[Path, Iterable[str]] = {}
        if format == "trec":
            for place, name in enumerate(("queries", "documents")):
                texts = [str(each) for each in columns[place]]
                if any(text.split() != [text] for text in texts):
                    number = {text: k for k, text in enumerate(dict.fromkeys(texts), start=1)}
                    columns[place] = [number[text] for text in texts]
                    lines = (f"{k}\t{_quoted(text)}\n" for text, k in number.items())
                    files[Path(path).with_suffix(f".{name}.tsv")] = lines
        files = {Path(path): FORMATS[format](zip(*columns, strict=True)), **files}
        for each in files:
            check_target(each, self.log)
        for each, lines in files.items():
            with atomic(each) as part, part.open("w", encoding="utf-8", newline="") as file:
                file.writelines(lines)
        return [*files]

    def __repr__(self) -> str:
        return f"<{len(self.table):,} judgments; {self.left_out:,} pairs without>"

    def lines(self) -> Iterator[str]:
        """What is printed: how many pairs have each grade, and why others have none."""
        names = ("grade", "grade_low", "grade_high")
        grades, lowest, highest = (np.asarray(self.table[name]) for name in names)
        verb = "is" if len(grades) == 1 else "are"
        yield f"{numbered(len(grades), 'query-document pair')} {verb} judged"
        by = "lower end of relevance above" if self.by_low else "relevance from"
        never = (np.asarray(self.table["clicks"]) == 0).sum()
        yield f"  grade 0: {(grades == 0).sum():,}, of which {never:,} were never clicked"
        for grade, start in enumerate(self.thresholds, start=1):
            yield f"  grade {grade}: {(grades == grade).sum():,}, {by} {start:.3g}"
        if len(grades):
            yield (
                f"{(lowest < highest).mean():.0%} of the intervals of relevance hold the median "
                "relevance of another grade, too (columns grade_low and grade_high)"
            )
        if self.left_out:
            yield (
                f"without a judgment: {numbered(self.left_out, 'pair')}, too little known because "
                "users hardly examined them"
            )
        doubt = self.table["doubt"]
        if doubt.null_count:
            yield "a fit that was loaded does not know its log, nor whether grades follow clicks"
        elif doubtful := pc.sum(pc.not_equal(doubt, "")).as_py():
            yield (
                f"warning: {numbered(doubtful, 'judgment')} of documents {DOUBT}: their grades "
                "follow the model, not the clicks"
            )


def checked_grades(
    grades: int | Sequence[float], min_examinations: float
) -> int | tuple[float, ...]:
    """The grades that `Fit.judgments` was given; InputError if an argument of it is out of range.

    >>> checked_grades(np.int64(3), 10), checked_grades(np.array([0.25, 0.5]), 10)
    (3, (0.25, 0.5))
    """
    check_range(min_examinations, field="min_examinations", low=0, high=1e12)
    if isinstance(grades, Integral):
        return int(check_range(grades, field="grades", low=2, high=MOST_GRADES, whole=True))
    many = isinstance(grades, Iterable) and not isinstance(grades, str)
    values = list(grades) if many else []
    rising = [float(check_range(each, field="grades", low=0, high=1)) for each in values]
    if not rising or sorted(set(rising)) != rising:
        expected = "a number of grades, or rising thresholds of relevance"
        raise InputError(f"{grades!r}", field="grades", expected=expected)
    return tuple(rising)


def judgments_of(fit: Fit, grades: int | tuple[float, ...], min_examinations: float) -> Judgments:
    """Grade the relevance of documents; see `Fit.judgments`."""
    pairs = fit.relevances()
    tried = np.asarray(pairs["examinations"], float)
    kept = tried >= max(min_examinations, 1e-9)
    left_out = len(fit.pairs) - int(kept.sum())
    pairs, tried = pairs.filter(pa.array(kept)), tried[kept]
    relevance, low, high = (np.asarray(pairs[name], float) for name in ("estimate", "low", "high"))
    clicked = np.asarray(pairs["clicks"]) > 0
    by_low = not isinstance(grades, tuple)
    if isinstance(grades, tuple):
        thresholds = np.array(grades)
        grade = np.searchsorted(thresholds, relevance, side="right")
    else:
        # The clicked ones in equal parts. A tie has the lower grade.
        low = np.round(low, DIGITS)
        shares = np.arange(grades - 1) / (grades - 1)
        thresholds = np.quantile(low[clicked], shares) if clicked.any() else 0 * shares
        thresholds[0] = 0
        grade = np.maximum(np.searchsorted(thresholds, low, side="left"), 1)
    grade = np.where(clicked, grade, 0)
    lowest, highest = _within(grade, relevance, low, high)
    imagined = fit.estimate.prior.of("attraction")[1]
    table = pa.table(
        {
            "query": pairs["query"],
            "document": pairs["document"],
            "grade": grade.astype(np.int32),
            "relevance": relevance,
            **{name: pairs[name] for name in ("error", "low", "high")},
            "grade_low": lowest.astype(np.int32),
            "grade_high": highest.astype(np.int32),
            "examinations": tried,
            **{name: pairs[name] for name in ("impressions", "clicks")},
            "shrinkage": imagined / (tried + imagined),
            "doubt": _doubts(fit, pairs),
        }
    )
    return Judgments(table, left_out, tuple(thresholds.tolist()), by_low, fit.kind, fit.log)


def _within(
    grade: np.ndarray, relevance: np.ndarray, low: np.ndarray, high: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """[pairs] the smallest and the largest grade whose median relevance is in the interval."""
    lowest, highest = grade.copy(), grade.copy()
    for each in np.unique(grade):
        typical = np.median(relevance[grade == each])
        inside = (low <= typical) & (typical <= high)
        lowest[inside] = np.minimum(lowest[inside], each)
        highest[inside] = np.maximum(highest[inside], each)
    return lowest, highest


DOUBT = "shown only where the log has no evidence on examination"


def _doubts(fit: Fit, found: pa.Table) -> pa.Array:
    """[pairs] of a table with query and document: why to doubt their relevance."""
    if fit.evidence is None:
        return pa.nulls(len(found), pa.string())
    number = pair_numbers(fit.evidence.pairs, found.select(["query", "document"]))
    return pa.array(np.where(fit.evidence.reliable[number], "", DOUBT))


Judged = Iterator[tuple[Any, Any, int]]
"""Query, document and grade; the rows of a query follow each other."""


def _trec(rows: Judged) -> Iterator[str]:
    for query, document, grade in rows:
        yield f"{query} 0 {document} {grade}\n"


def _csv(rows: Judged) -> Iterator[str]:
    yield "query,docid,rating\n"
    for query, document, grade in rows:
        yield f"{_quoted(as_cell(query))},{_quoted(as_cell(document))},{grade}\n"


def _ranklib(rows: Judged) -> Iterator[str]:
    for number, (query, own) in enumerate(_by_query(rows), start=1):
        yield f"# qid:{number}: {_line(query, 'query')}\n"
        for _, document, grade in own:
            yield f"{grade} qid:{number} # {_line(document, 'document')}\n"


def _rre(rows: Judged) -> Iterator[str]:
    groups = []
    for query, own in _by_query(rows):
        graded: dict[str, list[str]] = {}
        for _, document, grade in own:
            graded.setdefault(str(grade), []).append(str(document))
        asked = {"template": "template.json", "placeholders": {"$query": str(query)}}
        groups.append({"name": str(query), "queries": [asked], "relevant_documents": graded})
    yield _json({"index": "index", "id_field": "id", "query_groups": groups})


def _opensearch(rows: Judged) -> Iterator[str]:
    ratings = [
        {
            "query": str(query),
            "ratings": [{"docId": str(row[1]), "rating": f"{row[2]:.3f}"} for row in own],
        }
        for query, own in _by_query(rows)
    ]
    about = {"name": "Two Towers", "description": "Judgments from clicks"}
    yield _json({**about, "type": "IMPORT_JUDGMENT", "judgmentRatings": ratings})


FORMATS: Mapping[str, Callable[[Judged], Iterator[str]]] = {
    "trec": _trec,
    "csv": _csv,
    "ranklib": _ranklib,
    "rre": _rre,
    "opensearch": _opensearch,
}
"""Formats of files of judgments, each a function from rows to pieces of text."""


def _by_query(rows: Judged) -> Iterator[tuple[Any, Iterator[tuple[Any, Any, int]]]]:
    return groupby(rows, key=itemgetter(0))


def _json(content: object) -> str:
    return json.dumps(content, ensure_ascii=False, indent=1) + "\n"


def _quoted(given: object) -> str:
    text = str(given)
    return '"' + text.replace('"', '""') + '"' if set(text) & set(',"\t\r\n') else text


def _line(given: object, field: str) -> str:
    text = str(given)
    if text.splitlines() != [text]:
        expected = "ids of one line; or another format, such as csv"
        raise InputError(f"{text!r} has several lines", field=field, expected=expected)
    return text
