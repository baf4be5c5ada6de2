"""Chen et al. (2024): made-up results in the studies' schema, for judges and items."""

from __future__ import annotations

from functools import cache
from itertools import combinations

import numpy as np
import pandas as pd

from papers.chen2024.judges.cells import CLICKS
from papers.chen2024.judges.connectivity import GRAPH, SIZE, TIANGONG
from papers.chen2024.judges.redrawn import NO_DEBIAS
from papers.chen2024.judges.theorems import EDGES, LAST
from papers.chen2024.simulation import EXAMINATION
from twotowers.claims.data_provenance import REAL

DATASETS = ("yahoo", "istella_s")
SEEDS = range(1, 11)
# Ten numbers of mean 0 and standard deviation 1: a run each.
SPREAD = (np.arange(10) - 4.5) / np.arange(10).std(ddof=1)

# Table 1: MCC, nDCG@10, their standard deviations, and the bound on click MSE.
TABLE1 = {
    ("naive", "plain"): (0.521, 0.820, 0, 0, 2e-5),
    ("rate_dla", "plain"): (0.707, 0.886, 0.105, 0.040, 1e-8),
    ("rate_dla", "intervention"): (1, 1, 0, 0, 1e-8),
    ("rate_dla", "merging"): (0.975, 1, 0, 0, 1e-8),
    ("rate_em", "plain"): (0.580, 0.857, 0.117, 0.027, 1e-8),
    ("rate_em", "intervention"): (0.980, 0.997, 0.023, 0.006, 1e-7),
    ("rate_em", "merging"): (0.975, 1, 0, 0, 1e-8),
    ("two_tower", "plain"): (0.830, 0.925, 0.050, 0.022, 1e-8),
    ("two_tower", "intervention"): (1, 1, 0, 0, 1e-8),
    ("two_tower", "merging"): (0.975, 1, 0, 0, 1e-8),
}
RANKING = ("mcc", "ndcg@1", "ndcg@3", "ndcg@5", "ndcg@10")
MEASURES = ("mcc", "ndcg@5", "ndcg@10", "click_mse", "test_ndcg@5", "test_ndcg@10")
# Table 6, which holds Table 2: the end of the setting's name, and the repair.
TABLE6 = {
    "yahoo": {
        ("-naive", "plain"): (0.765, 0.841, 0.915, 3.7e-4, 0.693, 0.741),
        ("", "plain"): (0.750, 0.844, 0.914, 1.7e-5, 0.693, 0.741),
        ("-random", "plain"): (0.619, 0.819, 0.892, 1.7e-5, 0.688, 0.737),
        ("", "merging"): (0.771, 0.853, 0.920, 4.4e-5, 0.697, 0.745),
        ("-random", "merging"): (0.744, 0.863, 0.921, 4.3e-5, 0.699, 0.746),
    },
    "istella_s": {
        ("-naive", "plain"): (0.764, 0.885, 0.941, 4.4e-5, 0.634, 0.682),
        ("", "plain"): (0.764, 0.886, 0.941, 1.1e-6, 0.633, 0.682),
        ("-random", "plain"): (0.748, 0.874, 0.931, 1.1e-6, 0.638, 0.686),
        ("", "merging"): (0.772, 0.892, 0.944, 2.2e-5, 0.636, 0.684),
        ("-random", "merging"): (0.782, 0.900, 0.947, 2.2e-5, 0.638, 0.686),
    },
}
NUMBERS_OF_CLICKS = (100, 1000, 10_000, 100_000, CLICKS)
# What Figures 4(c), (d) and 7 show, in words: the printed numbers, and curves that fit them.
SWEEPS = {
    "yahoo": {
        "contexts": {0: 1, 50: 0.9, 200: 0.2, 5000: 0},
        "sampling": {0.005: 0.2, 0.02: 1, 0.1: 1, 1: 1},
        "features": {1: 1, 5: 0.6, 10: 0.1, 50: 0},
    },
    "istella_s": {
        "contexts": {0: 1, 10: 0.8, 20: 0.3, 5000: 0},
        "sampling": {0.1: 0, 0.2: 0.4, 0.5: 1, 1: 1},
        "features": {1: 1, 5: 0.5, 10: 0.2, 50: 0},
    },
}
MERGING_BY_K = {2: 0.975, 3: 0.973, 4: 0.94}


def runs(mean: float, sd: float = 0.0, **lane) -> list[dict]:
    return [
        {**lane, "seed": seed, "value": mean + sd * z}
        for seed, z in zip(SEEDS, SPREAD, strict=True)
    ]


def measures(setting: str, values: dict, **lane) -> list[dict]:
    return [{"setting": setting, **lane, "metric": m, "value": v} for m, v in values.items()]


