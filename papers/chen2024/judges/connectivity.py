"""Claims 9 to 11, 15, 16, 19 and 27: which logs have a connected identifiability graph.

Semi-synthetic data sets by number of contexts, share of queries and features (Section 5.2,
Appendix D.3) and as Table 4 counts them; TianGong-ST (Table 5); a log of our own choice.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from papers.chen2024.judges.cells import DATASETS, NAMES, on_real_data, printed
from twotowers.claims.claims import OURS, Claims, Measured, NotTestable, seed_means
from twotowers.claims.conditions import (
    above,
    at_least,
    at_most,
    below,
    counted,
    evidence_if,
    exactly,
    falls,
    holds,
    short,
    shown,
    written,
)
from twotowers.claims.statistics import select

CLAIMS = Claims(names=NAMES)

# Claims 9 to 11: the paper's 20 draws cannot tell more than .95 from certainty, and two standard
# errors not from chance. Ours are more.
CERTAIN, UNLIKELY, RARE, CHANCE = 0.95, 0.5, 0.1, 2
ENOUGH_CONTEXTS = {"yahoo": 200, "istella_s": 20}
ENOUGH_SHARE = {"yahoo": 0.02, "istella_s": 0.5}
ENOUGH_FEATURES = 10
# Claim 10: "approximately" is within a factor of this.
ABOUT = 2
# Claim 15, from finer to coarser bias factors.
FACTORS = ("v1, v2, position", "v1, position", "v2, position", "position")
# Claims 16 and 27: what is printed.
SIZE = ("queries", "documents", "features")
GRAPH = ("nodes", "edges", "components", "top1", "top2", "top3")
TABLE_CONTEXTS = 5000
# The second and third component are extremes of few: shown, and not judged.
JUDGED = ("nodes", "edges", "components", "top1")
CALIBRATED, SAME_SIZE = 0.25, 0.1
REAL_FILES = "the files are the real ones, known by their checksums"
DRAWN = "the log is a stand-in; it is connected because it was drawn from many pages"
CALIBRATION = (
    "calibration, not evidence: the data are a stand-in that was adjusted to these numbers, and "
    "are near them, or files of which no checksum is known"
)
ADJUSTED = (
    "calibration, not evidence: the stand-in's links or columns were chosen with this figure in "
    "view, or no checksum of the files is known"
)


def contexts_disconnect(results: pd.DataFrame, dataset: str) -> Measured:
    """The frequency of connected graphs by the number of context types."""
    enough = ENOUGH_CONTEXTS[dataset]
    share, draws = _connected(results, dataset, "contexts", {0, enough})
    most = share.index.max()
    if most <= enough:
        raise NotTestable(f"no more than {enough} contexts")
    return share[0], share[enough], share[most], _rises(share, draws), share


def small_samples_disconnect(results: pd.DataFrame, dataset: str, calibrated: bool) -> Measured:
    """The frequency of connected graphs by the share of queries, and from which on it is 1."""
    enough = ENOUGH_SHARE[dataset]
    share, draws = _connected(results, dataset, "sampling", {1})
    if share.index.min() >= enough / ABOUT:
        raise NotTestable(f"no ratio below {short(enough / ABOUT)}")
    first = _certain_from(share)
    rises = _rises(share[::-1], draws[::-1])
    return [share[1], first, first, rises, share, *_evidence(results, dataset, calibrated)]


def features_disconnect(results: pd.DataFrame, dataset: str, calibrated: bool) -> Measured:
    """The frequency of connected graphs by the number of features."""
    share, draws = _connected(results, dataset, "features", {ENOUGH_FEATURES})
    values = [share.iloc[0], share.loc[ENOUGH_FEATURES:], _rises(share, draws), share]
    return [*values, *_evidence(results, dataset, calibrated)]


def _evidence(results: pd.DataFrame, dataset: str, calibrated: bool) -> list[bool]:
    """What the last condition of a calibrated claim asks."""
    return [on_real_data(results, f"connectivity-{dataset}")] if calibrated else []


# Calibrated: Figure 7(b) chose the kind of links, Figures 7(c) and (d) the levels of the columns.
SHARES = shown("the share of connected draws, by amount")
certain = f"more than {short(CERTAIN)}"
for n, (label, lane) in enumerate(DATASETS.items()):
    contexts, ratio = ENOUGH_CONTEXTS[lane["dataset"]], ENOUGH_SHARE[lane["dataset"]]
    CLAIMS.add(
        f"9{'ab'[n]}", ("fig4c", "fig4d")[n], "Sec. 5.2, Fig. 4(c), (d)",
        "Positions alone identify; with context types the probability falls, and "
        f"{contexts} suffice to disconnect ({label})",
        exactly("the share of connected draws with positions only", 1),
        counted(below(f"the share of connected draws with {contexts} context types", UNLIKELY)),
        counted(at_most("the share of connected draws with the most context types", RARE)),
        counted(at_most("any rise in connected draws with more context types", CHANCE,
                        "standard errors")),
        SHARES,
        **lane,
    )(contexts_disconnect)  # fmt: skip
    CLAIMS.add(
        f"10{'ab'[n]}", ("fig7a", "fig7b")[n], "App. D.3, Fig. 7(a), (b)",
        f"Smaller samples disconnect: about {100 * ratio:.0f} % of the data set is needed "
        f"({label})",
        exactly("the share of connected draws of the whole data set", 1),
        *[counted(ends(f"the ratio from which on {certain} of draws are connected", end))
          for ends, end in ((at_least, ratio / ABOUT), (at_most, ratio * ABOUT))],
        counted(at_most("any fall in connected draws with larger samples", CHANCE,
                        "standard errors")),
        SHARES,
        *([evidence_if(REAL_FILES, ADJUSTED)] if n else []),
        **lane, calibrated=bool(n),
    )(small_samples_disconnect)  # fmt: skip
    CLAIMS.add(
        f"11{'ab'[n]}", ("fig7c", "fig7d")[n], "App. D.3, Fig. 7(c), (d)",
        "The probability of identifiability falls with the number of features; 5 to 10 suffice "
        f"to disconnect ({label})",
        counted(above("the share of connected draws with the fewest features", CERTAIN)),
        counted(below(f"the share of connected draws with {ENOUGH_FEATURES} features or more",
                      UNLIKELY)),
        counted(at_most("any rise in connected draws with more features", CHANCE,
                        "standard errors")),
        SHARES,
        evidence_if(REAL_FILES, ADJUSTED),
        **lane, calibrated=True,
    )(features_disconnect)  # fmt: skip


@CLAIMS.add(
    "15", "table5", "Sec. 5.2, App. D.2, Table 5",
    "TianGong-ST is disconnected with vertical types as bias factors, connected with positions "
    "only",
    above("the number of components with vertical types, in each of three ways,", 1),
    falls("the number of components, from finer to coarser bias factors,"),
    exactly("the number of components with positions only", 1),
    shown("bias factors"), evidence_if(REAL_FILES, CALIBRATION),
    chance=False,
)  # fmt: skip
def verticals_disconnect(results: pd.DataFrame) -> Measured:
    where = {"setting": "verticals"}
    components = seed_means(results, {"factors": FACTORS}, metric="components", **where)
    factors = seed_means(results, {"factors": FACTORS[:1]}, metric="bias_factors", **where)
    return (
        components.drop("position"), components, components["position"], factors.item(),
        on_real_data(results, "verticals"),
    )  # fmt: skip


@CLAIMS.add(
    "16", "table4", "App. C.1, Table 4",
    "The identifiability graph with 5,000 context types is as in Table 4",
    *[at_most(f"the distance of {name} from the printed number", CALIBRATED, "times that number")
      for name in JUDGED],
    shown("found"), evidence_if(REAL_FILES, CALIBRATION),
    parts=DATASETS, against_printed=True,
)  # fmt: skip
def graph_as_printed(results: pd.DataFrame, dataset: str) -> Measured:
    _check_size(results, dataset)
    theirs, values = _printed(dataset, JUDGED), _statistics(results, dataset, GRAPH)
    off = [(abs(values[name] - theirs[name]), theirs[name]) for name in JUDGED]
    return [*off, values, on_real_data(results, f"connectivity-{dataset}")]


@CLAIMS.add(
    "27", "table3", "App. C.1, Table 3", "The prepared data set has the counts of Table 3",
    holds("queries, documents and features are as printed"), shown("found"),
    parts=DATASETS, chance=False, against_printed=True,
)  # fmt: skip
def sizes_as_printed(results: pd.DataFrame, dataset: str) -> Measured:
    """A stand-in has counts of its own."""
    values = _statistics(results, dataset, SIZE)
    if not on_real_data(results, f"connectivity-{dataset}"):
        counted = ", ".join(f"{name} {written(value)}" for name, value in values.items())
        raise NotTestable(f"the data are not known to be real: {counted}")
    return values == _printed(dataset, SIZE), values


@CLAIMS.add(
    "19", "real_logs", "Ours; on App. D.2, where positions alone identify",
    "A web search log identifies position bias",
    exactly("the number of components", 1), exactly("the number of merges and of swaps needed", 0),
    shown("thinned: the share from which on more than "
          f"{short(CERTAIN)} of draws are connected"), shown("query-document pairs"),
    evidence_if(REAL_FILES, DRAWN), origin=OURS, chance=False,
)  # fmt: skip
def real_log_identified(results: pd.DataFrame) -> Measured:
    """Positions are the only bias factors. On a stand-in it says nothing."""
    where = {"setting": "real_logs"}
    needs = seed_means(
        results, {"metric": ("components", "merges", "interventions", "documents")}, **where
    )
    share = seed_means(results, {"share": None}, metric="connected_share", **where)
    return (
        needs["components"], needs[["merges", "interventions"]], _certain_from(share),
        needs["documents"], on_real_data(results, "real_logs"),
    )  # fmt: skip


def _statistics(results: pd.DataFrame, dataset: str, metrics: Sequence[str]) -> pd.Series:
    where = {"dataset": dataset, "sweep": "statistics", "amount": TABLE_CONTEXTS}
    return seed_means(results, {"metric": metrics}, setting=f"connectivity-{dataset}", **where)


def _printed(dataset: str, metrics: Sequence[str]) -> pd.Series:
    return printed({"metric": metrics}, setting=f"connectivity-{dataset}")


def _check_size(results: pd.DataFrame, dataset: str) -> None:
    """Counts of contexts, queries or features mean something on a data set of the same size.

    The bias factors that occur with 5,000 context types tell how many displays there are.
    """
    nodes = _statistics(results, dataset, ["nodes"])["nodes"]
    theirs = _printed(dataset, ["nodes"])["nodes"]
    if abs(nodes / theirs - 1) > SAME_SIZE:
        raise NotTestable(
            f"a data set of another size: {nodes:,.0f} bias factors with 5,000 context types, "
            f"in the paper {theirs:,.0f}"
        )


def _connected(
    results: pd.DataFrame, dataset: str, sweep: str, needed: set[float]
) -> tuple[pd.Series, pd.Series]:
    """Frequency of connected graphs, and number of draws, by amount."""
    _check_size(results, dataset)
    rows = select(
        results, setting=f"connectivity-{dataset}", dataset=dataset, sweep=sweep, metric="connected"
    )
    draws = rows.groupby(rows["amount"].astype(float))["value"].agg(["mean", "size"])
    absent = needed - set(draws.index)
    if absent:
        listed = ", ".join(short(amount) for amount in sorted(absent))
        raise NotTestable(f"no results for dataset {dataset}, sweep {sweep} at {listed}")
    return draws["mean"], draws["size"]


def _certain_from(share: pd.Series) -> float:
    """The lowest amount from which on a frequency is as good as 1; NaN if it never is."""
    certain = (share > CERTAIN)[::-1].cummin()
    return certain.index[certain].min() if certain.any() else np.nan


def _rises(share: pd.Series, draws: pd.Series) -> tuple[np.ndarray, np.ndarray]:
    """What every later frequency is above every earlier one, and its largest standard error.

    A frequency of n draws has a standard error of 1 / (2 sqrt n) at most.
    """
    later = np.triu_indices(len(share), 1)
    rise = -np.subtract.outer(share.to_numpy(), share.to_numpy())[later]
    error = np.sqrt(np.add.outer(0.25 / draws.to_numpy(), 0.25 / draws.to_numpy()))[later]
    return rise, error
