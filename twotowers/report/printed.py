"""A LaTeX table as a page shows it: the few commands that our tables use, as HTML.

>>> from twotowers.report.latex import booktabs
>>> table = booktabs(["n", "paper"], [["$2 \\\\times 10^{-14}$", "--"]], columns="lr")
>>> [[head, body]] = printed(table)
>>> [cell.html for cell in body[0]]
['2 × 10<sup>−14</sup>', '<span class="published">–</span>']
"""

import html
import re
from collections.abc import Iterator
from typing import NamedTuple

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


class Cell(NamedTuple):
    """What a cell shows, over how many columns, and at which side."""

    html: str
    span: int
    align: str

    @property
    def text(self) -> str:
        """Without tags."""
        return html.unescape(re.sub("<[^>]+>", "", self.html))


def printed(tex: str) -> list[list[list[list[Cell]]]]:
    """The tables of a file of `twotowers.report.latex.booktabs`, or of a drawing, row by line.

    Each has groups of rows, the first of which is the headings.
    """
    tables, sides = [], []
    for line in tex.splitlines():
        if line.startswith(r"\begin"):
            sides = [*line.partition("}{")[2].rstrip("}")]
            tables.append([[]])
        elif line.startswith((r"\midrule", r"\addlinespace")):
            tables[-1].append([])
        elif r"\\" in line:
            tables[-1][-1].append([*_cells(line.partition(r"\\")[0], sides)])
    return [[group for group in table if group] for table in tables]


def _cells(row: str, sides: list[str]) -> Iterator[Cell]:
    at = 0
    for text in re.split(r"(?<!\\)&", row):
        spanning = re.fullmatch(r"\\multicolumn\{(\d+)\}\{(\w)\}\{(.*)\}", text.strip())
        span, align, text = spanning.groups() if spanning else (1, sides[at], text)
        yield Cell(_html(text.strip()), int(span), align)
        at += int(span)


def _html(text: str) -> str:
    # No subscript begins with this one.
    text = text.replace(r"\_", UNDERSCORE).replace(r"\&", "&")
    text = re.sub(r"(?<![\w-])-(?=[.\d])", "−", text)
    text = re.sub(
        r"\$([^$]*)\$", lambda math: math[1].replace("-", "−"), html.escape(text, quote=False)
    )
    text = _SIGN.sub(lambda sign: SIGNS[sign[0]], text)
    while _TAG.search(text):
        text = _TAG.sub(lambda tag: (tag[2] or tag[3] or "").join(TAGS[tag[1]]), text)
    text = text.replace(UNDERSCORE, "_")
    return re.sub(r"<sup>([*▲▼]+)</sup>", r'<sup class="mark">\1</sup>', text)
