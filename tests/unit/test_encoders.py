"""The cross-encoder: its sequences, its network against plain NumPy, its training."""

from itertools import islice

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from scipy.special import erf, softmax

from twotowers.errors import InputError
from twotowers.towers.monobert import MonoBert
from twotowers.towers.pretraining import (
    DECAY,
    TOGETHER,
    Biased,
    Pretraining,
    batches,
    click_and_token_loss,
    forever,
    pretrain,
    shown_texts,
    vectors_of,
)
from twotowers.towers.sequences import CLS, MASK, PAD, SEP, Sequences, masked, sequences

SMALL = {"vocabulary": 30, "length": 12, "layers": 1, "heads": 2, "width": 8, "inner": 16}


@pytest.fixture(scope="module")
def encoder():
    return MonoBert(**SMALL, rngs=nnx.Rngs(0))


@pytest.fixture(scope="module")
def some():
    rng = np.random.default_rng(0)
    texts = [rng.integers(0, 30, (40, width)) for width in (2, 3, 4)]
    for text in texts[1:]:
        text[np.arange(text.shape[1]) >= rng.integers(1, text.shape[1] + 1, (40, 1))] = -1
    return Sequences.of(sequences(*texts, length=12))


def naive(scores, bias, clicks, where):
    """Pointwise: the mean over a page's documents."""
    losses = jnp.where(where, jax.nn.softplus(scores) - clicks * scores, 0)
    return losses.sum(-1) / jnp.maximum(where.sum(-1), 1)


def two_towers(scores, bias, clicks, where):
    return naive(scores + bias, bias, clicks, where)


def test_sequences_are_cut_and_filled():
    texts = [np.array(each) for each in ([[4, 5], [6, -1]], [[7], [8]], [[9, 9]] * 2)]
    long, short = (Sequences.of(sequences(*texts, length=length)) for length in (12, 6))
    assert long.tokens.tolist() == [
        [CLS, 14, 15, SEP, 17, SEP, 19, 19, SEP, PAD, PAD, PAD],
        [CLS, 16, SEP, 18, SEP, 19, 19, SEP, PAD, PAD, PAD, PAD],
    ]  # fmt: skip
    assert long.segments.tolist() == [[0] * 4 + [1] * 8, [0] * 3 + [1] * 9]
    assert np.flatnonzero(long.text[0]).tolist() == [4, 6, 7]
    assert short.tokens.tolist() == [row[:6] for row in long.tokens.tolist()]
    assert np.flatnonzero(short.text[1]).tolist() == [3, 5]


def test_a_share_of_the_tokens_of_texts_is_masked(some):
    tokens, text = jnp.tile(some.tokens, (100, 1)), jnp.tile(some.text, (100, 1))
    hidden, chosen = masked(tokens, text, rate=0.3, key=jax.random.key(1))
    assert ((hidden != tokens) == chosen).all()
    assert not (chosen & ~text).any()
    assert (hidden[chosen] == MASK).all()
    assert chosen.sum() / text.sum() == pytest.approx(0.3, abs=0.01)


def run(encoder, tokens, segments):
    return np.asarray(jax.jit(lambda *columns: encoder(*columns))(tokens, segments))


def test_the_network_is_that_of_the_formulas(encoder, some):
    tokens, segments = some.tokens[:5], some.segments[:5]
    leaves = jax.tree_util.tree_leaves_with_path(nnx.to_pure_dict(nnx.state(encoder, nnx.Param)))
    get = {
        jax.tree_util.keystr(path, simple=True, separator="."): np.asarray(leaf, float)
        for path, leaf in leaves
    }

    def norm(x, name):
        centred = x - x.mean(-1, keepdims=True)
        scaled = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-12)
        return scaled * get[f"{name}.scale"] + get[f"{name}.bias"]

    def linear(x, name):
        return x @ get[f"{name}.kernel"] + get[f"{name}.bias"]

    def gelu(x):
        return x * (1 + erf(x / np.sqrt(2))) / 2

    hidden = get["token.embedding"][tokens] + get["position.embedding"][: tokens.shape[1]]
    hidden = norm(hidden + get["segment.embedding"][segments], "norm")
    for layer in [f"layers.{number}" for number in range(SMALL["layers"])]:
        heads = [
            np.einsum("dlw,whk->dhlk", hidden, get[f"{layer}.attention.{name}.kernel"])
            + get[f"{layer}.attention.{name}.bias"][:, None]
            for name in ("query", "key", "value")
        ]
        fit = np.einsum("dhik,dhjk->dhij", heads[0], heads[1]) / np.sqrt(heads[0].shape[-1])
        fit = np.where((tokens != PAD)[:, None, None, :], fit, -np.inf)
        mixed = np.einsum("dhij,dhjk->dihk", softmax(fit, axis=-1), heads[2])
        out = np.einsum("dihk,hkw->diw", mixed, get[f"{layer}.attention.out.kernel"])
        hidden = norm(hidden + out + get[f"{layer}.attention.out.bias"], f"{layer}.first")
        inner = linear(gelu(linear(hidden, f"{layer}.wide")), f"{layer}.narrow")
        hidden = norm(hidden + inner, f"{layer}.second")
    found = run(encoder, tokens, segments)
    np.testing.assert_allclose(found, hidden, atol=2e-5)
    np.testing.assert_allclose(
        encoder.relevance(found), linear(hidden[:, 0], "click")[:, 0], atol=2e-5
    )
    place = np.array([[3, 4]] * 5)
    at = np.take_along_axis(hidden, place[:, :, None], axis=1)
    guessed = norm(gelu(linear(at, "guess")), "guess_norm") @ get["token.embedding"].T
    np.testing.assert_allclose(
        encoder.guesses(np.take_along_axis(found, place[:, :, None], axis=1)),
        guessed + get["guess_bias"],
        atol=2e-5,
    )


