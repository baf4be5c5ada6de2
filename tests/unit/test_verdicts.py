"""Verdicts: how sure they are, which results a judge sees, and the error rates of the rule."""

import re
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy.special import stdtrit

from benchmarks.validate import verdicts as study
from twotowers.claims.claims import (
    CONTRADICTED,
    NOT_TESTABLE,
    ONE_SEED,
    REPRODUCED,
    RUNS,
    SEEDS,
    UNDECIDED,
    Claim,
    NotTestable,
    TooFewRuns,
    judge,
    seed_means,
)
from twotowers.claims.conditions import (
    above,
    at_least,
    below,
    counted,
    evidence_if,
    exactly,
    holds,
    rises,
    shown,
    significant,
    some,
)
from twotowers.claims.gates import gates_of
from twotowers.claims.judging import COLUMNS, judge_all, on_authors
from twotowers.claims.published import about
from twotowers.claims.statistics import mean_interval, select
from twotowers.claims.verdicts import HOLDS, LEAST_ALONE, decide
from twotowers.errors import InputError


def runs(values, setting: str = "s", **lane) -> pd.DataFrame:
    """A number per seed."""
    seeds = range(1, len(values) + 1)
    return pd.DataFrame(
        {"setting": setting, **lane, "seed": seeds, "metric": "it", "value": values}
    )


def claimed(*conditions, judge=lambda results: results["value"].mean(), **other) -> Claim:
    return Claim("1", "fig9", "Sec. 1", "It is so", conditions, judge, **other)


def test_a_mean_is_decided_by_students_interval():
    values = np.array([0.3, 0.1, 0.45, 0.2])
    low, _ = mean_interval(values.mean(), values.std(ddof=1), 4, level=HOLDS)
    assert decide(claimed(above("it", low - 1e-9)), runs(values)).verdict == REPRODUCED
    found = decide(claimed(above("it", low + 1e-9)), runs(values))
    assert (found.verdict, found.held) == (UNDECIDED, "4 of 4")
    assert found.reason.startswith("open: it is above ")


@pytest.mark.parametrize(
    ("values", "verdict", "held"),
    [
        ([1.0, 1.1, 0.9], REPRODUCED, "3 of 3"),
        ([-1.0, -1.1, -0.9], CONTRADICTED, "0 of 3"),
        ([1.0, 1.1, -1.05], UNDECIDED, "2 of 3"),
        ([0.5, 0.5, 0.5], REPRODUCED, "3 of 3"),
        ([-0.5, -0.5, -0.5], CONTRADICTED, "0 of 3"),
        ([1.0], UNDECIDED, ""),
    ],
)
def test_every_verdict_of_a_mean_above_0(values, verdict, held):
    found = decide(claimed(above("it", 0)), runs(values))
    assert (found.verdict, found.held) == (verdict, held)
    assert bool(found.reason) == (verdict != REPRODUCED)
    assert found.cause == ("" if verdict != UNDECIDED else SEEDS if held else ONE_SEED)


@pytest.mark.parametrize(
    ("values", "level"), [([0.4, 0.6, 0.1], 0.95), ([-0.5, -0.6, -0.4], 0.995)]
)
def test_an_open_number_is_shown_with_the_seeds_that_would_decide(values, level):
    """A number that fails needs the stricter test."""
    found = decide(claimed(above("it", 0)), runs(values))
    assert found.verdict == UNDECIDED
    side, far, seeds = re.search(r"\((\w+) by (\S+) standard .* about (\d+)", found.reason).groups()
    mean, deviation = abs(np.mean(values)), np.std(values, ddof=1)
    assert (side, float(far)) == (
        "holds" if np.mean(values) > 0 else "fails",
        pytest.approx(mean / deviation * np.sqrt(3), abs=0.05),
    )

    def decides(n: int) -> bool:
        return mean > stdtrit(n - 1, level) * deviation / np.sqrt(n)

    assert decides(int(seeds))
    assert not decides(int(seeds) - 1)


