"""Sentences of papers that fail: quoted, with a table and a fair wording.

`papers/<key>/findings.py` lists them. Each number on their page is computed from our results or
from the authors' numbers.

>>> table = pd.DataFrame({"nDCG": [0.8, 0.75]}, index=pd.Index(["A", "B"], name="model"))
>>> finding = Finding("1a", "A is best.", "Sec. 1", "By {lead:.2f}.",
...     lambda results, authors: (table, {"lead": 0.8 - 0.75}))
>>> [shown] = measured([finding], None, None)
>>> shown["wording"], shown["table"]
('By 0.05.', [['model', 'nDCG'], ['A', '.8000'], ['B', '.7500']])
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import pandas as pd

from twotowers.claims.claims import NotTestable
from twotowers.claims.conditions import written


@dataclass(frozen=True)
class Finding:
    """A sentence that fails.

    Attributes:
        claim: The claim that tests it.
        quote: The sentence, as printed.
        where: Where it is printed.
        wording: What may fairly be said, with the names of numbers in braces.
        measure: Function of our results and of the authors' (`twotowers.claims.published.results`)
            that returns a table and the numbers of the wording. It raises NotTestable if either
            lacks something.
        arguable: Whether the authors could say that they claim something else.
    """

    claim: str
    quote: str
    where: str
    wording: str
    measure: Callable[[pd.DataFrame, pd.DataFrame], tuple[pd.DataFrame, Mapping[str, float]]]
    arguable: bool = False


def measured(
    findings: Iterable[Finding], results: pd.DataFrame, authors: pd.DataFrame
) -> list[dict]:
    """Findings whose numbers are there, as texts.

    Each has claim, quote, where, arguable, wording (with its numbers) and table, rows of texts, the
    first of which is the heading.
    """
    shown = []
    for each in findings:
        try:
            table, numbers = each.measure(results, authors)
        except NotTestable:
            continue
        cells = table.reset_index()
        rows = [[*map(_text, row)] for row in cells.itertuples(index=False)]
        own = {name: getattr(each, name) for name in ("claim", "quote", "where", "arguable")}
        wording = each.wording.format(**numbers)
        shown.append({**own, "wording": wording, "table": [[*map(str, cells.columns)], *rows]})
    return shown


def _text(value: object) -> str:
    return value if isinstance(value, str) else written(value, 4).replace("-", "−")
