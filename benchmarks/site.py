"""Pages in a browser: how long the overview of a made-up site takes to load, and to search.

The site has as many papers and items as the project may have one day. Everything is read from disk.
Chromium runs headless.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from statistics import median

from tests.browser import opened
from tests.sites import site

SIZES = {
    "full": {"papers": 7, "items": 10, "repeats": 5},
    "quick": {"papers": 2, "items": 3, "repeats": 1},
}
WIDTHS = {"desk": 1280, "phone": 390}

# A word to type letter by letter.
SEARCH = """(() => {
  const form = document.querySelector(".filter"), begin = performance.now();
  for (const words of ["r", "re", "rea", "real"]) {
    form.elements.words.value = words;
    form.dispatchEvent(new Event("input", {bubbles: true}));
    document.body.offsetHeight;
  }
  return (performance.now() - begin) / 4000;
})()"""
LOADED = """(() => {
  const [timing] = performance.getEntriesByType("navigation");
  return timing.loadEventEnd / 1000;
})()"""


def run(papers: int, items: int, repeats: int) -> Iterator[dict]:
    """Seconds to load two pages of the site, and to search for a letter more."""
    with tempfile.TemporaryDirectory() as folder:
        overview = site(Path(folder) / "figures", papers, items)
        pages = {"overview": overview, "a paper's": overview.parent / "sample2025" / "index.html"}
        for (page, path), (width, pixels) in product(pages.items(), WIDTHS.items()):
            loads, searches = [], []
            for _ in range(repeats):
                with opened(path, pixels) as tab:
                    loads.append(tab.evaluate(LOADED))
                    if path == overview:
                        searches.append(tab.evaluate(SEARCH))
            yield {
                "what": page,
                "papers": papers,
                "items": papers * items,
                "width": width,
                "load": median(loads),
                "search": median(searches) if searches else None,
                "page_kb": path.stat().st_size / 1000,
            }