def test_a_claim_without_chance_decides_itself():
    for value, verdict in ((1, REPRODUCED), (-1, CONTRADICTED)):
        for count in (1, 2):
            found = decide(claimed(above("it", 0), chance=False), runs([value] * count))
            assert (found.verdict, found.held) == (verdict, "")


def test_seeds_leave_all_settings_together():
    """Seeds differ by more than settings do: only pairs tell them apart."""
    both = pd.concat([runs([1, 5, 9]), runs([0.9, 4.8, 8.95], "t")])

    def ahead(results):
        means = seed_means(results, {"setting": ("s", "t")})
        return means["s"] - means["t"]

    assert decide(claimed(above("the lead", -0.3), judge=ahead), both).verdict == REPRODUCED
    shuffled = both.assign(seed=[1, 2, 3, 3, 1, 2])
    assert decide(claimed(above("the lead", -0.3), judge=ahead), shuffled).verdict == UNDECIDED


@pytest.mark.parametrize(("judged", "verdict"), [(True, UNDECIDED), (False, REPRODUCED)])
def test_a_setting_with_one_seed_leaves_open_what_rests_on_it(judged, verdict):
    """Of another number, which is only shown, nothing is asked."""
    both = pd.concat([runs([1.0, 1.1, 0.9]), runs([0.5], "t")])

    def ahead(results):
        means = results.groupby("setting")["value"].mean()
        other = means.get("t", 0.0)
        return (means["s"] - other if judged else means["s"]), other

    found = decide(claimed(above("the lead", 0), shown("the other"), judge=ahead), both)
    assert found.verdict == verdict
    assert ("t has one seed" in found.reason) == judged
    assert found.cause == (ONE_SEED if judged else "")
    fixed = replace(claimed(above("the lead", 0), shown("the other"), judge=ahead), fixed=["t"])
    assert decide(fixed, both).verdict == REPRODUCED


def test_a_setting_with_one_seed_is_the_cause_if_seeds_in_common_are_asked_for():
    """Without that seed the judge cannot answer, and more seeds of the other do not help."""
    both = pd.concat([runs([1.0, 1.1, 0.9]), runs([0.5], "t")])

    def ahead(results):
        values = results.pivot(index="seed", columns="setting", values="value").dropna()
        if values.empty or len(values.columns) < 2:
            raise NotTestable("no seed in common")
        return (values["s"] - values["t"]).mean()

    found = decide(claimed(above("the lead", 0), judge=ahead), both)
    assert (found.verdict, found.cause) == (UNDECIDED, ONE_SEED)
    assert "t has one seed" in found.reason


def test_of_many_numbers_the_worst_needs_a_stricter_test():
    """A number that surely fails alone does not among twenty that hold."""
    values = np.full((4, 20), 5.0) + np.arange(4)[:, None] * 1e-3
    values[:, 0] = [-1.0, -1.4, -0.8, -1.6]

    def first(count):
        def means(results):
            return values[results["seed"].to_numpy() - 1, :count].mean(axis=0)

        return decide(claimed(above("it", 0), judge=means), runs([0] * 4)).verdict

    assert first(1) == CONTRADICTED
    assert first(20) == UNDECIDED


def test_an_order_is_as_sure_as_its_weakest_step():
    frame = pd.concat([runs([0, 0.1, 0.05], lane=1), runs([1, 1.2, 1.1], lane=2)])
    order = claimed(rises("means"), judge=lambda r: r.groupby("lane")["value"].mean())
    assert decide(order, frame).verdict == REPRODUCED
    last = pd.concat([frame, runs([1.0, 1.5, 1.2], lane=3)])
    found = decide(order, last)
    assert found.verdict == UNDECIDED
    assert "standard errors" in found.reason


def test_a_number_that_cannot_be_measured_without_a_seed_leaves_the_claim_open():
    def measured(results):
        mean, last = results["value"].mean(), (results["seed"] == 4).any()
        return pd.Series({"it": mean, "other": mean if last else np.nan})

    frame = runs([0.24, 0.2, 0.25, 0.22])
    for asked in (measured, lambda results: measured(results)["other"]):
        found = decide(claimed(above("it", 0.1), judge=asked), frame)
        assert (found.verdict, found.held) == (UNDECIDED, "3 of 4")


