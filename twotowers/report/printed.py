"""A LaTeX table as a page shows it: the few commands that our tables use, as HTML.

>>> from twotowers.report.latex import booktabs
>>> [view] = printed(booktabs(["n", "paper"], [["$2 \\\\times 10^{-14}$", "--"]], columns="lr"))
>>> [cell.html for cell in view.groups[0][0]]
['2 × 10<sup>−14</sup>', '<span class="published">–</span>']
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass

from twotowers.errors import InputError

SIGNS = {
    r"\pm": "±", r"\times": "×", r"\infty": "∞", r"\blacktriangledown": "▼", r"\blacktriangle": "▲",
    r"\alpha": "α", r"\eta": "η", r"\theta": "θ", r"\tau": "τ", r"\Omega": "Ω",
    r"\%": "%", r"\#": "#", r"\,": " ", "{,}": ",", "--": "–",
}  # fmt: skip
UNDERSCORE = "\0"
TAGS = {
    r"\textcolor{gray}": ('<span class="published">', "</span>"),
    r"\textbf": ("<b>", "</b>"),
    r"\emph": ("<em>", "</em>"),
    r"\mathcal": ("<em>", "</em>"),
    "^": ("<sup>", "</sup>"),
    "_": ("<sub>", "</sub>"),
}
_SIGN = re.compile("|".join(map(re.escape, sorted(SIGNS, key=len, reverse=True))))
_TAG = re.compile(rf"({'|'.join(map(re.escape, TAGS))})(?:\{{([^{{}}]*)\}}|(\w))")
_TABLE = re.compile(r"\\begin\{\w+\}\{([^\n]*)\}\s*\\toprule(.*?)\\bottomrule", re.DOTALL)
_GROUP = re.compile(r"\\(?:midrule|addlinespace)")
_RULE = re.compile(r"\\(endhead|cmidrule\(lr\)\{[\d-]+\})\s*")
_SPANNING = re.compile(r"\\multicolumn\{(\d+)\}\{(\w)\}\{(.*)\}", re.DOTALL)
_SPLIT = re.compile(r"(?<!\\)&")


@dataclass(frozen=True)
class Cell:
    """A cell.

    Attributes:
        html: What it shows.
        span: Number of columns.
        align: 'l', 'c' or 'r'.
        published: Whether its column is of published numbers.
    """

    html: str
    span: int
    align: str
    published: bool

    @property
    def text(self) -> str:
        """Without tags."""
        return html.unescape(re.sub("<[^>]+>", "", self.html))


@dataclass(frozen=True)
class Printed:
    """A table: rows of headings, and groups of rows between rules."""

    head: list[list[Cell]]
    groups: list[list[list[Cell]]]


def printed(tex: str) -> list[Printed]:
    """Read the tables of a file that `twotowers.report.latex.booktabs` or a drawing wrote."""
    return [_table(columns, body) for columns, body in _TABLE.findall(tex)]


def _table(columns: str, body: str) -> Printed:
    # Column by column: whether all of it is grey, and its side.
    sides = re.findall(r"(>\{\\color\{gray\}\})?([lrc])", columns)
    head, *groups = (
        [[*_cells(row, sides)] for row in _rows(group)] for group in _GROUP.split(body)
    )
    return Printed(head, [group for group in groups if group])


def _rows(group: str) -> Iterator[str]:
    for row in re.split(r"\\\\\*?", _RULE.sub("", group)):
        if row.strip():
            yield row.strip()


def _cells(row: str, sides: list[tuple[str, str]]) -> Iterator[Cell]:
    at = 0
    for text in _SPLIT.split(row):
        if at >= len(sides):
            raise InputError(
                f"a row has more cells than the {len(sides)} columns",
                field="tex",
                expected="columns of l, c and r, a letter for each",
            )
        spanning = _SPANNING.fullmatch(text.strip())
        span, align, text = spanning.groups() if spanning else (1, sides[at][1], text)
        yield Cell(_html(text.strip()), int(span), align, bool(sides[at][0]) and not spanning)
        at += int(span)


def _html(text: str) -> str:
    def of_math(found: re.Match) -> str:
        return found[1].replace("-", "−")

    # No subscript begins with this one.
    text = text.replace(r"\_", UNDERSCORE).replace(r"\&", "&")
    text = re.sub(r"(?<![\w-])-(?=[.\d])", "−", text)
    text = re.sub(r"\$([^$]*)\$", of_math, html.escape(text, quote=False))
    text = _SIGN.sub(lambda found: SIGNS[found[0]], text)
    while _TAG.search(text):
        text = _TAG.sub(lambda found: (found[2] or found[3] or "").join(TAGS[found[1]]), text)
    text = text.replace(UNDERSCORE, "_")
    if unknown := re.search(r"\\\W?\w*|[{}]", text):
        raise InputError(
            f"{unknown[0]!r} is unknown", field="tex", expected="a command that pages know"
        )
    return re.sub(r"<sup>([*▲▼]+)</sup>", r'<sup class="mark">\1</sup>', text)
