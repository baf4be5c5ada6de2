"""Chen et al. (2024): every judge on the paper's printed numbers, and on made-up curves."""

import numpy as np
import pandas as pd
import pytest

from papers.chen2024.claims import CLAIMS
from papers.chen2024.judges.cells import CLICKS, LISTS
from papers.chen2024.judges.connectivity import ABOUT, ENOUGH_CONTEXTS, ENOUGH_SHARE, GRAPH, SIZE
from papers.chen2024.judges.contexts import LEVEL, TEST, TRAINING
from papers.chen2024.judges.redrawn import AGREES, as_another_draw
from papers.chen2024.judges.words import metric_name
from tests.contract.chen2024 import (
    DATASETS,
    MEASURES,
    NUMBERS_OF_CLICKS,
    SEEDS,
    SPREAD,
    SWEEPS,
    TABLE1,
    TABLE6,
    made_up,
)
from tests.items import experiment
from tests.judging import altered, assert_borne_out, assert_broken, by, mutation_tests, times, to
from twotowers.claims.claims import NOT_TESTABLE, REPRODUCED, judge
from twotowers.claims.data_provenance import REAL, STAND_IN, UNVERIFIED
from twotowers.claims.published import results as published_results
from twotowers.claims.statistics import select

BY_ID = {claim.id: claim for claim in CLAIMS}
ITEMS = experiment("chen2024").items
AUTHORS = published_results("chen2024").assign(stands_on=REAL)


def spread(sd):
    """The same means; runs deviate by `sd`."""

    def change(rows):
        lanes = [column for column in rows if column not in ("seed", "value")]
        mean = rows.groupby(lanes, dropna=False)["value"].transform("mean")
        return mean + sd * rows["seed"].map(dict(zip(SEEDS, SPREAD, strict=True)))

    return change


def like(**lane):
    """The values of the same rows in another lane."""

    def change(rows):
        keys = [
            column
            for column in rows
            if column not in ("value", *lane) and rows[column].notna().any()
        ]
        other = select(made_up(), **lane)[[*keys, "value"]]
        return rows[keys].merge(other, on=keys, how="left")["value"].to_numpy()

    return change


SYNTHETIC = {"setting": LISTS, "views": CLICKS}
DLA = {**SYNTHETIC, "method": "rate_dla"}
PLAIN = {**DLA, "repair": "plain"}
AT2 = {**SYNTHETIC, "components": 2}
MCC, GAIN, ERROR = ({"metric": metric} for metric in ("mcc", "ndcg@10", "click_mse"))
EXAMINED = {**DLA, "metric": "position_bias"}
PROPOSITION1, PROPOSITION2, PROPOSITION4 = (
    {"setting": "propositions", "proposition": f"proposition {number}"} for number in (1, 2, 4)
)
EXAMPLE2 = {"setting": "example2", "metric": "simulated"}
METHODS = ["rate_dla", "rate_em", "two_tower"]
THEOREMS = {"setting": "theorems"}

