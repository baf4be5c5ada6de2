"""The chapter on CLAX: its study, its claims and its published numbers."""

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

from papers.clax2025.claims import CLAIMS
from papers.clax2025.items import (
    em_gradient,
    fig5_1,
    fig5_2,
    fig5_3,
    priors,
    recovery,
    uncertainty,
)
from papers.clax2025.names import HIDDEN, NINTH
from papers.clax2025.orders import COMPRESSIONS, WITHOUT_TABLE, between_divisions, correlations
from papers.clax2025.studies.em_gradient import click_loss_difference, posteriors, run
from twotowers import ROOT
from twotowers.files.yamls import read_yaml
from twotowers.models.names import MODELS
from twotowers.results.claims import NOT_REPRODUCED, NOT_TESTABLE, REPRODUCED, judge
from twotowers.results.published import bands, results
from twotowers.running.registry import build_drawing

JUDGED = {claim.id: claim for claim in CLAIMS}


@pytest.fixture(scope="module")
def study():
    return run(None, seed=1, pages=300).assign(setting="em_gradient", seed=1)


def test_em_and_gradient_agree_in_every_model(study):
    assert set(study["model"]) == set(HIDDEN)
    for claim in ("8", "9", "10", "41"):
        assert judge(JUDGED[claim], study).verdict == REPRODUCED, claim


def test_judges_notice_another_gradient_and_another_end(study):
    for claim, metric in (("8", "gradient_difference"), ("10", "end_difference")):
        wrong = study.assign(
            value=np.where(
                (study["metric"] == metric) & (study["model"] == "ccm"), 0.1, study["value"]
            )
        )
        assert judge(JUDGED[claim], wrong).verdict == NOT_REPRODUCED


def test_posteriors_are_those_of_tf_ranking():
    # The example of its test of ClickEMLoss.
    with jax.enable_x64(True):
        relevance, examination = jnp.array([3.0, 2, 1]), jnp.array([3.0, 3, 4])
        relevant, examined = posteriors(relevance, examination, jnp.array([True, False, False]))
        np.testing.assert_allclose(examined, [1, 0.705384, 0.93624], atol=1e-5)
        np.testing.assert_allclose(relevant, [1, 0.259496, 0.046613], atol=1e-5)


@pytest.mark.parametrize(
    "wrong",
    [
        # The prior instead of the posterior; one that forgets the clicks; both swapped.
        lambda a, e, clicked: (jax.nn.sigmoid(a), jax.nn.sigmoid(e)),
        lambda a, e, clicked: posteriors(a, e, False),
        lambda a, e, clicked: posteriors(a, e, clicked)[::-1],
    ],
)
def test_wrong_posteriors_have_another_gradient(wrong, study):
    clicks = np.arange(60).reshape(10, 6) % 3 == 0
    assert click_loss_difference(clicks, 1) < 1e-12
    found = click_loss_difference(clicks, 1, wrong)
    own = study["metric"] == "click_loss_difference"
    assert own.sum() == 1
    moved = study.assign(value=study["value"].mask(own, found))
    assert judge(JUDGED["41"], moved).verdict == NOT_REPRODUCED


def test_the_published_numbers_bear_out_what_the_authors_say():
    published = results("clax2025")
    # The authors publish no values by rank, and none of PyClick's DCTR, RCTR and GCTR.
    assert judge(JUDGED["4"], published).verdict == REPRODUCED
    assert judge(JUDGED["5"], published).verdict == REPRODUCED
    assert judge(JUDGED["2"], published).verdict == REPRODUCED
    assert judge(JUDGED["24"], published).verdict == REPRODUCED
    # Nothing is published for the study and for `recovery`.
    for claim in ("8", "11", "21", "22", "23", "25"):
        assert judge(JUDGED[claim], published).verdict == NOT_TESTABLE


def made_up(seed=1):
    rows = []
    for place, name in enumerate(MODELS):
        for prefix in ("em", "gradient", "counted"):
            for mean in (NINTH, 0.5) if prefix != "gradient" else (np.nan,):
                for metric in ("mean_perplexity", "mean_conditional_perplexity"):
                    rows.append((f"{prefix}-{name}", mean, metric, 1.3 + place / 100, seed))
    columns = ["setting", "prior_mean", "metric", "value", "seed"]
    return pd.DataFrame(rows, columns=columns).assign(position=pd.NA)


