"""Two-tower models and unbiased learning to rank: simulation, click models, fitting, judging.

The library knows nothing of Snakemake and names no paper.
Importing this package imports nothing heavy, so that a Snakefile may.
"""

from pathlib import Path

__version__ = "0.1.0"

ROOT = Path(__file__).resolve().parents[1]
"""The project's folder."""

SPLITS = ("train", "validation", "test")
"""What a ranking data set comes in."""

LOG = "log"
"""What a click log comes in: one part, with one row per query, document and bias factors."""