# Claim, change, rows to change, and a condition that the change must break.
MUTATIONS = [
    ("1a", to(0.99), {**PLAIN, **MCC, "components": 1}, "clicks: MCC is at least"),
    ("1a", to(0.99), {**PLAIN, **GAIN, "components": 1}, "clicks: nDCG@10 is at least"),
    ("1a", to(0.95), {"setting": LISTS, "method": "rate_dla", "repair": "plain", **MCC,
                      "views": 1000, "components": 3}, "clicks: MCC is below"),
    ("1a", to(0.97), {**PLAIN, **GAIN, "components": 4}, "clicks: nDCG@10 is below"),
    ("1b", by(-0.3), {**PLAIN, **MCC, "components": 4}, "any two of"),
    ("1c", spread(0.01), {**PLAIN, **MCC, "components": 1}, "at K = 1"),
    ("1c", spread(0.01), {**PLAIN, **MCC, "components": 3}, "K = 2, 3, 4"),
    ("2a", to(2e-5), {**AT2, **ERROR, "method": "two_tower", "repair": "plain"}, "click MSE"),
    ("2a", to(0.95), {**AT2, **MCC, "method": "two_tower", "repair": "plain"}, "MCC is below .9"),
    ("2a", to(0.97), {**AT2, **GAIN, "method": "rate_dla", "repair": "plain"},
     "nDCG@10 is below .96"),
    ("2a", to(0.7), {**AT2, **MCC, "method": METHODS, "repair": "plain"},
     "difference of two methods"),
    ("2b", to(3e-8), {**AT2, **ERROR, "method": "rate_dla", "repair": "merging"}, "of the printed"),
    ("2c", spread(0.01), {**AT2, **MCC, "method": "two_tower", "repair": "plain"}, "each method"),
    ("3", to(0.999), {**AT2, **MCC, "method": "rate_dla", "repair": "intervention"},
     "MCC of DLA"),
    ("3", to(0.999), {**AT2, **GAIN, "method": "two_tower", "repair": "intervention"},
     "nDCG@10 of DLA"),
    ("3", to(0.9), {**AT2, **MCC, "method": "rate_em", "repair": "intervention"}, ".95"),
    ("3", to(0.9), {**AT2, **GAIN, "method": "rate_em", "repair": "intervention"}, ".987"),
    ("4a", to(0.99), {**AT2, **GAIN, "method": "two_tower", "repair": "merging"}, "nDCG@10"),
    ("4a", to(0.97), {**AT2, **MCC, "method": "two_tower", "repair": "merging"},
     "difference of two methods"),
    ("4b", by(-0.03), {"setting": "redrawn", "method": "rate_dla"}, "distance of each mean"),
    ("4b", spread(0.1), {"setting": "redrawn", "method": "rate_dla"}, "reach of each interval"),
    ("4c", to(0.97), {**AT2, **MCC, "method": "two_tower", "repair": "intervention"},
     "less MCC with"),
    ("5", by(0.05), {"setting": "redrawn-naive", "metric": "ndcg@3"},
     "distance of each mean"),
    ("5", spread(0.1), {"setting": "redrawn-naive"}, "reach of each interval"),
    ("6a", to(1), {**PLAIN, **MCC}, "DLA's slope of MCC"),
    ("6a", to(1), {**DLA, **MCC, "repair": "merging"}, "node merging's slope of MCC"),
    ("6a", like(repair="plain"),
     {**DLA, **MCC, "repair": "merging", "components": [2, 3, 4]}, "less DLA's"),
    ("6a", to(0.99), {**DLA, **MCC, "repair": "intervention", "components": 4},
     "intervention's MCC"),
    ("6b", to(0.98), {**DLA, **MCC, "repair": "merging", "components": 4}, "over K = 4"),
    ("20a", by(-0.01), {**DLA, **MCC, "repair": "merging", "components": 2, "seed": 3},
     "distance of MCC"),
    ("20b", by(-0.01), {**DLA, **MCC, "repair": "random intervention", "seed": 3},
     "distance of MCC"),
    ("2d", by(0.2), {**AT2, **MCC, "method": "two_tower", "repair": "plain"}, "each mean"),
    ("2e", to(2.6e-5), {**AT2, **ERROR, "method": "naive"}, "click MSE from"),
    ("17c", to(0.6), {"setting": "example2", "metric": "pair_apart"}, "stated from"),
    ("17d", to(0.5), {"setting": "example2", "metric": "independent"}, "independent edges"),
    ("17e", to(0.99), {"setting": "example2", "metric": "exponent_share", "bias_factors": 1000},
     "f / |D| from 1"),
    ("17e", to(1), {"setting": "example2", "metric": "exponent_share"}, "rises"),
    ("17e", to(0.1), {"setting": "example2", "metric": "limit_estimate", "bias_factors": 1000},
     "the estimate at"),
    ("21a", to(1), {**THEOREMS, "theorem": "theorem 1, connected", "metric": "wrong"},
     "more than one"),
    ("21a", to(0), {**THEOREMS, "theorem": "theorem 1, connected", "metric": "checked"},
     "logs checked"),
    ("21b", to(1), {**THEOREMS, "theorem": "theorem 1, disconnected", "metric": "wrong"},
     "fewer or more"),
    ("21b", to(0), {**THEOREMS, "theorem": "theorem 1, disconnected", "metric": "checked"},
     "logs checked"),
    ("21c", to(1e-3), {**THEOREMS, "metric": "difference"}, "click probabilities"),
    ("21c", to(0.95), {**THEOREMS, "theorem": "second solution", **MCC, "components": 3},
     "its MCC"),
    ("21c", to(0.97), {**THEOREMS, **GAIN, "components": 4}, "its nDCG@10"),
    ("22", to(1e-3), {"setting": "own-factors-constant", **ERROR}, "constant ranker"),
    ("22", to(1e-3), {"setting": "own-factors", **ERROR}, "click MSE of DLA"),
    ("22", to(0.95), {"setting": "own-factors", **MCC}, "MCC of DLA"),
    ("23", to(0.1), {**THEOREMS, "metric": "tree"}, "along trees"),
    ("23", to(0), {**THEOREMS, "metric": "cycle"}, "one pair more"),
    ("24", to(1), {**THEOREMS, "metric": "other"}, "more or fewer"),
    ("24", to(1), {**THEOREMS, "metric": "apart"}, "leave disconnected"),
    ("24", to(0), {**THEOREMS, "theorem": "swaps", "metric": "checked"}, "logs checked"),
    ("28", to(0), {"setting": "graphs", "metric": "component"}, "printed as connected"),
    ("28", to(3), {"setting": "graphs", "metric": "shared_documents"}, "nowhere else"),
    ("8", to(0.92), {**DLA, **MCC, "repair": ["merge 1&4", "merge 2&4"]}, "each rise"),
    ("14a", times(1.05), {**PROPOSITION1, "metric": "expected_variance"}, "variance's distance"),
    ("14a", to(0.1), {**PROPOSITION1, "metric": "mean", "case": 2}, "mean's distance"),
    ("14a", times(20), {**PROPOSITION1, "metric": "standard_error"}, ".1 times the variance"),
    ("14a", times(11), {**PROPOSITION1, "metric": "variance", "clicks": 1000}, "with more clicks"),
    ("14b", to(1), {**PROPOSITION2, "metric": "violated"},
     "above their bound"),
    ("14b", to(0.9), {**PROPOSITION2, "metric": "tightest"},
     "the largest error"),
    ("14c", to(1), {**PROPOSITION4, "metric": "violated"},
     "above their bound"),
    ("15", to(1), {"setting": "verticals", "metric": "components"}, "with vertical types"),
    ("15", to(3000), {"setting": "verticals", "metric": "components", "factors": "v1, position"},
     "finer to coarser"),
    ("15", to(2), {"setting": "verticals", "metric": "components", "factors": "position"},
     "positions only"),
    ("17a", to(0.5), EXAMPLE2, "largest |T| is below"),
    ("17a", to(0), {**EXAMPLE2, "bias_factors": 10, "rows": 1000}, "any series' rise"),
    ("17a", to(0.5), EXAMPLE2, "largest |D| is above"),
    ("17a", lambda rows: 1 - rows["value"], {**EXAMPLE2, "bias_factors": 10}, "any series' fall"),
    ("17b", to(0.5), {"setting": "example2", "metric": ["simulated", "simulated_seen"],
                      "bias_factors": 100, "rows": 1000}, "distance of the estimate"),
    ("18", spread(0.01), {**EXAMINED, "repair": "plain", "components": 3}, "is above .1"),
    ("18", spread(0.1), {**EXAMINED, "repair": "merging", "components": 3},
     ".1 times DLA's"),
    ("18", by(0.5), {**EXAMINED, "repair": "merging", "components": 2}, "truth is below"),
    ("18", by(0.1), {**EXAMINED, "repair": "merging", "components": 2}, "at K = 4 less"),
    ("19", to(2), {"setting": "real_logs", "metric": "components"}, "number of components"),
    ("19", to(1), {"setting": "real_logs", "metric": "interventions"}, "swaps needed"),
]  # fmt: skip

