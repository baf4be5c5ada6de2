"""LambdaMART on annotated labels, cross-fitted; and as published, where four fifths are in-sample.

It is a study, since no click is read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pandas as pd

from twotowers.claims.annotated import of_each_query
from twotowers.files.rankings import read_rankings
from twotowers.rankers.folds import cross_fitted
from twotowers.splits import ANNOTATIONS


def run(
    inputs: Mapping[str, str], *, seed: int, trees: int, leaves: int, learning_rate: float
) -> pd.DataFrame:
    """Metrics of all annotated queries, with the column `folds`.

    Args:
        inputs: the annotated documents.
        seed: not used: trees have no chance.
        trees, leaves, learning_rate: see `twotowers.rankers.trees.fit_lambdamart`.
    """
    lists = read_rankings(inputs[ANNOTATIONS])
    options = {"trees": trees, "leaves": leaves, "learning_rate": learning_rate}
    held_out, published = cross_fitted(lists, lists.label, **options)
    rows = [
        {"folds": folds, **row}
        for folds, scores in (("published", published), ("held out", held_out))
        for row in measured(lists, scores)
    ]
    table = pd.DataFrame(rows).assign(position=None)
    return table.astype({"position": "Int64", "query": "Int64", "value": float})


def measured(lists, scores) -> Iterator[dict]:
    """The mean of each metric, and nDCG@10 and DCG@10 of every query."""
    *columns, where = lists.padded(scores, lists.label)
    for name, values in of_each_query(*columns, where=where).items():
        yield {"metric": name, "value": values.mean()}
        for query, value in enumerate(values):
            yield {"metric": f"query_{name}", "query": query, "value": value}
