"""Claims 11, 12 and 17: the lemmas, Appendix A and Theorem 4.1, checked by numbers."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from papers.hager2025.judges.fits import BIAS_GAP, NAMES, TEMPERATURES, bias_errors
from twotowers.claims.claims import OURS, Claims, Measured, NotTestable, apart, means_of, seed_means
from twotowers.claims.conditions import above, at_most, below, evidence_if, rises, short, shown

CLAIMS = Claims(names=NAMES)

# Claim 11: click probabilities. Exact fits end with residuals of about 1e-7; a residual of .01 is a
# click in a hundred impressions that the model misses, or makes up.
VANISHED, STANDS = 1e-6, 0.01
# Claims 11 and 12: logits of exact fits, which differ by 1e-6 at most where they should not.
EXACT = 1e-3
# Claim 12: sampling leaves errors of .02 or less; shifts between components are of the size of
# the random starts and the true differences, .4 or more.
SAMPLING = 0.05
DRAWN = "the graph that was drawn is another"
CONNECTED = ("connected", "isolated, with bridges")
ISOLATED = ("content isolated", "content and device isolated")
# Claims 12d and 12e: fits of features.
OVERLAPPING, TELLING = "isolated, features overlap", "isolated, features tell"


@CLAIMS.add(
    "11a", "lemmas", "Lemma 5.1, Eq. 19 (with exact clicks any fit that converges assures it)",
    "At a well-specified optimum the residual of every cell vanishes",
    at_most("tau .333 to 1: the residual of every cell", VANISHED),
    model="well-specified", metrics=["largest_cell"],
)  # fmt: skip
@CLAIMS.add(
    "11b", "lemmas", "Lemma 5.2, Eqs. 20, 21 (the first is where Newton's method stops)",
    "At a misspecified optimum residuals vanish only on average under the policy",
    at_most("the mean residual of every position", VANISHED),
    above("the mean size of the residuals of cells", STANDS),
    shown("the largest residual of a cell"),
    model="misspecified", metrics=("largest_position_mean", "mean_cell", "largest_cell"),
)  # fmt: skip
def residuals(results: pd.DataFrame, model: str, metrics: Sequence[str]) -> list[pd.Series]:
    over = {"temperature": TEMPERATURES[1:]}
    return means_of(results, metrics, over, setting="lemmas", model=model)


@CLAIMS.add(
    "11c", "lemmas", "Lemmas 5.1, 5.2",
    "The policy moves the misspecified optimum, and not the well-specified one",
    at_most("the well-specified optimum: the difference of any two tau at rank 10", EXACT),
    above("the misspecified optimum: the change from tau 1 to .333 at rank 10", BIAS_GAP),
)  # fmt: skip
def policy_moves_misfit_only(results: pd.DataFrame) -> Measured:
    return apart(_by_temperature(results, "well-specified")), _moved(results, "misspecified")


@CLAIMS.add(
    "11d", "balance", "Eq. 21",
    "A misspecified optimum balances the residuals of every document, if documents have parameters "
    "of their own (as in the proof), but not with a tower of features",
    at_most("a parameter per pair: every document's mean residual", VANISHED),
    above("linear tower: the mean size of documents' mean residuals", STANDS),
)  # fmt: skip
def documents_balance(results: pd.DataFrame) -> Measured:
    (own,) = residuals(results, "not additive", ["largest_document_mean"])
    (shared,) = residuals(results, "misspecified", ["mean_document_mean"])
    return own, shared


@CLAIMS.add(
    "11e", "placement", "Lemma 5.2",
    "A misspecified optimum is moved as the policy's placement goes with the residuals",
    above("linear tower: the difference of their correlation between alpha 1 and -1", 0.2),
    below("the slope of the estimate at position 10 over their correlation", 0),
    at_most("well-specified: what any policy moves", EXACT), shown("linear tower: the correlation"),
)  # fmt: skip
def placement_moves(results: pd.DataFrame) -> Measured:
    """A document that is clicked more than fitted, and is placed above, raises the first
    positions, and so lowers the others relative to them."""
    correlation, moved = _placements(results, "misspecified", "residual_placement")
    _, fixed = _placements(results, "well-specified", "residual_placement")
    return (
        abs(correlation[1] - correlation[-1]), np.polyfit(correlation, moved, 1)[0], fixed.abs(),
        correlation,
    )  # fmt: skip


@CLAIMS.add(
    "11g", "placement", "Lemma 5.2, Eq. 18",
    "The policy moves the estimate to the side of the residuals that it places there",
    above("linear tower: the slope of the estimate at position 10 over the difference of mean "
          "residuals between positions 10 and 1", 0),
    above("the product of both at alpha -1 and 1, for a linear tower and for users that are not "
          "additive,", 0),
)  # fmt: skip
def placed_residuals_move(results: pd.DataFrame) -> Measured:
    """Set after 11e's correlation was seen to miss the order of alpha -1 and -.5 at scale smoke."""
    products = {}
    for model in ("misspecified", "not additive"):
        placed, moved = _placements(results, model, "placed_residual")
        products[model] = (placed * moved)[[-1, 1]]
        if model == "misspecified":
            slope = np.polyfit(placed, moved, 1)[0]
    return slope, pd.DataFrame(products)