for name, setting in (("7a", "k2"), ("7b", "k2-limit")):
    drawn = {"setting": setting, "views": CLICKS, **MCC, "repair": "random intervention"}
    MUTATIONS += [
        (name, like(repair="intervention"), {**drawn, "views": list(NUMBERS_OF_CLICKS)},
         "at least 2 times"),
        (name, spread(0.3), drawn, "at fewer clicks"),
        (name, by(-0.4), drawn, "MCC less DLA's"),
    ]  # fmt: skip

for letter, dataset in zip("ab", DATASETS, strict=True):
    MUTATIONS += [
        (
            f"25{letter}",
            by(0.06),
            {"setting": f"contexts-{dataset}", "metric": metric, "repair": "merging"},
            f"distance of {metric_name(metric)} in",
        )
        for metric in LEVEL
    ]
    MUTATIONS += [
        (
            f"26{letter}",
            by(-0.02),
            {"setting": f"contexts-{dataset}-random", "metric": metric, "repair": "merging"},
            f"start in {metric_name(metric)} is",
        )
        for metric in (*TRAINING[1:], *TEST)
    ]
    MUTATIONS += [
        (f"27{letter}", by(1), {"setting": f"connectivity-{dataset}", "metric": "queries"},
         "as printed")
    ]  # fmt: skip
    graph = {"setting": f"connectivity-{dataset}"}
    contexts, sampling, features, statistics = (
        {**graph, "sweep": sweep} for sweep in ("contexts", "sampling", "features", "statistics")
    )
    enough, share = ENOUGH_CONTEXTS[dataset], ENOUGH_SHARE[dataset]
    larger = sorted(SWEEPS[dataset]["sampling"])[-2]
    MUTATIONS += [
        (f"9{letter}", to(0), {**contexts, "amount": 0, "seed": 1}, "positions only"),
        (f"9{letter}", to(1), {**contexts, "amount": enough}, f"{enough} context types"),
        (f"9{letter}", to(1), {**contexts, "amount": 5000, "seed": [1, 2]}, "most context types"),
        (f"9{letter}", to(1), {**contexts, "amount": 5000}, "any rise"),
        (f"10{letter}", to(0), {**sampling, "amount": 1, "seed": 1}, "whole data set"),
        (f"10{letter}", to(1), sampling, "draws are connected is at least"),
        (f"10{letter}", to(0), sampling, "draws are connected is at most"),
        (f"10{letter}", to(0), {**sampling, "amount": larger}, "any fall"),
        (f"11{letter}", to(0), {**features, "amount": 1, "seed": 1}, "the fewest features"),
        (f"11{letter}", to(1), {**features, "amount": 10}, "10 features or more"),
        (f"11{letter}", to(1), {**features, "amount": 50}, "any rise"),
    ]
    # Claims 12 and 13 name the data sets differently: a and b, or a to d in pairs.
    starts = {"setting": [f"contexts-{dataset}", f"contexts-{dataset}-random"]}
    ones, random = ({"setting": setting, "repair": "plain"} for setting in starts["setting"])
    merged, merged_random = ({**lane, "repair": "merging"} for lane in (ones, random))
    merging = {"a": "c", "b": "d"}[letter]
    MUTATIONS += [
        (f"12{letter}", times(2), {**random, **ERROR}, "click MSE of"),
        (f"12{letter}", like(**ones), {**random, **MCC}, "MCC lost"),
        (f"12{letter}", like(**ones), {**random, **GAIN}, "nDCG@10 lost"),
        (
            f"12{merging}",
            like(repair="plain"),
            {**starts, "repair": "merging", **MCC},
            "lead over DLA",
        ),
        (f"12{merging}", by(-0.13), {**merged_random, **MCC}, "lead over DLA"),
        (f"12{merging}", by(-0.009), {**merged_random, **GAIN}, "nDCG@10 lost"),
    ]
    training, test = {"yahoo": "ab", "istella_s": "cd"}[dataset]
    MUTATIONS += [
        (
            f"13{training if metric in TRAINING else test}",
            by(0.05),
            {**rival, "repair": "plain", "metric": metric},
            f"lead over both in {metric_name(metric)} is",
        )
        for metric in (*TRAINING, *TEST)
        for rival in ({"setting": f"contexts-{dataset}-naive"}, ones)
    ]
    MUTATIONS += [
        (
            f"16{letter}",
            times(factor),
            {**statistics, "metric": metric},
            f"distance of {metric} from",
        )
        for metric, factor in (("edges", 0.7), ("components", 1.3), ("top1", 0.7))
    ]


