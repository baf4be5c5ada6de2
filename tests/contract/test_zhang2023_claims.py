"""Zhang et al. (2023): every judge on made-up results that bear its claim out, and on others."""

from functools import cache
from itertools import product

import numpy as np
import pandas as pd
import pytest

from papers.zhang2023.claims import CLAIMS
from papers.zhang2023.crossing import WORLDS
from papers.zhang2023.judges.ours import SEEN
from papers.zhang2023.judges.theory import STRICT
from papers.zhang2023.winners import DATASETS, POLICIES
from tests.judging import altered, assert_borne_out, assert_broken, by, times, to, untested
from twotowers.claims.claims import NOT_TESTABLE, judge

JUDGED = {claim.id: claim for claim in CLAIMS}
# The store's logs are nobody else's.
NEVER = ["15", "16", "33"]
SCALES, RATES, QUERIES = (0.2, 0.4, 0.6, 0.8, 1.0), (0.1, 0.2, 0.3, 0.5, 0.7), 20
# Under Oracle, L1, L2, L3 and Random, as the paper says of Table 1 and Figures 6 and 7.
LEVELS = {
    "biased": (0.64, 0.62, 0.60, 0.57, 0.55),
    "pal": (0.65, 0.67, 0.68, 0.69, 0.70),
    "dla": (0.64, 0.64, 0.64, 0.64, 0.64),
    **dict.fromkeys(("gradrev", "drop", "utility", "prediction"), (0.7, 0.7, 0.7, 0.7, 0.7)),
}
BEST_RATE = dict(zip(POLICIES, (0.5, 0.3, 0.3, 0.2, 0.2), strict=True))
TRAINED = {
    "pal": (1, 0.5, 0.1, 0.1, 0.1, 0.10005, 0.1, 0.10005),
    "gradrev": (3, 2, 1, 0.5, 0.3, 0.12, 0.1, 0.12),
}


def lanes(method: str, weight: float) -> list[tuple[dict, float]]:
    """The lanes of a method, and what each loses against the best."""
    if method == "drop":
        return [({"examination_dropout": r}, 0.2 * abs(r - BEST_RATE[weight])) for r in RATES]
    if method in ("gradrev", "utility", "prediction"):
        steep = 0.2 if weight > 0.5 else 0.005
        return [({"reversal_scale": s}, steep * abs(s - 0.6)) for s in SCALES]
    return [({}, 0.0)]


def fits(dataset: str, method: str):
    for weight, best in zip(POLICIES, LEVELS[method], strict=True):
        for lane, lost in lanes(method, weight):
            base = {"setting": f"{dataset}-{method}", "mixing_weight": weight, **lane}
            value = best - lost
            values = {"ndcg@5": value, "validation_ndcg@5": value, "validation_nll": 0.1 + lost}
            for metric, number in values.items():
                yield {**base, "metric": metric, "value": number}
            for query in range(QUERIES):
                # Queries differ, and not all alike between methods.
                own = 0.2 * np.sin(query) + 0.005 * (method != "pal") * (-1) ** query
                yield {**base, "metric": "query_ndcg@5", "query": query, "value": value + own}
            for position in (1, *SEEN):
                bias = -np.log(position) * (1 + weight * (1 if method == "pal" else 0.5))
                yield {**base, "metric": "position_bias", "position": position, "value": bias}
            for epoch, loss in enumerate(TRAINED.get(method, ()), start=1):
                yield {**base, "metric": "watched_loss", "epoch": epoch, "value": loss}


def crossed():
    """PAL loses under labels, not under rankers of features; remedies lose nothing, and gain."""
    for world, ranker, weight in product(WORLDS, ("label", "deep"), (1.0, 0.5, 0.0)):
        known = ranker == "label"
        for scale, rate in product((0.0, 0.4), (0.0, 0.3)):
            base = {
                "setting": f"x-{ranker}{world}", "mixing_weight": weight, "temperature": 0,
                "reversal_scale": scale, "examination_dropout": rate,
            }  # fmt: skip
            gain = 0.0 if scale == rate == 0 else 0.05
            quality = 0.5 + (0.5 if known else 0.25) * weight
            yield {**base, "metric": "policy_ndcg@10", "value": quality}
            yield {**base, "metric": "ndcg@5", "value": 0.7 - 0.1 * weight * known + gain}