@CLAIMS.add(
    "11f", "placement", "Ours; on Lemma 5.2",
    "The policy moves even a parameter per pair, if users are not additive",
    above("the change from tau 1 to .333 at rank 10", BIAS_GAP), origin=OURS,
)  # fmt: skip
def policy_moves_other_users(results: pd.DataFrame) -> Measured:
    return _moved(results, "not additive")


@CLAIMS.add(
    "12a", "appendixA", "App. A, Eq. 27", "Bias configurations connected by overlap are identified",
    at_most("every error", SAMPLING), evidence_if("there is one component", DRAWN),
    regimes=CONNECTED, metrics=["largest_error"], several=False,
)  # fmt: skip
@CLAIMS.add(
    "12b", "appendixA", "App. A, Eq. 27",
    "Isolated bias configurations are not identified against each other",
    above("the largest error across components", 0.2),
    at_most("every error within a component", SAMPLING),
    evidence_if("there are several components", DRAWN),
    regimes=ISOLATED, metrics=("largest_error", "largest_error_within_component"),
)  # fmt: skip
@CLAIMS.add(
    "12d", "appendixA_features", "App. A, Eq. 27",
    "Configurations that no document connects are identified where features overlap",
    at_most("every error", SAMPLING), at_most("every change of estimates by another start", EXACT),
    evidence_if("there are several components of documents", DRAWN),
    regimes=[OVERLAPPING], metrics=("largest_error", "largest_effect_of_start"),
)  # fmt: skip
def by_regime(
    results: pd.DataFrame, regimes: Sequence[str], metrics: Sequence[str], several: bool = True
) -> Measured:
    *errors, components = _regimes(results, regimes, *metrics, "components")
    return *errors, (components > 1) == several


@CLAIMS.add(
    "12c", "appendixA", "App. A, Eq. 27",
    "Connectedness of the overlap graph decides on identification",
    at_most("where there is one, every change of estimates by another start", EXACT),
    above("where there are several, every change of estimates by another start", SAMPLING),
    evidence_if("there are graphs of one component, and of several", DRAWN),
)  # fmt: skip
def graph_predicts(results: pd.DataFrame) -> Measured:
    """Identified is what does not depend on where an exact fit starts; the graph sees no click."""
    components, change = _regimes(
        results, CONNECTED + ISOLATED, "components", "largest_effect_of_start"
    )
    parts = [change[components == 1], change[components > 1]]
    # Of no graph there is no number.
    return *(part if len(part) else np.nan for part in parts), all(map(len, parts))