def test_items_are_drawn():
    found = made_up()
    table = fig5_1.table(found, bands("clax2025"))
    assert set(table["source"]) == {"reproduced", "published"}
    assert fig5_1.draw(table).axes
    assert priors.tex(priors.table(found[found["prior_mean"].notna()], None)).count("em-") == 10
    rows = [
        (kind, f"recovery-{name}", metric, 1.2, 1, pd.NA)
        for kind in MODELS.values()
        for name in MODELS
        for metric in ("mean_conditional_perplexity", "ndcg@10")
    ]
    columns = ["user_kind", "setting", "metric", "value", "seed", "position"]
    own = pd.DataFrame(rows, columns=columns)
    assert recovery.draw(recovery.table(own, None)).axes
    assert judge(JUDGED["11"], own).verdict == REPRODUCED
    better = own.assign(
        value=np.where(
            (own["user_kind"] == "cascade") & (own["setting"] == "recovery-dbn"), 1.1, own["value"]
        )
    )
    assert judge(JUDGED["11"], better).verdict == NOT_REPRODUCED


def test_the_study_is_a_table(study):
    text = em_gradient.tex(em_gradient.table(study, None))
    assert all(name.upper() in text for name in HIDDEN)


def by_rank(half=0.01, ninth=0.03, rounds=0.0):
    """Conditional perplexities by rank; those of EM are off by so much with either prior."""
    rows = []
    for name in HIDDEN:
        for position in range(1, 11):
            value = 1.5 - position / 30
            rows += [
                (f"gradient-{name}", np.nan, "conditional_perplexity", position, value),
                (f"em-{name}", 0.5, "conditional_perplexity", position, value - half),
                (f"em-{name}", NINTH, "conditional_perplexity", position, value + ninth),
            ]
        for metric in ("mean_perplexity", "mean_conditional_perplexity"):
            rows += [
                (f"em-{name}", NINTH, metric, pd.NA, 1.3),
                (f"em-{name}", 0.5, metric, pd.NA, 1.2),
                (f"rounds-{name}", NINTH, metric, pd.NA, 1.3 + rounds),
            ]
    columns = ["setting", "prior_mean", "metric", "position", "value"]
    first = pd.DataFrame(rows, columns=columns).assign(seed=1)
    # A division of the log without the 50 rounds.
    second = first[~first["setting"].str.startswith("rounds")]
    return pd.concat([first, second.assign(seed=2, value=second["value"] + 0.01)])


def test_ranks_and_rounds_are_judged_and_drawn():
    found = by_rank()
    for claim in ("42", "43"):
        assert judge(JUDGED[claim], found).verdict == REPRODUCED, claim
    assert judge(JUDGED["42"], by_rank(half=0.04)).verdict == NOT_REPRODUCED
    at_one = (found["setting"] == "em-ccm") & (found["prior_mean"] == 0.5) & (found.position == 3)
    moved = judge(JUDGED["42"], found.assign(value=found["value"].mask(at_one, 1.6)))
    assert (moved.verdict, moved.measured) == (NOT_REPRODUCED, "not at: CCM 3")
    assert judge(JUDGED["43"], by_rank(rounds=0.002)).verdict == NOT_REPRODUCED
    assert judge(JUDGED["43"], by_rank(rounds=-0.002)).verdict == NOT_REPRODUCED
    for claim, setting in (("42", "gradient-dbn"), ("43", "rounds-dbn"), ("43", "em-dbn")):
        lacking = found[found["setting"] != setting]
        assert judge(JUDGED[claim], lacking).verdict == NOT_TESTABLE, claim
    items = read_yaml(ROOT / "papers/clax2025/experiment.yaml")["items"]
    options = {key: value for key, value in items["by_rank"]["draw"].items() if key != "kind"}
    drawing = build_drawing("curves", "clax2025", **options)
    table = drawing.table(found, bands("clax2025"))
    assert set(table["setting"]) == set(items["by_rank"]["needs"])
    assert len(drawing.draw(table).axes) == 5
    means = found[found["setting"].isin(items["rounds"]["needs"])]
    table = priors.table(means, None)
    assert set(table["n"]) == {1}
    assert "--" in priors.tex(table)


