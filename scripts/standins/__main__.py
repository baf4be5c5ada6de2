"""Measure stand-ins beside the real data sets, and fill the tables of docs/standins.md.

    .venv/bin/python -m scripts.standins [mslr30k yahoo_ltr istella_s_ltr wscd ...]

All of it takes seven minutes on one core. The exit status is 1 if a number misses its target.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from scripts.filling import fill_page, markdown
from scripts.standins import logs, rankings
from twotowers.files.yamls import read_yaml
from twotowers.root import ROOT

PAGE = ROOT / "docs" / "standins.md"
TARGETS = read_yaml(Path(__file__).with_name("targets.yaml"))
MEASURES = {
    "mslr30k": rankings.mslr,
    "yahoo_ltr": lambda: rankings.long_lists("yahoo_ltr"),
    "istella_s_ltr": lambda: rankings.long_lists("istella_s_ltr"),
    "wscd": logs.wscd,
    "baidu_ultr_uva": logs.uva,
    "baidu_mlm": logs.baidu,
}
"""What measures each stand-in: quantity -> a number, or several."""
HEADS = ("quantity", "stand-in", "accepted", "published")


def table_of(name: str, measured: Mapping[str, ArrayLike]) -> str:
    """The table of a stand-in, with numbers that miss their targets in bold."""
    rows = [row_of(each, measured[each], **target) for each, target in TARGETS[name].items()]
    return markdown(HEADS, rows, "---:")


def row_of(quantity: str, measured: ArrayLike, published="", **bounds) -> tuple[str, ...]:
    """A row: the measured numbers, what is accepted, and what is published.

    Example:
        >>> row_of("clicks", [0.5, 0.7], published=[0.5, 0.6], margin=0.05)
        ('clicks', '0.500, **0.700**', '± 0.05', '0.500, 0.600')
        >>> row_of("longest", 139, published=139, accepted=[125, 139])
        ('longest', '139', '125 to 139', '139')
    """
    values = np.ravel(measured)
    numbers = [] if isinstance(published, str) else np.ravel(published)
    low, high, words = bounds_of(numbers, **bounds)
    met = (low <= values) & (values <= high)
    texts = [written(v) if ok else f"**{written(v)}**" for v, ok in zip(values, met, strict=True)]
    return quantity, ", ".join(texts), words, ", ".join(map(written, numbers)) or published


def bounds_of(published, *, accepted=None, margin=None, within=None) -> tuple:
    """The bounds of a target, and how the page writes them."""
    if accepted is not None:
        return *accepted, f"{accepted[0]:,} to {accepted[1]:,}"
    numbers = np.array(published)
    if margin is not None:
        return numbers - margin, numbers + margin, f"± {margin}"
    if within is not None:
        return numbers * (1 - within), numbers * (1 + within), f"± {within:.0%}"
    return -np.inf, np.inf, ""


def written(value: float) -> str:
    """A number with about three digits; a whole one without a point."""
    size = abs(value)
    if float(value).is_integer():
        return f"{value:,.0f}" if size < 1e6 else f"{value:.1e}"
    return f"{value:.4f}" if size < 0.1 else f"{value:.3f}" if size < 3 else f"{value:,.2f}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(MEASURES)}")
    names = parser.parse_args().names or list(MEASURES)
    if unknown := set(names) - set(MEASURES):
        parser.error(f"no stand-in {', '.join(sorted(unknown))}; there are {', '.join(MEASURES)}")
    tables = {name: table_of(name, MEASURES[name]()) for name in names}
    fill_page(PAGE, tables)
    missed = [row for table in tables.values() for row in table.splitlines() if "**" in row]
    print("\n".join(missed), file=sys.stderr)
    return bool(missed)


if __name__ == "__main__":
    sys.exit(main())
