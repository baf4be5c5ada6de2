"""The stand-in of Baidu-ULTR-UVA with text: published figures, texts, files, and no surprises."""

import numpy as np
import pytest

from twotowers.errors import InputError
from twotowers.logs.formats.baidu import OFFSET, documents_of, read, read_annotations, texts_of
from twotowers.randomness import hashed, key_of, normals, uniforms
from twotowers.standins.baidu import CANDIDATES, FEWEST, LARGEST_POOL, Law, World
from twotowers.standins.baidu_files import (
    EMPTY,
    PLAIN,
    SEARCHED,
    annotation_rows,
    log_rows,
    write_log,
    write_rows,
)

LAW = Law.read()
WORLD = World(2000, 1, LAW)


@pytest.fixture(scope="module")
def pages():
    return list(WORLD.pages())


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("baidu")
    write_log(folder, World(400, 1, LAW))
    write_rows(folder / "validation.feather", annotation_rows(World(400, 1, LAW), 20))
    return folder


def test_the_same_seed_gives_the_same_files(folder, tmp_path):
    write_log(tmp_path, World(400, 1, LAW))
    for part in range(4):
        name = f"part-{part}_split-0.feather"
        assert (tmp_path / name).read_bytes() == (folder / name).read_bytes()
    write_log(tmp_path, World(400, 2, LAW))
    name = "part-1_split-0.feather"
    assert (tmp_path / name).read_bytes() != (folder / name).read_bytes()


def test_a_part_is_the_same_alone(pages):
    own = list(WORLD.pages(2))
    session = np.concatenate([page.session for page in own])
    assert session.min() >= 1000
    assert session.max() < 1500
    whole = {each.session[0]: each for each in pages}
    for page in own:
        np.testing.assert_array_equal(page.clicks, whole[page.session[0]].clicks)


def test_the_reader_reads_the_files(folder):
    world = World(400, 1, LAW)
    found = [page for batch in read(folder / "part-*").batches for page in batch.to_pylist()]
    drawn = list(world.pages())
    where = np.concatenate([page.where for page in drawn])
    clicks = np.concatenate([page.clicks for page in drawn])
    assert [page["positions"] for page in found] == [
        (np.flatnonzero(row) + 1).tolist() for row in where
    ]
    assert [page["clicks"] for page in found] == [
        row[there].tolist() for row, there in zip(clicks, where, strict=True)
    ]
    assert {page["split"] for page in found} == {f"part-{number}" for number in range(4)}
    query = np.concatenate([page.query for page in drawn])
    assert len(set(query)) == len({page["query"] for page in found})
    # No page shows a document twice.
    assert all(len(set(page["documents"])) == len(page["documents"]) for page in found)
    features = np.concatenate([each for _, each in documents_of(folder / "part-*")])
    numbers = {number for page in found for number in page["documents"]}
    assert features.shape == (len(numbers), 12)
    texts = [row for batch in texts_of(folder / "part-*") for row in batch.to_pylist()]
    assert {row["document"] for row in texts} == numbers
    annotated = read_annotations(folder / "validation.feather")
    assert annotated.lengths.min() >= FEWEST
    assert set(annotated.label.tolist()) <= {0, 1, 2, 3, 4}
    # The twelfth and tenth columns are lengths of abstract and document.
    lengths = np.expm1(features[:, [9, 10, 11]])
    np.testing.assert_allclose(lengths[:, 0], lengths[:, 1:].sum(1), rtol=1e-4)
    own = [len(row["title"]) for row in texts]
    np.testing.assert_allclose(lengths[:, 1], own, rtol=1e-4)


def test_pages(pages):
    for page in pages:
        assert not (page.clicks & ~page.where).any()
        assert (page.where.sum(1) >= FEWEST).all()
        for slot, where in zip(page.slot, page.where, strict=True):
            assert len(set(slot[where])) == where.sum()
    users = {"mixed": WORLD, "position_based": World(2000, 1, LAW, "position_based")}
    drawn = {name: next(world.pages()) for name, world in users.items()}
    # Both kinds of users see the same pages.
    np.testing.assert_array_equal(drawn["mixed"].slot, drawn["position_based"].slot)
    assert (drawn["mixed"].clicks != drawn["position_based"].clicks).any()
    with pytest.raises(InputError, match=r"users: 'position' is unknown"):
        World(2000, 1, LAW, "position")


