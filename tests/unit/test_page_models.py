"""Click models of pages, against an enumeration of all click patterns and hidden states."""

from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import expit, logit

from twotowers.errors import InputError
from twotowers.experiment.components import build_model
from twotowers.models.cascade import Cascade
from twotowers.models.chances import Chance
from twotowers.models.mixed import Mixed
from twotowers.models.names import MODELS as NAMES
from twotowers.models.page import lay_out
from twotowers.models.protocol import ONCE, PER_DOCUMENT, PER_JUMP, PER_POSITION

FLOOR = 1e-12
MODELS = {name: build_model(kind) for name, kind in NAMES.items()} | {
    "cm": Cascade(floor=FLOOR),
    "dcm, simplified": build_model("dependent_click_simplified"),
    "sdbn, counted": build_model("simplified_bayesian_counted"),
}


def coins(*chances):
    """Every outcome of independent coins, and its probability."""
    for outcome in product((0, 1), repeat=len(chances)):
        weight = np.prod([p if up else 1 - p for p, up in zip(chances, outcome, strict=True)])
        yield outcome, weight


def joint(name, parts, length):
    """P(clicks) by the story of each model, hidden event by hidden event: {pattern: P}."""
    found = dict.fromkeys(product((0, 1), repeat=length), 0.0)
    g, places = parts.get("attraction"), range(length)
    if name in ("gctr", "rctr", "dctr"):
        chances = {"gctr": [parts.get("rate")] * length, "dctr": g}.get(name)
        chances = parts["examination"][:length] if name == "rctr" else chances[:length]
        for clicks, weight in coins(*chances):
            found[clicks] += weight
    elif name == "pbm":
        for hidden, weight in coins(*g[:length], *parts["examination"][:length]):
            found[tuple(hidden[k] & hidden[length + k] for k in places)] += weight
    elif name == "ubm":
        for clicks in found:
            weight, last = 1.0, 0
            for k in places:
                chance = parts["examination"][k, last] * g[k]
                weight *= chance if clicks[k] else 1 - chance
                last = k + 1 if clicks[k] else last
            found[clicks] = weight
    else:
        # Who reads on: per position, coins of satisfaction and of reading on by each reason.
        sat = {"ccm": g, "dbn": parts.get("satisfaction")}
        s = sat.get(name, parts.get("satisfaction") if "sdbn" in name else None)
        for attracted, weight in coins(*g[:length]):
            _read(name, parts, attracted, s, length, 0, (), weight, found)
    return found


def _read(name, parts, attracted, s, length, k, clicks, weight, found):
    """Read position k, for sure examined, and branch over all that may happen behind it."""
    if k == length:
        found[clicks] += weight
        return
    clicked = attracted[k]
    stopped = (*clicks, clicked, *[0] * (length - k - 1))

    def branch(chance):
        found[stopped] += weight * (1 - chance)
        _read(name, parts, attracted, s, length, k + 1, (*clicks, clicked), weight * chance, found)

    if name == "cm":
        branch(0.0 if clicked else 1.0)
    elif name.startswith("dcm"):
        branch(parts["continuation"][k] if clicked else 1.0)
    elif name.startswith("sdbn"):
        branch(1 - s[k] if clicked else 1.0)
    elif name == "dbn":
        branch(parts["continuation"] * (1 - s[k]) if clicked else parts["continuation"])
    elif name == "ccm":
        t1, t2, t3 = (
            parts[each] for each in ("after_none", "after_dissatisfied", "after_satisfied")
        )
        branch(s[k] * t3 + (1 - s[k]) * t2 if clicked else t1)


def drawn(model, length, rng):
    """Probabilities of all parts of one page."""
    shapes = {
        PER_DOCUMENT: (length,),
        PER_POSITION: (length,),
        PER_JUMP: (length, length),
        ONCE: (),
    }
    return {
        name: np.asarray(rng.uniform(0.05, 0.95, shapes[kind]))
        for name, kind in model.parts.items()
    }