@pytest.mark.parametrize(
    ("count", "odd", "verdict"),
    [(LEAST_ALONE, False, REPRODUCED), (LEAST_ALONE, True, UNDECIDED), (3, False, UNDECIDED)],
)
def test_a_condition_without_a_number_needs_every_seed_and_enough_of_them(count, odd, verdict):
    values = np.ones(count)
    values[0] = -0.5 if odd else 1
    found = decide(claimed(holds("so"), judge=lambda r: r["value"].mean() > 0), runs(values))
    assert found.verdict == verdict


def test_a_count_that_no_seed_moves_needs_each_seed_alone():
    """Without any of the seeds all pairs are in order, and yet two seeds have them otherwise."""
    values = [[0, 9], [0, 9], [9, 0], *[[0, 9]] * 6, [9, 0]]
    frame = pd.concat([runs([row[lane] for row in values], lane=lane) for lane in (0, 1)])

    def share(results):
        low, high = seed_means(results, {"lane": (0, 1)})
        return float(low < high)

    condition = counted(at_least("the share of pairs in order", 1))
    found = decide(claimed(condition, judge=share), frame)
    assert (found.verdict, found.held) == (UNDECIDED, "10 of 10")
    assert found.reason == (
        "open: the share of pairs in order is at least 1 "
        "(the same in every seed, which may be chance)"
    )


@pytest.mark.parametrize(
    ("mark", "verdict"), [(1, REPRODUCED), (0, UNDECIDED), (-1, CONTRADICTED), (-0.9, UNDECIDED)]
)
def test_a_test_of_the_papers_decides_by_what_it_finds(mark, verdict):
    """On seeds, and on printed marks."""
    claim = claimed(significant("the gain"), judge=lambda results: mark)
    assert decide(claim, runs([1.0, 1.1, 0.9])).verdict == verdict
    assert judge(claim, runs([1.0])).verdict == verdict


@pytest.mark.parametrize("mark", [1, -1])
def test_a_test_of_queries_decides_only_if_it_finds_the_same_without_each_seed(mark):
    claim = claimed(significant("the gain"), judge=lambda each: mark * (each["value"].mean() > 0))
    assert decide(claim, runs([1.0, 1.1, 0.9])).verdict in (REPRODUCED, CONTRADICTED)
    rests_on_one = decide(claim, runs([1.0, -0.2, -0.2]))
    assert rests_on_one.verdict == UNDECIDED
    assert rests_on_one.reason.startswith("open: the gain is significant")

    def two(each):
        return pd.Series([mark, mark * (each["value"].mean() > 0)], ["one", "other"])

    both = claimed(significant("each gain"), judge=two)
    # One that fails for sure contradicts all.
    assert decide(both, runs([1.0, -0.2, -0.2])).verdict == {1: UNDECIDED, -1: CONTRADICTED}[mark]


@pytest.mark.parametrize(
    ("means", "verdict"),
    [
        ([2, -9, -9], REPRODUCED),
        ([0.2, -9, -9], UNDECIDED),
        ([-2, -9, -9], CONTRADICTED),
        ([-0.1, -9, -9], UNDECIDED),
    ],
)
def test_one_of_several_is_enough_and_needs_a_stricter_test(means, verdict):
    """Alone .2 would be sure."""
    noise = np.array([0.1, -0.02, -0.08])

    def several(results):
        return np.array(means) + noise[results["seed"].to_numpy() - 1].mean()

    frame = runs([0, 0, 0])
    assert decide(claimed(some(above("one", 0)), judge=several), frame).verdict == verdict
    alone = claimed(above("it", 0), judge=lambda results: several(results)[0])
    assert decide(alone, frame).verdict == (REPRODUCED if means[0] == 0.2 else verdict)


