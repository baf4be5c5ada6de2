"""The chapter on CLAX: its study, its claims and its published numbers."""

from functools import cache
from itertools import product

import numpy as np
import pandas as pd
import pytest

from papers.clax2025.claims import CLAIMS
from papers.clax2025.items import compressed as drawn_compressed
from papers.clax2025.items import fits as drawn_fits
from papers.clax2025.items import hashed, priors, recovery, uncertainty
from papers.clax2025.judges.fits import PUBLISHED_ORDER
from papers.clax2025.judges.scale import PUBLISHED_ORDER as ORDER_AT_SCALE
from papers.clax2025.names import HIDDEN, NINTH
from papers.clax2025.orders import COMPRESSIONS, WITHOUT_TABLE, between_divisions, correlations
from papers.clax2025.studies.em_gradient import run
from tests.items import drawing, experiment
from tests.judging import altered, assert_borne_out, assert_broken, by, mutation_tests, to
from twotowers.claims.claims import NOT_TESTABLE, REPRODUCED, judge
from twotowers.claims.judging import on_authors
from twotowers.claims.published import about, bands, results, runs
from twotowers.claims.statistics import select
from twotowers.models.names import MODELS
from twotowers.report.comparison import side_by_side

JUDGED = {claim.id: claim for claim in CLAIMS}


@pytest.fixture(scope="module")
def study():
    return run(None, seed=1, pages=300).assign(setting="em_gradient", seed=1)


def test_em_and_gradient_agree_in_every_model(study):
    assert set(study["model"]) == set(HIDDEN)
    for claim in ("8", "9", "10", "41"):
        assert judge(JUDGED[claim], study).verdict == REPRODUCED, claim


def theirs(claim: str) -> tuple[str, str, str]:
    return on_authors(JUDGED[claim], about(results("clax2025"), JUDGED[claim].item))


HOLDS = ("2", "5", "13", "15", "18", "19", "25a")
HOLD_TOGETHER = ("12", "16", "17", "20", "23", "24", "25c", "26", "44")


def test_the_authors_runs_bear_out_what_they_say_but_for_the_mixture():
    for claim in HOLDS:
        assert theirs(claim)[1] == "holds", claim
    # Three runs tell no more of these.
    for claim in HOLD_TOGETHER:
        assert theirs(claim)[1:] == ("undecided", "holds on all 3 runs together"), claim
    # Not given other clicks, the mixture is no better than PBM in any fold.
    assert theirs("25b")[1:] == ("undecided", "fails on all 3 runs together")
    # Nothing is published by rank, of pairs with features, of the study and of `recovery`.
    for claim in ("7", "8", "11", "21", "22"):
        assert theirs(claim) == ("", "", "")


def test_full_tables_of_figure_5_2_are_those_of_its_own_folds():
    found = {item: runs("clax2025", item) for item in ("fig5.1", "fig5.2")}
    which = {"setting": "gradient-dbn", "metric": list(METRICS)}
    full = {name: select(each, **which) for name, each in found.items()}
    assert [len(each) for each in full.values()] == [6, 6]
    assert not set(full["fig5.1"]["value"]) & set(full["fig5.2"]["value"])
    assert correlations(found["fig5.2"]).groupby("seed").size().tolist() == [20, 20, 20]


# Made-up results that bear out every claim.

METRICS = ("mean_perplexity", "mean_conditional_perplexity")
POOLED = "pooled_conditional_perplexity"
COLUMNS = ["setting", "metric", "value", "seed"]


def level(name, metric):
    """The published order; the cascade model cannot explain what is below a click."""
    if (name, metric) == ("cm", METRICS[1]):
        return 2.9
    return 1.3 + PUBLISHED_ORDER.index(name) / 100 - 0.1 * (metric == METRICS[1])


def by_gradient():
    rows = []
    for name, seed in product(MODELS, (1, 2)):
        rows += [
            (f"gradient-{name}", metric, level(name, metric), seed, None) for metric in METRICS
        ]
        rows.append((f"gradient-{name}", POOLED, level(name, METRICS[1]) - 0.01, seed, None))
        rows += [(f"gradient-{name}", "conditional_perplexity", 1.2, seed, k) for k in range(1, 11)]
    return pd.DataFrame(rows, columns=[*COLUMNS, "position"]).astype({"position": "Int64"})


