"""Why Chen et al. (2024) find what they find: three measurements that no setting can make.

    .venv/bin/python -m benchmarks.chen2024 table1 [FOLDER] [--steps N] [--em-steps N]
    .venv/bin/python -m benchmarks.chen2024 regression [FOLDER] [--reading NAME ...] [--runs N]
    .venv/bin/python -m benchmarks.chen2024 merging RANKINGS POLICY [--steps N ...]

The project may not distribute the authors' lists. So the first two look for the folders
`chen2024_k2` and `chen2024_k2_node_intervention` in ../shared/data or in the given one.

* `table1`: ten runs of Table 1 on these lists, at the published number of clicks; minutes.
* `regression`: readings of regression EM. The authors and their code describe different updates,
  and one run in ten of the code gets stuck at an examination of 1. It fits many starts of each
  reading, in double precision as the code does. It prints what a run finds, the share of stuck
  runs, and how often ten runs agree with Table 1: mean and deviation of MCC both within one printed
  deviation (or half a printed digit) of the printed values. It takes more than an hour; `--runs 20
  --em-steps 20000` shows the differences in minutes.
* `merging`: why node merging does not help, in minutes. Both files are the pipeline's, for example
  results/laptop/rankings/chen2024/istella_s/train.parquet and
  results/laptop/policies/chen2024/istella_s/annotated-svm/1.parquet. Clicks are drawn as in the
  logs contexts-yahoo and contexts-istella_s. It prints MCC, nDCG@10 and the learnt examination at
  positions 1 to 10 (the true one falls from .68 to .06), for: no debiasing; division by the true
  examination, and by its mean in each merged factor; and DLA on merged factors, as published and
  without clipping relevance at 1.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from papers.chen2024.methods.rate_dla import MeanRatio
from papers.chen2024.methods.rate_em import CollapsedEM
from papers.chen2024.methods.two_tower import fit_two_tower
from papers.chen2024.models.contextual import Contextual
from papers.chen2024.simulation import EXAMINATION, POSITIONS
from papers.chen2024.studies.theorems import relevance_of
from twotowers.claims.metrics import correlation, ndcg
from twotowers.experiment.ranked_lists import Contexts, contexts_of
from twotowers.files.yamls import read_yaml
from twotowers.fitting.alternating import RIDGE, ExpectationMaximisation, alternate
from twotowers.fitting.click_rates import ClickRates, click_mse, fit_naive, simulate_rates
from twotowers.identifiability.contexts import vector_ids
from twotowers.identifiability.graph import factor_components
from twotowers.identifiability.linked_lists import Lists, rows_of
from twotowers.identifiability.merging import node_merging
from twotowers.jobs.transfer import gains
from twotowers.rankers.displayed import displayed
from twotowers.root import ROOT

RUNS, CLICKS, SEED = 10, 1_000_000, 0
TOPS = (1, 3, 5, 10)
MERGED = (3, 4)
VARIANTS = {
    "plain": ("chen2024_k2", False),
    "merging": ("chen2024_k2", True),
    "intervention": ("chen2024_k2_node_intervention", False),
}
PRINTED = {"plain": (0.580, 0.117), "merging": (0.975, 0.000), "intervention": (0.980, 0.023)}
HALF_A_DIGIT = 0.0005
STILL = 1e-10
"""The most change per step of a parameter at the end of a fit: 1e-5 in 100,000 steps."""


def read_lists(folder: str | Path) -> Lists:
    """Read the lists of a folder that holds `train.init_list` and `train.labels`.

    Both have a line per query: its number, then its documents, or their labels, by position.
    """
    pages, labels = (
        np.loadtxt(Path(folder) / f"train.{name}", int, ndmin=2) for name in ("init_list", "labels")
    )
    documents, by_document = pages[:, 1:], np.full(pages[:, 1:].max() + 1, -1)
    by_document[documents] = labels[:, 1:]
    # Every document has one label, wherever it is shown.
    assert (pages[:, 0] == labels[:, 0]).all()
    assert (by_document[documents] == labels[:, 1:]).all()
    components = factor_components(*rows_of(documents), factors=documents.shape[1]).max() + 1
    return Lists(documents, by_document, int(components))


def sample(folder: Path, variant: str, runs: int) -> tuple[Lists, ClickRates]:
    """The lists of a variant, and their click rates in each run."""
    name, merge = VARIANTS[variant]
    lists = read_lists(folder / name)
    feature, position = lists.rows
    chance = np.tile(relevance_of(lists)[feature] * EXAMINATION[position], (runs, 1))
    rate = simulate_rates(chance, CLICKS, np.random.default_rng(SEED))
    factor = np.where(merge & (position == MERGED[1]), MERGED[0], position)
    return lists, ClickRates(
        feature=feature,
        factor=np.tile(factor, (runs, 1)),
        rate=rate,
        weight=np.ones_like(rate),
        features=len(lists.labels),
        factors=len(EXAMINATION),
    )


def scores(lists: Lists, relevance: np.ndarray) -> np.ndarray:
    """[runs, 5] MCC and nDCG@1/3/5/10 of [runs, documents] estimates."""
    where = np.ones(lists.documents.shape, bool)
    labels = lists.labels[lists.documents].astype(float)
    shown = [run[lists.documents] for run in relevance]
    found = [[ndcg(each, labels, where=where, topn=top).mean() for each in shown] for top in TOPS]
    return np.column_stack([correlation(relevance_of(lists), relevance), *found])


def row(*cells: object) -> None:
    print(f"| {' | '.join(map(str, cells))} |", flush=True)


def spread(values: np.ndarray) -> str:
    return f"{values.mean():.3f} ± {values.std():.3f}" if len(values) else "-"


def table1(options) -> None:
    rng, shape = np.random.default_rng(1), (RUNS, len(EXAMINATION))
    uniform, normal = rng.random(shape), rng.standard_normal(shape)
    methods = {
        "DLA": lambda rates: alternate(rates, uniform, MeanRatio(), steps=options.steps[0]),
        "Regression-EM": lambda rates: alternate(
            rates, uniform, CollapsedEM(), steps=options.em_steps
        ),
        "Two-Tower": lambda rates: fit_two_tower(rates, normal, steps=options.steps[0]),
    }
    row("method", "MCC", *(f"nDCG@{top}" for top in TOPS), "largest click MSE")
    row(*["---"] * 7)
    for variant in VARIANTS:
        lists, rates = sample(options.folder, variant, RUNS)
        naive = {"No debias": fit_naive} if variant == "plain" else {}
        for name, fit in (naive | methods).items():
            found = fit(rates)
            cells = map(spread, scores(lists, found.relevance).T)
            title = name if name in naive else f"{name}, {variant}"
            row(title, *cells, f"{click_mse(rates, found).max():.1e}")


class Clipped(CollapsedEM):
    """The code's updates, but with o computed from clipped relevance."""

    def relevance(self, block, o, r):
        """The mean of c / (o + 1e-8), clipped."""
        return jnp.clip(super().relevance(block, o, r), 0, 1)


