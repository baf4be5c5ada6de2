"""Both papers on Baidu-ULTR-UVA, as files of the documented layout that a test writes."""

import gzip
from collections import defaultdict
from dataclasses import replace
from functools import cache, partial

import numpy as np
import pyarrow as pa
import pytest

from papers.hager2024.studies import counts
from scripts.encode import main as encode
from scripts.fetch_dataset import main as fetch
from scripts.parse_dataset import main as parse
from twotowers.claims.data_provenance import UNVERIFIED
from twotowers.errors import InputError
from twotowers.experiment.config import Encoder, read_config
from twotowers.experiment.paper import load_paper
from twotowers.files.yamls import read_yaml
from twotowers.jobs.encode import encode as standins_vectors
from twotowers.jobs.fit import fit_setting
from twotowers.logs.described import read_documents
from twotowers.logs.formats import baidu
from twotowers.logs.formats.baidu import EMBEDDING, LEXICAL, shown_texts
from twotowers.root import ROOT
from twotowers.splits import ANNOTATIONS, DOCUMENTS, IDS, LOG, PAGES, TEXTS
from twotowers.standins.baidu import PARTS, world_of
from twotowers.standins.baidu_files import EMPTY, SEARCHED, annotation_rows, log_rows, write_rows
from twotowers.standins.baidu_texts import VOCABULARY
from twotowers.towers.sequences import CLS, PAD, SEP
from twotowers.workflow.dataset_jobs import dataset_jobs
from twotowers.workflow.descriptions import needs_data
from twotowers.workflow.planning import Planner

WIDTH, SESSIONS, QUERIES = 5, 240, 15
SCALES = "smoke", "laptop", "paper"


def with_vectors(batches, *, width=WIDTH):
    for number, batch in enumerate(batches):
        vectors = np.random.default_rng(number).normal(size=(len(batch), width))
        half = pa.array(vectors.astype(np.float16).ravel(), pa.float16())
        offsets = pa.array(np.arange(0, width * len(batch) + 1, width), pa.int32())
        yield batch.append_column(EMBEDDING, pa.ListArray.from_arrays(offsets, half))


def lines_of(batches):
    """Lines as Baidu published them, with their placeholders."""
    titles = {(EMPTY,): baidu.EMPTY, SEARCHED: baidu.SEARCHED}
    before = None
    for row in (row for batch in batches for row in batch.to_pylist()):
        title, *texts = (
            tuple(token - 10 for token in row[name]) for name in ("title", "query", "abstract")
        )
        query, abstract = ("\x01".join(map(str, text)) for text in texts)
        if row["query_no"] != before:
            yield f"{row['query_id']}\t{query}\n"
        before = row["query_no"]
        title = titles.get(title, "\x01".join(map(str, title)))
        cells = [row["position"], row["url_md5"], title, abstract, 0, row["click"], 0, 0]
        yield "\t".join(map(str, cells)) + "\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder, world = tmp_path_factory.mktemp("real"), world_of(SESSIONS, 0, {})
    for part in range(PARTS):
        name = folder / "parts" / f"part-{part}_split-0.feather"
        write_rows(name, with_vectors(log_rows(world, part)))
        lines = "".join(lines_of(log_rows(world, part, placeholders=True)))
        (folder / f"part-{part:05}.gz").write_bytes(gzip.compress(lines.encode()))
    write_rows(
        folder / "parts" / "validation.feather", with_vectors(annotation_rows(world, QUERIES))
    )
    return folder


def plan_of(folder, scale):
    """The plan of both papers, with a folder in place of null."""
    own = read_yaml(ROOT / "config/baidu_mlm.yaml")
    for dataset in own["datasets"].values():
        assert dataset["folder"] is None
    datasets = {
        name: entry | {"folder": str(folder)} if name in own["datasets"] else entry
        for name, entry in read_yaml(ROOT / "config.yaml")["datasets"].items()
    }
    given = read_yaml(ROOT / "config.yaml") | own | {"datasets": datasets, "scale": scale}
    config = read_config(given)
    return Planner(config, {name: load_paper(name, config) for name in config.papers})


def run(main, job, inputs, outputs):
    """A script with the parameters of its job."""
    main(inputs, outputs, **{key: each for key, each in job["params"].items() if key != "code"})


@pytest.fixture(scope="module")
def files(folder, tmp_path_factory):
    """The plans of both papers, and what the jobs of a data set make of its files."""
    plan = cache(partial(plan_of, folder))

    @cache
    def made(scale, dataset):
        out, jobs = tmp_path_factory.mktemp(dataset), defaultdict(dict)
        dataset_jobs(plan(scale), jobs, dataset)
        names = DOCUMENTS, ANNOTATIONS, PAGES, IDS
        found = {part: out / f"{part}.parquet" for part in names}
        run(fetch, jobs["fetch"][dataset], [], [manifest := out / "manifest.json"])
        if encoding := jobs["encode"].get(dataset):
            run(encode, encoding, [manifest], [found[part] for part in names[:2]])
        for part, path in found.items():
            if not path.exists():
                run(parse, jobs["parse"][f"{dataset}|{part}"], [manifest], [path])
        return found | {LOG: found[PAGES]}

    return plan, made