def studies():
    for support in ("all cells", *STRICT):
        base = {"setting": "theory", "support": support}
        for metric, value in {"dimension": 1, "share_worse": 1}.items():
            yield {**base, "part": "theorem2", "metric": metric, "value": value}
        for part in ("lemma7", "proposition9, click", "proposition9, relevance"):
            for at in (0, 0.3):
                for metric in ("excess_loss", "slope_left"):
                    yield {**base, "part": part, "at": at, "metric": metric, "value": 1e-9}
    for weight, (tower, steps) in product(POLICIES, {"observation": 10, "relevance": 90}.items()):
        base = {"setting": "postulate4", "mixing_weight": weight, "tower": tower}
        # At Random the observation tower is later, still the first.
        yield {**base, "metric": "steps_to_share", "value": steps if weight else (steps + 90) / 2}
    for lane in product(SCALES, RATES):
        tuned = dict(zip(("reversal_scale", "examination_dropout"), lane, strict=True))
        base = {"setting": "yahoo-combination", "mixing_weight": 1.0, **tuned}
        value = 0.703 - 0.1 * abs(lane[0] - 0.4)
        for metric in ("ndcg@5", "validation_ndcg@5"):
            yield {**base, "metric": metric, "value": value}
    for weight in POLICIES:
        base = {"setting": "mslr-product", "mixing_weight": weight}
        yield {**base, "metric": "ndcg@5", "value": 0.7}
    for weight in (0.8, 0.6, 0.2, 0.0):
        base = {"setting": "yahoo-pal-noisy", "mixing_weight": weight}
        yield {**base, "metric": "ndcg@5", "value": 0.7}
    for setting, loss in {"pal": 0.2, "gradrev-at-0": 0.205, "gradrev-at-minus-2": 0.3}.items():
        for weight in (1, 0):
            base = {"setting": f"mslr-{setting}", "mixing_weight": weight}
            yield {**base, "metric": "nll", "value": loss}


@cache
def made_up() -> pd.DataFrame:
    """Results in the schema of the settings and studies that bear out what the paper says."""
    rows = [*crossed(), *studies()]
    for dataset, method in product(DATASETS, LEVELS):
        rows += fits(dataset, method)
    found = pd.DataFrame([{**row, "seed": seed} for row in rows for seed in (1, 2)])
    return found.astype({"position": "Int64", "value": float})


def disagreeing(rows: pd.DataFrame) -> pd.Series:
    """The same mean, to which queries contribute unlike."""
    return rows["value"] + 0.5 * np.cos(np.pi * rows["query"])


def apart(rows: pd.DataFrame) -> pd.Series:
    """The same mean over seeds, of which one goes up and one down."""
    return rows["value"] + 20 * (-1.0) ** rows["seed"]


NDCG = {"metric": "ndcg@5"}
GRADREV, DROP = ({**NDCG, "setting": f"yahoo-{method}"} for method in ("gradrev", "drop"))
LOSS = {"setting": "yahoo-pal", "metric": "watched_loss"}
EXCESS = {"setting": "theory", "metric": "excess_loss", "support": "two blocks", "at": 0.3}
SLOPE = {**EXCESS, "metric": "slope_left"}
FIRST = {"setting": "postulate4", "tower": "observation"}
THEOREM2 = {"setting": "theory", "part": "theorem2", "support": "oracle"}

STARTED = {"metric": "nll"}

