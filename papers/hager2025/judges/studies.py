"""Claims 11 to 14: lemmas and Appendix A at exact optima, and two studies of our own."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from papers.hager2025.judges.fits import BIAS_GAP, TEMPERATURES, bias_errors
from twotowers.results.claims import Claims, Measured, seed_means
from twotowers.results.conditions import above, at_most, exactly, holds, number, short
from twotowers.results.statistics import select

CLAIMS = Claims()

# Claim 11: click probabilities. Exact fits end with residuals of about 1e-7; a residual of .01 is a
# click in a hundred impressions that the model misses, or makes up.
VANISHED, STANDS = 1e-6, 0.01
# Claims 11 and 12: logits of exact fits, which differ by 1e-6 at most where they should not.
EXACT = 1e-3
# Claim 12: sampling leaves errors of .02 or less; shifts between components are of the size of
# the random starts and the true differences, .4 or more.
SAMPLING = 0.05
CONNECTED = ("connected", "isolated, with bridges")
ISOLATED = ("content isolated", "content and device isolated")
# Claim 13: stopped early, stopped early from the truth, and not stopped early.
STOPPED = (
    "early stopping, start default",
    "early stopping, start truth",
    "no early stopping, start default",
)
# Claim 14: logits of exact fits; a tenth of the spread that claim 3 allows, and half of it.
# Chance alone leaves .01 of noise on a few hundred queries of one seed, and .003 on a thousand.
UNFELT, FELT = 0.01, 0.05
CLIPPED = ("as published", "without noise")
UNCLIPPED = ("without clipping", "without either")


@CLAIMS.add(
    "11a", "lemmas", "Lemma 5.1, Eq. 19",
    "At a well-specified optimum the residual of every cell vanishes",
    at_most("tau .333 to 1: the residual of every cell", VANISHED),
)  # fmt: skip
def cells_vanish(results: pd.DataFrame) -> Measured:
    (largest,) = _residuals(results, "well-specified", "largest_cell")
    return f"largest residual of a cell {_tiny(largest.max())}", [largest]


@CLAIMS.add(
    "11b", "lemmas", "Lemma 5.2, Eqs. 20, 21",
    "At a misspecified optimum residuals vanish only on average under the policy",
    at_most("the mean residual of every position", VANISHED),
    above("the mean size of the residuals of cells", STANDS),
)  # fmt: skip
def means_vanish(results: pd.DataFrame) -> Measured:
    balance, mean, largest = _residuals(
        results, "misspecified", "largest_position_mean", "mean_cell", "largest_cell"
    )
    return (
        f"largest mean over a position {_tiny(balance.max())}; cells {number(mean.min())} or more "
        f"on average, up to {number(largest.max())}",
        [balance, mean],
    )


@CLAIMS.add(
    "11c", "lemmas", "Lemmas 5.1, 5.2",
    "The policy moves the misspecified optimum, and not the well-specified one",
    at_most("the spread@10 over tau of the well-specified optimum", EXACT),
    above("the spread@10 over tau of the misspecified optimum", BIAS_GAP),
)  # fmt: skip
def policy_moves_misfit_only(results: pd.DataFrame) -> Measured:
    methods = ["well-specified", "misspecified"]
    over = {"method": methods, "temperature": TEMPERATURES[1:], "position": (10,)}
    errors = bias_errors(results, over, setting="lemmas")[10].unstack("temperature")
    well, misfit = (errors.max(axis="columns") - errors.min(axis="columns"))[methods]
    told = f"well-specified {_tiny(well)}, misspecified {number(misfit)}"
    return f"spread@10 over tau: {told}", [well, misfit]


@CLAIMS.add(
    "12a", "appendixA", "App. A, Eq. 27", "Bias configurations connected by overlap are identified",
    exactly("the number of components", 1), at_most("every error", SAMPLING),
)  # fmt: skip
def connected_identified(results: pd.DataFrame) -> Measured:
    components, error = _regimes(results, CONNECTED, "components", "largest_error")
    told = f"components {_listed(components)}; largest errors {_listed(error, 3)}"
    return told, [components, error]


@CLAIMS.add(
    "12b", "appendixA", "App. A, Eq. 27",
    "Isolated bias configurations are not identified against each other",
    above("the number of components", 1),
    above("the largest error across components", 0.2),
    at_most("every error within a component", SAMPLING),
)  # fmt: skip
def isolated_shifted(results: pd.DataFrame) -> Measured:
    components, error, within = _regimes(
        results, ISOLATED, "components", "largest_error", "largest_error_within_component"
    )
    return (
        f"components {_listed(components)}; largest errors {_listed(error, 3)}, "
        f"within a component {_listed(within, 3)}",
        [components, error, within],
    )


@CLAIMS.add(
    "12c", "appendixA", "App. A, Eq. 27",
    "Connectedness of the overlap graph decides on identification",
    holds("graphs of one component and of several occur"),
    at_most("where there is one, every change of estimates by another start", EXACT),
    above("where there are several, every change of estimates by another start", SAMPLING),
)  # fmt: skip
def graph_predicts(results: pd.DataFrame) -> Measured:
    """Identified is what does not depend on where an exact fit starts; the graph sees no click."""
    components, change = _regimes(
        results, CONNECTED + ISOLATED, "components", "largest_effect_of_start"
    )
    one, several = change[components == 1], change[components > 1]
    return (
        f"another start moves estimates by at most {_tiny(one.max())} in one component, by "
        f"{number(several.min())} or more across several",
        [len(one) > 0 and len(several) > 0, one, several],
    )


@CLAIMS.add(
    "13", "embedding", "Ours; on the results in the authors' repository",
    "Early stopping puts the embedding tower off at alpha 0 and -1, tau .333; too few sessions or "
    "the start alone do not",
    above("err@10 when stopped early", BIAS_GAP),
    above("err@10 when stopped early less err@10 of the exact optimum", BIAS_GAP),
    at_most("err@10 of the optimum on few sessions less err@10 of that on the most", BIAS_GAP),
    at_most("|err@10| of the fit from the random start without early stopping", BIAS_GAP),
    at_most("|err@10| of the fit from the truth with early stopping", BIAS_GAP),
)  # fmt: skip
def stopping_is_the_cause(results: pd.DataFrame) -> Measured:
    """Early stopping, too few sessions, or initialisation?

    An explanation must put the estimate above the truth at position 10, as the authors' is, by
    more than BIAS_GAP. All fits but the one on more sessions share a log.

    - Early stopping holds if the stopped fit is that far above the truth and above the exact
      optimum of its log.
    - Too few sessions holds if the optimum on the published number of sessions is that far above
      the optimum on the most. (It may lie below: that is another bias, of the other sign.)
    - Initialisation holds if the random start leaves a fit that is not stopped early that far
      above the truth, or if early stopping does so from a start at the truth.
    """
    where = {"setting": "incidental", "temperature": 0.333}
    over = {"strength": (-1, 0), "method": None, "sessions_factor": None, "position": (10,)}
    factors = select(results, setting="incidental", method="optimum")
    optimum = bias_errors(factors, {**over, "method": ("optimum",)}, **where)[10]
    optimum = optimum.droplevel("method").unstack("sessions_factor")
    fits = bias_errors(
        results, {**over, "method": STOPPED, "sessions_factor": (1,)}, **where
    )[10].droplevel("sessions_factor").unstack("method")  # fmt: skip
    stopped, from_truth, trained_on = (fits[method] for method in STOPPED)
    exact, more = optimum[1], optimum[optimum.columns.max()]
    arrived = seed_means(
        results, {"strength": (-1, 0)}, method=STOPPED[0], position=10, sessions_factor=1,
        metric="position_bias_given_relevance", **where,
    ) + np.log(10)  # fmt: skip
    return (
        f"err@10 at alpha -1 and 0: stopped early {_listed(stopped, 3)} (bias optimal given its "
        f"relevance: {_listed(arrived, 3)}), from the truth "
        f"{_listed(from_truth, 3)}; not stopped early {_listed(trained_on, 3)}; exact optimum "
        f"{_listed(exact, 3)}, on {short(optimum.columns.max())} times the sessions "
        f"{_listed(more, 3)}",
        [stopped, stopped - exact, exact - more, trained_on.abs(), from_truth.abs()],
    )


@CLAIMS.add(
    "14", "clipping", "Ours; on Sec. 7 and Fig. 2 left",
    "What the well-specified linear model still feels of the policy (claim 3) comes from clipping "
    "its relevance, which a linear tower cannot express",
    above("clipped, noisy or not: the spread over alpha and tau at positions 5 and 10", FELT),
    at_most("not clipped, noisy or not: the spread over alpha and tau at both positions", UNFELT),
)  # fmt: skip
def clipping_is_felt(results: pd.DataFrame) -> Measured:
    """At exact optima of expected clicks; noise must make no difference to either side."""
    over = {
        "method": (*CLIPPED, *UNCLIPPED),
        "strength": (-1, 1),
        "temperature": TEMPERATURES,
        "position": (5, 10),
    }
    variants = bias_errors(results, over, setting="clipping").groupby(level="method")
    spread = variants.max() - variants.min()
    told = "; ".join(f"{variant} {_listed(spread.loc[variant], 3)}" for variant in over["method"])
    return f"spread@5 and @10: {told}", [spread.loc[list(CLIPPED)], spread.loc[list(UNCLIPPED)]]


def _residuals(results: pd.DataFrame, method: str, *metrics: str) -> list[pd.Series]:
    where = {"setting": "lemmas", "method": method}
    over = {"temperature": TEMPERATURES[1:]}
    return [seed_means(results, over, **where, metric=metric) for metric in metrics]


def _regimes(results: pd.DataFrame, regimes: Sequence[str], *metrics: str) -> list[pd.Series]:
    over = {"method": regimes}
    return [seed_means(results, over, setting="appendix_a", metric=metric) for metric in metrics]


def _tiny(value: float) -> str:
    return f"{value:.0e}" if value else "0"


def _listed(values: pd.Series, digits: int | None = None) -> str:
    return " and ".join(short(v) if digits is None else number(v, digits) for v in values)