def repeated(model, chances, pages):
    """The chances of one page, for many."""
    own = {part: c for part, c in chances.items() if model.parts[part] == PER_DOCUMENT}
    return {**chances, **{part: c.broadcast((pages, *c.log.shape)) for part, c in own.items()}}


@pytest.mark.parametrize("length", [1, 3, 6])
@pytest.mark.parametrize("name", MODELS)
def test_probabilities_are_those_of_the_enumeration(name, length):
    model = MODELS[name]
    parts = drawn(model, length, np.random.default_rng(length))
    chances = {part: Chance.of(values) for part, values in parts.items()}
    truth = joint(name, parts, length)
    assert sum(truth.values()) == pytest.approx(1, abs=1e-12)
    patterns = np.array(list(truth), bool)
    weights = np.array(list(truth.values()))
    wide = repeated(model, chances, len(patterns))
    where = np.ones(patterns.shape, bool)

    found = np.exp(model.log_likelihood(wide, patterns, where))
    np.testing.assert_allclose(found, weights, atol=1e-9)
    marginal = np.broadcast_to(model.marginal(chances).value, (length,))
    np.testing.assert_allclose(marginal, weights @ patterns, atol=1e-9)
    other = np.broadcast_to(np.exp(model.marginal(chances).other), (length,))
    np.testing.assert_allclose(other, weights @ ~patterns, atol=1e-9)
    if "attraction" in parts:  # What is examined is clicked with the chance of its attraction.
        seen = model.examination(chances).value
        np.testing.assert_allclose(seen * parts["attraction"], weights @ patterns, atol=1e-9)

    conditional = model.conditional(wide, patterns)
    for row, pattern in enumerate(patterns):
        for k in range(length):
            alike = (patterns[:, :k] == pattern[:k]).all(1)
            if (above := weights[alike].sum()) > 1e-9:
                expected = weights[alike & patterns[:, k]].sum() / above
                assert conditional.value[row, k] == pytest.approx(expected, abs=1e-9)
                assert np.exp(conditional.other[row, k]) == pytest.approx(1 - expected, abs=1e-9)


@pytest.mark.parametrize("name", MODELS)
def test_a_short_page_is_the_page_cut(name):
    model = MODELS[name]
    rng = np.random.default_rng(7)
    parts = drawn(model, 5, rng)
    short = joint(name, parts, 3)
    patterns = np.array([[*each, 0, 0] for each in short], bool)
    where = np.broadcast_to(np.arange(5) < 3, patterns.shape)
    chances = {part: Chance.of(values) for part, values in parts.items()}
    wide = repeated(model, chances, len(patterns))
    found = np.exp(model.log_likelihood(wide, patterns, where))
    np.testing.assert_allclose(found, list(short.values()), atol=1e-9)


@pytest.mark.parametrize("name", MODELS)
def test_examination_and_samples_agree_with_the_probabilities(name):
    model = MODELS[name]
    rng = np.random.default_rng(11)
    chances = {part: Chance.of(v) for part, v in drawn(model, 4, rng).items()}
    pages = 40_000
    wide = repeated(model, chances, pages)
    where = np.arange(4) < rng.integers(1, 5, pages)[:, None]
    sample = model.sample(wide, where, rng=rng)
    assert not (sample["clicks"] & ~where).any()
    rates = sample["clicks"].sum(0) / where.sum(0)
    np.testing.assert_allclose(rates, np.broadcast_to(model.marginal(chances).value, 4), atol=0.015)
    if "examination" in sample:
        seen = sample["examination"].sum(0) / where.sum(0)
        np.testing.assert_allclose(seen, model.examination(chances).value, atol=0.015)