@pytest.mark.parametrize("name", BY_ID)
def test_results_as_the_paper_has_them_bear_out_every_claim(name):
    """A judge reads no more than what the items of its claim need."""
    claim = BY_ID[name]
    needs = {need for item in claim.items for need in ITEMS[item].needs}
    assert_borne_out(claim, made_up()[made_up()["setting"].isin(needs)])


# Nodes are looked at before: results of another size are not judged.
NODES = "the distance of nodes from the printed number is at most .25 times that number"
test_that_judges_fail, test_that_mutations_are_all = mutation_tests(
    BY_ID, made_up, MUTATIONS, but=[("16a", NODES), ("16b", NODES)]
)


def test_the_papers_tables_are_published_as_read_here():
    table1 = select(AUTHORS, setting=LISTS).set_index(["method", "repair", "metric"])
    for lane, (mcc, gain, _, _, error) in TABLE1.items():
        found = [table1.loc[(*lane, name), "value"] for name in ("mcc", "ndcg@10", "click_mse")]
        assert found == [mcc, gain, error], lane
    for dataset, table in TABLE6.items():
        for (suffix, repair), values in table.items():
            rows = select(AUTHORS, setting=f"contexts-{dataset}{suffix}", repair=repair)
            rows = rows.set_index("metric")["value"]
            assert [rows[metric] for metric in MEASURES] == list(values), (suffix, repair)
        statistics = select(AUTHORS, setting=f"connectivity-{dataset}", sweep="statistics")
        found = statistics.set_index("metric")["value"]
        assert found[[*SIZE[dataset], *GRAPH[dataset]]].to_dict() == SIZE[dataset] | GRAPH[dataset]


