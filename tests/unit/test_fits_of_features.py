"""Fits of real logs whose documents are known by features, measured on annotations."""

from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest

from twotowers.claims.metrics import of_each_query
from twotowers.experiment.fields import read
from twotowers.experiment.paper import AnyLog
from twotowers.files.rankings import read_rankings
from twotowers.jobs.fit import annotated
from twotowers.jobs.measures import measure
from twotowers.logs.described import read_documents
from twotowers.logs.observed_pages import observed_pages
from twotowers.methods.task import Fitted
from twotowers.splits import ANNOTATIONS, DOCUMENTS, LOG
from twotowers.standins.uva import NAME, WIDTH, write

SHARES = {"train": 0.6, "validation": 0.2, "test": 0.2}
REAL = read(AnyLog, {"from": "dataset", "dataset": "uva", "features": True, "split": SHARES})


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("raw")
    paths = {part: folder / f"{part}.parquet" for part in (LOG, DOCUMENTS, ANNOTATIONS)}
    for part, size in ((LOG, 800), (DOCUMENTS, 800), (ANNOTATIONS, 30)):
        write(paths[part], part, name=NAME, size=size, seed=1)
    return paths


def observed(files, features=1.0):
    setting = SimpleNamespace(model=SimpleNamespace(read=features))
    return REAL.splits(files, [{}], seed=1, setting=setting)


@pytest.mark.parametrize(("share", "width"), [(1.0, WIDTH), (0.5, WIDTH // 2)])
def test_inputs_are_the_features_of_what_was_shown(files, share, width):
    splits = observed(files, share)
    pages = observed_pages(files[LOG], SHARES, positions=10, seed=1)
    described = read_documents(files[DOCUMENTS])
    by_number = dict(zip(described.document.tolist(), described.features, strict=True))
    found = splits["test"]
    assert found.inputs.shape == (*pages.pair.shape, width)
    rng = np.random.default_rng(0)
    for ranking in rng.choice(len(pages.pair), 50):
        for place in np.flatnonzero(pages.where[ranking]):
            number = pages.ids["document"].to_numpy()[pages.pair[ranking, place]]
            expected = by_number[int(number)][:width]
            np.testing.assert_array_equal(found.inputs[ranking, place], expected)


def test_annotations_are_measured_as_their_lists_one_by_one(files):
    judged = annotated(files, 1.0)
    weights = np.random.default_rng(0).normal(size=WIDTH).astype(np.float32)
    split = observed(files)["test"]
    rows = measure(Fitted(scores=lambda inputs: inputs @ weights), split, 0, judged)
    lists = read_rankings(files[ANNOTATIONS])
    expected = []
    for start, end in pairwise(lists.offsets):
        scores, where = lists.features[None, start:end] @ weights, np.ones((1, end - start), bool)
        expected.append(of_each_query(scores, lists.label[None, start:end], where=where))
    found = {metric: value for metric, _, value in rows}
    for metric in ("dcg@10", "ndcg@10", "mrr@10"):
        assert found[metric] == pytest.approx(np.mean([each[metric] for each in expected]))
    assert measure(Fitted(scores=None), split, 0, judged) == []
