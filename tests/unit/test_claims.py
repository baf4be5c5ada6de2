"""Judging: verdicts, and claims without data."""

import re

import numpy as np
import pandas as pd
import pytest

from twotowers.claims.claims import (
    CHECK,
    CONTRADICTED,
    NOT_TESTABLE,
    OURS,
    REPRODUCED,
    Claim,
    Claims,
    NotTestable,
    judge,
    seed_means,
)
from twotowers.claims.conditions import (
    RELATIONS,
    above,
    at_least,
    at_most,
    below,
    exactly,
    falls,
    holds,
    rises,
    shown,
)

TAUS = (0, 0.333, 1)


def results(setting: str = "s", value: float = 1.0, seeds: int = 2) -> pd.DataFrame:
    rows = [(setting, tau, seed, value + tau) for tau in TAUS for seed in range(seeds)]
    return pd.DataFrame(rows, columns=["setting", "temperature", "seed", "value"])


def above_one(frame: pd.DataFrame):
    means = seed_means(frame, {"temperature": TAUS}, setting="s")
    return means[0], True


CONDITIONS = [above("the mean", 1), holds("it is finite")]
CLAIM = Claim("7", "fig9", "Sec. 1", "Something holds", CONDITIONS, above_one)


@pytest.mark.parametrize(
    ("ours", "verdict", "reason"),
    [
        (results(value=2), REPRODUCED, ""),
        (results(value=1), CONTRADICTED, "fails: the mean is above 1"),
        (results(setting="other"), NOT_TESTABLE, "no results for setting s"),
        (results().query("temperature != .333"), NOT_TESTABLE, "no results at temperature .333"),
        (results().drop(index=0), NOT_TESTABLE, "seeds missing at temperature 0"),
        (results(value=np.nan), NOT_TESTABLE, "not a finite number at temperature 0"),
    ],
)
def test_every_verdict_and_its_reason(ours, verdict, reason):
    found = judge(CLAIM, ours)
    assert found.verdict == verdict
    assert reason in found.reason
    assert bool(found.measured) == (verdict != NOT_TESTABLE)


def test_a_fault_in_a_judge_is_not_hidden():
    broken = Claim("1", "fig1", "", "", [], lambda frame: frame["no such column"])
    with pytest.raises(KeyError):
        judge(broken, results())


# Whether a value just below, at and just above the threshold meets the condition.
@pytest.mark.parametrize(
    ("condition", "met"),
    [
        (below, (True, False, False)),
        (at_most, (True, True, False)),
        (above, (False, False, True)),
        (at_least, (False, True, True)),
        (exactly, (False, True, False)),
    ],
)
@pytest.mark.parametrize("threshold", [0.9, 1e-6, -0.001, 0, 87])
def test_words_and_comparison_come_from_the_same_number(condition, met, threshold):
    """The number read back from the words is where the comparison turns."""
    words = condition("MCC", threshold).words
    pattern = rf"MCC is ({'|'.join(RELATIONS)}) (\S+)"
    _, read = re.fullmatch(pattern, words).groups()
    around = np.nextafter(float(read), [-np.inf, np.inf])
    values = (around[0], float(read), around[1])
    assert tuple(condition("MCC", threshold).met_by(value) for value in values) == met


ERRORS = pd.DataFrame([[0.1, 0.05], [0.0, 0.1]])
TWICE = at_least("the larger", 2, "times the smaller")


@pytest.mark.parametrize(
    ("condition", "measured", "met"),
    [
        (at_most("each error", 0.1), ERRORS, True),
        (at_most("each error", 0.1), ERRORS + 1e-9, False),
        (below("x", 1), [], False),
        (exactly("x", 1), [1, np.nan], False),
        (TWICE, (4, 2), True),
        (TWICE, ([4, 3], [2, 2]), False),
        (TWICE, (0, 0), True),
        (holds("it grows"), np.True_, True),
        (holds("it grows"), [True, False], False),
        (rises("it"), [1, 2, 3], True),
        (falls("it"), [1, 2, 3], False),
        (falls("it"), [3, 1, -2], True),
        (falls("it"), [3, 1, 1], False),
        (rises("it"), pd.DataFrame({"a": [1, 2, 3], "b": [1, 3, 2]}), False),
    ],
)
def test_every_value_must_meet_a_condition(condition, measured, met):
    """Each column and each step between neighbours; no value, and nan, meet none."""
    assert condition.met_by(measured) == met


