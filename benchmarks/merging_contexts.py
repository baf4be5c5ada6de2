"""Why node merging does not help: `python -m benchmarks.merging_contexts RANKINGS POLICY`.

Both are files of the pipeline, for example results/laptop/rankings/chen2024/istella_s/train.parquet
and results/laptop/policies/chen2024/istella_s/annotated-svm/1.parquet. Clicks are drawn as in the
logs contexts-yahoo and contexts-istella_s. It prints MCC, nDCG@10 and the learnt examination at
positions 1 to 10 (the true one falls from .68 to .06), for: no debiasing; division by the true
examination, and by its mean in each merged factor; and DLA on merged factors, as published and
without clipping relevance at 1. It takes minutes.
"""

from __future__ import annotations

import argparse

import numpy as np

from papers.chen2024.models.contextual import Contextual
from papers.chen2024.simulation import POSITIONS
from twotowers import ROOT
from twotowers.experiment.ranked_lists import Contexts, contexts_of
from twotowers.files.yamls import read_yaml
from twotowers.fitting.alternating import RIDGE
from twotowers.fitting.click_rates import simulate_rates
from twotowers.identifiability.contexts import vector_ids
from twotowers.identifiability.merging import node_merging
from twotowers.jobs.transfer import gains
from twotowers.rankers.displayed import displayed
from twotowers.results.metrics import correlation

CLICKS = 1_000_000
LOGS = read_yaml(ROOT / "papers/chen2024/experiment.yaml")["logs"]
DRAWN = Contexts(**LOGS["contexts-yahoo"]["contexts"])
SEED = 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rankings")
    parser.add_argument("policy")
    parser.add_argument("--steps", type=int, nargs="+", default=[100, 2000])
    arguments = parser.parse_args()

    lists = displayed(arguments.rankings, arguments.policy, top=POSITIONS)
    feature = vector_ids(lists.features)
    vectors, places, described = contexts_of(DRAWN, lists.lengths, POSITIONS)
    places = places.shown
    seen, factor = np.unique(places, return_inverse=True)
    user = Contextual()
    truth = user.attractive(lists.label.astype(float))
    examined = user.examined_in(vectors, POSITIONS).ravel()[places]
    rate = simulate_rates(truth * examined, CLICKS, np.random.default_rng(SEED)).astype(float)
    merged = node_merging(feature, factor, described[seen]).merged[factor]
    rows = np.bincount(merged)
    mean = np.bincount(merged, examined) / rows

    shown, position = np.bincount(feature), places % POSITIONS
    pairs = np.unique(feature * POSITIONS + position) // POSITIONS
    print(f"{len(seen):,} factors, {len(rows):,} after merging; the ten largest hold")
    print(f"{np.sort(rows)[-10:].sum() / len(feature):.0%} of {len(feature):,} rows.")
    print(f"{(shown > 1).sum():,} vectors are shown again, {(np.bincount(pairs) > 1).sum():,} at")
    print("another position.")
    print("| | MCC | nDCG@10 | examination by position |")
    print("|---|---:|---:|---|")

    def tell(name: str, observed: np.ndarray, *, clip: bool = True) -> None:
        learnt = least_squares(rate, observed, feature)
        learnt = np.clip(learnt, 0, 1)[feature] if clip else learnt[feature]
        by_position = np.bincount(position, observed) / np.bincount(position)
        print(
            f"| {name} | {correlation(truth, learnt):.3f} | {gains(learnt, lists)['ndcg@10']:.3f} "
            f"| {' '.join(f'{each:.2f}' for each in by_position)} |",
            flush=True,
        )

    tell("no debiasing", np.ones(len(rate)))
    tell("true examination", examined)
    tell("its mean in each merged factor", mean[merged])
    for start, name in ((np.ones(len(rows)), "from 1"), (mean, "from that mean")):
        for clip in (True, False):
            o, done = start, 0
            for steps in arguments.steps:
                o = alternate(rate, feature, merged, o, steps - done, clip=clip)
                done = steps
                how = "" if clip else ", relevance not clipped"
                tell(f"DLA {name}, {steps:,} steps{how}", o[merged], clip=clip)


def alternate(rate, feature, factor, o, steps: int, *, clip: bool) -> np.ndarray:
    """[factors] examination after further steps of `LeastSquares`, on one lane."""
    for _ in range(steps):
        r = least_squares(rate, o[factor], feature)
        r = np.clip(r, 0, 1) if clip else r
        o = np.clip(least_squares(rate, r[feature], factor), 0, 1)
    return o


def least_squares(rate, other, group) -> np.ndarray:
    """The value of each group that times `other` is nearest to the rates."""
    return np.bincount(group, rate * other) / (np.bincount(group, other**2) + RIDGE)


if __name__ == "__main__":
    main()