READINGS = {
    # The published code: r = mean(c / o), and o is computed from r before clipping.
    "code": CollapsedEM(),
    "clipped": Clipped(),
    # Appendix C.3 as printed: proper EM, with both updates from the previous step.
    "paper": ExpectationMaximisation(),
}


def agreement(mcc: np.ndarray, variant: str) -> float:
    """Share of sets of ten runs that agree with Table 1."""
    mean, deviation = PRINTED[variant]
    near = max(deviation, HALF_A_DIGIT)
    tens = np.random.default_rng(SEED).choice(mcc, (100_000, 10))
    agrees = (abs(tens.mean(1) - mean) <= near) & (abs(tens.std(1) - deviation) <= near)
    return agrees.mean()


def regression(options) -> None:
    jax.config.update("jax_enable_x64", True)
    row("reading", "variant", "steps", "stuck", "MCC", "nDCG@10", "MCC of the others", "agree")
    row("---", "---", "---:", "---:", "---", "---", "---", "---:")
    for reading in options.reading:
        for variant in VARIANTS:
            lists, rates = sample(options.folder, variant, options.runs)
            rng = np.random.default_rng(1)
            o = rng.random((options.runs, rates.factors))
            r = rng.random((options.runs, rates.features)) / 2
            how = {"steps": options.em_steps, "still": STILL, "dtype": np.float64}
            found = alternate(rates, o, READINGS[reading], relevance=r, **how)
            values = scores(lists, found.relevance)
            stuck = (found.examination == 1).any(1)
            texts = map(spread, (values[:, 0], values[:, -1], values[~stuck, 0]))
            agree = agreement(values[:, 0], variant)
            row(reading, variant, f"{found.steps:,}", f"{stuck.mean():.3f}", *texts, f"{agree:.3f}")


