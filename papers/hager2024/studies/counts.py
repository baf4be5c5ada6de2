"""Table 3.1: what the log and the annotations hold before they are prepared."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
import pyarrow.compute as pc
import pyarrow.parquet as pq

from twotowers.splits import ANNOTATIONS, IDS, PAGES

TEST = "part-0"
"""The other parts are those of training."""


def run(inputs: Mapping[str, str], *, seed: int) -> pd.DataFrame:
    """Counts of annotations, training and test parts, and means over both parts ('all').

    Of real files, the ids of the log and of annotations are read, too: documents and the overlap of
    queries are counted of them.
    """
    labelled = pq.read_table(inputs[ANNOTATIONS], columns=["query"])["query"]
    of_parts = {
        "annotations": {"queries": pc.count_distinct(labelled).as_py(), "pairs": len(labelled)}
    }
    pages = pq.read_table(inputs[PAGES], columns=["split", "query", "documents", "clicks"])
    shown = pc.list_value_length(pages["documents"]).to_numpy()
    clicks = pc.list_flatten(pages["clicks"]).to_numpy()
    page = np.repeat(np.arange(len(shown)), shown)
    clicked = np.bincount(page[clicks], minlength=len(shown))
    pairs = pd.DataFrame(
        {"query": pages["query"].to_numpy()[page],
         "document": pc.list_flatten(pages["documents"]).to_numpy()}
    )  # fmt: skip
    test = pc.equal(pages["split"], TEST).to_numpy()
    for part, own in (("train", ~test), ("test", test)):
        asked = pairs[own[page]]
        of_parts[part] = {
            "queries": asked["query"].nunique(),
            "pairs": len(asked.drop_duplicates()),
            "sessions": own.sum(),
            "impressions": shown[own].sum(),
        }
    of_parts["all"] = {
        "documents_per_session": shown.mean(),
        "clicks_per_session": clicked.mean(),
        "clicks_per_document": clicked.sum() / shown.sum(),
        "percent_clicked": 100 * (clicked > 0).mean(),
        "percent_several": 100 * (clicked > 1).mean(),
    }
    for part, values in of_ids(inputs[IDS]).items() if IDS in inputs else ():
        of_parts[part] |= values
    rows = [
        {"part": part, "metric": metric, "position": None, "value": value}
        for part, values in of_parts.items()
        for metric, value in values.items()
    ]
    return pd.DataFrame(rows).astype({"position": "Int64", "value": float})


def of_ids(path: str) -> dict[str, dict[str, float]]:
    """The number of documents of each part, and what share of the queries of training and of
    annotations, in percent, is in the other of these two as well."""
    ids = pq.read_table(path).to_pandas()
    parts = ids["split"].map({ANNOTATIONS: ANNOTATIONS, TEST: "test"}).fillna("train")
    documents = ids.groupby(parts)["document"].nunique()
    counted = {part: {"documents": number} for part, number in documents.items()}
    judged, train = (set(ids.loc[parts == part, "query"]) for part in (ANNOTATIONS, "train"))
    for part, own in ((ANNOTATIONS, judged), ("train", train)):
        counted[part]["percent_shared"] = 100 * len(judged & train) / len(own)
    return counted