@pytest.mark.parametrize("name", MODELS)
def test_jax_has_the_same_likelihood_and_a_finite_gradient(name):
    model = MODELS[name]
    rng = np.random.default_rng(3)
    parts = drawn(model, 6, rng)
    clicks = rng.random((20, 6)) < 0.4
    where = np.arange(6) < rng.integers(1, 7, 20)[:, None]

    def total(logits):
        chances = {part: Chance.from_logits(each) for part, each in logits.items()}
        wide = repeated(model, chances, 20)
        return model.log_likelihood(wide, jnp.asarray(clicks), jnp.asarray(where)).sum()

    logits = {part: jnp.asarray(logit(values)) for part, values in parts.items()}
    found = jax.jit(jax.value_and_grad(total))
    value, gradient = found(logits)
    chances = {p: Chance.of(values) for p, values in parts.items()}
    wide = repeated(model, chances, 20)
    assert float(value) == pytest.approx(model.log_likelihood(wide, clicks, where).sum(), rel=1e-5)
    assert all(np.isfinite(each).all() for each in gradient.values())
    assert any((np.asarray(each) != 0).any() for each in gradient.values())
    # Also where probabilities are next to 0 and 1.
    extreme = {part: 60 * jnp.sign(each) for part, each in logits.items()}
    value, gradient = found(extreme)
    assert np.isfinite(value)
    assert all(np.isfinite(each).all() for each in gradient.values())


def test_relevance_and_users():
    relevance = np.array([[0.0, 2.0, 4.0]])
    for name, model in MODELS.items():
        if type(model).truth is None or "simplified" in name or "counted" in name:
            continue
        truth = model.truth(relevance, 3)
        assert set(truth) == set(model.parts), name
        wide = lay_out(
            {k: v[0] if model.parts[k] == PER_DOCUMENT else v for k, v in truth.items()},
            model.parts,
            np.array([[0, 1, 2], [2, 1, 0]]),
        )
        chances = {part: Chance.from_logits(values) for part, values in wide.items()}
        if "attraction" in chances:
            scores = model.relevance(chances)
            assert (np.diff(scores[0]) > 0).all(), name
        sample = model.sample(chances, np.ones((2, 3), bool), rng=np.random.default_rng(0))
        assert sample["clicks"].shape == (2, 3)


GRADES, PLACES = np.array([0.0, 2, 4]), np.arange(1.0, 4)
ATTRACTS, SATISFIES = {"attraction": [0.1, 0.28, 1]}, {"satisfaction": [0.16, 0.48, 0.8]}
USERS = {
    "gctr": {"rate": 0.2},
    "rctr": {"examination": 0.4 / PLACES},
    "dctr": {"attraction": expit(GRADES - 2)},
    "cm": ATTRACTS,
    "pbm": ATTRACTS | {"examination": 1 / PLACES},
    "ubm": ATTRACTS
    | {"examination": np.array([[1, 1, 1], [2, 1, 1], [3, 2, 1]]) ** [-1, -0.7, -0.7]},
    "dcm": ATTRACTS | {"continuation": 0.7 * PLACES**-0.3},
    "ccm": ATTRACTS | {"after_none": 0.9, "after_dissatisfied": 0.7, "after_satisfied": 0.3},
    "dbn": ATTRACTS | SATISFIES | {"continuation": 0.9},
    "sdbn": ATTRACTS | SATISFIES,
}


@pytest.mark.parametrize("name", USERS)
def test_parts_of_simulated_users_by_hand(name):
    found = MODELS[name].truth(GRADES, 3)
    assert set(found) == set(USERS[name])
    for part, expected in USERS[name].items():
        np.testing.assert_allclose(expit(found[part]), expected, err_msg=part)


def test_a_second_click_of_the_cascade_model_has_the_chance_of_its_floor():
    parts = {"attraction": Chance.of(np.array([[0.5, 0.25, 0.5]]))}
    clicks = np.array([[True, False, True]])
    found = Cascade(floor=1e-3).conditional(parts, clicks).value
    np.testing.assert_allclose(found, [[0.5, 1e-3, 1e-3]])
    likelihood = Cascade(floor=1e-3).log_likelihood(parts, clicks, np.ones((1, 3), bool))
    np.testing.assert_allclose(np.exp(likelihood), 0.5 * 0.999 * 0.001)
    for floor in (0, 1.1):
        with pytest.raises(InputError, match="floor"):
            Cascade(floor=floor)


