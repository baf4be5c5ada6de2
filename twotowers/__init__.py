"""Two-tower models and unbiased learning to rank: simulation, click models, fitting, judging.

The library does not know Snakemake or any paper. This package imports nothing heavy, so that a
Snakefile can import it.
"""

from pathlib import Path

__version__ = "0.1.0"

ROOT = Path(__file__).resolve().parents[1]
"""The project's folder."""

SPLITS = ("train", "validation", "test")
"""The parts of a ranking data set."""

LOG = "log"
"""The single part of a click log, with a row per query, document and bias factors."""

PAGES = "pages"
"""The same log page by page, for papers that ask for it."""

DOCUMENTS = "documents"
"""The features of the documents that such a log shows, where it knows documents by features."""

ANNOTATIONS = "annotations"
"""Labelled rankings that come with such a log. Their queries may be others than the log's."""