@pytest.mark.parametrize("scale", SCALES)
def test_all_that_both_papers_need_is_in_the_files(files, scale):
    plan = files[0](scale)
    for paper in plan.papers:
        found = needs_data(plan, paper)
        # The knobs of hager2024 are turned on logs of their own.
        assert {kind for name, kind in found.items() if name != "knobs"} == {UNVERIFIED}


@pytest.mark.parametrize(
    ("paper", "name"),
    [
        ("dehaan2024", "two-tower"),
        ("dehaan2024", "policy"),
        ("dehaan2024", "network"),
        ("hager2024", "baidu-list-ips"),
        ("hager2024", "bm25"),
    ],
)
def test_settings_fit_real_files(files, paper, name):
    plan, made = files
    setting = plan("smoke").papers[paper].settings[name]
    found = fit_setting(made("smoke", setting.log.dataset), setting, seed=1)
    values = found.set_index("metric")["value"]
    assert 0 < values["ndcg@10"] < 1
    assert 0.5 < values["logged_ndcg@10"] <= 1


def fitted(files, setting):
    """A cross-encoder that is as small as can be."""
    small = {"steps": 2, "layers": 1, "width": 8, "inner": 8, "documents": 32}
    method = replace(setting.method, options=setting.method.options | small)
    return fit_setting(files, setting.model_copy(update={"method": method}), seed=1)


def test_cross_encoders_read_the_tokens_of_real_files(files):
    """As published, but for sizes: a stand-in's tokens, read from files, have the same numbers."""
    plan, made = files
    setting = plan("laptop").papers["hager2024"].settings["bert-two-tower"]
    assert setting.log.dataset == "baidu_mlm_tokens"
    found = made("laptop", "baidu_mlm_tokens")
    documents = read_documents(found[DOCUMENTS]).features
    assert documents.shape[1] == len(LEXICAL) + 48
    world = world_of(SESSIONS, 0, {})
    tokens = np.unique(documents[:, len(LEXICAL) :]).astype(int)
    assert set(tokens) - {PAD, SEP, CLS} <= set(np.arange(VOCABULARY) + 10)
    out = found[DOCUMENTS].parent / "own"
    out.mkdir()
    own = [out / "documents.parquet", out / "annotations.parquet"]
    standins_vectors(*own, world, Encoder(steps=0, length=48), queries=QUERIES)
    np.testing.assert_array_equal(documents, read_documents(own[0]).features)
    values = fitted(found, setting).set_index("metric")["value"]
    assert 0 < values["ndcg@10"] < 1
    assert 0 < values["held_out_loss"] < 3


def test_cross_encoders_train_on_the_lines_that_baidu_published(files, folder, tmp_path):
    plan, made = files
    published, tables = (
        [row for batch in shown_texts([path]) for row in batch.to_pylist()]
        for path in (folder / "part-00001.gz", folder / "parts/part-1_split-0.feather")
    )
    assert published == tables
    laptop, jobs = plan("laptop"), defaultdict(dict)
    setting = laptop.papers["hager2024"].settings["bert-point-naive"]
    inputs = setting.log.fit_inputs(laptop.files("hager2024"), 1, setting)
    assert set(inputs) == {LOG, DOCUMENTS, ANNOTATIONS, TEXTS}
    given = made("laptop", "baidu_mlm_tokens") | {TEXTS: tmp_path / "manifest.json"}
    dataset_jobs(laptop, jobs, "baidu_mlm_texts")
    run(fetch, jobs["fetch"]["baidu_mlm_texts"], [], [given[TEXTS]])
    splits = setting.log.splits(given, [{}], seed=1, setting=setting)
    parts = [f"part-0000{number}.gz" for number in (1, 2, 3)]
    assert [path.name for path in splits["train"].texts] == parts
    (folder / parts[0]).write_bytes(gzip.compress(b"7\t4\n1\tabc\n"))
    with pytest.raises(InputError, match=r"part-00001.gz: line 2: .* is no query, and no result"):
        fitted(given, setting)


def test_real_files_tell_documents_and_shared_queries(files):
    plan, made = files
    study = plan("smoke").papers["hager2024"].studies["counts"]
    inputs = plan("smoke").study_inputs({}, "hager2024", study)
    assert set(inputs) == {PAGES, ANNOTATIONS, IDS}
    found = made("smoke", study.dataset)
    values = counts.run(found, seed=1).set_index(["part", "metric"])["value"]
    for part in ("train", "test", "annotations"):
        assert 0 < values[part, "documents"] <= values[part, "pairs"]
    shared = [values[part, "percent_shared"] * values[part, "queries"] / 100
              for part in ("train", "annotations")]  # fmt: skip
    assert shared[0] == pytest.approx(shared[1])
    assert values["annotations", "percent_shared"] < 50