def synthetic() -> list[dict]:
    rows = []
    for (method, repair), (mcc, gain, mcc_sd, gain_sd, error) in TABLE1.items():
        lane = {"method": method, "repair": repair, "components": 2, "views": CLICKS}
        rows += runs(mcc, mcc_sd, metric="mcc", **lane)
        rows += runs(gain, gain_sd, metric="ndcg@10", **lane)
        rows += runs(error, metric="click_mse", **lane)
        if method == "rate_dla" and repair != "plain":
            rows += runs(mcc, mcc_sd, metric="mcc", setting="k2-limit", **lane)
    for k in (1, 2, 3, 4):
        for clicks in NUMBERS_OF_CLICKS[: 4 if k == 2 else 5]:
            lane = {"method": "rate_dla", "repair": "plain", "components": k, "views": clicks}
            grown = 1 - 10 / clicks
            unidentified = 0.70 - 0.01 * k
            rows += runs(
                grown if k == 1 else unidentified * grown, 0.1 * (k > 1), metric="mcc", **lane
            )
            rows += runs(grown if k == 1 else 0.88 * grown, metric="ndcg@10", **lane)
    for k in (3, 4):
        lane = {"method": "rate_dla", "components": k, "views": CLICKS, "metric": "mcc"}
        rows += runs(MERGING_BY_K[k], repair="merging", **lane)
        rows += runs(1, repair="intervention", **lane)
    lane = {"method": "rate_dla", "components": 2, "metric": "mcc"}
    for clicks in NUMBERS_OF_CLICKS:
        for setting in ("k2", "k2-limit"):
            at = {**lane, "views": clicks, "setting": setting}
            rows += runs(0.99, 10 / clicks, repair="random intervention", **at)
            if clicks < CLICKS:
                rows += runs(1, 2 / clicks, repair="intervention", **at)
    for start, mcc in ((1, 0.90), (2, 0.94), (3, 0.975)):
        rows += runs(mcc, repair=f"merge {start}&4", views=CLICKS, **lane)
    for k in (2, 3, 4):
        for position, truth in enumerate(EXAMINATION / EXAMINATION[0], start=1):
            lane = {
                "method": "rate_dla", "components": k, "views": CLICKS, "metric": "position_bias",
                "position": position,
            }  # fmt: skip
            apart = position > 4
            merged = truth + 0.03 * apart * (k - 1)
            rows += runs(np.log(truth), 0.9 * apart, repair="plain", **lane)
            rows += runs(np.log(merged), 0.001, repair="merging", **lane)
    names = {"naive": "k2-naive", "rate_em": "k2-em", "two_tower": "k2-towers"}
    return [{"setting": names.get(row["method"], f"k{row['components']}"), **row} for row in rows]


def own_factors() -> list[dict]:
    lane = {"components": 1, "repair": "split", "views": CLICKS}
    dla = {**lane, "setting": "own-factors", "method": "alternation"}
    constant = {**lane, "setting": "own-factors-constant", "method": "constant"}
    return [
        *runs(1e-12, metric="click_mse", **dla),
        *runs(0.3, metric="mcc", **dla),
        *runs(1e-18, metric="click_mse", **constant),
    ]


def redrawn() -> list[dict]:
    lane = {"components": 2, "views": CLICKS}
    merging = {**lane, "setting": "redrawn", "method": "rate_dla", "repair": "merging"}
    naive = {**lane, "setting": "redrawn-naive", "method": "naive", "repair": "plain"}
    rows = runs(0.97, 0.004, metric="mcc", **merging)
    for metric, value in NO_DEBIAS.items():
        rows += runs(value + 0.01, 0.006, metric=metric, **naive)
    return rows


def semi_synthetic(dataset: str) -> list[dict]:
    rows = []
    for (suffix, repair), values in TABLE6[dataset].items():
        for metric, value in zip(MEASURES, values, strict=True):
            rows += runs(value, setting=f"contexts-{dataset}{suffix}", metric=metric, repair=repair)
    empty = {"setting": f"contexts-{dataset}-empty", "repair": "merging, empty places"}
    for lane in (empty, {"setting": f"contexts-{dataset}", "repair": "merging"}):
        rows += runs(50_000, metric="bias_factors", **lane)
        for metric in ("mcc", "ndcg@5", "ndcg@10") if lane is empty else ():
            rows += runs(0.8, 0.001, metric=metric, **lane)
        for metric in ("ndcg@5_later_first", "ndcg@10_later_first"):
            rows += runs(0.8, 0.001, metric=metric, **lane)
    graph = {"setting": f"connectivity-{dataset}", "dataset": dataset}
    for sweep, curve in SWEEPS[dataset].items():
        for amount, share in curve.items():
            connected = np.arange(20) < round(20 * share)
            for repeat, of_repeat in enumerate(connected.reshape(2, 10)):
                lane = {"sweep": sweep, "amount": amount, "repeat": repeat, "metric": "connected"}
                rows += [
                    {**graph, **lane, "seed": seed, "value": value}
                    for seed, value in zip(SEEDS, of_repeat, strict=True)
                ]
    more = {"relevance_levels": 5}
    for metric, value in {**SIZE[dataset], **GRAPH[dataset], **more}.items():
        rows += runs(value, sweep="statistics", amount=5000, repeat=0, metric=metric, **graph)
    return [{**row, "dataset": dataset} for row in rows]