# Claim, change, rows to change, and words of the condition that the change must break.
MUTATIONS = [
    ("8", by(-0.05), {**NDCG, "setting": "yahoo-utility", "mixing_weight": 0.6}, ""),
    ("9", by(0.2), {**GRADREV, "mixing_weight": 0.8, "reversal_scale": 0.2}, "best below"),
    ("9", by(0.2), {**GRADREV, "mixing_weight": 1, "reversal_scale": 1}, "best above"),
    ("10", by(0.02), {**GRADREV, "mixing_weight": 0.2, "reversal_scale": 0.2}, "over eta"),
    ("10", to(0.7), {**GRADREV, "mixing_weight": 0.8}, "under Oracle and under L1"),
    ("11", by(0.3), {**DROP, "mixing_weight": 0.6, "examination_dropout": 0.1}, "best below"),
    ("11", by(0.3), {**DROP, "mixing_weight": 0.2, "examination_dropout": 0.7}, "best above"),
    ("12", by(0.3), {**DROP, "mixing_weight": 0.6, "examination_dropout": 0.5}, "never falls"),
    ("12", by(0.3), {**DROP, "examination_dropout": 0.2}, "less that under L3"),
    ("13", by(-0.05), {**NDCG, "setting": "yahoo-combination"}, ""),
    ("14", to(0.2), {**LOSS, "epoch": list(range(1, 8))}, "number of epochs"),
    ("14", by(10), {**LOSS, "epoch": 8}, "mean change"),
    ("17", to(0), {**THEOREM2, "metric": "dimension"}, ""),
    ("18", to(0.9), {**THEOREM2, "metric": "share_worse"}, ""),
    ("19", to(1e-5), {**EXCESS, "part": "lemma7"}, ""),
    ("20a", to(1e-5), {**EXCESS, "part": "proposition9, click"}, "click loss"),
    ("20b", to(1e-5), {**EXCESS, "part": "proposition9, relevance"}, "click loss"),
    ("20a", to(1e-5), {**SLOPE, "part": "proposition9, click"}, "slope"),
    ("20b", to(1e-5), {**SLOPE, "part": "proposition9, relevance"}, "slope"),
    ("22", times(20), {**FIRST, "mixing_weight": 0.8}, "both explain"),
    ("22", to(8), {**FIRST, "mixing_weight": 0}, "at Random"),
    ("30", by(0.04), {**NDCG, "setting": "yahoo-pal", "mixing_weight": 1}, ""),
    ("31", by(0.02), {**NDCG, "setting": "yahoo-combination"}, ""),
    ("32", by(0.2), {**GRADREV, "mixing_weight": 0.8, "reversal_scale": 0.2}, ""),
    ("27", by(0.03), {**STARTED, "setting": "mslr-gradrev-at-0", "seed": 2}, "weight of 0"),
    ("27", to(0.21), {**STARTED, "setting": "mslr-gradrev-at-minus-2"}, "weight of -2"),
    ("26", by(-0.02), {**NDCG, "setting": "mslr-product", "mixing_weight": 1}, ""),
    *(
        ("28", by(-0.02), {**NDCG, "setting": "yahoo-pal-noisy", "mixing_weight": weight}, "")
        for weight in (0.8, 0.6, 0.2)
    ),
]
for letter, winners, dataset in zip("ab", ("ab", "cd"), DATASETS, strict=True):
    biased, pal, gradrev, drop = (
        {"setting": f"{dataset}-{method}"} for method in ("biased", "pal", "gradrev", "drop")
    )
    remedies = {"setting": [gradrev["setting"], drop["setting"]]}
    # Another lane wins, which is worse.
    scale, rate = {"reversal_scale": 0.2}, {"examination_dropout": 0.1}
    practical = {"metric": "validation_nll", "mixing_weight": 1}
    best = {"metric": "validation_ndcg@5", "mixing_weight": 1}
    queries = {"metric": "query_ndcg@5", "mixing_weight": 0.8}
    estimated = {"metric": "position_bias", "mixing_weight": 0.6, "position": list(SEEN)}
    MUTATIONS += [
        (f"1{letter}", by(-0.06), {**NDCG, **pal, "mixing_weight": 0}, "at Random less"),
        (f"1{letter}", by(0.02), {**NDCG, **pal, "mixing_weight": 0.8}, "largest rise"),
        (f"2{letter}", by(0.1), {**NDCG, **biased, "mixing_weight": 0}, "at Oracle less"),
        (f"2{letter}", by(-0.03), {**NDCG, **biased, "mixing_weight": 0.8}, "largest fall"),
        (f"3{letter}", by(0.2), {**NDCG, **biased, "mixing_weight": 0.2}, ""),
        (f"4{winners[0]}", to(1), {**best, **gradrev, **scale}, "GradRev"),
        (f"4{winners[0]}", to(1), {**best, **drop, **rate}, "Drop"),
        (f"4{winners[1]}", to(0), {**practical, **gradrev, **scale}, "GradRev"),
        (f"4{winners[1]}", to(0), {**practical, **drop, **rate}, "Drop"),
        (f"5{winners[0]}", to(1), {**best, **gradrev, **scale}, ""),
        (f"5{winners[1]}", to(0), {**practical, **drop, **rate}, ""),
        (f"5{winners[0]}", by(-0.05), {**queries, **drop}, ""),
        (f"5{winners[1]}", disagreeing, {**queries, **gradrev}, ""),
        (f"6{letter}", by(0.05), {**NDCG, **pal, "mixing_weight": 1}, "at Oracle less"),
        (f"6{letter}", by(0.04), {**NDCG, **pal, "mixing_weight": 0.8}, "largest fall"),
        (f"7{letter}", by(0.05), {**NDCG, **drop, "mixing_weight": 0}, ""),
        (f"7{letter}", by(-0.05), {**NDCG, **remedies, "mixing_weight": 0.2}, ""),
        (f"29{letter}", by(-0.1), {**NDCG, **gradrev, "mixing_weight": 0.2}, "GradRev"),
        (f"29{letter}", by(-0.1), {**NDCG, **drop, "mixing_weight": 1}, "Drop"),
        (f"21{letter}", by(-0.1), {**NDCG, **gradrev, "mixing_weight": 0}, "GradRev"),
        (f"21{letter}", by(-0.1), {**NDCG, **drop, "mixing_weight": 0.2}, "Drop"),
        (f"23{letter}", by(-2), {**estimated, **gradrev}, "GradRev"),
        (f"23{letter}", by(2), {**estimated, **drop}, "Drop"),
        (f"23{letter}", apart, {**estimated, **gradrev}, "GradRev"),
    ]