def test_what_is_measured_is_shown_with_its_labels():
    over = pd.MultiIndex.from_product([(0, 0.5), ("dla", "em")], names=["tau", "method"])
    values = pd.Series([0.1, 0.25, 0.30001, 12], over)
    assert at_most("MCC", 0.3).text(values, {"method": {"em": "EM"}}) == (
        "MCC = .100 (tau 0, dla), .250 (tau 0, EM), .30001 (tau .5, dla), 12 (tau .5, EM)"
    )
    many = pd.Series(np.linspace(0, 0.9, 10), pd.Index(range(10), name="position"))
    assert at_most("errors,", 0.45).text(many) == (
        "errors = 0 (position 0) to .900 (position 9), 10 values, 5 of 10 against it"
    )
    half = below("loss", 0.5, "times that")
    assert half.text((pd.Series([1.5, 2.5], ["a", "b"]), 4.5)) == (
        "loss, against 4.5000, = 1.5000 (a), 2.5000 (b)"
    )
    assert shown("nDCG", digits=4).text(0.71234) == "nDCG = .7123"
    assert shown("it is so").text(np.True_) == "it is so: yes"


@pytest.mark.parametrize("threshold", [0.1, 0.005, 1e-6, 0])
@pytest.mark.parametrize("condition", [below, at_most, above, at_least, exactly])
def test_a_written_number_is_on_its_side_of_the_threshold(condition, threshold):
    meant = condition("x", threshold)
    for value in threshold + np.array([-3e-7, -1e-9, 0, 1e-9, 3e-7]):
        read = float(meant.text(value).removeprefix("x = "))
        assert meant.met_by(read) == meant.met_by(value) or abs(value - threshold) < 1e-8, value


def test_what_is_shown_is_neither_expected_nor_judged():
    conditions = [above("the mean", 1), shown("the worst")]
    claim = Claim("1", "fig1", "Sec. 1", "It holds", conditions, lambda frame: (2.0, []))
    assert claim.expected == "the mean is above 1"
    found = judge(claim, results())
    assert (found.verdict, found.measured) == (REPRODUCED, "the mean = 2; the worst = ")


@pytest.mark.parametrize("nothing", [[], pd.Series(dtype=float), pd.DataFrame()])
def test_a_judge_that_selects_nothing_is_an_error(nothing):
    claim = Claim("3a", "fig1", "", "", [above("the mean", 1)], lambda frame: (nothing,))
    with pytest.raises(ValueError, match="claim 3a: the judge selected nothing for 'the mean"):
        judge(claim, results())


def test_a_claim_about_several_lanes_has_a_part_for_each():
    claims = Claims(origin=OURS, chance=False)
    lanes = {"one": {"lane": 1}, "two": {"lane": 2}}

    @claims.add("10", "fig1", "Sec. 1", "It is so", exactly("the lane", 1), parts=lanes)
    @claims.add("9", "fig1", "Sec. 1", "It is", exactly("the lane", 2), origin=CHECK, lane=2)
    def of_lane(frame, lane):
        return lane

    found = {claim.id: claim for claim in claims.in_order()}
    assert list(found) == ["9", "10a", "10b"]
    assert [claim.statement for claim in found.values()] == [
        "It is",
        "It is so (one)",
        "It is so (two)",
    ]
    judged = [judge(claim, results()) for claim in found.values()]
    assert [each.measured for each in judged] == [f"the lane = {lane}" for lane in (2, 1, 2)]
    assert [each.verdict for each in judged] == [REPRODUCED, REPRODUCED, CONTRADICTED]
    assert [claim.origin for claim in found.values()] == [CHECK, OURS, OURS]
    assert not any(claim.chance for claim in found.values())
    assert of_lane(None, lane=3) == 3


def test_seed_means_over_a_grid_in_the_order_asked_for():
    frame = pd.concat([results("s", 1), results("t", 2)])
    frame["temperature"] = frame["temperature"].astype(np.float32)
    means = seed_means(frame, {"setting": ("t", "s"), "temperature": (1, 0.333)})
    assert means.index.tolist() == [("t", 1), ("t", 0.333), ("s", 1), ("s", 0.333)]
    np.testing.assert_allclose(means, [3, 2.333, 2, 1.333])


def test_a_long_list_of_absent_cells_is_cut():
    with pytest.raises(
        NotTestable, match=r"temperature 2, temperature 3, temperature 4 and 2 more"
    ):
        seed_means(results(), {"temperature": (0, 2, 3, 4, 5, 6)}, setting="s")