def by_em():
    """Little behind under the prior of the thesis, and at lower ranks."""
    rows = []
    for prefix, name, mean in product(("em", "counted"), MODELS, (NINTH, 0.5)):
        base = (f"{prefix}-{name}", 1, mean)
        far = 1.0 * (mean != NINTH)
        for metric, behind in zip(
            METRICS, (0.001, 0.02 if prefix == "counted" else 0.002), strict=True
        ):
            rows.append((*base, metric, level(name, metric) + behind + far, None))
        for k in range(1, 11):
            # At every rank, EM is nearer to gradient descent under PyClick's prior.
            value = 1.2 + (0.01 if k > 5 else -0.1) if mean == NINTH else 1.195
            rows.append((*base, "conditional_perplexity", value, k))
    columns = ["setting", "seed", "prior_mean", "metric", "value", "position"]
    return pd.DataFrame(rows, columns=columns).astype({"position": "Int64"})


def after_rounds():
    rows = [
        (f"rounds-{name}", metric, level(name, metric) + 0.0021, 1, NINTH)
        for name, metric in product(HIDDEN, METRICS)
    ]
    return pd.DataFrame(rows, columns=[*COLUMNS, "prior_mean"])


def compressed(worse=lambda name, ratio, metric: 1e-6 * ratio):
    """Tables of all that have some, each worse than the full one."""
    rows = []
    for prefix, name, ratio, metric in product(
        COMPRESSIONS, MODELS, (2.0, 10.0, 100.0, 1000.0), METRICS
    ):
        if name not in WITHOUT_TABLE:
            value = level(name, metric) + worse(name, ratio, metric)
            rows.append((f"{prefix}-{name}", metric, value, 1, ratio))
    # A kind of model, which is not the name that the chapter has for it.
    return pd.DataFrame(rows, columns=[*COLUMNS, "tower_ratio"]).assign(model="a kind")


def recovered():
    rows = [
        (f"recovery-{name}", metric, 1.2 - 0.01 * (MODELS[name] == kind), 1, kind)
        for kind, name in product(MODELS.values(), MODELS)
        for metric in ("mean_conditional_perplexity", "ndcg@10")
    ]
    return pd.DataFrame(rows, columns=[*COLUMNS, "user_kind"])


def test_items_are_drawn():
    found = pd.concat([by_gradient(), by_em()], ignore_index=True)
    table = drawn_fits.table(found, bands("clax2025"))
    assert set(table["source"]) == {"reproduced", "published"}
    assert drawn_fits.draw(table).axes
    assert priors.tex(priors.table(found[found["prior_mean"].notna()], None)).count("& EM") == 10
    own = recovered().assign(position=pd.NA)
    assert recovery.draw(recovery.table(own, None)).axes


def test_the_study_is_a_table(study):
    item = drawing("clax2025", "em_gradient")
    text = item.tex(item.table(study, None))
    assert all(name.upper() in text for name in HIDDEN)


def test_orders_that_stay_have_a_tau_of_one():
    found = pd.concat([by_gradient(), compressed()])
    np.testing.assert_allclose(correlations(found)["value"], 1)
    np.testing.assert_allclose(between_divisions(found), 1)


def test_orders_that_turn_have_a_negative_tau():
    def turned(name, ratio, metric):
        return 5 - 2 * level(name, metric) if (ratio, metric) == (1000, METRICS[0]) else 0

    taus = correlations(pd.concat([by_gradient(), compressed(turned)]))
    taus = taus.set_index(["compression", "ratio", "metric"])["value"]
    assert taus["hashed", 1000.0, METRICS[0]] < 0
    assert taus["hashed", 100.0, METRICS[0]] == pytest.approx(1)


def test_compressed_tables_are_drawn():
    found = pd.concat([by_gradient(), compressed()], ignore_index=True).assign(position=pd.NA)
    found = found[found["metric"].isin(METRICS)]
    table = drawn_compressed.table(found, None)
    assert set(table["source"]) == {"reproduced", "published", "truth"}
    assert len(drawn_compressed.draw(table).axes) == 2
    both = side_by_side(table)
    # Theirs have the ratio 5, too.
    assert len(both) == 2 * 2 * 5
    assert both["published"].notna().all()
    alone = drawn_compressed.table(found[found["seed"] == 1], None)
    assert set(alone["source"]) == {"reproduced", "published"}
    tenth = hashed.table(found, None)
    assert len(tenth) == 2 * (10 + 8)
    assert (tenth["n"] == 1).all()
    assert len(hashed.draw(tenth).axes) == 2


