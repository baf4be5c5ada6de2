"""Graded judgments and weights of clicks: what a log's fit is used for."""

import csv
import json

import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr
from sklearn.datasets import load_svmlight_file

import twotowers as tt
from tests.simulated_logs import rows_of
from twotowers.commands.main import main
from twotowers.fits.fitting import rate_prior
from twotowers.models.document_rate import DocumentRate
from twotowers.models.position_based import PositionBased

EXAMINATION = np.array([1, 0.5, 0.25, 0.0])
RELEVANCE = np.array([0.05, 0.3, 0.6, 0.9])


def pages(number: int = 6000, seed: int = 0, queries: int = 3) -> pd.DataFrame:
    """Rows of pages of four documents; users never look at the fourth position."""
    rng = np.random.default_rng(seed)
    order = rng.permuted(np.tile(np.arange(4), (number, 1)), axis=1)
    order[: number // 2, 3] = 4  # half of the pages end with a document that nobody looks at
    attraction = np.append(RELEVANCE, 0.5)[order] * EXAMINATION
    query = [f"red {k % queries}" for k in range(number)]
    documents = np.array([f"sku,{k}" for k in range(5)])[order]
    device = np.where(np.arange(number) % 2, "web", "phone")
    return rows_of(query, documents, rng.random((number, 4)) < attraction, device=device)


@pytest.fixture(scope="module")
def fitted():
    return tt.fit(pages(), "pbm", prior=(2, 0.5))


def test_judgments_follow_relevance_and_not_clicks(fitted):
    found = fitted.judgments(grades=[0.2, 0.45, 0.75]).frame()
    number = found["document"].str[-1].astype(int)
    assert (found["grade"] == number).all()
    assert spearmanr(found["relevance"], RELEVANCE[number])[0] > 0.9
    assert found["query"].is_monotonic_increasing
    assert ((found["low"] <= found["relevance"]) & (found["relevance"] <= found["high"])).all()


def test_who_was_never_examined_has_no_judgment(fitted):
    found = fitted.judgments()
    assert "sku,4" not in set(found.frame()["document"])
    assert found.left_out == 3
    naive = tt.fit(pages(), "dctr").judgments().frame()
    assert "sku,4" in set(naive["document"])  # a click rate takes it for irrelevant


def test_relevant_documents_far_down_keep_their_judgment():
    # At rank 3 a document is examined a quarter of the time, however attractive it is.
    rng, number = np.random.default_rng(5), 400
    order = rng.permuted(np.tile(np.arange(30), (number, 1)), axis=1)[:, :3]
    attraction = np.linspace(0.02, 0.98, 30)
    clicks = rng.random(order.shape) < attraction[order] * EXAMINATION[:3]
    log = pd.DataFrame({"documents": order.tolist(), "clicks": clicks.astype(int).tolist()})
    found = tt.fit(log, "pbm").judgments(min_examinations=0).frame()
    expected = np.bincount(order.ravel(), np.tile(EXAMINATION[:3], number), 30)
    ratio = found["examinations"] / expected[found["document"]]
    relevance = attraction[found["document"]]
    assert ratio[relevance < 0.5].median() == pytest.approx(1.2, abs=0.3)
    assert ratio[relevance >= 0.5].min() > 0.8  # and not less because they are attractive


def test_weights_of_a_fit_say_where_they_are_its_prior(tmp_path):
    log = apart()
    found = tt.weights(log, by="pbm")
    reasons = found.frame()["reason"].tolist()
    assert reasons == ["", "the log has no evidence; this is the fit's prior"]
    found.write(tmp_path / "weights.csv")
    rows = pd.read_csv(tmp_path / "weights.csv")
    assert rows["doubtful"].tolist() == [0, 1] * 300
    assert any(line.startswith("doubtful: 1 weight of ") for line in found.lines())


def test_shrinkage_is_the_share_of_the_prior(fitted):
    found = fitted.judgments(min_examinations=0).frame()
    np.testing.assert_allclose(found["shrinkage"], 2 / (found["examinations"] + 2))
    without = tt.fit(pages(600), "pbm", prior=None).judgments().frame()
    assert (without["shrinkage"] == 0).all()


def test_clicked_pairs_have_as_many_of_each_grade(fitted):
    judged = fitted.judgments(grades=4)
    assert judged.frame()["grade"].value_counts().to_dict() == {1: 4, 2: 4, 3: 4}
    assert "grade 0: 0, of which 0 were never clicked" in "\n".join(judged.lines())


@pytest.mark.parametrize("model", ["pbm", "ubm", "dbn", "dctr"])
def test_who_was_examined_and_never_clicked_has_grade_0(model, tmp_path):
    # Those shown rarely have the higher estimate: their prior's mean.
    rng = np.random.default_rng(2)
    order = rng.permuted(np.tile(np.arange(20), (3000, 1)), axis=1)[:, :6]
    order[:, 5] = np.where(rng.random(3000) < 0.1, 25, order[:, 5])
    clicks = (rng.random(order.shape) < 0.3) & (order < 5)
    log = pd.DataFrame({"documents": order.tolist(), "clicks": clicks.astype(int).tolist()})
    fitted = tt.fit(log, model)
    fitted.save(tmp_path / "fit.parquet")
    loaded = tt.load(tmp_path / "fit.parquet")
    for grades in (2, 4, (0.001, 0.01)):
        judged, again = (
            each.judgments(grades=grades, min_examinations=1).frame() for each in (fitted, loaded)
        )
        never = judged["document"] >= 5
        assert never.sum() == 16
        assert ((judged["grade"] == 0) == never).all()
        assert (judged["clicks"] == 0).eq(never).all()
        assert (judged["grade_low"] <= judged["grade"]).all()
        pd.testing.assert_frame_equal(judged.drop(columns="doubt"), again.drop(columns="doubt"))


def test_ties_have_the_lower_grade():
    rows = {"query": "q", "document": range(10), "position": 1, "impressions": 50}
    log = pd.DataFrame({**rows, "clicks": [0] * 3 + [5] * 6 + [40]})
    judged = tt.fit(log, "dctr").judgments().frame().set_index("document")["grade"]
    assert judged.sort_index().tolist() == [0] * 3 + [1] * 6 + [3]


def apart(number: int = 300) -> pd.DataFrame:
    """Pages of two documents, each of which has its position: nothing compares the positions."""
    log = pages(number).query("position < 3")
    return log.assign(document=log["document"] + log["position"].astype(str))


@pytest.mark.parametrize("model", ["ubm", "dbn", "dctr", "cm", "pbm"])
def test_judgments_say_where_the_log_tells_no_examination(model):
    fitted = tt.fit(apart(), model)
    noted = any("no evidence at position 2" in line for line in fitted.notes())
    assert noted == ("examination" in fitted.model.parts)
    judged = fitted.judgments(min_examinations=0)
    table = judged.frame()
    second = table["document"].str[-1] == "2"
    assert (table["doubt"] != "").tolist() == second.tolist()
    lines = "\n".join(judged.lines())
    assert f"{second.sum()} judgments of documents shown only where" in lines
    strong = tt.fit(pages(900, queries=30).query("position < 4"), model)
    assert not any("evidence" in line for line in strong.notes())
    assert (strong.judgments().frame()["doubt"] == "").all()


def test_judgments_of_a_loaded_fit_do_not_know_its_log(tmp_path):
    tt.fit(apart(), "ubm").save(tmp_path / "fit.parquet")
    judged = tt.load(tmp_path / "fit.parquet").judgments(min_examinations=0)
    assert judged.frame()["doubt"].isna().all()
    assert "a fit that was loaded does not know its log" in "\n".join(judged.lines())


@pytest.mark.parametrize("arguments", [["--min-examinations", "-1"], ["--model", "rctr"]])
def test_what_judgments_cannot_do_is_named_before_the_fit(tmp_path, monkeypatch, capsys, arguments):
    pages(30).to_csv(tmp_path / "log.csv", index=False)
    monkeypatch.setattr("twotowers.fits.fitting.fit_click_model", None)
    out = ["--out", str(tmp_path / "out")]
    assert main(["judgments", str(tmp_path / "log.csv"), *out, *arguments]) == 2
    assert arguments[0].strip("-").replace("-", "_") in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_ids_with_several_lines_are_refused_by_a_format_of_lines(tmp_path):
    log = pages(300).assign(document=lambda rows: rows["document"] + "\n")
    judged = tt.fit(log, "dctr").judgments()
    with pytest.raises(tt.InputError, match=r"document: .*several lines"):
        judged.write(tmp_path / "out", "ranklib")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"grades": "4"}, "a number of grades, or rising thresholds"),
        ({"grades": 4.0}, "a number of grades, or rising thresholds"),
        ({"grades": []}, "rising thresholds"),
        ({"grades": True}, "grades"),
        ({"grades": 1}, "grades"),
        ({"grades": [0.5, 0.2]}, "rising thresholds"),
        ({"grades": [0.5, 1.2]}, "grades"),
        ({"min_examinations": -1}, "min_examinations"),
    ],
)
def test_bad_arguments_of_judgments_are_named(fitted, options, message):
    with pytest.raises(tt.InputError, match=message):
        fitted.judgments(**options)


