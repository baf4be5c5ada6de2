"""The commands that fit click models to a log of one's own, and compare them."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import twotowers as tt
from tests.logs import clicked_rows
from twotowers.commands.main import main
from twotowers.errors import InputError
from twotowers.fitting.prior import Prior
from twotowers.logs.observed_pages import divide
from twotowers.models.names import MODELS
from twotowers.root import ROOT


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "log.csv"
    clicked_rows(600, "q" * 30).to_csv(path, index=False)
    return path


def fit(path, *options):
    return main(["fit", str(path), *map(str, options)])


def compare(path, *options):
    return main(["compare", str(path), *map(str, options)])


@pytest.mark.parametrize("model", ["pbm", "ubm", "dbn", "cm"])
def test_a_model_is_fitted_and_written(log, tmp_path, capsys, model):
    out = tmp_path / "fitted.parquet"
    assert fit(log, "--model", model, "--test", 0.2, "--out", out) == 0
    printed = capsys.readouterr().out
    assert "read as format 'rows'\n" in printed
    assert "query-document pairs, 480 pages; 120 others are predicted\n" in printed
    assert any(line.split()[0] == model for line in printed.splitlines())
    assert tt.load(out).name == model
    table = pd.read_parquet(out)
    relevance = table[table["part"] == "attraction"].set_index("document")
    assert relevance["probability"].sort_values().index.tolist() == ["a", "c", "b"]
    assert relevance["query"].unique().tolist() == ["q" * 30]
    assert (relevance["error"] > 0).all()
    assert (relevance["low"] < relevance["probability"]).all()
    assert (relevance["probability"] < relevance["high"]).all()
    assert (relevance["trials"] > 0).all()
    # Every page shows all three.
    assert relevance["impressions"].tolist() == [480] * 3
    if model == "ubm":
        jumps = table[table["part"] == "examination"]
        assert set(zip(jumps["position"], jumps["last_click"], strict=True)) == {
            (1, 0), (2, 0), (2, 1), (3, 0), (3, 1), (3, 2),
        }  # fmt: skip


def sparse(pairs=1500, order=None, seed=4):
    """Cells of pairs that are shown twice at three positions: examination 1, .7 and .4."""
    rng, rows = np.random.default_rng(seed), []
    for pair in range(pairs):
        places = [1 + pair % 3] * 2 if order == "fixed" else rng.permutation([1, 2, 3])[:2]
        chance = rng.beta(0.3, 3)
        for place in places:
            click = int(rng.random() < chance * [1, 0.7, 0.4][place - 1])
            rows.append((pair // 10, pair % 10, place, 1, click))
    names = ["query", "document", "position", "impressions", "clicks"]
    return pd.DataFrame(rows, columns=names)


def test_a_position_based_fit_says_what_pairs_say_of_examination_themselves(tmp_path, capsys):
    """A prior of a click in 50 trials decides where pairs are seen twice, and rarely clicked."""
    path, out = tmp_path / "cells.csv", tmp_path / "fit.parquet"
    cells = sparse(6000)
    cells.to_csv(path, index=False)
    assert fit(path, "--model", "pbm", "--prior", 2, "--prior-mean", 0.02, "--out", out) == 0
    said = capsys.readouterr().out
    assert "warning: examination differs from that conditional on pairs' clicks" in said
    found, curve = tt.load(out).examination(), tt.propensities(path).frame()
    ours = ["conditional", "conditional_error", "conditional_low", "conditional_high"]
    np.testing.assert_allclose(found[ours], curve[["estimate", "error", "low", "high"]])
    assert found["conditional"].tolist() == pytest.approx([1, 0.7, 0.4], abs=0.15)
    assert "conditional" not in tt.fit(path, "pbm").parameters("attraction")


def test_fits_that_agree_with_the_pairs_are_not_warned_of(log, tmp_path, capsys):
    assert fit(log, "--model", "pbm", "--positions", 5) == 0
    printed = capsys.readouterr().out
    assert "600 pages" in printed
    assert "warning" not in printed
    assert "perplexity" not in printed  # No page is held out.
    sparse(order="fixed").to_csv(tmp_path / "fixed.csv", index=False)
    assert fit(tmp_path / "fixed.csv", "--model", "pbm") == 0
    assert "warning: the log has no evidence at position 2, 3, and" in capsys.readouterr().out


def test_all_models_are_compared(log, tmp_path, capsys):
    out = tmp_path / "found.csv"
    assert compare(log, "--out", out) == 0
    lines = capsys.readouterr().out.splitlines()[-11:-1]
    table = pd.read_csv(out).set_index("model")
    assert [line.split()[0] for line in lines] == table.index.tolist()
    assert set(table.index) == set(MODELS)
    perplexity = table["perplexity"]
    assert perplexity["pbm"] < perplexity["dctr"] < perplexity["gctr"]
    # In some models a click depends on those above.
    apart = (table["conditional"] - perplexity).abs() > 1e-12
    assert apart[["ubm", "dbn", "ccm"]].all()
    assert not apart[["pbm", "dctr", "gctr"]].any()
    # The best comes first, and the others are behind it.
    assert table["log_likelihood"].is_monotonic_decreasing
    behind = table["log_likelihood"].iloc[0] - table["log_likelihood"]
    np.testing.assert_allclose(table["behind"], behind, atol=1e-12)


def test_the_prior_and_the_share_held_out_are_as_given(log, tmp_path, capsys):
    out = tmp_path / "fitted.parquet"
    options = ["--model", "dctr", "--test", 0.5, "--out", out]
    assert fit(log, *options, "--prior", 11, "--prior-mean", 0.1) == 0
    assert "300 pages; 300 others are predicted" in capsys.readouterr().out
    assert tt.load(out).estimate.prior == Prior(10, 100)


def test_bad_input_is_named_and_nothing_written(log, tmp_path, capsys):
    out = tmp_path / "fitted.parquet"
    assert fit(log, "--out", out, "--positions", 2) == 2
    said = capsys.readouterr().err
    assert f"{log}: documents: a page shows 3 documents (expected 1 to 2, the pos" in said
    for options in (["--prior", 0.5], ["--positions", 0], ["--positions", 1001], ["--test", 1]):
        assert fit(log, "--out", out, *options) == 2
    assert fit(tmp_path / "none.csv", "--out", out) == 2
    assert capsys.readouterr().err.count("error:") == 5
    assert compare(log, "--fitted", out) == 2
    assert f"{out}: there is no such file" in capsys.readouterr().err
    log.write_text("session,query,document,position,clicks\n1,2,3,4,0\n")
    assert fit(log, "--out", out, "--gaps", "error") == 2
    assert "; or --gaps keep)" in capsys.readouterr().err
    log.write_text("session,query,document,position,clicks\n")
    assert fit(log, "--out", out) == 2
    assert f"error: {log}: the log is empty" in capsys.readouterr().err
    assert not out.exists()
    log.write_text("not,a,fitted,file\n")
    with pytest.raises(InputError):
        tt.load(log)


def test_a_saved_fit_without_its_prior_is_refused(log, tmp_path):
    out = tmp_path / "fitted.parquet"
    assert fit(log, "--model", "pbm", "--out", out) == 0
    table = pq.read_table(out)
    pq.write_table(table.replace_schema_metadata({"model": "pbm", "positions": "3"}), out)
    with pytest.raises(InputError, match=r"fitted\.parquet: its metadata has no model"):
        tt.load(out)


@pytest.mark.parametrize("model", list(MODELS))
def test_a_saved_fit_predicts_as_the_fitted_one(log, tmp_path, capsys, model):
    out = tmp_path / "fitted.parquet"
    assert fit(log, "--model", model, "--test", 0.2, "--seed", 5, "--out", out) == 0
    printed = capsys.readouterr().out.splitlines()
    words = [line.split() for line in printed]
    (held_out,) = (each[1:] for each in words if each[:1] == [model] and len(each) == 4)
    # The pages that the fit did not see, in a log of their own.
    pages = pd.read_csv(log)
    rows = divide(600, {"train": 0.8, "test": 0.2}, seed=5, path=log)["test"]
    later = tmp_path / "later.csv"
    pages[pages["session"].isin(rows)].to_csv(later, index=False)
    assert compare(later, "--fitted", out) == 0
    printed = capsys.readouterr().out.splitlines()
    assert printed[1] == "120 pages"
    assert printed[-1].split()[:4] == [model, *held_out]


def test_a_saved_fit_knows_documents_by_their_ids(log, tmp_path, capsys):
    out = tmp_path / "fitted.parquet"
    assert fit(log, "--model", "pbm", "--out", out) == 0
    # An unknown document has the prior's mean. Examination is as fitted.
    rows = pd.DataFrame({"session": [1, 2], "query": ["q" * 30] * 2, "document": ["new", "a"]})
    rows.assign(position=1, clicks=1).to_csv(tmp_path / "new.csv", index=False)
    fitted = tt.load(out)
    alone, _, _ = fitted.losses(fitted.arrays(tt.read_log(tmp_path / "new.csv")))
    mean = fitted.estimate.unknown()["attraction"]
    expected = 1 / (mean * fitted.estimate.parameters["examination"][0])
    assert np.exp(alone[0, 0]) == pytest.approx(expected, abs=1e-4)
    assert compare(log, "--fitted", out, "--models", "pbm") == 2
    assert "--models: a saved fit is not fitted again" in capsys.readouterr().err


@pytest.mark.parametrize("model", ["pbm", "dbn"])
def test_large_ids_are_saved_as_they_are(tmp_path, model):
    """Floating-point numbers hold whole numbers up to 2^53, about 9e15."""
    first, rng = 10**17, np.random.default_rng(0)
    rows = [
        (page, first + page % 3, first + 10 + (page + place) % 4, place, int(rng.random() < 0.4))
        for page in range(300)
        for place in (1, 2)
    ]
    names = ["session", "query", "document", "position", "clicks"]
    log, out = tmp_path / "log.csv", tmp_path / "fitted.parquet"
    pd.DataFrame(rows, columns=names).to_csv(log, index=False)
    assert fit(log, "--model", model, "--out", out) == 0
    table = pq.read_table(out)
    found = table.filter(pc.equal(table["part"], "attraction")).select(["query", "document"])
    assert found.schema.types == [pa.int64(), pa.int64()]
    assert set(zip(*found.to_pydict().values(), strict=True)) == {row[1:3] for row in rows}
    assert len(tt.load(out).pairs) == len(found) == 12


@pytest.mark.parametrize("other", ["a", "3"])
def test_a_saved_fit_knows_numbers_among_text(tmp_path, other):
    """The log that was fitted has a text id, and the later one has not; and the reverse."""
    names = ["session", "query", "document", "position", "clicks"]
    first, later = tmp_path / "a.csv", tmp_path / "b.csv"
    rows = [(page, 7, [1, other][page % 2], 1, int(page % 2 == 0)) for page in range(100)]
    pd.DataFrame(rows, columns=names).to_csv(first, index=False)
    document = 1 if other == "a" else "a"
    rows = [(0, 7, document, 1, 1), (1, 7, 1, 1, 1)]
    pd.DataFrame(rows, columns=names).to_csv(later, index=False)
    found = tt.fit(first, "dctr").evaluate(later)["perplexity"]
    # An unknown document costs 2, a known one that was always clicked nearly 1.
    assert found == pytest.approx(1 if other == "a" else 2**0.5, abs=0.05)


@pytest.mark.parametrize(
    ("command", "out", "message"),
    [
        ("fit", "folder", "is a folder"),
        ("compare", "log.csv", "is the log itself"),
        ("count", "log.csv/inside.parquet", "cannot be written"),
        ("fit", "out.txt", "out: has another ending (expected a file .parquet)"),
        ("compare", "out.txt", "out: has another ending (expected a file .csv)"),
        ("count", "nowhere/out.parquet", "no such folder"),
    ],
)
def test_targets_are_checked_before_the_log_is_read(log, tmp_path, capsys, command, out, message):
    (tmp_path / "folder").mkdir()
    before = log.read_bytes()
    # It has no such columns.
    assert main([command, str(log), "--format", "pages", "--out", str(tmp_path / out)]) == 2
    assert message in capsys.readouterr().err
    assert log.read_bytes() == before
    assert {each.name for each in tmp_path.iterdir()} == {"folder", "log.csv"}


def test_what_is_written_beside_a_target_never_replaces_the_log(log, tmp_path, capsys):
    table = pd.read_csv(log)
    for name in ("x.parquet", "parts/a.parquet", "parts/b.parquet"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        table.to_parquet(tmp_path / name)
    for name in ("y.json", "events/y.json"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("{}")
    before = {each: each.read_bytes() for each in tmp_path.rglob("*.*")}
    for source, command, replaced in (
        ("parts", "count --out parts/a.parquet", "parts/a.parquet"),
        ("parts", "fit --out parts/b.parquet", "parts/b.parquet"),
        ("y.json", "diagnose --out y.html", "y.json"),
        ("events", "diagnose --out events/y.html", "events/y.json"),
    ):
        name, *options, out = command.split()
        assert main([name, str(tmp_path / source), *options, str(tmp_path / out)]) == 2
        assert f"{tmp_path / replaced}: is the log itself" in capsys.readouterr().err
    found = tt.diagnose(tmp_path / "x.parquet")
    (tmp_path / "d.json").mkdir()
    with pytest.raises(InputError, match=r"d\.json: is a folder"):
        found.save(tmp_path / "d.html")
    assert {each: each.read_bytes() for each in before} == before


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("compare --fitted f.parquet --test .5", "--test: a saved fit is not fitted again"),
        ("compare --fitted f.parquet --prior 5", "--prior: a saved fit is not fitted again"),
        ("fit --model pmb", "did you mean 'pbm'?"),
        ("compare --models pbm pmb", "did you mean 'pbm'?"),
        ("fit --prior chosen --prior-mean .1", "a mean of its own"),
    ],
)
def test_options_without_effect_are_refused(log, tmp_path, monkeypatch, capsys, options, message):
    monkeypatch.chdir(tmp_path)
    name, *others = options.split()
    assert main([name, str(log), *others]) == 2
    assert message in capsys.readouterr().err


def test_a_user_may_stop_a_command(log, monkeypatch, capsys):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("twotowers.commands.fit.opened", stop)
    assert fit(log) == 130
    assert capsys.readouterr().err == "stopped: nothing was written\n"


def test_a_log_without_a_click_is_refused(log, tmp_path):
    table = pd.read_csv(log).assign(clicks=0)
    for rows in (table, table.drop(columns="session")):
        with pytest.raises(InputError, match="no document was clicked"):
            tt.fit(rows, "pbm")


def test_a_saved_fit_that_knows_no_document_predicts_nothing(log, tmp_path, capsys):
    out, later = tmp_path / "fit.parquet", tmp_path / "later.csv"
    tt.fit(log, "pbm").save(out)
    table = pd.read_csv(log)
    table.assign(document="other " + table["document"]).to_csv(later, index=False)
    assert compare(later, "--fitted", out) == 2
    assert "pbm was fitted to none of the log's query-document pairs" in capsys.readouterr().err
    tt.fit(log, "rctr").save(out)  # It needs no document.
    assert compare(later, "--fitted", out) == 0


def test_a_reader_that_has_seen_enough_is_no_error(log, tmp_path):
    """As in `twotowers fit ... | head -1`."""
    command = [sys.executable, "-m", "twotowers", "fit", str(log)]
    command += ["--model", "gctr", "--out", str(tmp_path / "fitted.parquet")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT) as run:
        run.stdout.close()
        assert run.stderr.read() == b""
    assert run.returncode == 0
    assert (tmp_path / "fitted.parquet").exists()


def test_the_overview_lists_the_commands(capsys):
    with pytest.raises(SystemExit):
        main(["--help"])
    printed = capsys.readouterr().out
    for name in ("identify", "fit", "compare", "count"):
        assert f"  {name}" in printed
        with pytest.raises(SystemExit):
            main([name, "--help"])
        assert "--column" in capsys.readouterr().out
    with pytest.raises(SystemExit, match="2"):
        main(["fot"])