UNSHARED = Mixed(["dctr", "dbn"], shared=[])


@pytest.mark.parametrize(
    ("model", "own"),
    [
        (Mixed(["gctr", "pbm", "dbn"]), {"gctr": {}, "pbm": {}, "dbn": {}}),
        # Both models have a part of this name, and the two parts are of different kinds.
        (Mixed(["pbm", "ubm"]), {"pbm": {"examination": 1}, "ubm": {"examination": 2}}),
        (Mixed(["dcm", "dbn"]), {"dcm": {"continuation": 1}, "dbn": {"continuation": 2}}),
        (UNSHARED, {"dctr": {"attraction": 1}, "dbn": {"attraction": 2}}),
    ],
)
def test_a_mixture_is_the_mean_of_its_models_and_shares_attraction(model, own):
    """Eq. 5.12, against the enumeration of who it is, too."""
    length, rng = 4, np.random.default_rng(2)
    numbered = {f"{part}_{number}" for its in own.values() for part, number in its.items()}
    assert numbered <= set(model.parts)
    parts, left = drawn(model, length, rng), 1.0
    patterns = np.array(list(product((0, 1), repeat=length)), bool)
    expected = np.zeros(len(patterns))
    for number, (name, its) in enumerate(own.items(), 1):
        share = parts.get(f"share_{number}", 1.0)
        its = parts | {part: parts[f"{part}_{m}"] for part, m in its.items()}
        expected += left * share * np.array(list(joint(name, its, length).values()))
        left *= 1 - share
    chances = {part: Chance.of(values) for part, values in parts.items()}
    wide = repeated(model, chances, len(patterns))
    found = np.exp(model.log_likelihood(wide, patterns, np.ones(patterns.shape, bool)))
    np.testing.assert_allclose(found, expected, atol=1e-9)
    np.testing.assert_allclose(model.marginal(chances).value, expected @ patterns, atol=1e-9)


def test_a_mixture_shares_what_it_is_asked_to_if_kinds_agree():
    same = Mixed(["pbm", "rctr"], shared=["attraction", "examination"])
    assert set(same.parts) == {"attraction", "examination", "share_1"}
    with pytest.raises(InputError, match=r"examination is one per jump and one per position.*kind"):
        Mixed(["pbm", "ubm"], shared=["examination"])
    with pytest.raises(InputError, match="no model has the part attraction"):
        Mixed(["rctr", "gctr"])


def test_examination_of_a_mixture_is_the_mean_of_its_models():
    """PBM examines with its own probability. DCTR examines everything."""
    rated = Mixed(["pbm", "dctr"])
    half = Chance.of(np.array([0.5, 0.5]))
    parts = {"attraction": half, "examination": Chance.of(np.array([0.8, 0.4]))}
    found = rated.examination({**parts, "share_1": Chance.of(0.25)}).value
    np.testing.assert_allclose(found, [0.25 * 0.8 + 0.75, 0.25 * 0.4 + 0.75])
    alone = [model.examination(parts).value for model in rated.components]
    np.testing.assert_allclose(np.broadcast_to(alone[0], 2), [0.8, 0.4])
    np.testing.assert_allclose(np.broadcast_to(alone[1], 2), 1)


def test_relevance_of_a_mixture_is_the_attraction_that_its_models_share():
    parts = dict.fromkeys(("attraction", "examination", "share_1"), Chance.of(0.3))
    assert expit(Mixed(["pbm", "dctr"]).relevance(parts)) == pytest.approx(0.3)


def test_relevance_of_a_mixture_whose_models_share_nothing_is_the_mean_of_theirs():
    parts = dict.fromkeys(UNSHARED.parts, 0.3) | {"attraction_1": 0.2, "attraction_2": 0.7}
    relevance = UNSHARED.relevance({part: Chance.of(value) for part, value in parts.items()})
    assert expit(relevance) == pytest.approx(0.3 * 0.2 + 0.7 * 0.7)