def read_back(path, format):
    """(query, document) -> grade, as readers of the format see them."""
    if format == "csv":
        with path.open(newline="") as file:
            return {
                (row["query"], row["docid"]): int(row["rating"]) for row in csv.DictReader(file)
            }
    if format == "ranklib":
        _, grades, queries = load_svmlight_file(str(path), n_features=1, query_id=True)
        lines = [line for line in path.read_text().splitlines() if not line.startswith("#")]
        documents = [line.split(" # ")[1] for line in lines]
        names = [line.split(": ")[1] for line in path.read_text().splitlines() if line[0] == "#"]
        return {
            (names[query - 1], document): int(grade)
            for query, document, grade in zip(queries, documents, grades, strict=True)
        }
    content = json.loads(path.read_text())
    if format == "opensearch":
        assert content["type"] == "IMPORT_JUDGMENT"
        return {
            (each["query"], one["docId"]): int(float(one["rating"]))
            for each in content["judgmentRatings"]
            for one in each["ratings"]
        }
    return {
        (group["name"], document): int(gain)
        for group in content["query_groups"]
        for gain, documents in group["relevant_documents"].items()
        for document in documents
    }


@pytest.mark.parametrize("format", ["csv", "ranklib", "rre", "opensearch"])
def test_each_format_is_read_back(fitted, tmp_path, format):
    judged = fitted.judgments()
    judged.write(tmp_path / "out", format)
    frame = judged.frame()
    pairs = zip(frame["query"], frame["document"], strict=True)
    assert read_back(tmp_path / "out", format) == dict(zip(pairs, frame["grade"], strict=True))