PARTS = {
    "gctr": ["rate"], "rctr": ["examination"], "dctr": ["attraction"], "cm": ["attraction"],
    "pbm": ["attraction", "examination"], "ubm": ["attraction", "examination"],
    "dcm": ["attraction", "continuation"], "ccm": ["attraction", "after_none"],
    "dbn": ["attraction", "satisfaction", "continuation"], "sdbn": ["attraction", "satisfaction"],
}  # fmt: skip


def covered():
    rows = [
        (f"interval-{name}", "coverage", 0.95, 1, part)
        for name, parts in PARTS.items()
        for part in parts
    ]
    rows += [(f"stopped-{name}", "coverage", 0.7, 1, "attraction") for name in ("pbm", "dbn")]
    return pd.DataFrame(rows, columns=[*COLUMNS, "part"])


def test_coverage_is_drawn():
    assert uncertainty.draw(uncertainty.table(covered(), None)).axes


def at_scale():
    """Figure 5.3 in the published order, and seconds, which only authors have."""
    rows = [
        (f"baidu-{name}", METRICS[0], 1.2 + max(place, 1) / 100, 1, None, None)
        for place, name in enumerate(ORDER_AT_SCALE)
    ]
    rows += [
        (setting, "train_seconds", seconds, 1, mean, ratio)
        for name in MODELS
        for setting, seconds, mean, ratio in [
            (f"gradient-{name}", 100.0, None, None), (f"em-{name}", 3000.0, NINTH, None),
            (f"hashed-{name}", 30.0, None, 10.0), (f"quotient-{name}", 40.0, None, 1000.0),
        ]
    ]  # fmt: skip
    return pd.DataFrame(rows, columns=[*COLUMNS, "prior_mean", "tower_ratio"])


# Figure 5.4. Perplexity, conditional perplexity and DCG@10 that bear out every claim.
BORNE_OUT = {
    "counts-gctr": (1.4, 1.4, None),
    "counts-rctr": (1.3, 1.3, None),
    "features-dctr": (1.25, 1.25, 7.5),
    "features-pbm": (1.232, 1.230, 7.7),
    "features-cm": (1.241, 1.88, 7.95),
    "features-ubm": (1.229, 1.225, 7.71),
    "features-dcm": (1.233, 1.232, 7.75),
    "features-ccm": (1.231, 1.228, 7.52),
    "features-dbn": (1.230, 1.226, 7.78),
    "features-sdbn": (1.237, 1.236, 7.94),
    "features-mixture": (1.2305, 1.2200, 7.72),
    "pairs-pbm": (1.240, 1.240, None),
    "pairs-dcm": (1.242, 1.241, None),
    "pairs-ccm": (1.239, 1.235, None),
    "pairs-dbn": (1.236, 1.230, None),
}
MEASURED = ("mean_perplexity", "mean_conditional_perplexity", "dcg@10")


def features_fitted():
    rows = [
        (setting, metric, value, 1)
        for setting, each in BORNE_OUT.items()
        for metric, value in zip(MEASURED, each, strict=True)
        if value is not None
    ]
    return pd.DataFrame(rows, columns=COLUMNS).assign(position=pd.NA)


def test_figure_5_4_is_drawn():
    assert set(BORNE_OUT) == set(experiment("clax2025").items["fig5.4"].needs)
    figure = drawing("clax2025", "fig5.4")
    table = figure.table(features_fitted(), bands("clax2025"))
    assert set(table["source"]) == {"reproduced", "published"}
    assert len(figure.draw(table).axes) >= 3


# Judges.


