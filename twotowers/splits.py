"""The names of a data set's parts, which are files of these names."""

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