def test_trec_has_four_columns_and_numbers_for_queries_of_several_words(tmp_path, fitted):
    log = pages(600).assign(query=lambda rows: rows["query"].str.replace(" ", "-"))
    judged = tt.fit(log, "pbm").judgments()
    judged.write(tmp_path / "qrels.txt")
    table = pd.read_csv(tmp_path / "qrels.txt", sep=" ", header=None)
    assert table[0].tolist() == judged.frame()["query"].tolist()
    assert (table[1] == 0).all()
    assert table[3].tolist() == judged.frame()["grade"].tolist()
    judged = fitted.judgments()
    files = judged.write(tmp_path / "other.txt")
    assert [path.name for path in files] == ["other.txt", "other.queries.tsv"]
    topics = pd.read_csv(files[1], sep="\t", header=None, index_col=0)[1]
    table = pd.read_csv(files[0], sep=" ", header=None)
    assert topics[table[0]].tolist() == judged.frame()["query"].tolist()
    with pytest.raises(tt.InputError, match="trec"):
        judged.write(tmp_path / "other.txt", "trek")


def test_the_command_writes_judgments(tmp_path, capsys):
    log, out = tmp_path / "log.csv", tmp_path / "ratings.csv"
    pages(900).to_csv(log, index=False)
    arguments = ["judgments", str(log), "--out", str(out), "--to", "csv", "--model", "pbm"]
    assert main([*arguments, "--thresholds", ".2", ".5"]) == 0
    assert set(pd.read_csv(out)["rating"]) == {0, 1, 2}
    printed = capsys.readouterr().out
    assert "without a judgment: 3 pairs, too little known" in printed
    with pytest.raises(SystemExit, match="2"):
        main([*arguments, "--thresholds", ".2", "--grades", "3"])
    assert main(["judgments", str(log), "--out", str(tmp_path / "no" / "a.txt")]) == 2


