"""Claims 14, 17, 21 to 24 and 28: theorems, propositions and examples, by numbers; Figure 5."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from papers.chen2024.judges.cells import NAMES, metric_name
from papers.chen2024.judges.synthetic import FITTED, POOR
from twotowers.claims.claims import (
    OURS,
    Claims,
    Measured,
    NotTestable,
    means_of,
    rows_of,
    seed_means,
)
from twotowers.claims.conditions import above, at_most, below, exactly, holds, rises, shown
from twotowers.claims.statistics import select
from twotowers.files.yamls import read_yaml
from twotowers.root import ROOT

CLAIMS = Claims(names=NAMES, chance=False)

# Claim 14: standard errors that simulation may be off by, and how large they may be; what of a
# bound the largest error may lack where it should reach it.
DEVIATIONS, PRECISE, REACHED = 4, 0.1, 0.001
# Claim 17: 17b to 17d ask how accurate the paper's estimates are, which it does not promise.
# The lanes |X|, |T| and |D| of example2, and differences between probabilities.
SIZES = ["feature_vectors", "bias_factors", "rows"]
FALLS, AGREES = 0.1, 0.1
# Claim 17: the probability that two factors share no vector; what is left of a limit.
PAIRS, LIMIT = 0.01, 0.001
# Claim 17: standard errors that chance may move a probability by.
CHANCE = 2
# Claims 21 to 23: what floating point leaves of an exact equality.
EXACT = 1e-9
# Claim 28: the components of Figure 5, by the last position of each (from 0).
LAST = {1: (9,), 2: (3, 9), 3: (3, 6, 9), 4: (2, 5, 7, 9)}
LOGS = read_yaml(ROOT / "papers/chen2024/experiment.yaml")["logs"]
# Its edges, from 0, by which the lists are made.
EDGES = {
    number_of: {(a - 1, b - 1) for a, b in LOGS[f"k{number_of}"]["lists"]["links"]}
    for number_of in LAST
}


@CLAIMS.add(
    "14b", "propositions", "Sec. 4.2, Proposition 2; App. A.4 proves equality",
    "Merging two components errs by no more than Proposition 2 says, which is an identity",
    exactly("the number of errors above their bound", 0),
    # The bound is the error itself, and a simulation that did not reach it would not test it.
    above("the largest error over its bound", 1 - REACHED), shown("checked"),
    metrics=("violated", "tightest", "checked"), setting="propositions",
    proposition="proposition 2",
)  # fmt: skip
@CLAIMS.add(
    "14c", "propositions", "App. A.5, Proposition 4",
    "Merging several components errs by no more than the diameter of the tree",
    exactly("the number of errors above their bound", 0), shown("checked"),
    metrics=("violated", "checked"), setting="propositions", proposition="proposition 4",
)  # fmt: skip
@CLAIMS.add(
    "21a", "theorems", "Sec. 3, Theorem 1, if",
    "If the identifiability graph is connected, clicks fix relevance up to one constant",
    exactly("the number of connected random logs with more than one free constant", 0),
    above("the number of connected logs checked", 0),
    setting="theorems", theorem="theorem 1, connected", metrics=("wrong", "checked"),
)  # fmt: skip
@CLAIMS.add(
    "21b", "theorems", "Sec. 3, Theorem 1, only if; one constant for each component is ours",
    "If it is disconnected, they do not: each component has a constant of its own",
    exactly("the number of disconnected random logs with fewer or more constants than components",
            0),
    above("the number of disconnected logs checked", 0),
    setting="theorems", theorem="theorem 1, disconnected", metrics=("wrong", "checked"),
)  # fmt: skip
@CLAIMS.add(
    "23", "theorems", "App. A.5.1, Proposition 3 and the note after it",
    "Merging along a tree agrees with all clicks; one pair more does not",
    at_most("along trees: the largest error of a click or of a merged pair", EXACT),
    above("with one pair more: the least contradiction", EXACT), shown("logs checked"),
    setting="theorems", theorem="proposition 3", metrics=("tree", "cycle", "checked"),
)  # fmt: skip
# Fewer swaps do not suffice: a swap joins two components at most.
@CLAIMS.add(
    "24", "theorems", "Sec. 4.1", "Node intervention needs only K - 1 swaps",
    exactly("the number of logs where there are more or fewer", 0),
    exactly("the number of logs that these swaps leave disconnected", 0),
    above("the number of logs checked", 0),
    setting="theorems", theorem="swaps", metrics=("other", "apart", "checked"),
)  # fmt: skip
def measured(results: pd.DataFrame, metrics: Sequence[str], **where) -> Measured:
    return list(seed_means(results, {"metric": metrics}, **where))


@CLAIMS.add(
    "14a", "propositions", "Sec. 4.1, Proposition 1",
    "Mean and variance of Omega given r' are 0 and those of Proposition 1",
    at_most("in every case the variance's distance from the stated", DEVIATIONS, "standard errors"),
    at_most("in every case the mean's distance from 0", DEVIATIONS, "standard errors"),
    at_most("every standard error of the variance", PRECISE, "times the variance"),
    below("every change of the variance with more clicks", 0),
)  # fmt: skip
def variance_holds(results: pd.DataFrame) -> Measured:
    """The standard error of the mean follows from that of the variance.

    For a normal variable the latter is the variance times the root of 2 over the number of draws.
    """
    metrics = "mean", "variance", "expected_variance", "standard_error"
    over, where = {"case": None, "clicks": None}, {"proposition": "proposition 1"}
    mean, variance, expected, error = means_of(
        results, metrics, over, setting="propositions", **where
    )
    off, shifted = (variance - expected).abs(), mean.abs()
    of_mean = error / np.sqrt(2 * variance)
    falls = variance.unstack("clicks").sort_index(axis="columns").diff(axis="columns").iloc[:, 1:]
    return (off, error), (shifted, of_mean), (error, variance), falls


@CLAIMS.add(
    "17a", "example2", "Sec. 3, Example 2, Remark 2",
    "When |T| is large the probability of identifiability decays, and a large |D| offsets this",
    below("the mean change of the frequency from the smallest to the largest |T|", -FALLS),
    at_most("any series' rise from the smallest to the largest |T|", CHANCE, "standard errors"),
    above("the mean change of the frequency from the smallest to the largest |D|", FALLS),
    at_most("any series' fall from the smallest to the largest |D|", CHANCE, "standard errors"),
)  # fmt: skip
def probability_decays(results: pd.DataFrame) -> Measured:
    """A series has the same |X| and |D|, or the same |X| and |T|."""
    table = _example2(results)
    by_factors, by_rows = (
        _ends(table, [name for name in SIZES if name != along], along)
        for along in ("bias_factors", "rows")
    )
    falls, grows = by_factors["change"], by_rows["change"]
    return (
        falls.mean(), (falls, by_factors["error"]), grows.mean(), (-grows, by_rows["error"]),
    )  # fmt: skip


@CLAIMS.add(
    "17b", "example2", "Sec. 3, Example 2; App. A.2",
    "The probability of identifiability can be estimated by 1 - |T| exp(-|D| + f) if |T| is large",
    at_most("at the largest |T|: the distance of the estimate, cut to [0, 1], from the simulated "
            "frequency, with or without factors never drawn,", AGREES),
    shown("the same at any |T|, at most"), shown("before the limits of the proof, at most"),
    origin=OURS,
)  # fmt: skip
def estimate_agrees(results: pd.DataFrame) -> Measured:
    """Example 2's formula where |T| is largest, as its proof asks.

    Lemma A.1 counts a bias factor that is never drawn as disconnected, while Section 2 supposes
    that there is none: of these two readings the one nearer to the estimate is taken. The
    estimate may lie below 0, which as a probability is 0.
    """
    table = _example2(results)
    off, finite = _off(table), _off(table, "estimate_finite")
    largest = table["bias_factors"].max()
    at = off[table["bias_factors"] == largest]
    return at, off.max(), finite.max()


@CLAIMS.add(
    "17c", "example2", "App. A.2, Lemma A.1",
    "Two bias factors share no feature vector with the probability of Lemma A.1",
    at_most("the distance of the stated from the simulated probability, at every size", PAIRS),
    origin=OURS,
)  # fmt: skip
def pairs_share_nothing(results: pd.DataFrame) -> Measured:
    table = _sizes(results, ["pair_apart", "pair_estimate"])
    off = (table["pair_apart"] - table["pair_estimate"]).abs()
    return off.set_axis(pd.MultiIndex.from_frame(table[SIZES]))


@CLAIMS.add(
    "17d", "example2", "App. A.2, Lemma A.2",
    "Where edges are independent, the probability of a connected graph is that of Lemma A.2",
    at_most("at the largest |T|: the distance of the estimate, cut to [0, 1], from the simulated "
            "frequency of graphs with independent edges", AGREES),
    shown("by how much dependent edges lower the frequency, at most"), origin=OURS,
)  # fmt: skip
def independent_edges(results: pd.DataFrame) -> Measured:
    """Edges as likely as by Lemma A.1, but drawn independently."""
    table = _sizes(results, ["independent", "estimate_finite", "simulated"])
    table = table[table["bias_factors"] == table["bias_factors"].max()]
    off = (table["independent"] - table["estimate_finite"].clip(0, 1)).abs()
    return off, (table["independent"] - table["simulated"]).max()


@CLAIMS.add(
    "17e", "example2", "Sec. 3, Remark 2",
    "As |T| grows f tends to |D|, and so the estimate falls below 0",
    at_most("at the largest |T| of the limit: the distance of f / |D| from 1", LIMIT),
    rises("f / |D|, with |T|,"),
    below("the estimate at the largest |T| of the limit", 0),
)  # fmt: skip
def exponent_tends_to_rows(results: pd.DataFrame) -> Measured:
    metrics = "exponent_share", "limit_estimate"
    share, estimate = means_of(results, metrics, {"bias_factors": None}, setting="example2")
    return 1 - share.iloc[-1], share, estimate.iloc[-1]


@CLAIMS.add(
    "21c", "theorems", "App. A.1, step 2",
    "On disconnected lists a second solution fits all clicks and ranks poorly",
    at_most("at K = 2, 3 and 4: the largest difference of its click probabilities", EXACT),
    *[below(f"its {metric_name(name)} at each K", poor) for name, poor in POOR.items()],
)  # fmt: skip
def second_solution(results: pd.DataFrame) -> Measured:
    """That of the proof: relevance of the first position's component stays, the rest is scaled."""
    where = {"setting": "theorems", "theorem": "second solution"}
    return means_of(results, ("difference", *POOR), {"components": (2, 3, 4)}, **where)