METRICS = ("mean_perplexity", "mean_conditional_perplexity")


def compressed(move=lambda place, ratio, metric: 0.0, seeds=(1, 2)):
    """Ten models in order on full tables; on compressed ones each moved, and all of them worse."""
    rows = []
    for metric in METRICS:
        for place, name in enumerate(reversed(MODELS)):
            rows += [(f"gradient-{name}", np.nan, metric, 1.2 + place / 50, seed) for seed in seeds]
            for prefix in COMPRESSIONS if name not in WITHOUT_TABLE else ():
                for ratio in (2.0, 10.0, 100.0, 1000.0):
                    worse = 0.0001 * ratio**0.5 + move(place, ratio, metric)
                    rows.append((f"{prefix}-{name}", ratio, metric, 1.2 + place / 50 + worse, 1))
    columns = ["setting", "tower_ratio", "metric", "value", "seed"]
    return pd.DataFrame(rows, columns=columns).assign(position=pd.NA, model="a kind")


def test_orders_that_stay_have_a_tau_of_one():
    found = compressed()
    np.testing.assert_allclose(correlations(found)["value"], 1)
    np.testing.assert_allclose(between_divisions(found), 1)
    for claim in ("12", "13", "15"):
        assert judge(JUDGED[claim], found).verdict == REPRODUCED, claim
    # Both metrics alike, and nobody behind RCTR.
    for claim in ("14", "16"):
        assert judge(JUDGED[claim], found).verdict == NOT_REPRODUCED, claim


def test_orders_that_turn_are_noticed():
    # DCTR, the worst of those with a table, behind RCTR; and the others upside down.
    turned = compressed(
        lambda place, ratio, metric: (
            0.0 if ratio < 1000 or metric != METRICS[0] else 0.2 if place == 7 else 0.3 - place / 25
        )
    )
    taus = correlations(turned).set_index(["compression", "ratio", "metric"])["value"]
    assert taus["hashed", 1000.0, METRICS[0]] < 0
    assert taus["hashed", 100.0, METRICS[0]] == pytest.approx(1)
    assert judge(JUDGED["14"], turned).verdict == REPRODUCED
    assert judge(JUDGED["16"], turned).verdict == REPRODUCED
    early = compressed(lambda place, ratio, metric: -place / 25)
    assert judge(JUDGED["12"], early).verdict == NOT_REPRODUCED
    assert judge(JUDGED["15"], early).verdict == NOT_REPRODUCED
    lacking = turned[turned["setting"] != "hashed-ccm"]
    for claim in ("12", "13", "14", "15", "16"):
        assert judge(JUDGED[claim], lacking).verdict == NOT_TESTABLE, claim


def test_compressed_tables_are_drawn():
    found = compressed()
    table = fig5_2.table(found, None)
    assert set(table["source"]) == {"reproduced", "truth"}
    assert len(fig5_2.draw(table).axes) == 2
    alone = fig5_2.table(found[found["seed"] == 1], None)
    assert set(alone["source"]) == {"reproduced"}
    tenth = fig5_3.table(found, None)
    assert len(tenth) == 2 * (10 + 8)
    assert (tenth["n"] == 1).all()
    assert len(fig5_3.draw(tenth).axes) == 2


PARTS = {
    "gctr": ["rate"], "rctr": ["examination"], "dctr": ["attraction"], "cm": ["attraction"],
    "pbm": ["attraction", "examination"], "ubm": ["attraction", "examination"],
    "dcm": ["attraction", "continuation"], "ccm": ["attraction", "after_none"],
    "dbn": ["attraction", "satisfaction", "continuation"], "sdbn": ["attraction", "satisfaction"],
}  # fmt: skip