# Weights


def test_weights_are_clipped_and_tell_what_they_cost():
    found = tt.weights(pages(), clip=3)
    assert str(found).splitlines() == list(found.lines())
    table = found.frame()
    np.testing.assert_allclose(table["propensity"][:3], EXAMINATION[:3], rtol=0.1)
    np.testing.assert_allclose(table["weight"][:3], [1, 1 / table["propensity"][1], 3])
    assert table["clipped"].tolist()[:3] == [False, False, True]
    weight, clicks = table["weight"][:3], table["clicks"][:3]
    assert found.effective == pytest.approx((weight @ clicks) ** 2 / (weight**2 @ clicks))
    assert found.effective < found.clicks
    full = clicks / table["propensity"][:3]
    assert found.lost == pytest.approx(1 - (weight @ clicks) / full.sum())
    assert any("clipped at 3" in line for line in found.lines())


def test_where_the_log_does_not_tell_there_is_no_weight():
    found = tt.weights(apart())
    assert found.frame()["weight"].isna().tolist() == [False, True]
    assert any("Leave out their" in line for line in found.lines())


def test_weighted_clicks_count_relevance():
    # Joachims et al. 2017, Eq. 4: sums of weights x clicks estimate relevance x impressions.
    log = pages(20_000, seed=1).query("position < 4")
    table = tt.weights(log, clip=1e6).frame().set_index("position")["weight"]
    weighted = (log["clicks"] * log["position"].map(table)).groupby(log["document"])
    rate = weighted.mean()
    np.testing.assert_allclose(rate[:4], RELEVANCE, rtol=0.1)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_rows_keep_the_order_of_the_log(tmp_path, ending):
    log, out = pages(300), tmp_path / f"weights.{ending}"
    found = tt.weights(log, bias=["position", "device"])
    found.write(out)
    written = pd.read_csv(out) if ending == "csv" else pd.read_parquet(out)
    assert written["page"].tolist() == (log["session"] + 1).tolist()
    for ours, theirs in [("query", "query"), ("document", "document"), ("click", "clicks"),
                         ("device", "device"), ("position", "position")]:  # fmt: skip
        assert written[ours].tolist() == log[theirs].tolist()
    merged = log.merge(found.frame(), how="left", on=["position", "device"])
    np.testing.assert_allclose(written["weight"], merged["weight"])


def test_counted_logs_have_a_row_per_cell(tmp_path):
    keys = ["query", "document", "position"]
    counted = pages(300).groupby(keys, as_index=False)["clicks"].agg(["sum", "count"])
    counted = counted.rename(columns={"sum": "clicks", "count": "impressions"})
    tt.weights(counted).write(tmp_path / "weights.parquet")
    written = pd.read_parquet(tmp_path / "weights.parquet")
    assert written[keys].to_numpy().tolist() == counted[keys].to_numpy().tolist()
    assert written["clicks"].tolist() == counted["clicks"].tolist()
    assert set(written["doubtful"]) <= {0, 1}


def test_weights_of_a_fit_are_its_examination():
    table = tt.weights(pages(), by="pbm").frame()
    shown = tt.fit(pages(), "pbm").examination()["estimate"]
    np.testing.assert_allclose(table["propensity"], shown / shown[0])
    assert table[["propensity", "low", "high"]].loc[0].tolist() == [1, 1, 1]


def test_the_command_writes_weights(tmp_path, capsys):
    log, out = tmp_path / "log.csv", tmp_path / "weights.csv"
    pages(300).to_csv(log, index=False)
    for per, rows in (("row", 1200), ("position", 4)):
        assert main(["weights", str(log), "--out", str(out), "--per", per]) == 0
        assert len(pd.read_csv(out)) == rows
    assert "effective" not in capsys.readouterr().err
    assert main(["weights", str(log), "--out", str(out), "--clip", ".5"]) == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"clip": 0.5}, "clip"),
        ({"by": "odds"}, "by: 'odds'"),
        ({"by": "trees"}, "by: 'trees'"),
        ({"by": "pbm", "bias": ["position", "device"]}, "as the fit has it"),
    ],
)
def test_bad_arguments_of_weights_are_named(options, message):
    with pytest.raises(tt.InputError, match=message):
        tt.weights(pages(100), **options)


