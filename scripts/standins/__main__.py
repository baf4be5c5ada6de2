"""Measure stand-ins beside the real data sets: docs/standins/*.csv.

    .venv/bin/python -m scripts.standins [mslr30k yahoo_ltr istella_s_ltr wscd ...]

All of it takes seven minutes on one core. The exit status is 1 if a number misses its target.
"""

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from scripts.standins import logs, rankings
from twotowers.files.yamls import read_yaml
from twotowers.root import ROOT

FOLDER = ROOT / "docs" / "standins"
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
HEADS = ["quantity", "measured", "accepted", "published", "missed"]


def table_of(name: str, measured: Mapping[str, ArrayLike]) -> pd.DataFrame:
    """A row per quantity of a stand-in."""
    rows = [row_of(each, measured[each], **target) for each, target in TARGETS[name].items()]
    return pd.DataFrame(rows, columns=HEADS)


def row_of(quantity: str, measured: ArrayLike, published="", **bounds) -> tuple[str | int, ...]:
    """A row: the measured numbers, what is accepted, what is published, and how many miss it."""
    values = np.ravel(measured)
    numbers = [] if isinstance(published, str) else np.ravel(published)
    low, high, words = bounds_of(numbers, **bounds)
    missed = int((~((low <= values) & (values <= high))).sum())
    texts = [", ".join(map(written, each)) for each in (values, numbers)]
    return quantity, texts[0], words, texts[1] or published, missed


def bounds_of(published, *, accepted=None, margin=None, within=None) -> tuple:
    """The bounds of a target, and how the table writes them."""
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
    missed = 0
    for name in names:
        table = table_of(name, MEASURES[name]())
        table.to_csv(FOLDER / f"{name}.csv", index=False, lineterminator="\n")
        missed += table["missed"].sum()
        print(name, table[table["missed"] > 0].to_string(index=False), sep="\n")
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
