"""The project's folder, which holds the Snakefile and the papers."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