def one_seed() -> list[dict]:
    rows = []
    for factors, components in TIANGONG.items():
        values = {"components": components, "bias_factors": 20_704}
        rows += measures("verticals", values, factors=factors)
    for clicks in (100, 1000):
        for case, relevance in enumerate((0.5, 0.1), start=1):
            # Proposition 1 with o(t1) = 0.6, o(t2) = 0.2 and R = 1.
            variance = (1 / (relevance * 0.6) + 1 / (relevance * 0.2) - 2) / clicks
            values = {
                "mean": 0, "variance": 1.005 * variance, "expected_variance": variance,
                "standard_error": 0.01 * variance,
            }  # fmt: skip
            lane = {"proposition": "proposition 1", "clicks": clicks, "case": case}
            rows += measures("propositions", values, **lane)
    for proposition, tightest in (("proposition 2", 1), ("proposition 4", 0.8)):
        values = {"checked": 1000, "violated": 0, "tightest": tightest}
        rows += measures("propositions", values, proposition=proposition)
    for factors in (10, 100):
        for number in (50, 100, 1000):
            share = float(number > 5 * factors)
            values = {
                "simulated": share, "simulated_seen": share, "standard_error": 0.01,
                "estimate": 3 * share - 2.05, "estimate_finite": share, "independent": share,
                "pair_apart": 0.5, "pair_estimate": 0.501,
            }  # fmt: skip
            lane = {"feature_vectors": 50, "bias_factors": factors, "rows": number}
            rows += measures("example2", values, **lane)
    for factors, share in ((10, 0.5), (1000, 0.9995)):
        values = {"exponent_share": share, "limit_estimate": 1 - factors}
        lane = {"feature_vectors": 50, "bias_factors": factors, "rows": 9}
        rows += measures("example2", values, **lane)
    rows += theorems() + graphs()
    for repair in ("plain", "merging", "intervention"):
        rows += measures("starts", {"stuck": 12, "starts": 100}, repair=repair)
    counts = {"components": 1, "merges": 0, "interventions": 0, "documents": 1024}
    rows += measures("real_logs", {**counts, "pages": 35_064, "rows": 4000}, log="yandex")
    for share, value in {1: 1, 0.1: 1, 0.01: 0.3}.items():
        rows += measures("real_logs", {"connected_share": value}, share=share, log="yandex")
    for p, q in combinations(range(1, 11), 2):
        linked = {"linked_pairs": 600 // (q - p) ** 2}
        rows += measures("real_logs", linked, position=p, other=q, log="yandex")
    return [{**row, "seed": 1} for row in rows]


def theorems() -> list[dict]:
    checked = {"wrong": 0, "checked": 40}
    parts = {
        "theorem 1, connected": checked,
        "theorem 1, disconnected": checked,
        "proposition 3": {"tree": 1e-14, "cycle": 0.01, "checked": 40},
        "swaps": {"other": 0, "apart": 0, "checked": 40},
    }
    lanes = [(name, None, values) for name, values in parts.items()]
    lanes += [
        ("second solution", k, {"difference": 0, "mcc": 0.6, "ndcg@10": 0.8}) for k in (2, 3, 4)
    ]
    return [
        row
        for name, k, values in lanes
        for row in measures("theorems", values, theorem=name, components=k)
    ]


def graphs() -> list[dict]:
    rows = []
    for k, last in LAST.items():
        for p in range(10):
            of = sum(p > end for end in last)
            rows += measures("graphs", {"component": of}, components=k, position=p + 1)
            for q in range(p + 1, 10):
                shared = {"shared_documents": 100.0 * ((p, q) in EDGES[k])}
                rows += measures("graphs", shared, components=k, position=p + 1, other=q + 1)
    return rows


def besides(rows: list[dict]) -> list[dict]:
    """What no judge reads and items show of each run: the further measures of its ranking."""
    runs = {}
    for row in rows:
        lane = (item for item in row.items() if item[0] not in ("metric", "position", "value"))
        runs.setdefault(tuple(sorted(lane)), {})[row["metric"]] = row["value"]
    return [
        {**dict(lane), "metric": metric, "value": found["mcc"]}
        for lane, found in runs.items()
        for metric in RANKING
        if metric not in found
    ]


@cache
def made_up() -> pd.DataFrame:
    """Results in the studies' schema that bear out every claim."""
    rows = [*one_seed(), *own_factors()]
    for each in (synthetic(), redrawn()):
        rows += each + besides(each)
    for dataset in DATASETS:
        rows += semi_synthetic(dataset)
    frame = pd.DataFrame(rows).assign(paper="chen2024", stands_on=REAL)
    return frame.astype({"position": "Int64", "other": "Int64", "value": float})
