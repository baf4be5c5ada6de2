"""The chapter on CLAX: its study, its claims and its published numbers."""

import numpy as np
import pandas as pd
import pytest

from papers.clax2025.claims import CLAIMS
from papers.clax2025.items import em_gradient, fig5_1, priors, recovery
from papers.clax2025.names import HIDDEN, NINTH
from papers.clax2025.studies.em_gradient import run
from twotowers.models.names import MODELS
from twotowers.results.claims import NOT_REPRODUCED, NOT_TESTABLE, REPRODUCED, judge
from twotowers.results.published import bands, results

JUDGED = {claim.id: claim for claim in CLAIMS}


@pytest.fixture(scope="module")
def study():
    return run(None, seed=1, pages=300).assign(setting="em_gradient", seed=1)


def test_em_and_gradient_agree_in_every_model(study):
    assert set(study["model"]) == set(HIDDEN)
    for claim in ("8", "9", "10"):
        assert judge(JUDGED[claim], study).verdict == REPRODUCED, claim


def test_judges_notice_another_gradient_and_another_end(study):
    for claim, metric in (("8", "gradient_difference"), ("10", "end_difference")):
        wrong = study.assign(
            value=np.where(
                (study["metric"] == metric) & (study["model"] == "ccm"), 0.1, study["value"]
            )
        )
        assert judge(JUDGED[claim], wrong).verdict == NOT_REPRODUCED


def test_the_published_numbers_bear_out_what_the_authors_say():
    published = results("clax2025")
    # What is published lacks DCTR, RCTR and GCTR of PyClick, and values by rank.
    assert judge(JUDGED["4"], published).verdict == REPRODUCED
    assert judge(JUDGED["5"], published).verdict == REPRODUCED
    assert judge(JUDGED["2"], published).verdict == REPRODUCED
    # Of the study and of recovery nothing is published.
    for claim in ("8", "11"):
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