@cache
def made_up():
    """Results in the schema of the settings and the study."""

    def worse(name, ratio, metric):
        # By perplexity, in the end all are behind what is not compressed.
        return (1e-4 if metric == METRICS[0] else 1e-6) * ratio

    values = {"gradient_difference": 1e-11, "smallest_factor": 1e-5, "step_difference": 1e-11}
    exact = [
        ("em_gradient", metric, value, 1, model)
        for model, (metric, value) in product(HIDDEN, {**values, "end_difference": 1e-15}.items())
    ]
    exact.append(("em_gradient", "click_loss_difference", 1e-15, 1, "pbm"))
    frames = [
        by_gradient(), by_em(), after_rounds(), compressed(worse), recovered(), covered(),
        at_scale(), features_fitted(), pd.DataFrame(exact, columns=[*COLUMNS, "model"]),
    ]  # fmt: skip
    return pd.concat(frames, ignore_index=True)


def turned(rows):
    """The models in the opposite order."""
    return 5 - rows["value"]


PERPLEXITY, CONDITIONAL = ({"metric": metric} for metric in METRICS)
SECONDS = {"metric": "train_seconds"}
DCG, COVERAGE = {"metric": "dcg@10"}, {"metric": "coverage"}
PRIOR = {"prior_mean": NINTH}
HASHED, QUOTIENT = (
    [f"{prefix}-{name}" for name in MODELS if name not in WITHOUT_TABLE] for prefix in COMPRESSIONS
)
GRADIENT = [f"gradient-{name}" for name in MODELS]
RANKS = {"metric": "conditional_perplexity", "position": [6, 7, 8, 9, 10]}
STUDY = {"setting": "em_gradient", "model": "ccm"}
OF_DBN = {**COVERAGE, "setting": "interval-dbn"}
EQUAL = {  # DCG@10 in the order of perplexity.
    f"features-{name}": 7.9 - place / 100
    for place, name in enumerate(
        ("ubm", "dbn", "mixture", "ccm", "pbm", "dcm", "sdbn", "cm", "dctr")
    )
}