def test_numbers_that_do_not_count_neither_hold_nor_fail():
    claim = claimed(above("it", 0), judge=lambda r: pd.Series([1, -1]) + r["value"].mean())
    frame = runs([0.1, 0.12, 0.11])
    assert decide(claim, frame).verdict == CONTRADICTED
    for dropped, verdict in (((0, 1), REPRODUCED), ((1, 0), CONTRADICTED), ((1, 1), UNDECIDED)):
        for chance in (True, False):
            found = decide(replace(claim, chance=chance), frame, without=[np.array(dropped, bool)])
            assert found.verdict == verdict


def test_what_is_no_evidence_can_be_contradicted_only():
    claim = claimed(
        above("it", 0),
        evidence_if("real", "a stand-in"),
        judge=lambda results: (results["value"].mean(), False),
    )
    verdicts = {
        mean: decide(claim, runs(mean + np.array([-0.1, 0, 0.1]))).verdict for mean in (1, 0.01, -1)
    }
    assert verdicts == {1: NOT_TESTABLE, 0.01: NOT_TESTABLE, -1: CONTRADICTED}


@pytest.mark.parametrize(("kind", "cause"), [(TooFewRuns, RUNS), (NotTestable, SEEDS)])
def test_results_that_lack_a_run_or_cannot_spare_a_seed_are_undecided(kind, cause):
    def deviation(results):
        if len(results) < (4 if kind is TooFewRuns else 3):
            raise kind("too few for a spread")
        return results["value"].std()

    found = decide(claimed(below("the deviation", 9), judge=deviation), runs([1, 2, 3]))
    assert (found.verdict, found.cause) == (UNDECIDED, cause)
    assert found.reason.endswith("too few for a spread")


# Which results a judge sees.

ITEMS = {"fig9": ["s"], "other": ["t"]}
DATA = {"s": "real data", "t": "stand-in", "u": "simulation"}
ALL = pd.concat(runs([1.0, 1.1, 0.9], setting) for setting in "stu")
NOTHING = ALL.iloc[:0]
judged = partial(judge_all, gates=gates_of(ALL), items=ITEMS, data=DATA)


@pytest.mark.parametrize(
    ("also", "seen", "kind"), [([], {"s"}, "real data"), (["other"], {"s", "t"}, "stand-in")]
)
def test_a_verdict_stands_on_the_weakest_data_that_its_judge_sees(also, seen, kind):
    def of_all(frame):
        assert set(frame["setting"]) == seen
        return 0

    table = judged([claimed(exactly("it", 0), judge=of_all, also=also)], ALL, NOTHING)
    assert list(table.columns) == COLUMNS
    assert table["stands_on"].tolist() == [kind]


def test_printed_means_are_judged_as_they_are_and_not_by_what_compares_with_them():
    for threshold, verdict in ((0, "holds"), (5, "fails")):
        claim = claimed(above("it", threshold))
        table = judged([claim, replace(claim, against_printed=True)], ALL, runs([3.0]))
        assert table["authors"].tolist() == ["it = 3", ""]
        assert table["authors_verdict"].tolist() == [verdict, ""]
        assert table["authors_held"].tolist() == ["printed means", ""]
    assert judged([claimed(above("it", 0))], ALL, NOTHING)["authors"].item() == ""


@pytest.mark.parametrize(
    ("values", "verdict", "held"),
    [
        ([1.0, 1.1, 0.9, 1.2], "holds", "holds on all 4 runs together, holds in 100% of 4"),
        ([-1.0, -1.1, -0.9, -1.0], "fails", "fails on all 4 runs together, holds in 0% of 4"),
        ([1.0, 1.1, 0.9, -2.5], "undecided", "holds on all 4 runs together, holds in 25% of 4"),
        ([1.0, 1.1, 0.9], "holds", "holds on all 3 runs together"),
    ],
)
def test_the_authors_runs_are_judged_as_ours(values, verdict, held):
    authors = pd.concat([runs(values), runs([9.0], "t")])
    claim = claimed(above("it", 0), judge=lambda r: select(r, setting="s")["value"].mean())
    measured, found, said = on_authors(claim, authors)
    assert measured.startswith("it = ")
    assert (found, said.removesuffix(" triples of them")) == (verdict, held)


