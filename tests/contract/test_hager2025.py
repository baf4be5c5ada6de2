"""Hager et al. (2025): the judges on the authors' own numbers, and what the items draw."""

from functools import cache, partial
from string import ascii_lowercase

import matplotlib
import numpy as np
import pandas as pd

from papers.hager2025.claims import CLAIMS
from tests.items import drawing, experiment
from twotowers.claims import published
from twotowers.claims.claims import CONTRADICTED, REPRODUCED, UNDECIDED
from twotowers.claims.gates import gates_of
from twotowers.claims.judging import judge_all

matplotlib.use("agg")

AUTHORS = published.results("hager2025")
# Claims 1 to 10 can be judged on what the authors published; the others cannot.
JUDGED = {claim.id: claim for claim in CLAIMS if int(claim.id.rstrip(ascii_lowercase)) <= 10}
# What the authors' own numbers do not bear out: the inverse expert policy amplifies a third as
# much, the deep policy halves bias.
REFUTED = {"6f", "9b"}


@cache
def synthetic(seeds: int = 3) -> pd.DataFrame:
    """Results as ours would be: the published means with noise of a size that seeds have.
    Nobody may change them."""
    noise = np.random.default_rng(0)
    scale = {"position_bias": 0.005, "ndcg@10": 0.0005, "nll": 0.001, "policy_ndcg@10": 0.001}
    frames = []
    for seed in range(2021, 2021 + seeds):
        error = noise.normal(scale=AUTHORS["metric"].map(scale))
        reference = (AUTHORS["metric"] == "position_bias") & (AUTHORS["position"] == 1)
        error[reference.to_numpy(dtype=bool)] = 0
        frames.append(AUTHORS.assign(seed=seed, value=AUTHORS["value"] + error))
    return pd.concat(frames, ignore_index=True)


def test_what_three_seeds_of_this_noise_decide():
    """Never the opposite; one seed decides nothing."""
    paper = experiment("hager2025")
    items = {name: item.needs for name, item in paper.items.items()}
    data = dict.fromkeys(paper.needs, "stand-in")
    claims = list(JUDGED.values())
    one, three = (
        judge_all(claims, results, authors, gates_of(results), items=items, data=data).set_index(
            "claim"
        )
        for results, authors in ((synthetic(1), AUTHORS.iloc[:0]), (synthetic(3), AUTHORS))
    )
    assert set(one["verdict"]) == {UNDECIDED}
    assert set(one["reason"]) == {"one seed tells nothing of chance"}
    assert (three["authors"] != "").all()
    wrong = {name: CONTRADICTED if name not in REFUTED else REPRODUCED for name in three.index}
    assert not (three["verdict"] == pd.Series(wrong)).any()
    assert (three["verdict"] != UNDECIDED).mean() > 0.5


BANDS = published.bands("hager2025")
item = partial(drawing, "hager2025")


def test_fig7_draws_differences_within_seeds():
    results = synthetic()
    levels = results.assign(value=results["value"] + 0.1 * (results["seed"] - 2022))
    tables = [item("fig7").table(frame, BANDS) for frame in (results, levels)]
    pd.testing.assert_frame_equal(*tables)
