"""Scripts of rules on tiny inputs, called as the runner calls them; and the runner itself.

Tests of the pipeline run those of policies, clicks, fits, studies, items and claims.
"""

import gc
import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from scripts import draw_item, fetch_dataset, generate_standin, parse_dataset, preprocess, runner
from tests.items import experiment
from twotowers.claims.statistics import write_results
from twotowers.datasets.preprocess import preprocess_ultra
from twotowers.errors import InputError
from twotowers.experiment.config import DataSet
from twotowers.experiment.objects import dumped
from twotowers.files.rankings import read_rankings
from twotowers.logs.sessions import seen_in
from twotowers.splits import LOG, SPLITS
from twotowers.workflow.records import read


def test_a_drawing_that_finds_nothing_says_so(tmp_path):
    lane = {"strength": 1.0, "temperature": 0.0, "weighting": "none"}
    rows = pd.DataFrame({"metric": ["ndcg@10", "position_bias"], "position": [None, 5], **lane})
    write_results(rows.assign(value=0.5), tmp_path / "fit", paper="p", setting="s", seed=1)
    item = experiment("hager2025").items["grid"]
    column = {"heading": "nDCG@10", "metric": "position_bias", "position": 99}
    draw = item.parameters | {"columns": [column]}
    job = {"module": item.drawing("hager2025").module.__name__, "drawing": draw}
    job |= {"paper": "hager2025", "name": "", "note": ""}
    outputs = SimpleNamespace(tex=tmp_path / "none.tex", csv=tmp_path / "none.csv")
    with pytest.raises(InputError, match="grid finds nothing to draw in the results"):
        draw_item.main([tmp_path / "fit"], outputs, **job)
    assert not outputs.csv.exists()


@pytest.mark.parametrize("draw", [{"metric": "ndgc"}, {"metrics": {"ndcg": "nDCG", "ndgc": "x"}}])
def test_a_misspelt_metric_among_others_is_refused(draw):
    with pytest.raises(InputError, match="did you mean 'ndcg'"):
        draw_item.check_metrics({"kind": "sweep", **draw}, {"ndcg", "epochs"})
    draw_item.check_metrics({"metrics": ["ndcg"], "metric": "epochs"}, {"ndcg", "epochs"})


def test_ultras_preparation_of_a_stand_in_is_that_of_all_splits_at_once(tmp_path):
    raw, ready = (
        {split: tmp_path / f"{kind}-{split}.parquet" for split in SPLITS}
        for kind in ("raw", "ready")
    )
    for split, path in raw.items():
        settings = {"standin": "rankings", "name": "mslr30k", "size": 8, "seed": 0}
        generate_standin.main([], [path], split=split, **settings)
    steps = {"prepare": "ultra", "log10": True}
    preprocess.main(SimpleNamespace(**raw), SimpleNamespace(**ready), steps=steps, label_max=4)
    whole = {split: read_rankings(path) for split, path in raw.items()}
    for split, expected in preprocess_ultra(whole, logarithm=True).items():
        found = read_rankings(ready[split])
        for name in ("query", "document", "label", "features"):
            np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))


# Click logs


def test_a_stand_in_with_text_has_a_law(tmp_path):
    def made(law):
        settings = {"standin": "baidu_files", "name": "any", "size": 20, "seed": 0}
        texts, path = {"sessions": 300, "law": law}, tmp_path / "pages.parquet"
        generate_standin.main([], [path], split="pages", texts=texts, **settings)
        return pq.read_table(path)

    assert not made({"agreement": 1}).equals(made({}))
    with pytest.raises(InputError, match="'agreemnt' is unknown"):
        made({"agreemnt": 1})


def test_cells_of_several_parts_are_added_up_by_bias_features(tmp_path):
    names = "split,query,document,position,impressions,clicks,device"
    rows = "\na,7,x,1,20,3,tv\nb,7,x,1,10,0,tv\nb,7,x,1,10,1,phone\n"
    (tmp_path / "log.csv").write_text(names + rows)
    declared = {"name": "mylog", "format": "cells", "splits": {LOG: "log.csv"}}
    declared |= {"reading": {"bias": ["device"]}}
    source, manifest = DataSet.model_validate({"source": declared}).of, tmp_path / "manifest.json"
    fetch_dataset.main([], [manifest], source=dumped(source), folder=str(tmp_path))
    facts = {"format": "cells", "label_max": None, "width": None, "reading": source.reading}
    parse_dataset.main([manifest], [tmp_path / "log.parquet"], split=LOG, **facts)
    found = [[*row.values()][2:] for row in pq.read_table(tmp_path / "log.parquet").to_pylist()]
    assert found == [[1, "phone", 10, 1], [1, "tv", 30, 3]]
    assert seen_in(tmp_path / "log.parquet") == {"impressions": 40, "clicks": 4}


# The runner


@pytest.fixture(autouse=True)
def searched_for_garbage():
    """A job freezes imported modules for the garbage collector. Then its process ends."""
    yield
    gc.unfreeze()


def job(folder: Path, **changes) -> SimpleNamespace:
    """Snakemake's object for a script."""
    parts = {
        "rule": "parse",
        "input": [folder / "manifest.json"],
        "output": [folder / "out" / "train.parquet"],
        "params": {"code": "digest", "split": "train", "reading": {}}
        | {"format": "letor", "label_max": 4, "width": 3},
        "log": [str(folder / "logs" / "parse" / "train.log")],
        "resources": {"mem_mb": 1000},
    }
    return SimpleNamespace(**{**parts, **changes})


def test_the_runner_logs_what_a_job_says_and_its_gpu(tmp_path, capfd, monkeypatch):
    def main(inputs, outputs, *, split, format, label_max, width, reading):
        print("to stdout", split, format, label_max, width)
        outputs[0].parent.mkdir()
        outputs[0].write_text(str(inputs[0]))

    monkeypatch.setattr(runner, "use_own_gpu", lambda: "GPU-b")
    now = job(tmp_path, resources={"gpu": 1})
    runner.run(main, now)
    log = read(now.log[0])
    assert log["rule"] == "parse"
    params = {name: value for name, value in now.params.items() if name != "code"}
    assert json.loads(log["parameters"]) == params
    assert log["code"].startswith("digest, version ")
    assert log["outcome"] == "done"
    assert "\nGPU GPU-b\nto stdout train letor 4 3\n" in Path(now.log[0]).read_text()
    assert now.output[0].read_text() == str(tmp_path / "manifest.json")
    assert capfd.readouterr() == ("", "")


def test_a_failure_is_one_readable_line_with_the_rest_in_the_log(tmp_path, capfd):
    def main(inputs, outputs, **params):
        raise InputError("2 is wrong", path="data.txt", line=3, expected="1")

    now = job(tmp_path)
    with pytest.raises(SystemExit) as exit_:
        runner.run(main, now)
    assert exit_.value.code == 1
    out, err = capfd.readouterr()
    assert out == ""
    lines = [line for line in err.splitlines() if line]
    assert lines == [
        "parse failed: InputError: data.txt:3: 2 is wrong (expected 1)",
        f"(log: {now.log[0]})",
    ]
    assert "Traceback (most recent call last)" in Path(now.log[0]).read_text()
