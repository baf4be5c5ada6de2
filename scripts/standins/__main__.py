"""Measure stand-ins beside the real data sets, and fill the tables of docs/standins*.md.

    .venv/bin/python -m scripts.standins [mslr lists vectors wscd uva baidu]
    .venv/bin/python -m scripts.standins --search {wscd,uva,baidu}

All of it takes ten minutes on one core, `lists` four of them, `vectors` three. The exit status is 1
if a number misses its target. The second command fits the law of one stand-in to its targets again.
"""

from __future__ import annotations

import argparse
import sys
from importlib import import_module

from scripts.filling import fill_page
from scripts.standins.targets import Tables, missed, written
from twotowers.root import ROOT

PAGES = {
    "mslr": "standins",
    "lists": "standins_lists",
    "vectors": "standins_chen2024",
    "wscd": "standins_wscd",
    "uva": "standins_uva",
    "baidu": "standins_baidu",
}


def measured(name: str, **sizes) -> Tables:
    return import_module(f"scripts.standins.{name}").tables(**sizes)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(PAGES)}; else all")
    parser.add_argument("--search", choices=["wscd", "uva", "baidu"])
    options = parser.parse_args()
    if options.search:
        import_module(f"scripts.standins.{options.search}").search()
        return 0
    if unknown := set(options.names) - set(PAGES):
        parser.error(f"no stand-in {', '.join(sorted(unknown))}; there are {', '.join(PAGES)}")
    far = []
    for name in options.names or PAGES:
        found = measured(name)
        fill_page(ROOT / "docs" / f"{PAGES[name]}.md", written(found))
        far += missed(found)
    print("\n".join(far), file=sys.stderr)
    return bool(far)


if __name__ == "__main__":
    sys.exit(main())
