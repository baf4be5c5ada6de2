"""The relevance tower's nDCG against that of the policy which showed the documents.

What a policy knows is told apart from how well it ranks: at one place on the x axis all policies
rank equally well.
"""

import pandas as pd
from matplotlib.figure import Figure

from papers.zhang2023.winners import METHODS, QUALITY, RANKERS, RANKING, WORLDS, cross
from twotowers.claims.statistics import BAND, over_seeds, select
from twotowers.report.charts import Curves

KEYS = ["world", "ranker", "method", "mixing_weight", "temperature"]
SHUFFLED = ", half shuffled"


def table(results: pd.DataFrame, published: pd.DataFrame) -> pd.DataFrame:
    rows = cross(results)
    measured = over_seeds(select(rows, metric=RANKING), KEYS)
    quality = over_seeds(select(rows, metric=QUALITY), KEYS)[[*KEYS, "value"]]
    measured = measured.merge(quality.rename(columns={"value": "policy_ndcg"}), on=KEYS)
    shuffled = measured["temperature"].gt(0).map({True: SHUFFLED, False: ""})
    policy = measured["ranker"].map(RANKERS) + shuffled
    measured = measured.assign(policy=policy, metric=RANKING, source="reproduced")
    return measured[[*KEYS, "policy", "metric", "source", "policy_ndcg", *BAND]]


def draw(table: pd.DataFrame) -> Figure:
    policies = [name + end for end in ("", SHUFFLED) for name in RANKERS.values()]
    drawn = [name for name in policies if name in set(table["policy"])]
    methods = {key: name for key, name in METHODS.items() if key in set(table["method"])}
    chart = Curves(
        table,
        by={"policy": {name: name for name in drawn}},
        col={"world": WORLDS},
        row={"method": methods},
    )
    plot = chart.plot("policy_ndcg").label(x="nDCG@10 of the policy", y="nDCG@5").share(y=False)
    return chart.figure(plot, height=1.8)
