"""The stand-in for Baidu-ULTR-UVA: layout, and the published figures of the real set."""

import numpy as np
import pytest

from twotowers.files.rankings import read_rankings
from twotowers.logs.described import read_documents
from twotowers.logs.sessions import read_sessions
from twotowers.randomness import stream
from twotowers.splits import ANNOTATIONS, DOCUMENTS, PAGES
from twotowers.standins.uva import CANDIDATES, NAME, WHOLE, WIDTH, features_of, rotation, write

PARTS = {PAGES: 700, DOCUMENTS: 700, ANNOTATIONS: 20}


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    folder = tmp_path_factory.mktemp("raw")
    for part, size in PARTS.items():
        write(folder / f"{part}.parquet", part, name=NAME, size=size, seed=0)
    return folder


def test_layout(parts):
    batches = list(read_sessions(parts / "pages.parquet"))
    pages = [row for batch in batches for row in batch.to_pylist()]
    assert len(pages) == 700
    described = read_documents(parts / "documents.parquet")
    assert described.features.shape[1] == WIDTH == 32
    shown = set()
    for page in pages:
        assert 5 <= len(page["documents"]) == len(set(page["documents"])) <= 10
        # Documents belong to one query.
        assert {number // CANDIDATES for number in page["documents"]} == {page["query"]}
        shown |= set(page["documents"])
    assert described.document.tolist() == sorted(shown)
    annotated = read_rankings(parts / "annotations.parquet")
    assert annotated.lengths.tolist() == [CANDIDATES] * 20
    assert set(annotated.label.tolist()) <= {0, 1, 2, 3, 4}
    assert annotated.features.shape == (20 * CANDIDATES, WIDTH)


def test_the_same_seed_gives_the_same_files(parts, tmp_path):
    for part, size in PARTS.items():
        write(tmp_path / part, part, name=NAME, size=size, seed=0)
        assert (tmp_path / part).read_bytes() == (parts / f"{part}.parquet").read_bytes()
    write(tmp_path / "other", PAGES, name=NAME, size=700, seed=1)
    assert (tmp_path / "other").read_bytes() != (tmp_path / PAGES).read_bytes()


def test_the_whole_log_has_hashed_ids_and_no_queries(parts, tmp_path):
    write(tmp_path / "pages", PAGES, name=WHOLE, size=700, seed=0)
    whole, own = (
        [row for batch in read_sessions(path) for row in batch.to_pylist()]
        for path in (tmp_path / "pages", parts / "pages.parquet")
    )
    assert [page["clicks"] for page in whole] == [page["clicks"] for page in own]
    assert {page["query"] for page in whole} == {0}
    ids = {}
    for page, known in zip(whole, own, strict=True):
        for number, document in zip(page["documents"], known["documents"], strict=True):
            assert ids.setdefault(document, number) == number
            assert 0 <= number < 2**31
    assert len(set(ids.values())) == len(ids)


def test_columns_show_traits_in_a_rotation():
    np.testing.assert_allclose(rotation() @ rotation().T, np.eye(WIDTH), atol=1e-5)
    rng = stream("test")
    traits = rng.standard_normal((20_000, 8), np.float32)
    seen = features_of(rng, traits) @ rotation().T
    correlation = np.corrcoef(seen[:, :8].T, traits.T)[:8, 8:]
    np.testing.assert_allclose(np.diag(correlation), 0.97, atol=0.01)
    assert seen.std() == pytest.approx(1, rel=0.01)