def test_traits_are_those_of_the_documents_that_are_shown(pages):
    page = pages[0]
    documents = WORLD.candidates(page.query)
    shown = documents.traits[np.arange(len(page.query))[:, None], page.slot]
    np.testing.assert_array_equal(page.traits, shown)


def test_causes_can_be_switched():
    """Annotators agree with users; the ranker ranks at random; nothing is an unknown name."""
    query = np.arange(3000)
    agreeing = World(2000, 1, LAW.but(agreement=1.0, among=0.0)).candidates(query)
    np.testing.assert_allclose(agreeing.relevance, agreeing.attraction, atol=1e-6)
    usual = World(2000, 1, LAW).candidates(query)
    np.testing.assert_array_equal(usual.traits, agreeing.traits)
    assert correlation(usual.score, usual.attraction) == pytest.approx(LAW.ranked, abs=0.01)
    assert correlation(usual.score, usual.traits[..., 3]) == pytest.approx(LAW.form**0.5, abs=0.01)
    blind = World(2000, 1, LAW.but(ranked=0.0)).candidates(query)
    assert correlation(blind.score, blind.attraction) == pytest.approx(0, abs=0.01)
    with pytest.raises(InputError, match=r"law: 'agreemint' .*did you mean 'agreement'"):
        LAW.but(agreemint=1)


def correlation(one, other):
    return np.corrcoef(one.ravel(), other.ravel())[0, 1]


def test_placeholders_stand_where_they_were_dropped():
    world = World(400, 1, LAW)
    (batch,) = log_rows(world, 1, placeholders=True)
    rows = batch.to_pylist()
    (kept,) = log_rows(world, 1, PLAIN)
    logged = {}
    for row in kept.to_pylist():
        logged.setdefault(row["query_no"], []).append((row["position"], row["url_md5"]))
    sessions = {}
    for row in rows:
        sessions.setdefault(row["query_no"], []).append(row)
    assert set(sessions) == set(logged)
    for number, own in sessions.items():
        assert [row["position"] for row in own] == list(range(1, len(own) + 1))
        # As published: the first kind goes without a trace, the second leaves a gap.
        left = [row for row in own if row["title"] != [OFFSET + each for each in SEARCHED]]
        assert len(own) - len(left) <= 1
        shown = [(at, row) for at, row in enumerate(left, 1) if row["title"] != [OFFSET + EMPTY]]
        assert [(at, row["url_md5"]) for at, row in shown] == logged[number]


def test_annotators_may_see_what_is_shown():
    usual, world = World(2000, 1, LAW), World(2000, 1, LAW, annotators="shown")
    query, length = world.annotated(300)
    np.testing.assert_array_equal(query, usual.annotated(300)[0])
    found = world.candidates(query, LARGEST_POOL)
    np.testing.assert_array_equal(usual.seen(query, length, found).sum(1), length)
    seen = world.seen(query, length, found)
    np.testing.assert_array_equal(seen.sum(1), world.layout(query).sum(1))
    for own, scores in zip(seen, found.score, strict=True):
        assert not own[CANDIDATES:].any()
        assert scores[own].min() > scores[:CANDIDATES][~own[:CANDIDATES]].max()
    with pytest.raises(InputError, match=r"annotators: 'all' is unknown"):
        World(2000, 1, LAW, annotators="all")


def test_hashed_numbers_are_random():
    key = key_of("test", 1)
    drawn = uniforms(key, np.arange(2000)[:, None], np.arange(50))
    assert drawn.min() > 0
    assert drawn.max() < 1
    counts = np.histogram(drawn, 20, (0, 1))[0]
    assert ((counts - drawn.size / 20) ** 2 / (drawn.size / 20)).sum() < 45
    values = normals(key, np.arange(20_000)[:, None], np.arange(5))
    assert np.abs(np.corrcoef(values.T) - np.eye(5)).max() < 0.03
    assert abs(np.corrcoef(values[:-1].ravel(), values[1:].ravel())[0, 1]) < 0.01
    assert (hashed(key, np.arange(9)) != hashed(key_of("test", 2), np.arange(9))).all()