@CLAIMS.add(
    "12e", "appendixA_features", "App. A, Eq. 27",
    "Where features tell configurations apart, these are not identified against each other",
    above("the largest error across components", 0.2),
    at_most("every error within a component", SAMPLING),
    above("the largest change of an estimate by another start", SAMPLING),
)  # fmt: skip
def features_tell(results: pd.DataFrame) -> Measured:
    metrics = "largest_error", "largest_error_within_component", "largest_effect_of_start"
    return _regimes(results, [TELLING], *metrics)


@CLAIMS.add(
    "17a", "overlap", "Theorem 4.1",
    "A continuous tower identifies position bias where features of positions overlap, and not "
    "across a gap",
    at_most("supports that overlap by half: every change by another start", BIAS_GAP),
    above("a gap of .75: the largest change of an estimate by another start", 0.2),
    shown("the largest change by another start, by gap"),
    evidence_if(f"at both every residual is at most {short(STANDS)}", "fits are not good enough"),
)  # fmt: skip
def overlap_identifies(results: pd.DataFrame) -> Measured:
    effect, residual = _varied(results, "gap", "effect_of_start", "largest_residual")
    return effect[-0.5], effect[0.75], effect, (residual[[-0.5, 0.75]] <= STANDS).all()


@CLAIMS.add(
    "17b", "overlap", "Theorem 4.1, Eq. 14",
    "Offsets of equally good fits differ by at most twice their steepest slope times the gap",
    at_most("gaps of .25 to .75: the largest part of the bound that any two fits use", 1),
)  # fmt: skip
def bound_holds(results: pd.DataFrame) -> Measured:
    """Exact fits assure it; the fits of a gradient have to be good enough, and say how near
    they come."""
    over = {"amount": (0.25, 0.5, 0.75)}
    return seed_means(results, over, setting="overlap", varied="gap", metric="bound_used")


@CLAIMS.add(
    "17c", "dimensions", "Sec. 4.5",
    "Overlap decreases as features are added, and with it what is identified",
    above("the largest change by another start with the most features", 1,
          "times that with one"),
    shown("the largest change by another start, by number of features"),
    rises("the distance of nearest documents of adjacent positions, by number of features,"),
    varied="features",
)  # fmt: skip
@CLAIMS.add(
    "17d", "expressiveness", "Sec. 4.5",
    "The more a tower can express, the less is identified",
    above("the largest change by another start with the widest tower", 1,
          "times that with the narrowest"),
    shown("the largest change by another start, by width"),
    varied="width",
)  # fmt: skip
def pitfall(results: pd.DataFrame, varied: str) -> Measured:
    effect, distance = _varied(results, varied, "effect_of_start", "distance")
    if len(effect) < 2:
        raise NotTestable(f"{varied}: one amount, which there is nothing to compare with")
    values = [(effect.iloc[-1], effect.iloc[0]), effect]
    return values if varied == "width" else [*values, distance]


def _by_temperature(results: pd.DataFrame, model: str) -> pd.Series:
    over = {"temperature": TEMPERATURES[1:], "position": (10,)}
    return bias_errors(results, over, setting="lemmas", model=model)[10]


def _moved(results: pd.DataFrame, model: str) -> float:
    errors = _by_temperature(results, model)
    return abs(errors.iloc[0] - errors.iloc[-1])


def _placements(results: pd.DataFrame, model: str, metric: str) -> list[pd.Series]:
    """By alpha: what tells how the policy places residuals, and what it moves at position 10."""
    where = {"setting": "lemmas", "model": model}
    return means_of(results, (metric, "moved"), {"strength": None}, **where)


def _varied(results: pd.DataFrame, varied: str, *metrics: str) -> list[pd.Series]:
    return means_of(results, metrics, {"amount": None}, setting="overlap", varied=varied)


def _regimes(results: pd.DataFrame, regimes: Sequence[str], *metrics: str) -> list[pd.Series]:
    return means_of(results, metrics, {"regime": regimes}, setting="appendix_a")