@CLAIMS.add(
    "22", "theorems", "Sec. 1, Example 1",
    "Where every display has its own bias factor, a ranker that says 1 fits all clicks, and so "
    "does DLA, whose relevance is wrong",
    at_most("click MSE of the constant ranker", EXACT),
    below("click MSE of DLA from random starts", FITTED),
    below("MCC of DLA from random starts", POOR["mcc"]),
)  # fmt: skip
def own_factor_each(results: pd.DataFrame) -> Measured:
    metrics = {"metric": ("click_mse", "mcc")}
    values = seed_means(results, metrics, setting="own-factors")
    constant = seed_means(results, {"metric": ("click_mse",)}, setting="own-factors-constant")
    return constant["click_mse"], values["click_mse"], values["mcc"]


@CLAIMS.add(
    "28", "fig5", "App. C.1, Fig. 5; by construction of our lists",
    "The identifiability graphs of the lists are those of Figure 5",
    holds("at each K the positions that shared documents connect are those printed as connected"),
    holds("at each K two positions share documents where Figure 5 has an edge"),
    shown("pairs of positions that share documents, and have no edge in Figure 5, as in the lists "
          "that the authors publish at K = 2"),
)  # fmt: skip
def graphs_as_printed(results: pd.DataFrame) -> Measured:
    rows = rows_of(results, setting="graphs")
    together, edges, more = [], [], {}
    for number_of, last in LAST.items():
        at = select(rows, components=number_of)
        component = select(at, metric="component").sort_values("position")["value"].to_numpy()
        printed = [sum(position > end for end in last) for position in range(10)]
        pairs = set(zip(component, printed, strict=True))
        together.append(len(pairs) == len(set(component)) == number_of)
        shared = select(at, metric="shared_documents").query("value > 0")
        shared = shared.set_index([shared["position"] - 1, shared["other"] - 1])["value"]
        edges.append(set(shared.index) >= EDGES[number_of])
        more[number_of] = len(shared.drop(list(EDGES[number_of])))
    return together, edges, pd.Series(more).rename_axis("components")