def test_the_authors_numbers_bear_out_what_they_print():
    verdicts = {name: judge(claim, AUTHORS).verdict for name, claim in BY_ID.items()}
    judged = {name for name, verdict in verdicts.items() if verdict != NOT_TESTABLE}
    assert {verdicts[name] for name in judged} == {REPRODUCED}
    tables = {"table1", "table2", "table3", "table4", "table5", "table6"}
    assert judged == {c.id for c in CLAIMS if c.item in tables} - {"2c", "2d"}


@pytest.mark.parametrize(
    "name", ["1b", "1c", "2c", "2d", "4b", "5", "7a", "7b", "18", "20a", "20b"]
)
def test_one_run_tells_no_spread(name):
    judgement = judge(BY_ID[name], made_up().query("seed == 1"))
    assert judgement.verdict == NOT_TESTABLE
    assert "too few seeds" in judgement.reason


@pytest.mark.parametrize(
    ("name", "lane", "lacking"),
    [
        ("1a", "views in (1000000,)", "at fewer clicks"),
        ("7a", "views in (1000000,)", "at fewer clicks"),
        ("7b", "views in (1000000,)", "at fewer clicks"),
        ("9a", "amount != 200", "at 200"),
        ("9b", "amount in (0, 10, 20) or sweep != 'contexts'", "no more than 20 contexts"),
        ("10b", "amount >= 0.25 or sweep != 'sampling'", "no ratio below .25"),
        ("10a", "amount != 1 or sweep != 'sampling'", "at 1"),
        ("1a", "views != 1000000", "no results at 1,000,000 and at fewer clicks"),
        ("7a", "views != 1000000", "no results at 1,000,000 and at fewer clicks"),
        ("11a", "amount != 10", "at 10"),
        ("17a", "bias_factors != 100", "differ in bias_factors"),
    ],
)
def test_lanes_that_a_scale_leaves_out_are_named(name, lane, lacking):
    judgement = judge(BY_ID[name], made_up().query(lane))
    assert judgement.verdict == NOT_TESTABLE
    assert lacking in judgement.reason


