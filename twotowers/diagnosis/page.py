"""The page of a diagnosis: lights, and sections of facts, tables and curves, as one file."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from twotowers.files.artefacts import atomic
from twotowers.report.rendering import render
from twotowers.report.words import ANYTHING

GREEN, AMBER, RED = "green", "amber", "red"
SIGNS = {GREEN: "✓", AMBER: "!", RED: "✗"}


@dataclass(frozen=True)
class Light:
    """An answer at one glance.

    Attributes:
        question: what it answers.
        colour: "green", "amber" or "red".
        answer: a sentence.
        action: what to do about it.
    """

    question: str
    colour: str
    answer: str
    action: str


@dataclass(frozen=True)
class Fact:
    """A number with its meaning.

    Attributes:
        name: what was measured.
        value: None if there is none.
        unit: such as "pages" or "% of pages"; "" for a pure number.
        meaning: a sentence.
        low, high: 95 % interval of an estimate; None for a count of the log, which has no error.
        reason: why there is no value, or no interval.
    """

    name: str
    value: float | None
    unit: str
    meaning: str
    low: float | None = None
    high: float | None = None
    reason: str = ""


@dataclass(frozen=True)
class Column:
    """A column of a table: its name, its unit, and a sentence of what it means."""

    name: str
    unit: str = ""
    meaning: str = ""


@dataclass(frozen=True)
class Table:
    """Rows of texts and numbers.

    Attributes:
        title: above it.
        columns: of each row.
        rows: cells: texts, numbers, or None.
        bars: three columns by their numbers, estimate, low and high, that are drawn as a strip on
            a logarithmic axis; () for none.
    """

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Any, ...], ...]
    bars: tuple[int, int, int] | tuple[()] = ()


@dataclass(frozen=True)
class Section:
    """A part of the page.

    Attributes:
        key: its anchor.
        title: a question.
        answer: paragraphs, the first of which says what was found.
        facts, tables: numbers behind it.
    """

    key: str
    title: str
    answer: tuple[str, ...]
    facts: tuple[Fact, ...] = ()
    tables: tuple[Table, ...] = ()


@dataclass(frozen=True)
class Page:
    """Everything on the page.

    Attributes:
        title: the log.
        about: how it was read, in words, a paragraph each.
        lights: the three answers.
        sections: in order.
    """

    title: str
    about: tuple[str, ...]
    lights: tuple[Light, ...]
    sections: tuple[Section, ...] = ()

    def numbers(self) -> dict[str, Any]:
        """The page as data that JSON can hold: no NaN, and infinity as text."""
        return _plain(asdict(self))


def numbers_of(path: str | Path) -> Path:
    """The file beside a page that has its numbers."""
    return Path(path).with_suffix(".json")


def write_page(page: Page, path: str | Path) -> None:
    """Write the page, and its numbers beside it, under the same name with the ending .json."""
    path = Path(path)
    with atomic(numbers_of(path)) as temporary:
        text = json.dumps(page.numbers(), indent=1, ensure_ascii=False, allow_nan=False)
        temporary.write_text(text + "\n", encoding="utf-8")
    render(
        "diagnosis.html.j2",
        path,
        page=page,
        signs=SIGNS,
        number=number,
        interval=interval,
        strip=strip,
        axis=axis,
        json_name=numbers_of(path).name,
    )


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    if isinstance(value, float):
        if math.isnan(value):
            return None
        return value if math.isfinite(value) else "infinite"
    return value


def number(value: Any) -> str:
    """A number as a person reads it: three digits, thousands apart.

    Example:
        >>> number(1234567), number(0.04567), number(12.345), number(None), number(float("inf"))
        ('1,234,567', '0.0457', '12.3', '–', '∞')
        >>> number(-0.0), number(12), number(1.4e14)
        ('0', '12', '1.4e14')
    """
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "–"
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "yes" if value else "no"
    value = value or abs(value)  # no negative zero
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    if isinstance(value, int) or 1000 <= abs(value) < 1e7:
        text = f"{value:,.0f}"
    elif abs(value) >= 1e7 or 0 < abs(value) < 0.0001:
        text = f"{value:.1e}".replace("e+", "e").replace("e0", "e").replace("e-0", "e-")
    else:
        digits = 2 - math.floor(math.log10(abs(value))) if value else 0
        text = f"{value:.{max(min(digits, 5), 0)}f}"
    return text.replace("-", "−")


def interval(low: Any, high: Any) -> str:
    """An interval in words; '' if there is none.

    Example:
        >>> interval(0.5, 1.25), interval(1e-9, 1e9), interval(None, None)
        ('0.500 to 1.25', 'anything', '')
    """
    if low is None or high is None or math.isnan(low) or math.isnan(high):
        return ""
    if 0 < low * ANYTHING < high:
        return "anything"
    return f"{number(float(low))} to {number(float(high))}"


def axis(table: Table) -> tuple[float, float]:
    """The ends of a logarithmic axis that holds 1, the estimates of a table, and of each interval
    what is within a tenth and ten times the estimate."""
    ends = []
    for row in table.rows if table.bars else ():
        estimate, low, high = (row[each] for each in table.bars)
        if estimate and math.isfinite(estimate):
            ends += [max(low or 0, estimate / 10), min(high or estimate, estimate * 10)]
    finite = [each for each in ends if math.isfinite(each)]
    return max(min([0.5, *finite]), 1e-4), min(max([2.0, *finite]), 1e4)


def strip(table: Table, row: Sequence[Any]) -> dict[str, float] | None:
    """Where the estimate and its interval are on the axis, in percent; None without an estimate."""
    if not table.bars:
        return None
    low, high = axis(table)
    estimate, start, end = (row[each] for each in table.bars)
    if estimate is None or end is None or math.isnan(estimate) or math.isnan(end):
        return None

    def place(value: float) -> float:
        if not value > 0:
            return 0.0
        share = math.log(value / low) / math.log(high / low)
        return round(100 * min(max(share, 0.0), 1.0), 2)

    left, right = place(start), place(end)
    return {
        "from": left,
        "width": max(round(right - left, 2), 0.4),
        "point": max(round(place(estimate) - 0.6, 2), 0.0),
        "one": place(1.0),
    }
