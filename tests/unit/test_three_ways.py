"""From Python, by the command and from YAML, a fit to one's own log has the same numbers."""

import numpy as np
import pandas as pd
import pytest
import yaml

import twotowers as tt
from tests.simulated_logs import linear_log
from twotowers.commands.main import main
from twotowers.experiment.config import read_config
from twotowers.experiment.objects import dumped, loaded
from twotowers.experiment.paper import load_paper
from twotowers.files.yamls import read_yaml
from twotowers.jobs.fit import fit_setting
from twotowers.root import ROOT

PAGES, QUERIES, SHOWN = 600, 12, 3
TRAINING = {"epochs": 2, "learning_rate": 0.02, "batch": 64, "patience": 3, "min_delta": 1e-6}
WAYS = {
    "counts": {
        "python": tt.TwoTower(tt.Dense([4]), click_model="pbm"),
        "command": ["--model", "pbm", "--tower", "4"],
        "yaml": {"kind": "position_based", "tower": {"kind": "dense", "layers": [4]}},
    },
    "pages": {
        "python": tt.TwoTower(
            "linear",
            click_model="pbm+dbn",
            parts={"continuation": tt.Tower("linear", reads="both"), "satisfaction": "embedding"},
        ),
        "command": [
            *("--model", "pbm+dbn", "--tower", "linear"),
            *("--part", "continuation=linear@both", "--part", "satisfaction=embedding"),
            *("--bias", "height"),
        ],
        "yaml": {
            "kind": "mixed",
            "models": ["pbm", "dbn"],
            "tower": "linear",
            "parts": {
                "continuation": {"kind": "linear", "reads": "both"},
                "satisfaction": "embedding",
            },
        },
    },
}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A click log and a table of features, as files."""
    folder, rng = tmp_path_factory.mktemp("own"), np.random.default_rng(0)
    log, table = linear_log(rng, PAGES, QUERIES, SHOWN)
    log = log.assign(height=rng.integers(1, 5, len(log)))
    log.to_parquet(folder / "log.parquet")
    table.to_csv(folder / "features.csv", index=False)
    return {"log": str(folder / "log.parquet"), "features": str(folder / "features.csv")}


@pytest.mark.parametrize("way", WAYS)
def test_the_same_numbers(files, way, tmp_path):
    own, bias = WAYS[way], ["height"] if way == "pages" else []
    how = {"features": files["features"], "bias": bias, "training": TRAINING}
    ours = tt.fit(files["log"], own["python"], seeds=[3], **how)
    held_out = ours.evaluate().iloc[0]

    words = ["--seeds", "3", "--training", *(f"{name}={each}" for name, each in TRAINING.items())]
    out = tmp_path / "towers.parquet"
    command = ["fit", files["log"], *own["command"], "--features", files["features"], *words]
    assert main([*command, "--out", str(out)]) == 0
    again = tt.load(out)
    pages = pd.read_parquet(files["log"]).head(60)
    pd.testing.assert_frame_equal(
        again.predict(pages, files["features"]), ours.predict(pages), check_exact=True
    )

    from_yaml = by_yaml(files, own["yaml"], bias, tmp_path).set_index("metric")["value"]
    names = {"perplexity": "mean_perplexity", "log_likelihood": "log_likelihood_clax"}
    if way == "pages":
        for ours_of, theirs in names.items():
            assert from_yaml[theirs] == pytest.approx(held_out[ours_of], abs=1e-12)
    else:
        assert from_yaml["mean_perplexity"] == pytest.approx(held_out["perplexity"])
        curve = ours.examination()["estimate"]
        np.testing.assert_array_equal(from_yaml["position_bias"], curve)


def by_yaml(files, model, bias, folder) -> pd.DataFrame:
    """The results of a paper that fits the log, as its job writes them."""
    scale = {"seeds": [3], "sessions": {"train": 1, "validation": 1, "test": 1}}
    paper = {
        "title": "Our log",
        "citation": "Ourselves",
        "datasets": {},
        "positions": SHOWN,
        "scales": dict.fromkeys(("smoke", "laptop", "paper"), scale),
        "training": {"ours": TRAINING},
        "logs": {
            "ours": {
                "from": "file",
                "path": files["log"],
                "features": files["features"],
                **({"bias": bias} if bias else {}),
            }
        },
        "settings": {"fit": {"log": "ours", "model": model, "training": "ours"}},
        "items": {},
    }
    file = folder / "papers" / "ours" / "experiment.yaml"
    file.parent.mkdir(parents=True)
    file.write_text(yaml.safe_dump(paper))
    config = read_config(read_yaml(ROOT / "config.yaml") | {"papers": ["ours"]})
    setting = load_paper("ours", config, folder).settings["fit"]
    inputs = setting.log.fit_inputs(None, 3, setting)
    assert {*inputs.values()} == {*files.values()}
    return fit_setting(inputs, loaded(dumped(setting)), seed=3)
