"""Run the suite: `python -m benchmarks [PART ...] [--quick]`.

Each part writes `benchmarks/results/<part>.json` row by row. Then the pages are filled. Quick
sizes only show that the suite works. Their numbers are printed, not kept.
"""

import argparse
import json
from importlib import import_module
from pathlib import Path

from benchmarks import pages
from benchmarks.measure import CACHE, ROOT, machine
from scripts.filling import fill_page
from twotowers.files.artefacts import atomic

PARTS = {
    name: import_module(f"benchmarks.{name}")
    for name in ("counting", "curves", "clickmodels", "beside_clax", "streaming", "gpu")
}
ON_REQUEST = {"gpu"}
"""Parts that run only if they are named, since not every machine can run them."""


def measure(part: str, size: str, folder: Path) -> None:
    result = {"machine": machine(), "rows": []}
    for row in PARTS[part].run(**PARTS[part].SIZES[size]):
        result["rows"].append(row)
        with atomic(folder / f"{part}.json") as temporary:
            temporary.write_text(json.dumps(result, indent=1))
        print(part, row, flush=True)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    said = f"of {', '.join(PARTS)}; else all but {', '.join(ON_REQUEST)}"
    parser.add_argument("parts", nargs="*", metavar="PART", help=said)
    parser.add_argument("--quick", action="store_true", help="small sizes, kept nowhere")
    options = parser.parse_args(arguments)
    if unknown := set(options.parts) - set(PARTS):
        parser.error(f"no part {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    folder = CACHE / "quick" if options.quick else pages.RESULTS
    for part in options.parts or [part for part in PARTS if part not in ON_REQUEST]:
        measure(part, "quick" if options.quick else "full", folder)
    if not options.quick:
        tables = pages.texts(pages.read())
        for name in pages.PAGES:
            fill_page(ROOT / name, tables)


if __name__ == "__main__":
    main()