def test_runs_that_lack_a_lane_are_left_out():
    authors = pd.concat([runs([1, 1.1, 0.95, 1.2], lane=1), runs([0.5, 0.6, 0.4], lane=2)])

    def ahead(results):
        means = seed_means(results, {"lane": (1, 2)})
        return means[1] - means[2]

    found = on_authors(claimed(above("the lead", 0), judge=ahead), authors)
    assert found == ("the lead = .517", "holds", "holds on all 3 runs together")


@pytest.mark.parametrize(
    ("setting", "found"), [("t", ("it = 9", "holds", "printed means")), ("u", ("", "", ""))]
)
def test_a_claim_on_printed_means_beside_runs_says_so(setting, found):
    authors = pd.concat([runs([1, 1.1, 0.9, 1.2]), runs([9.0], "t")])

    def mean(results):
        return seed_means(results, {"metric": ["it"]}, setting=setting).mean()

    assert on_authors(claimed(above("it", 0), judge=mean), authors) == found


def test_runs_of_one_item_are_seen_by_its_claims_alone():
    authors = pd.concat([runs([1, 2]), runs([5, 6]).assign(item="fig9")])
    for item, values in (("fig9", [5, 6]), ("other", [1, 2])):
        assert about(authors, item)["value"].tolist() == values


def test_a_misspelt_item_is_an_error_and_one_that_a_scale_leaves_out_is_not():
    claim = claimed(above("it", 0))
    for other in ({"also": ["fig8"]}, {"item": "fig8"}):
        wrong = Claim(**{**vars(claim), **other})
        with pytest.raises(InputError, match="claim 1: 'fig8' is no item"):
            judged([wrong], ALL, NOTHING, known=ITEMS)
    found = judged([claim], ALL, NOTHING, items={"other": ["t"]}, known=ITEMS)
    assert found["verdict"].item() == NOT_TESTABLE
    assert found["reason"].item() == "fig9 is not made by this run"


# The study.


def test_the_rule_keeps_what_is_promised_and_nothing_else():
    table = study.STUDIES["verdicts"].table()
    promised = table["case"].map({name: case.promised for name, case in study.CASES.items()})
    wrong = study.wrong(table).groupby([promised, table["law"]]).max()
    for law, most in study.LIMITS.items():
        assert wrong[True, law] <= most < wrong[False, law]
    lines = [line for case in study.CASES for line in study.plan(case)]
    whole = pd.DataFrame(lines, columns=["case", "law", "seeds", "distance"])
    pd.testing.assert_frame_equal(table[list(whole)], whole, check_dtype=False)


@pytest.mark.parametrize("case", ["mean", "spread above, ties", "twelve numbers, all near"])
def test_the_study_can_be_repeated(case):
    table = study.STUDIES["verdicts"].table()
    for seeds in (3, 10):
        row = {"case": case, "law": "skewed", "seeds": seeds, "distance": 0}
        kept = select(table, **row)
        found = study.rates(**row, trials=1000)
        for word in (REPRODUCED, CONTRADICTED):
            assert found[word] == pytest.approx(kept[word].item(), abs=0.03)


def test_the_study_judges_as_papers_are_judged():
    """The same experiment through a claim, and through the arrays of the study."""
    case, rng = study.CASES["twelve numbers, one near"], np.random.default_rng(0)
    for distance in (-4, -1, 1, 4):
        values = case.draw("normal", 4, 5, distance, rng)
        found = zip(*study.by_rule(case, values), values, strict=True)
        for reproduced, contradicted, each in found:
            claim = claimed(
                above("it", 0),
                judge=lambda frame, each=each: each[frame["seed"].to_numpy() - 1].mean(axis=0),
            )
            verdict = decide(claim, runs([0] * 5)).verdict
            assert reproduced == (verdict == REPRODUCED)
            assert contradicted == (verdict == CONTRADICTED)