@pytest.mark.parametrize("name", ["9a", "10a", "11a", "16a"])
def test_numbers_of_queries_are_not_compared_between_sizes(name):
    nodes = {"setting": "connectivity-yahoo", "metric": "nodes"}
    smaller = altered(made_up(), times(0.8), nodes)
    judgement = judge(BY_ID[name], smaller)
    assert judgement.verdict == NOT_TESTABLE
    assert "another size" in judgement.reason


@pytest.mark.parametrize("kind", [STAND_IN, UNVERIFIED])
@pytest.mark.parametrize("name", ["10b", "11a", "11b", "15", "16a", "16b", "19"])
def test_what_was_adjusted_is_no_evidence(name, kind):
    judgement = judge(BY_ID[name], made_up().assign(stands_on=kind))
    assert judgement.verdict == NOT_TESTABLE
    assert judgement.reason.startswith(("calibration, not evidence", "the log is a stand-in"))
    assert judgement.measured


@pytest.mark.parametrize("name", ["10b", "15", "19"])
def test_a_study_on_real_and_other_files_is_no_evidence(name):
    mixed = made_up()
    mixed.loc[mixed.groupby("setting").head(1).index, "stands_on"] = STAND_IN
    assert judge(BY_ID[name], mixed).verdict == NOT_TESTABLE


def test_a_ratio_just_above_its_bound_breaks_the_claim():
    bound = ENOUGH_SHARE["yahoo"] * ABOUT
    lane = {"setting": "connectivity-yahoo", "sweep": "sampling", "metric": "connected"}
    results = altered(altered(made_up(), to(1), lane), to(0), {**lane, "amount": [0.005, 0.02]})
    at = select(results, **lane, amount=0.1).index
    assert len(at)
    results.loc[at, "amount"] = bound
    assert_borne_out(BY_ID["10a"], results)
    results.loc[at, "amount"] = bound + 0.001
    assert_broken(BY_ID["10a"], results, "connected is at most")


def test_three_means_may_each_be_farther_off_than_one():
    """2d allows for three comparisons: the plain bound is .8 times the corrected one."""
    (off, allowed), _ = (measured for _, measured in BY_ID["2d"].measure(made_up()))
    assert off.max() < 1e-6
    where = {**AT2, **MCC, "method": "two_tower", "repair": "plain"}
    shift = allowed["two_tower"]
    assert_borne_out(BY_ID["2d"], altered(made_up(), by(0.95 * shift), where))
    assert_broken(BY_ID["2d"], altered(made_up(), by(1.05 * shift), where), "each mean")


@pytest.mark.parametrize("name", ["27a", "27b"])
def test_counts_are_those_of_real_files(name):
    judgement = judge(BY_ID[name], made_up().assign(stands_on=STAND_IN))
    assert judgement.verdict == NOT_TESTABLE
    assert "not known to be real: queries" in judgement.reason


def test_starts_that_stick_are_told():
    assert (
        "starts of Regression-EM that stick = 12 % of 100, and so at least one in 72 % of sets of"
        in judge(BY_ID["3"], made_up()).measured
    )


def test_another_draw_of_the_data_set_has_the_stated_chance():
    """A printed number from the same normal law as ten draws lies within 95 times in 100."""
    rng = np.random.default_rng(0)
    lane = {"setting": "redrawn-naive", "method": "naive", "repair": "plain", "components": 2}
    trials, held = 150, 0
    for _ in range(trials):
        values = rng.normal(0.5, 0.01, 11)
        results = pd.DataFrame({"value": values[1:], "seed": SEEDS, "metric": "mcc", **lane})
        found = as_another_draw(results.assign(views=CLICKS), "naive", "plain", {"mcc": values[0]})
        pairs = zip(AGREES, found, strict=True)
        held += all(condition.met_by(value) for condition, value in pairs if condition.judged)
    # Half a printed digit adds a little; three standard errors to either side.
    assert held / trials == pytest.approx(0.955, abs=3 * np.sqrt(0.05 * 0.95 / trials))
