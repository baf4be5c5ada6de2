"""How a page says names, numbers and times."""

import re
from collections.abc import Sequence

MISSING = "–"
"""What stands where there is no number and no text."""

ANYTHING = 1e6
"""Ratio of the ends of an interval that says nothing."""

KINDS = {"fig": "Figure", "table": "Table", "appendix": "Appendix"}
"""What an item's name begins with, and how it is printed."""


def numbered(number: float, one: str, many: str | None = None) -> str:
    """A number of things.

    >>> numbered(1, "query", "queries"), numbered(1200, "row")
    ('1 query', '1,200 rows')
    """
    return f"{number:,.0f} {one if number == 1 else many or one + 's'}"


def printed_name(name: str) -> str:
    """An item's name as a reader says it; none for one that the paper does not number.

    >>> [printed_name(name) for name in ("fig3a", "table2", "appendixA", "fig4.B.1")]
    ['Figure 3a', 'Table 2', 'Appendix A', 'Figure 4.B.1']
    >>> printed_name("redrawn"), printed_name("figures")
    ('', '')
    """
    match = re.fullmatch(rf"({'|'.join(KINDS)})([0-9A-Z][\w.]*)", name)
    if not match:
        return ""
    return f"{KINDS[match[1]]} {match[2].replace('_', ', ')}"


def seed_range(seeds: Sequence[int]) -> str:
    """Seeds in words: the first and the last if they follow each other, else a list.

    >>> [seed_range(seeds) for seeds in ([2021], [1, 2], [2021, 2022, 2023], [1, 3, 4])]
    ['2021', '1, 2', '2021–2023', '1, 3, 4']
    """
    seeds = list(seeds)
    if len(seeds) > 2 and seeds == list(range(seeds[0], seeds[-1] + 1)):
        return f"{seeds[0]}–{seeds[-1]}"
    return ", ".join(map(str, seeds))


def record_name(stem: str) -> str:
    """The name of a record, from that of its file: its configurations, and the scale.

    >>> record_name("ten_seeds-laptop"), record_name("paper")
    ('ten seeds, laptop', 'paper')
    """
    return stem.replace("_", " ").replace("-", ", ")


def duration(seconds: float | None) -> str:
    """Seconds as a reader says them, with a decimal below ten.

    >>> [duration(seconds) for seconds in (0.04, 59.4, 59.9, 125, 9000, None)]
    ['0.0 s', '59 s', '1 min 00 s', '2 min 05 s', '2 h 30 min', 'an unknown time']
    """
    if seconds is None:
        return "an unknown time"
    if seconds < 10:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes >= 60:
        return f"{minutes // 60} h {minutes % 60:02d} min"
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"
