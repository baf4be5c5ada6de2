"""All claims of the paper. Those on node merging under contextual bias (Tables 2, 6) are here.

Thresholds come from the paper's sentences and printed numbers. One that the paper does not print is
ours, and says so beside its number. Each seed is one of the paper's runs.
"""

from collections.abc import Sequence

import pandas as pd

from papers.chen2024.judges import connectivity, repairs, synthetic, theory
from papers.chen2024.judges.cells import DATASETS, NAMES, metric_name, printed
from twotowers.claims.claims import Claims, Measured, seed_means
from twotowers.claims.conditions import above, at_least, at_most, shown

CLAIMS = Claims(names=NAMES)

# Claim 12: half of the least that a random start costs in Table 6 (nDCG@10, Istella-S: .010).
HARM = 0.005
# Claim 12: Table 6 prints the same click MSE for both starts, to two digits.
AS_WELL = 1.5
# Claims 12 and 13: half of the least lead in Table 2 (test nDCG@10, Istella-S: .002).
LEAD = 0.001
# Claim 13: the measures of Table 2.
TRAINING, TEST = ("mcc", "ndcg@5", "ndcg@10"), ("test_ndcg@5", "test_ndcg@10")
# Claim 25: how far from print a stand-in may be; within this, rows of Table 6 keep their order.
LEVEL = {"mcc": 0.05, "ndcg@5": 0.02, "ndcg@10": 0.02, "test_ndcg@5": 0.03, "test_ndcg@10": 0.03}
# What follows contexts-<data set> in the names of settings, by where DLA starts.
STARTS = {"ones": "", "random": "-random"}
NAIVE = "-naive"
REPAIRS = ("plain", "merging")
ROWS = {
    (NAIVE, "plain"): "no debias",
    ("", "plain"): "DLA from 1",
    ("-random", "plain"): "DLA at random",
    ("", "merging"): "merging from 1",
    ("-random", "merging"): "merging at random",
}


def mean(results: pd.DataFrame, fitted: str, repair: str, metric: str) -> float:
    """The mean over seeds of one lane of setting contexts-<fitted>."""
    lane = {"setting": f"contexts-{fitted}", "metric": metric}
    return seed_means(results, {"repair": (repair,)}, **lane)[repair]


def means(results: pd.DataFrame, dataset: str, metric: str) -> pd.DataFrame:
    """[repairs, starts] means over seeds, of DLA."""
    settings = {f"contexts-{dataset}{suffix}": start for start, suffix in STARTS.items()}
    grid = {"repair": REPAIRS, "setting": list(settings)}
    return seed_means(results, grid, metric=metric).unstack("setting").rename(columns=settings)


@CLAIMS.add(
    "12", "table6", "App. D.4, Table 6",
    "DLA depends on where it starts, though it fits clicks equally well",
    at_most("click MSE from either start", AS_WELL, "times that from the other"),
    above("MCC lost by the random start", HARM), above("nDCG@10 lost by the random start", HARM),
    shown("MCC"), shown("nDCG@10"),
    parts=DATASETS,
)  # fmt: skip
def start_matters(results: pd.DataFrame, dataset: str) -> Measured:
    mcc, gain, error = (
        means(results, dataset, metric).loc["plain"] for metric in ("mcc", "ndcg@10", "click_mse")
    )
    lost = [m["ones"] - m["random"] for m in (mcc, gain)]
    return (error, error[::-1].to_numpy()), *lost, mcc, gain


@CLAIMS.add(
    "12", "table6", "App. D.4, Table 6", "Node merging removes the harm of the start",
    at_least("the lead over DLA from the same start in each of MCC, nDCG@5 and nDCG@10", LEAD),
    at_most("nDCG@10 lost by the random start", HARM),
    shown("with merging"),
    parts=DATASETS, letters="cd",
)  # fmt: skip
def merging_frees_of_start(results: pd.DataFrame, dataset: str) -> Measured:
    values = {metric: means(results, dataset, metric) for metric in TRAINING}
    merged = values["ndcg@10"].loc["merging"]
    leads = {metric: table.loc["merging"] - table.loc["plain"] for metric, table in values.items()}
    with_merging = {metric: table.loc["merging"] for metric, table in values.items()}
    return (
        pd.DataFrame(leads).rename_axis(columns="metric"),
        merged["ones"] - merged["random"],
        pd.DataFrame(with_merging).rename_axis(columns="metric"),
    )


def merging_wins(results: pd.DataFrame, dataset: str, metrics: Sequence[str]) -> Measured:
    """Observation probabilities start at 1."""
    measured = {}
    for metric in metrics:
        dla = seed_means(results, {"repair": REPAIRS}, setting=f"contexts-{dataset}", metric=metric)
        measured[metric_name(metric)] = {
            "merging": dla["merging"], "DLA": dla["plain"],
            "no debias": mean(results, f"{dataset}{NAIVE}", "plain", metric),
        }  # fmt: skip
    table = pd.DataFrame(measured)
    leads = table.loc["merging"] - table.drop("merging")
    return [*(leads[metric] for metric in leads), table.T]


for letters, split, metrics in (("ac", "training", TRAINING), ("bd", "test", TEST)):
    CLAIMS.add(
        "13", "table2", "Sec. 5.2, Table 2",
        "Node merging beats no debias and DLA under contextual bias",
        *[at_least(f"the lead over each in {metric_name(metric)}", LEAD) for metric in metrics],
        shown("found"),
        parts={f"{label}, {split}": {**lane, "metrics": metrics}
               for label, lane in DATASETS.items()},
        letters=letters,
    )(merging_wins)  # fmt: skip


@CLAIMS.add(
    "25", "table6", "App. D.4, Table 6", "MCC and nDCG are at the levels of Table 6",
    *[at_most(f"the distance of {metric_name(metric)} in any row from the printed", most)
      for metric, most in LEVEL.items()],
    parts=DATASETS, against_printed=True,
)  # fmt: skip
def levels_as_printed(results: pd.DataFrame, dataset: str) -> Measured:
    def off(metric: str, fitted: str, repair: str) -> float:
        lane = {"setting": f"contexts-{fitted}", "metric": metric}
        theirs = printed({"repair": [repair]}, **lane)[repair]
        return abs(mean(results, fitted, repair, metric) - theirs)

    return [
        pd.Series({name: off(metric, dataset + end, of) for (end, of), name in ROWS.items()})
        for metric in LEVEL
    ]


@CLAIMS.add(
    "26", "table6", "App. D.4, Table 6", "With node merging a random start ranks better than 1",
    *[above(f"the lead of the random start in {metric_name(metric)}", 0)
      for metric in (*TRAINING[1:], *TEST)],
    parts=DATASETS,
)  # fmt: skip
def random_start_leads(results: pd.DataFrame, dataset: str) -> Measured:
    merged = (means(results, dataset, metric).loc["merging"] for metric in (*TRAINING[1:], *TEST))
    return [measured["random"] - measured["ones"] for measured in merged]


CLAIMS = CLAIMS.in_order(connectivity.CLAIMS, repairs.CLAIMS, synthetic.CLAIMS, theory.CLAIMS)
