"""The door that fits click models to a log of one's own."""

import numpy as np
import pandas as pd
import pytest

from twotowers.clickmodels import main, read_fitted
from twotowers.errors import InputError
from twotowers.models.names import MODELS


@pytest.fixture
def log(tmp_path):
    """Rows with text ids: document b attracts, a does not; the second position is seen half."""
    rng, rows = np.random.default_rng(0), []
    for page in range(600):
        order = rng.permutation(["a", "b", "c"])
        for place, document in enumerate(order, start=1):
            chance = {"a": 0.1, "b": 0.8, "c": 0.4}[document] * {1: 1, 2: 0.5, 3: 0.4}[place]
            rows.append((page, "q" * 30, document, place, int(rng.random() < chance)))
    names = ["session", "query", "document", "position", "clicks"]
    path = tmp_path / "log.csv"
    pd.DataFrame(rows, columns=names).to_csv(path, index=False)
    return path


@pytest.mark.parametrize("model", ["pbm", "ubm", "dbn", "cm"])
def test_a_model_is_fitted_and_written(log, tmp_path, capsys, model):
    out = tmp_path / "fitted.parquet"
    options = ["--format", "rows", "--model", model, "--positions", "3"]
    assert main([str(log), *options, "--out", str(out)]) == 0
    printed = capsys.readouterr().out
    assert "480 pages to fit, 120 held out" in printed
    assert printed.splitlines()[-1].split()[0] == model
    name, table = read_fitted(out)
    assert name == model
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


def test_all_models_are_compared(log, capsys):
    assert main([str(log), "--format", "rows", "--positions", "3", "--compare"]) == 0
    lines = capsys.readouterr().out.splitlines()[-10:]
    assert [line.split()[0] for line in lines] == list(MODELS)
    perplexity = {line.split()[0]: float(line.split()[1]) for line in lines}
    assert perplexity["pbm"] < perplexity["dctr"] < perplexity["gctr"]


def test_bad_input_is_told_and_nothing_written(log, tmp_path, capsys):
    out = tmp_path / "fitted.parquet"
    options = ["--format", "rows", "--out", str(out)]
    assert main([str(log), *options, "--positions", "2"]) == 2
    assert main([str(tmp_path / "none.csv"), *options]) == 2
    assert main([str(log), *options, "--prior", "0.5"]) == 2
    assert capsys.readouterr().err.count("error:") == 3
    assert not out.exists()
    log.write_text("not,a,fitted,file\n")
    with pytest.raises(InputError):
        read_fitted(log)