@pytest.mark.parametrize("together", [30, 7, 1])
def test_every_page_is_in_one_batch(together):
    rng = np.random.default_rng(1)
    where = rng.random((30, 6)) < 0.7
    document = rng.integers(0, 40, where.shape)
    clicks = rng.random(where.shape) < 0.5
    tokens = np.arange(40)[:, None]
    settings = Pretraining(documents=16, pages=4)
    pages = [
        some
        for start in range(0, 30, together)
        for own in [slice(start, start + together)]
        for some in shown_texts(tokens, document[own], clicks[own], where[own])
    ]
    found = list(batches(pages, settings))
    shown = [
        (batch.texts.tokens[place[own], 0].tolist(), clicked[own].tolist())
        for batch in found
        for place, clicked, own in zip(batch.place, batch.clicks, batch.where, strict=True)
        if own.any()
    ]
    wanted = zip(document, clicks, where, strict=True)
    assert shown == [(d[own].tolist(), c[own].tolist()) for d, c, own in wanted if own.any()]
    for batch in found:
        assert batch.there.sum() == batch.where.sum() <= 16
    assert len({batch.there.shape for batch in found}) == 1
    # Pages that are read a few at a time make the same batches.
    whole = batches(shown_texts(tokens, document, clicks, where), settings)
    assert [each.there.sum() for each in found] == [each.there.sum() for each in whole]


def logged(some, sessions=60):
    """Pages whose documents are clicked if the first token of the query is even."""
    rng = np.random.default_rng(2)
    document = rng.integers(0, len(some.tokens), (sessions, 5))
    clicks = (some.tokens % 2 == 0)[:, 1][document]
    return some.tokens, document, clicks, np.ones(document.shape, bool)


def test_training_learns_and_is_the_same_again(encoder, some, tmp_path):
    settings = Pretraining(learning_rate=1e-2, documents=50, pages=10)
    # Whole programs of `TOGETHER` steps, so that one is compiled.
    again = forever(lambda: shown_texts(*logged(some)), settings)
    pages = [*islice(again, 7 * TOGETHER)]
    trained, losses = pretrain(encoder, pages, naive, settings=settings, seed=1)
    assert losses.shape == (len(pages), 2)
    assert losses[-6:, 0].mean() < 0.7 * losses[:6, 0].mean()
    assert losses[-6:, 1].mean() < losses[:6, 1].mean()
    few = pages[:TOGETHER]
    _, same = pretrain(encoder, few, naive, settings=settings, seed=1)
    np.testing.assert_array_equal(same, losses[:TOGETHER])
    # A training that was ended goes on from its last state.
    kept = {"settings": settings, "seed": 1, "checkpoint": tmp_path / "kept.state"}
    pretrain(encoder, few, naive, **kept)
    resumed, rest = pretrain(encoder, pages, naive, **kept)
    np.testing.assert_array_equal(rest, losses[TOGETHER:])
    np.testing.assert_array_equal(resumed.bias[...], trained.bias[...])
    with pytest.raises(InputError, match="it is of another fit"):
        pretrain(encoder, few, naive, **kept, about="another loss")
    # A loss that reads no bias leaves it where it was, but for its decay.
    begin = Biased(encoder, nnx.Rngs(1)).bias[...]
    shrunk = (1 - settings.learning_rate * DECAY) ** len(pages)
    np.testing.assert_allclose(trained.bias[...], begin * shrunk, rtol=1e-5)
    moved, _ = pretrain(encoder, few, two_towers, settings=settings, seed=1)
    assert (np.abs(moved.bias[:5] - begin[:5]) > 1e-3).all()


def test_documents_that_fill_up_a_batch_count_nothing(encoder, some):
    tokens, *pages = logged(some, sessions=3)
    model, key = Biased(encoder, nnx.Rngs(1)), jax.random.key(3)
    settings = Pretraining(documents=15, pages=3)
    (tight,) = batches(shown_texts(tokens, *pages), settings)
    (loose,) = batches(shown_texts(tokens, *pages), Pretraining(documents=15, pages=7))
    losses = jax.jit(lambda batch: click_and_token_loss(model, batch, naive, settings, key))
    found = [losses(batch) for batch in (tight, loose)]
    np.testing.assert_allclose(*found, rtol=1e-6)


def test_vectors_with_and_without_dropout(encoder, some):
    clean, again, noisy = (
        np.concatenate(list(vectors_of(encoder, some, batch=16, dropout=seed)))
        for seed in (None, None, 5)
    )
    assert clean.shape == (40, 8)
    np.testing.assert_array_equal(clean, again)
    direct = run(encoder, some.tokens, some.segments)[:, 0]
    np.testing.assert_allclose(clean, direct, atol=1e-5)
    assert np.abs(noisy - clean).mean() > 0.05