def test_coverage_is_judged_and_drawn():
    rows = [
        (f"interval-{name}", part, "coverage", 0.95, 1)
        for name, parts in PARTS.items()
        for part in parts
    ]
    rows += [(f"stopped-{name}", "attraction", "coverage", 0.7, 1) for name in ("pbm", "dbn")]
    found = pd.DataFrame(rows, columns=["setting", "part", "metric", "value", "seed"])
    for claim in ("31", "32", "33"):
        assert judge(JUDGED[claim], found).verdict == REPRODUCED, claim
    assert uncertainty.draw(uncertainty.table(found, None)).axes
    for claim, part, value in (("31", "satisfaction", 0.9), ("32", "continuation", 0.5)):
        wrong = found.assign(
            value=np.where(
                (found["setting"] == "interval-dbn") & (found["part"] == part), value, 0.95
            )
        )
        assert judge(JUDGED[claim], wrong).verdict == NOT_REPRODUCED, claim
    assert judge(JUDGED["33"], found.assign(value=0.95)).verdict == NOT_REPRODUCED
    for claim in ("31", "32", "33"):
        assert judge(JUDGED[claim], found[found["setting"] != "interval-dbn"]).verdict == (
            NOT_TESTABLE
        ), claim


# Figure 5.4. Perplexity, conditional perplexity and DCG@10 that bear out every claim.
BORNE_OUT = {
    "counts-gctr": (1.4, 1.4, None),
    "features-dctr": (1.25, 1.25, 7.5),
    "features-pbm": (1.232, 1.230, 7.7),
    "features-dcm": (1.233, 1.232, 7.75),
    "features-ccm": (1.231, 1.228, 7.52),
    "features-dbn": (1.230, 1.226, 7.78),
    "features-mixture": (1.2305, 1.2300, 7.72),
    "pairs-pbm": (1.240, 1.240, None),
    "pairs-dcm": (1.245, 1.244, None),
    "pairs-ccm": (1.239, 1.235, None),
    "pairs-dbn": (1.236, 1.230, None),
}
MEASURED = ("mean_perplexity", "mean_conditional_perplexity", "dcg@10")


def fig5_4(**changes):
    """Results like `BORNE_OUT`, some settings with other values."""
    values = BORNE_OUT | {name.replace("_", "-"): each for name, each in changes.items()}
    rows = [
        (setting, metric, value, 1)
        for setting, each in values.items()
        for metric, value in zip(MEASURED, each, strict=True)
        if value is not None
    ]
    columns = ["setting", "metric", "value", "seed"]
    return pd.DataFrame(rows, columns=columns).assign(position=pd.NA)


@pytest.mark.parametrize(
    ("claim", "changes"),
    [
        ("21", {"pairs_pbm": (1.26, 1.24, None)}),
        ("22", {"features_pbm": (1.239, 1.230, 7.7)}),
        ("22", {"features_pbm": (1.232, 1.238, 7.7)}),
        ("23", {"features_dcm": (1.233, 1.232, 7.69), "features_ccm": (1.231, 1.228, 7.71)}),
        ("24", {"features_pbm": (1.232, 1.230, 7.8)}),
        ("24", {"features_dcm": (1.233, 1.232, 7.49)}),
        ("25", {"features_mixture": (1.232, 1.23, 7.72)}),
        ("25", {"features_mixture": (1.2305, 1.23, 7.7)}),
    ],
)  # fmt: skip
def test_judges_of_features(claim, changes):
    assert judge(JUDGED[claim], fig5_4()).verdict == REPRODUCED
    assert judge(JUDGED[claim], fig5_4(**changes)).verdict == NOT_REPRODUCED


def test_figure_5_4_is_drawn():
    item = read_yaml(ROOT / "papers/clax2025/experiment.yaml")["items"]["fig5_4"]
    assert set(BORNE_OUT) == set(item["needs"])
    options = {key: value for key, value in item["draw"].items() if key != "kind"}
    drawing = build_drawing("dots", "clax2025", **options)
    table = drawing.table(fig5_4(), bands("clax2025"))
    assert set(table["source"]) == {"reproduced", "published"}
    assert len(drawing.draw(table).axes) >= 3