def _example2(results: pd.DataFrame) -> pd.DataFrame:
    """One row per size, which is named by the columns `SIZES`, and a column per metric."""
    metrics = ["simulated", "simulated_seen", "standard_error", "estimate", "estimate_finite"]
    return _sizes(results, metrics)


def _sizes(results: pd.DataFrame, metrics: Sequence[str]) -> pd.DataFrame:
    """One row per size with a column per metric."""
    rows = select(results, setting="example2", metric=list(metrics))
    if set(rows["metric"]) != set(metrics):
        raise NotTestable("no results for setting example2")
    return rows.pivot_table(index=SIZES, columns="metric", values="value").reset_index()


def _ends(table: pd.DataFrame, same: Sequence[str], along: str) -> pd.DataFrame:
    """Change of the simulated probability over each series, and its standard error."""
    ends = []
    for _, series in table.sort_values(along).groupby(list(same)):
        if len(series) > 1:
            first, last = series.iloc[0], series.iloc[-1]
            error = np.hypot(first["standard_error"], last["standard_error"])
            ends.append((last["simulated"] - first["simulated"], error))
    if not ends:
        raise NotTestable(f"no two sizes of example2 differ in {along} only")
    return pd.DataFrame(ends, columns=["change", "error"])


def _off(table: pd.DataFrame, estimate: str = "estimate") -> pd.Series:
    """Distance of an estimate, cut to [0, 1], from the nearer of the two simulated readings."""
    readings = table[["simulated", "simulated_seen"]]
    return readings.sub(table[estimate].clip(0, 1), axis="index").abs().min(axis="columns")
