"""The page of a diagnosis: numbers and rules, with the words of `diagnosis.words.j2`."""

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from twotowers.analysis.propensities import UNLIKE
from twotowers.diagnosis import rules
from twotowers.diagnosis.evidence import Evidence
from twotowers.diagnosis.facts import Fact
from twotowers.errors import InputError
from twotowers.files.artefacts import Source, atomic, check_target
from twotowers.fitting.curves import ENOUGH_QUERIES, ENOUGH_SWAPS
from twotowers.logs.strays import LEFT_OUT
from twotowers.report.rendering import environment, render
from twotowers.report.words import ANYTHING, numbered

SIGNS = {rules.GREEN: "✓", rules.AMBER: "!", rules.RED: "✗"}
SECTIONS = ("health", "connected", "curve", "swaps", "misfit", "policy", "models", "plan")
PARTS = {"title", "about", "recommendations", "sections"}
"""What the file of numbers has."""


@dataclass(frozen=True)
class Recommendation:
    """An answer at one glance, "green", "amber" or "red", and what to do about it."""

    question: str
    colour: str
    answer: str
    action: str


class Words:
    """The sentences of a diagnosis, from its template."""

    def __init__(self, evidence: Evidence) -> None:
        words = environment(autoescape=False)
        filters: dict[str, Any] = words.filters
        filters.update(count=numbered, exp=math.exp, log=math.log, which=_which)
        known = {
            "e": evidence,
            "r": rules,
            "enough_swaps": ENOUGH_SWAPS,
            "enough_queries": ENOUGH_QUERIES,
            "unlike": UNLIKE,
            "inf": math.inf,
        }
        self.module: Any = words.get_template("diagnosis.words.j2").make_module(known)

    def say(self, message: str) -> list[str]:
        """The paragraphs of a message."""
        paragraphs = re.split(r"\n\s*\n", getattr(self.module, message)())
        lines = (" ".join(each.split()) for each in paragraphs)
        # Where a macro ends within a sentence, so does its line.
        return [re.sub(r" ([.,;:)])(?!\S)", r"\1", each) for each in lines if each]

    def recommend(self, question: str, colour: str, *messages: str) -> Recommendation:
        """A recommendation: the action is that of the first message."""
        (first, action), *more = (" ".join(self.say(each)).split(" -> ") for each in messages)
        answer = " ".join([first, *(text for (text,) in more)])
        return Recommendation(self.module.questions[question], colour, answer, action)


def _which(names: Sequence[str], rows: Any) -> list[str]:
    """Those of some names that a mask or a number means."""
    return [str(each) for each in np.asarray(names)[np.atleast_1d(rows)]]


def recommendations(e: Evidence, words: Words) -> tuple[Recommendation, ...]:
    """The answers to the three questions."""
    sound, able, advice = (rules.first(each, e) for each in (rules.SOUND, rules.ABLE, rules.ADVICE))
    one = words.recommend("sound", sound.colour, sound.message)
    if sound.colour == rules.AMBER:
        others = len(rules.warnings(e)) - 1
        more = f", and {others} more (section 1)" if others else ""
        one = Recommendation(one.question, one.colour, f"Mostly: {one.answer}{more}.", one.action)
    colour, messages = advice.colour, [advice.message]
    # Of a red one, there is no curve to keep fixed.
    if rules.misspecified(e) and colour != rules.RED:
        colour, messages = rules.AMBER, [*messages, "misspecified"]
    return (
        one,
        words.recommend("able", able.colour, able.message),
        words.recommend("advice", colour, *messages),
    )


def sections(
    e: Evidence,
    words: Words,
    advice: Recommendation,
    facts: Mapping[str, Sequence[Fact]],
    tables: Mapping[str, Mapping[str, pd.DataFrame]],
) -> list[dict[str, Any]]:
    """The sections of the page, as data: paragraphs, facts and tables with their words."""
    warned = (words.say(name)[0].split(" -> ") for name in rules.warnings(e))
    paragraphs = {name: words.say(name) for name in SECTIONS}
    paragraphs["health"] += [f"{what[0].upper()}{what[1:]}. {action}" for what, action in warned]
    paragraphs["plan"] = [advice.answer, advice.action, *paragraphs["plan"]]
    return [
        {
            "name": name,
            "title": words.module.questions[name],
            "answer": paragraphs[name],
            "facts": [_with_words(fact, words) for fact in facts.get(name, ())],
            "tables": [_table(key, each, words) for key, each in tables.get(name, {}).items()],
        }
        for name in SECTIONS
    ]


