"""The names of a data set's parts, which are files of these names."""

import re
from pathlib import Path

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

IDS = "ids"
"""Who is where: the queries and documents of each part of such a log, and of its annotations."""

TEXTS = "texts"
"""The files of another such log, which cross-encoders read in training."""

PART = re.compile(r"part-(\d+)")


def part_of(file: Path) -> str:
    """The part of a log that a file is of, as its name says.

    Example:
        >>> [part_of(Path(name)) for name in ("part-2_split-0.feather", "part-00002.gz", "a.csv")]
        ['part-2', 'part-2', 'log']
    """
    match = PART.search(file.name)
    return f"part-{int(match.group(1))}" if match else LOG