def merging(options) -> None:
    lists = displayed(options.rankings, options.policy, top=POSITIONS)
    feature = vector_ids(lists.features)
    logs = read_yaml(ROOT / "papers/chen2024/experiment.yaml")["logs"]
    drawn = Contexts(**logs["contexts-yahoo"]["contexts"])
    vectors, places, described = contexts_of(drawn, lists.lengths, POSITIONS)
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
    row("", "MCC", "nDCG@10", "examination by position")
    row("---", "---:", "---:", "---")

    def tell(name: str, observed: np.ndarray, *, clip: bool = True) -> None:
        learnt = least_squares(rate, observed, feature)
        learnt = np.clip(learnt, 0, 1)[feature] if clip else learnt[feature]
        by_position = np.bincount(position, observed) / np.bincount(position)
        worth = correlation(truth, learnt), gains(learnt, lists)["ndcg@10"]
        curve = " ".join(f"{each:.2f}" for each in by_position)
        row(name, *(f"{each:.3f}" for each in worth), curve)

    tell("no debiasing", np.ones(len(rate)))
    tell("true examination", examined)
    tell("its mean in each merged factor", mean[merged])
    for start, name in ((np.ones(len(rows)), "from 1"), (mean, "from that mean")):
        for clip in (True, False):
            o, done = start, 0
            for steps in options.steps:
                # Further steps of `LeastSquares`, on one lane.
                for _ in range(steps - done):
                    r = least_squares(rate, o[merged], feature)
                    r = np.clip(r, 0, 1) if clip else r
                    o = np.clip(least_squares(rate, r[feature], merged), 0, 1)
                done = steps
                how = "" if clip else ", relevance not clipped"
                tell(f"DLA {name}, {steps:,} steps{how}", o[merged], clip=clip)


def least_squares(rate, other, group) -> np.ndarray:
    """The value of each group that times `other` is nearest to the rates."""
    return np.bincount(group, rate * other) / (np.bincount(group, other**2) + RIDGE)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(required=True)
    for work, steps in ((table1, [20_000]), (regression, []), (merging, [100, 2000])):
        command = commands.add_parser(work.__name__)
        command.set_defaults(work=work)
        if work is merging:
            command.add_argument("rankings")
            command.add_argument("policy")
        else:
            command.add_argument("folder", nargs="?", type=Path, default=Path("../shared/data"))
            command.add_argument("--em-steps", type=int, default=100_000, help="of regression EM")
        if work is regression:
            command.add_argument("--reading", nargs="+", choices=READINGS, default=list(READINGS))
            command.add_argument("--runs", type=int, default=200)
        else:
            command.add_argument("--steps", type=int, nargs="+", default=steps, help="of DLA")
    options = parser.parse_args(arguments)
    options.work(options)


if __name__ == "__main__":
    main()
