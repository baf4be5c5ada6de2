"""Table 3.1: what the log and the annotations hold.

It is a study because it counts pages before they are prepared, and fits nothing.
"""

from __future__ import annotations

from collections.abc import Mapping

import duckdb
import pandas as pd

from twotowers import ANNOTATIONS, PAGES

TEST = "part-0"
"""The other parts are those of training."""
OF_PAGES = """
    with counted as (
        select case split when $test then 'test' else 'train' end as part,
               query, documents, len(clicks) as shown, list_sum(clicks::integer[]) as clicked
        from read_parquet($pages)
    ), pairs as (
        select part, count(*) as pairs
        from (select distinct part, query, unnest(documents) from counted) group by part
    )
    select part, count(distinct query) as queries, any_value(pairs) as pairs,
           count(*) as sessions, sum(shown) as impressions
    from counted join pairs using (part) group by part
"""
OF_ALL = """
    with counted as (
        select len(clicks) as shown, list_sum(clicks::integer[]) as clicked
        from read_parquet($pages)
    )
    select avg(shown) as documents_per_session, avg(clicked) as clicks_per_session,
           sum(clicked) / sum(shown) as clicks_per_document,
           100 * avg((clicked > 0)::integer) as percent_clicked,
           100 * avg((clicked > 1)::integer) as percent_several
    from counted
"""
OF_ANNOTATIONS = """
    select count(distinct query) as queries, count(*) as pairs from read_parquet($annotations)
"""


def run(inputs: Mapping[str, str], *, seed: int) -> pd.DataFrame:
    """Counts of annotations, training and test parts, and means over both parts.

    Args:
        inputs: pages of the log, and annotated documents.
        seed: not used: counts have no chance.

    Returns:
        part ('annotations', 'train', 'test' or 'all'), metric, position, value.
    """
    pages = {"pages": inputs[PAGES]}
    annotations = {"annotations": inputs[ANNOTATIONS]}
    with duckdb.connect() as connection:
        parts = connection.execute(OF_PAGES, {"test": TEST, **pages}).df().set_index("part")
        whole = connection.execute(OF_ALL, pages).df().set_index([pd.Index(["all"])])
        labels = connection.execute(OF_ANNOTATIONS, annotations).df()
    labels.index = ["annotations"]
    table = pd.concat([labels, parts.loc[["train", "test"]], whole]).rename_axis("part")
    long = table.reset_index().melt("part", var_name="metric").dropna(subset="value")
    return long.assign(position=None).astype({"position": "Int64", "value": float})
