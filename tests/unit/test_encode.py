"""The vectors of an encoder as features of a generated log with text."""

from functools import cache

import numpy as np
import pytest

from twotowers.experiment.config import Encoder
from twotowers.files.rankings import read_rankings
from twotowers.jobs.encode import encode, pointwise
from twotowers.logs.described import read_documents
from twotowers.standins.baidu import world_of
from twotowers.standins.baidu_files import write_part
from twotowers.towers.sequences import CLS

SMALL = {"steps": 3, "layers": 1, "width": 4, "inner": 8, "length": 16, "documents": 32}


@pytest.fixture(scope="module")
def world():
    return world_of(120, 0, {})


@pytest.fixture(scope="module")
def encoded(world, tmp_path_factory):
    @cache
    def made(**changes):
        folder = tmp_path_factory.mktemp("encoded")
        files = folder / "documents.parquet", folder / "annotations.parquet"
        losses = encode(*files, world, Encoder(**SMALL | changes), queries=8)
        return read_documents(files[0]), read_rankings(files[1]), losses

    return made


def test_vectors_follow_the_lexical_features(world, encoded, tmp_path):
    documents, annotations, losses = encoded()
    assert losses.shape == (3, 2)
    for part in ("documents", "annotations"):
        write_part(tmp_path / f"{part}.parquet", part, world, queries=8)
    plain = read_documents(tmp_path / "documents.parquet")
    assert documents.document.tolist() == plain.document.tolist()
    assert np.array_equal(documents.features[:, :12], plain.features)
    judged = read_rankings(tmp_path / "annotations.parquet")
    assert np.array_equal(annotations.features[:, :12], judged.features)
    assert annotations.label.tolist() == judged.label.tolist()
    vectors = documents.features[:, 12:]
    assert vectors.shape[1] == 4
    # Columns are standardised on documents of part 1, and the log has four parts.
    assert vectors.mean(0) == pytest.approx(0, abs=0.3)
    assert vectors.std(0) == pytest.approx(1, abs=0.3)


def test_how_an_encoder_is_trained_changes_its_vectors_and_nothing_else(encoded):
    base = encoded()[0].features
    for change in [{"dropout": True}, {"placeholders": True}, {"clicks": False}, {"mask": 0.1}]:
        other = encoded(**change)[0].features
        assert np.array_equal(other[:, :12], base[:, :12])
        assert not np.allclose(other[:, 12:], base[:, 12:]), change


def test_an_encoder_without_clicks_has_no_loss_of_clicks(encoded):
    assert (encoded(clicks=False)[2][:, 0] == 0).all()
    clicks, where = np.array([[True, False]]), np.array([[True, True]])
    assert pointwise(np.zeros((1, 2), np.float32), None, clicks, where) == pytest.approx(np.log(2))


def test_without_steps_features_are_tokens(encoded):
    documents, annotations, losses = encoded(steps=0)
    assert losses.shape == (0, 2)
    for features in (documents.features, annotations.features):
        assert features.shape[1] == 12 + SMALL["length"]
        assert (features[:, 12] == CLS).all()
        assert (features[:, 12:] % 1 == 0).all()
