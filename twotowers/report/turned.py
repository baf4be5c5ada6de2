"""What the rule for verdicts changes: docs/verdicts.md.

Verdicts on all results together, as a judge alone gives them, beside those that regard chance and
gates of fits; the claims that turned; and the fits whose gates fail.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from operator import itemgetter

from twotowers.report.paper_page import tally

APART = itemgetter("paper", "origin", "stands_on")


def turned(summaries: Sequence[Mapping]) -> dict:
    """What the template needs.

    Args:
        summaries: Of finished papers, as their pages leave them.

    Returns:
        counts: A row per paper, origin and kind of data, and `total`, that of all claims: `claims`,
            `before` and `after` by verdict, and how many `turned`.
        claims: Those that turned.
        gates: Paper, setting and number of each gate that fails, as texts.
    """
    rows = [row for summary in summaries for row in summary["claims"]]
    apart = [
        dict(zip(("paper", "origin", "stands_on"), of, strict=True)) | _counts(list(own))
        for of, own in groupby(sorted(rows, key=APART), APART)
    ]
    return {
        "counts": apart,
        "total": _counts(rows),
        "claims": [row for row in rows if has_turned(row)],
        "gates": [
            {"paper": summary["key"], "setting": setting, "text": text}
            for summary in summaries
            for setting, text in summary["gates"]
        ],
    }


def has_turned(row: Mapping) -> bool:
    """Whether chance or gates changed a verdict."""
    return row["verdict"] != row["on_all"]


def _counts(rows: Sequence[Mapping]) -> dict:
    return {
        "claims": len(rows),
        "before": tally({"verdict": row["on_all"]} for row in rows),
        "after": tally(rows),
        "turned": sum(map(has_turned, rows)),
    }