# Claim, change, rows to change, and words of the condition that the change must break.
MUTATIONS = [
    ("1", by(0.02), {**PERPLEXITY, "setting": "gradient-sdbn"}, ""),
    ("1", by(-0.02), {**PERPLEXITY, "setting": "gradient-dbn"}, ""),
    ("2", by(-0.01), {**CONDITIONAL, **PRIOR, "setting": "em-ubm"}, ""),
    ("2", by(-0.03), {**CONDITIONAL, **PRIOR, "setting": "counted-dcm"}, ""),
    ("3", by(0.004), {**PERPLEXITY, **PRIOR, "setting": "em-pbm"}, ""),
    ("3", by(-0.004), {**PERPLEXITY, **PRIOR, "setting": "em-gctr"}, ""),
    ("4", turned, {**PERPLEXITY, "setting": GRADIENT}, "tau"),
    ("4", by(0.025), {**PERPLEXITY, "setting": "gradient-dbn"}, "DBN"),
    ("5", to(1.25), {**CONDITIONAL, "setting": "gradient-cm"}, ""),
    ("6", by(0.01), {**CONDITIONAL, **PRIOR, "setting": "em-dcm"}, ""),
    ("7", by(0.05), {**RANKS, "setting": "gradient-ccm"}, ""),
    ("8", to(0.1), {**STUDY, "metric": "gradient_difference"}, ""),
    ("9", to(1e-6), {**STUDY, "metric": "step_difference"}, ""),
    ("10", to(0.1), {**STUDY, "metric": "end_difference"}, ""),
    ("10", to(-0.1), {**STUDY, "metric": "end_difference"}, ""),
    ("11", by(-0.1), {**CONDITIONAL, "setting": "recovery-dbn", "user_kind": "cascade"}, ""),
    ("12", turned, {**CONDITIONAL, "setting": HASHED, "tower_ratio": 10}, "up to 10"),
    ("12", turned, {**CONDITIONAL, "setting": QUOTIENT, "tower_ratio": 100}, "100 times"),
    ("13", turned, {**PERPLEXITY, "setting": HASHED, "tower_ratio": [2, 10, 100]}, ""),
    ("14", turned, {**CONDITIONAL, "setting": HASHED + QUOTIENT}, ""),
    ("15", to(1.0), {**PERPLEXITY, "setting": "quotient-dbn", "tower_ratio": 1000}, ""),
    ("16", by(0.2), {**PERPLEXITY, "setting": "gradient-dctr"}, "on full tables"),
    ("16", to(1.0), {**PERPLEXITY, "setting": HASHED, "tower_ratio": 1000}, "either"),
    ("17", turned, {**PERPLEXITY, "setting": [f"baidu-{name}" for name in MODELS]}, ""),
    ("18", to(1.2), {**PERPLEXITY, "setting": "baidu-dctr"}, "DCTR"),
    ("18", to(1.2), {**PERPLEXITY, "setting": "baidu-pbm"}, "PBM"),
    ("19", to(900.0), {**SECONDS, **PRIOR, "setting": "em-ubm"}, ""),
    ("20", by(45.0), {**SECONDS, "setting": [f"hashed-{name}" for name in MODELS]}, ""),
    ("21", to(1.26), {**PERPLEXITY, "setting": "pairs-pbm"}, ""),
    ("22", to(1.239), {**PERPLEXITY, "setting": "features-pbm"}, "lowest perplexity"),
    ("22", to(1.238), {**CONDITIONAL, "setting": "features-pbm"}, "lowest conditional"),
    ("23", lambda rows: rows["setting"].map(EQUAL), {**DCG, "setting": [*EQUAL]}, ""),
    ("24", to(7.96), {**DCG, "setting": "features-pbm"}, "the best"),
    ("24", to(7.49), {**DCG, "setting": "features-dcm"}, "each"),
    ("25a", to(1.232), {**CONDITIONAL, "setting": "features-mixture"}, ""),
    ("25b", to(1.2325), {**PERPLEXITY, "setting": "features-mixture"}, ""),
    ("25c", to(7.7), {**DCG, "setting": "features-mixture"}, ""),
    ("26", to(7.65), {**DCG, "setting": "features-sdbn"}, "DCG@10"),
    ("26", to(1.231), {**PERPLEXITY, "setting": "features-cm"}, "perplexity"),
    ("31", to(0.9), {**OF_DBN, "part": "satisfaction"}, "at least"),
    ("31", to(0.99), {**OF_DBN, "part": "attraction"}, "at most"),
    ("32", to(0.5), {**OF_DBN, "part": "continuation"}, ""),
    ("33", to(0.96), {**COVERAGE, "setting": "stopped-pbm"}, ""),
    ("41", to(1e-5), {"setting": "em_gradient", "metric": "click_loss_difference"}, ""),
    ("42", to(1.6), {**RANKS, "position": 3, "setting": "em-ccm", "prior_mean": 0.5}, ""),
    ("43", by(0.002), {**CONDITIONAL, "setting": "rounds-dbn"}, ""),
    ("43", by(-0.002), {**CONDITIONAL, "setting": "rounds-pbm"}, ""),
    ("44", turned, {"metric": POOLED, "setting": GRADIENT}, "tau"),
    ("44", by(0.02), {"metric": POOLED, "setting": "gradient-dbn"}, "every model"),
]  # fmt: skip


@pytest.mark.parametrize("name", JUDGED)
def test_made_up_results_bear_out_every_claim(name):
    assert_borne_out(JUDGED[name], made_up())


test_that_judges_fail, test_that_mutations_are_all = mutation_tests(JUDGED, made_up, MUTATIONS)


NEEDED = [
    *product(("12", "13", "14", "15", "16"), ["hashed-ccm"]), ("16", "gradient-rctr"),
    *product(("31", "32", "33"), ["interval-dbn"]),
]  # fmt: skip


@pytest.mark.parametrize(("name", "setting"), NEEDED)
def test_a_judge_needs_every_model(name, setting):
    lacking = made_up()[made_up()["setting"] != setting]
    assert judge(JUDGED[name], lacking).verdict == NOT_TESTABLE


def test_coverage_is_that_of_all_seeds():
    """One seed alone is below the bound of 31, and the mean of two is not."""
    first = made_up()
    second = first[first["metric"] == "coverage"].assign(seed=2)
    lane = {**OF_DBN, "part": "satisfaction"}
    for low, judged in ((0.90, assert_borne_out), (0.88, assert_broken)):
        both = pd.concat([first, altered(second, to(low), lane)], ignore_index=True)
        judged(JUDGED["31"], both, *(["at least"] if judged is assert_broken else []))
