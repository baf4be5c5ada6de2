"""What the settings of chapter 3 are called."""

FEATURES = {"baidu": "Baidu MonoBERT", "ours": "Our MonoBERT", "ltr": "LTR features"}
RANDOM = "random"
RANKERS = {RANDOM: "Random", "bm25": "BM25"}
METHODS = {
    "point-naive": "Pointwise Naive",
    "two-tower": "Pointwise Two-Tower",
    "regression-em": "Pointwise RegressionEM",
    "point-ips": "Pointwise IPS",
    "list-naive": "Listwise Naive",
    "list-ips": "Listwise IPS",
    "list-dla": "Listwise DLA",
    "lambdarank": "LambdaRank Naive",
    "paird": "LambdaRank PairD",
}
GROUPS = (
    ("point-naive", "two-tower", "regression-em", "point-ips"),
    ("list-naive", "list-ips", "list-dla"),
    ("lambdarank", "paird"),
)
"""The naive model of each loss, and the methods that are tested against it."""
POINTWISE = GROUPS[0]
RANKING = ("dcg@1", "dcg@3", "dcg@5", "dcg@10", "mrr@10")
LOSS = "held_out_loss"
MARKS = {1: r"$^{\blacktriangle}$", -1: r"$^{\blacktriangledown}$"}
ESTIMATORS = {
    "pivot_one": "Pivot One",
    "adjacent_chain": "Adjacent Chain",
    "all_pairs_published": "All Pairs",
    "all_pairs": "All Pairs, corrected",
    "regression_em": "RegressionEM",
    "naive": "click rates",
}
KNOBS = {"policy": "ranker", "agreed_policy": "ranker, agreed", "hidden": "hidden, agreed"}