# The prior


def sparse(number: int = 4000) -> pd.DataFrame:
    """Pages of documents that are seen a few times, and rarely relevant."""
    rng = np.random.default_rng(3)
    relevance = np.where(rng.random(4000) < 0.1, 0.5, 0.02)
    order = rng.integers(4000, size=(number, 3))
    clicks = rng.random(order.shape) < relevance[order] * EXAMINATION[:3]
    return pd.DataFrame({"documents": order.tolist(), "clicks": clicks.astype(int).tolist()})


def test_a_chosen_prior_predicts_better_and_knows_what_is_rare():
    parts = tt.read_log(sparse()).split({"train": 0.8, "test": 0.2})
    chosen, usual = (tt.fit(parts["train"], "pbm", prior=prior) for prior in ("chosen", (2, 0.5)))
    better = chosen.evaluate(parts["test"])["log_likelihood"]
    assert better > usual.evaluate(parts["test"])["log_likelihood"] + 0.005
    assert chosen.estimate.unknown()["attraction"] <= 0.2  # and not one in two
    # Two trials of one half make attraction high. So even the first position seems unread.
    off, far = (
        np.abs(fit.examination()["estimate"] - EXAMINATION[:3]).max() for fit in (chosen, usual)
    )
    assert off < far / 5
    successes, trials = chosen.estimate.prior.of("examination")
    assert (successes, trials) == (1, 2)


def test_the_search_for_a_prior_finds_the_law_of_relevance():
    rng = np.random.default_rng(4)
    relevance = rng.beta(0.3, 2.7, 20_000)
    order = rng.integers(len(relevance), size=(20_000, 3))
    clicks = (rng.random(order.shape) < relevance[order]).astype(int)
    log = pd.DataFrame({"documents": order.tolist(), "clicks": clicks.tolist()})
    successes, trials = tt.fit(log, "dctr", prior="chosen").estimate.prior.of("attraction")
    assert successes / trials == pytest.approx(0.1, abs=0.01)
    assert trials == pytest.approx(3, rel=0.25)


def test_a_chosen_prior_is_saved_and_shown(tmp_path, capsys):
    log = tmp_path / "log.parquet"
    sparse(600).to_parquet(log)
    out = ["--out", str(tmp_path / "fit.parquet")]
    assert main(["fit", str(log), "--model", "dbn", "--prior", "chosen", *out]) == 0
    printed = capsys.readouterr().out
    assert "prior of attraction: mean" in printed
    assert "prior of satisfaction: mean" in printed
    fitted = tt.fit(log, "dbn", prior="chosen")
    assert tt.load(out[1]).estimate.prior == fitted.estimate.prior
    assert tt.fit(log, "rctr", prior="chosen").estimate.prior.parts == {}


def test_the_rate_of_clicks_is_a_prior_that_is_never_sure():
    """Of the first position, or of all if the model knows no positions."""
    for rate, mean in ((0, 0.001), (0.25, 0.25), (1, 0.999)):
        prior = rate_prior(PositionBased(), (rate, 0.5))
        assert prior.of("attraction") == pytest.approx((2 * mean, 2))
        assert prior.of("examination") == (1, 2)
    assert rate_prior(DocumentRate(), (0.5, 0.2)).of("attraction") == (0.4, 2)


@pytest.mark.parametrize("prior", [5, (1.1,), {"mean": 0.5}, "best", (0.5, 0.5), (2, 1)])
def test_a_prior_is_two_numbers_in_range_or_a_name(prior):
    with pytest.raises(tt.InputError, match="prior: "):
        tt.fit(pages(30), "pbm", prior=prior)


def test_a_prior_is_chosen_on_pages_only():
    counted = pages(30).groupby(["query", "document", "position"], as_index=False)["clicks"].sum()
    with pytest.raises(tt.InputError, match="this log is counted"):
        tt.fit(counted.assign(impressions=99), "pbm", prior="chosen")
