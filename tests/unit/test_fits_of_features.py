"""Fits of real logs whose documents are known by features, measured on annotations."""

from types import SimpleNamespace

import numpy as np
import pytest

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


def test_annotations_are_measured_as_a_loop_measures_them(files):
    judged = annotated(files, 1.0)
    weights = np.random.default_rng(0).normal(size=WIDTH).astype(np.float32)
    split = observed(files)["test"]
    rows = measure(Fitted(scores=lambda inputs: inputs @ weights), split, 0, judged)
    lists = read_rankings(files[ANNOTATIONS])
    gains, shares = [], []
    for start, end in zip(lists.offsets, lists.offsets[1:], strict=False):
        order = np.argsort(-(lists.features[start:end] @ weights))
        discount = 1 / np.log2(2 + np.arange(10))
        gain = 2 ** lists.label[start:end] - 1
        gains.append(gain[order][:10] @ discount)
        shares.append(gains[-1] / max(-np.sort(-gain)[:10] @ discount, 1e-9))
    found = {metric: value for metric, _, value in rows}
    assert found["dcg@10"] == pytest.approx(np.mean(gains), rel=1e-5)
    assert found["ndcg@10"] == pytest.approx(np.mean(shares), rel=1e-5)
    assert 0 < found["mrr@10"] <= 1
    assert measure(Fitted(scores=None), split, 0, judged) == []
