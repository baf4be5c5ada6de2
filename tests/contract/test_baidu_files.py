"""Both papers on Baidu-ULTR-UVA, as files of the documented layout that a test writes."""

import numpy as np
import pyarrow as pa
import pytest

from scripts.fetch_dataset import main as fetch
from scripts.parse_dataset import main as parse
from twotowers.claims.data_provenance import UNVERIFIED
from twotowers.errors import InputError
from twotowers.experiment.config import read_config
from twotowers.experiment.paper import load_paper
from twotowers.files.yamls import read_yaml
from twotowers.jobs.fit import fit_setting
from twotowers.logs.formats.baidu import EMBEDDING
from twotowers.root import ROOT
from twotowers.splits import ANNOTATIONS, DOCUMENTS, LOG, PAGES
from twotowers.standins.baidu import PARTS, world_of
from twotowers.standins.baidu_files import annotation_rows, log_rows, write_rows
from twotowers.workflow.descriptions import needs_data
from twotowers.workflow.planning import Planner

WIDTH = 5
CONFIGS = {"dehaan2024": "baidu_uva", "hager2024": "baidu_mlm"}


def with_vectors(batches, *, width=WIDTH):
    for number, batch in enumerate(batches):
        vectors = np.random.default_rng(number).normal(size=(len(batch), width))
        half = pa.array(vectors.astype(np.float16).ravel(), pa.float16())
        offsets = pa.array(np.arange(0, width * len(batch) + 1, width), pa.int32())
        yield batch.append_column(EMBEDDING, pa.ListArray.from_arrays(offsets, half))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder, world = tmp_path_factory.mktemp("real"), world_of(240, 0, {})
    for part in range(PARTS):
        name = folder / "parts" / f"part-{part}_split-0.feather"
        write_rows(name, with_vectors(log_rows(world, part)))
    write_rows(folder / "parts" / "validation.feather", with_vectors(annotation_rows(world, 15)))
    return folder


def config_of(paper, folder, scale="smoke"):
    """The configuration of a paper, with a folder in place of null."""
    own = read_yaml(ROOT / f"config/{CONFIGS[paper]}.yaml")
    for dataset in own["datasets"].values():
        assert dataset["folder"] is None
    datasets = {
        name: entry | {"folder": str(folder)} if name in own["datasets"] else entry
        for name, entry in read_yaml(ROOT / "config.yaml")["datasets"].items()
    }
    merged = read_yaml(ROOT / "config.yaml") | own | {"datasets": datasets, "scale": scale}
    return read_config(merged)


@pytest.fixture(scope="module", params=CONFIGS)
def run(request, folder, tmp_path_factory):
    """A paper, the plan of its run, and the files that the jobs of its data set made."""
    config = config_of(request.param, folder)
    paper = load_paper(request.param, config)
    planner = Planner(config, {request.param: paper})
    (dataset,) = {name for each in paper.settings.values() for name in each.log.datasets}
    out, jobs = tmp_path_factory.mktemp("raw"), planner.jobs()
    manifest = out / "manifest.json"
    asked = dict(jobs["fetch"][dataset]["params"])
    asked.pop("code")
    fetch([], [manifest], **asked)
    for part in (PAGES, DOCUMENTS, ANNOTATIONS):
        asked = dict(jobs["parse"][f"{dataset}|{part}"]["params"])
        asked.pop("code")
        parse([manifest], [out / f"{part}.parquet"], **asked)
    return paper, planner, {LOG: out / "pages.parquet"} | {
        part: out / f"{part}.parquet" for part in (DOCUMENTS, ANNOTATIONS)
    }  # fmt: skip


def test_files_without_checksums_are_unverified(run):
    paper, planner, _ = run
    found = needs_data(planner, paper.key)
    # The knobs of hager2024 are turned on logs of their own.
    assert {kind for name, kind in found.items() if name != "knobs"} == {UNVERIFIED}


def test_settings_fit_real_files(run):
    paper, _, files = run
    names = {"dehaan2024": ["two-tower", "policy"], "hager2024": ["baidu-list-ips", "bm25"]}
    for name in names[paper.key]:
        found = fit_setting(files, paper.settings[name], seed=1).set_index("metric")["value"]
        assert 0 < found["ndcg@10"] < 1, name
        assert 0.5 < found["logged_ndcg@10"] <= 1, name


def test_a_missing_file_is_named(folder, tmp_path):
    (tmp_path / "parts").mkdir()
    with pytest.raises(InputError, match="part-"):
        fetch([], [tmp_path / "m.json"], source="baidu_mlm_uva", folder=str(tmp_path))
