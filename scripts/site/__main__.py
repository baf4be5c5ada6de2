"""`python -m scripts.site OUT` writes the documentation as a site, which works from disk."""

import sys
from pathlib import Path

from scripts.site.pages import build

if __name__ == "__main__":
    folder = Path(sys.argv[1])
    print(f"{len(build(folder))} pages: {folder / 'index.html'}")