def _with_words(fact: Fact, words: Words) -> dict[str, Any]:
    lost = (LEFT_OUT.get(fact.name, "").capitalize(), "The reader left these out, or doubts them.")
    title, meaning = words.module.facts.get(fact.name, lost)
    reason = words.module.labels.get(fact.reason, fact.reason)
    return {**asdict(fact), "reason": reason, "title": title, "meaning": " ".join(meaning.split())}


def _table(name: str, table: pd.DataFrame, words: Words) -> dict[str, Any]:
    title, columns = words.module.tables[name]
    labels = words.module.labels
    described = []
    for column in table.columns:
        head, unit, meaning = [*columns[column], "", ""][:3]
        meaning = " ".join(meaning.split())
        described.append({"name": column, "title": head, "unit": unit, "meaning": meaning})
    return {
        "name": name,
        "title": title,
        "columns": described,
        "rows": [
            [labels.get(cell, cell) if isinstance(cell, str) else cell for cell in row]
            for row in zip(*(table[column].tolist() for column in table.columns), strict=True)
        ],
    }


def numbers_of(path: str | Path) -> Path:
    """The file beside a page that has its numbers."""
    return Path(path).parent / f"{Path(path).stem}.json"


def check_page(path: str | Path, log: Source) -> None:
    """Raise InputError if the page cannot be written, or would replace a file of the log; or if its
    file of numbers would, or would replace one that is not of a diagnosis."""
    numbers = numbers_of(path)
    check_target(path, log, ".html")
    check_target(numbers, log)
    if not numbers.is_file():
        return
    try:
        content = json.loads(numbers.read_text(encoding="utf-8"))
    except ValueError:
        content = None
    if not isinstance(content, dict) or {*content} != PARTS:
        raise InputError(
            "is another file, and would have the numbers of the page",
            path=numbers,
            expected="another name for the page",
        )


def write_page(page: Mapping[str, Any], path: str | Path, picture: str = "") -> None:
    """Write the page as HTML, and its numbers to a file of the same name that ends in .json.

    `picture` is the curve as SVG, which the page shows.
    """
    names: dict[str, Any] = {"number": number, "interval": interval, "signs": SIGNS}
    names |= {"picture": picture, "json_name": numbers_of(path).name}
    with atomic(numbers_of(path)) as temporary:
        text = json.dumps(plain(page), indent=1, ensure_ascii=False, allow_nan=False)
        temporary.write_text(text + "\n", encoding="utf-8")
        render("diagnosis.html.j2", path, page=page, **names)  # Either file, or none.


def plain(value: Any) -> Any:
    """Data that JSON can hold: no NaN, and infinity as text."""
    if isinstance(value, dict):
        return {name: plain(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else "infinite"
    return value


def number(value: Any) -> str:
    """A number as a person reads it: three digits, thousands apart.

    Example:
        >>> number(1234567), number(0.04567), number(12.345), number(None), number(float("inf"))
        ('1,234,567', '0.0457', '12.3', '–', '∞')
        >>> number(-0.0), number(12), number(1.4e14)
        ('0', '12', '1.4e+14')
    """
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "–"
    if isinstance(value, str):
        return value
    value = value or 0  # no negative zero
    whole = isinstance(value, int) or 1000 <= abs(value) < 1e7
    text = f"{value:,.0f}" if whole else f"{value:.3g}"
    return text.replace("-", "−").replace("inf", "∞")


def interval(low: Any, high: Any) -> str:
    """An interval in words; '' if there is none.

    Example:
        >>> interval(0.5, 1.25), interval(1e-9, 1e9), interval(None, None)
        ('0.5 to 1.25', 'anything', '')
    """
    if low is None or high is None or math.isnan(low) or math.isnan(high):
        return ""
    if 0 < low * ANYTHING < high:
        return "anything"
    return f"{number(float(low))} to {number(float(high))}"