for letter, world in zip("abc", WORLDS, strict=True):
    plain = {**NDCG, "reversal_scale": 0, "examination_dropout": 0}
    deep, label = ({**plain, "setting": f"x-{ranker}{world}"} for ranker in ("deep", "label"))
    MUTATIONS += [
        (f"24{letter}", by(-0.02), {**deep, "mixing_weight": 1}, "at Random less"),
        (f"24{letter}", by(0.045), {**label, "mixing_weight": 0.5}, "under labels"),
        (f"25{letter}", by(0.05), {**deep, "mixing_weight": 1}, ""),
    ]


@pytest.mark.parametrize("name", sorted(JUDGED.keys() - {*NEVER}))
def test_results_as_the_paper_has_them_bear_out_every_claim(name):
    assert_borne_out(JUDGED[name], made_up())


@pytest.mark.parametrize(("name", "change", "where", "words"), MUTATIONS)
def test_every_judge_can_fail(name, change, where, words):
    assert_broken(JUDGED[name], altered(made_up(), change, where), words)


def test_every_condition_of_every_judge_has_a_mutation():
    assert {name for name, _ in untested(JUDGED, MUTATIONS)} == {*NEVER}


@pytest.mark.parametrize("name", NEVER)
def test_what_no_results_can_tell(name):
    assert judge(JUDGED[name], made_up()).verdict == NOT_TESTABLE


@pytest.mark.parametrize("letter", "abc")
def test_one_remedy_may_be_worse_than_pal(letter):
    """Claims 6, 7 and 25 speak of the better of both."""
    worse = {"setting": f"x-deep{dict(zip('abc', WORLDS, strict=True))[letter]}", **NDCG}
    worse = {**worse, "reversal_scale": 0.4, "examination_dropout": 0}
    assert_borne_out(JUDGED[f"25{letter}"], altered(made_up(), by(-0.3), worse))


def test_epochs_are_counted_from_one():
    """PAL comes near its lowest loss in epoch 3, GradRev in epoch 7."""
    epochs, _ = JUDGED["14"].measure(made_up())
    assert epochs[1] == pytest.approx(7 / 3)
