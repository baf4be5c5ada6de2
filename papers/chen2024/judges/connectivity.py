"""Claims 9 to 11, 15, 16 and 19: which logs have a connected identifiability graph.

Semi-synthetic data sets by number of contexts, share of queries and features (Section 5.2,
Appendix D.3) and as Table 4 counts them; TianGong-ST (Table 5); a log of our own choice.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from papers.chen2024.judges.words import listed
from twotowers.results.claims import (
    NOT_TESTABLE,
    REPRODUCED,
    Judgement,
    NotTestable,
    decide,
    seed_means,
    short,
)
from twotowers.results.statistics import select

# Claims 9 to 11: 20 draws, as in the paper, cannot tell more than .95 from certainty.
CERTAIN, UNLIKELY, RARE = 0.95, 0.5, 0.1
ENOUGH_CONTEXTS = {"yahoo": 200, "istella_s": 20}
ENOUGH_SHARE = {"yahoo": 0.02, "istella_s": 0.5}
ENOUGH_FEATURES = 10
# Claims 15 and 16: the printed numbers.
TIANGONG = {"v1, v2, position": 2900, "v1, position": 1106, "v2, position": 87, "position": 1}
TIANGONG_FACTORS = 20_704
SIZE = {
    "yahoo": {"queries": 28_719, "documents": 700_153, "features": 700},
    "istella_s": {"queries": 32_968, "documents": 3_406_167, "features": 220},
}
GRAPH = {
    "yahoo": {
        "nodes": 48_894, "edges": 59_811_898, "components": 28_958,
        "top1": 15_684, "top2": 98, "top3": 96,
    },
    "istella_s": {
        "nodes": 48_919, "edges": 5_972, "components": 47_976,
        "top1": 101, "top2": 7, "top3": 5,
    },
}  # fmt: skip
TABLE_CONTEXTS = 5000
# The second and third component are extremes of few: told, and not judged.
JUDGED = ("nodes", "edges", "components", "top1")
CALIBRATED, SAME_SIZE = 0.25, 0.1
# Claim 19: the sample of the Yandex log has as many query-document pairs, its stand-in fewer.
YANDEX_DOCUMENTS = 1024
DRAWN = "the log is a stand-in; it is connected because it was drawn from many pages"
CALIBRATION = (
    "calibration, not evidence: the log is a stand-in that was adjusted to these numbers, and "
    "it is near them"
)


def contexts_disconnect(results: pd.DataFrame, dataset: str) -> Judgement:
    """Claim 9: Figures 4(c) and (d)."""
    _check_size(results, dataset)
    enough = ENOUGH_CONTEXTS[dataset]
    share, draws = _connected(results, dataset, "contexts", {0, enough})
    most = share.index.max()
    if most <= enough:
        raise NotTestable(f"no more than {enough} contexts")
    return decide(
        f"frequency of connected graphs {listed(share, 'at {}')} contexts",
        {
            "positions only: always": share[0] == 1,
            f"{enough} contexts: below .5": share[enough] < UNLIKELY,
            f"{short(most)} contexts: at most .1": share[most] <= RARE,
            "nowhere rising by more than two standard errors": _falls(share, draws),
        },
    )


def small_samples_disconnect(results: pd.DataFrame, dataset: str) -> Judgement:
    """Claim 10: Figures 7(a) and (b), by the ratio from which on the graph is connected."""
    _check_size(results, dataset)
    printed = ENOUGH_SHARE[dataset]
    share, draws = _connected(results, dataset, "sampling", {1})
    if share.index.min() >= printed / 2:
        raise NotTestable(f"no ratio below {short(printed / 2)}")
    first = _certain_from(share)
    return decide(
        f"connected in more than .95 of samples from {short(first)} on; frequency "
        f"{listed(share, 'at {}')}",
        {
            "the whole data set is connected": share[1] == 1,
            f"from {short(printed / 2)} to {short(2 * printed)} on, and not before": (
                printed / 2 <= first <= 2 * printed
            ),
            "nowhere falling by more than two standard errors": _falls(share[::-1], draws[::-1]),
        },
    )


def features_disconnect(results: pd.DataFrame, dataset: str) -> Judgement:
    """Claim 11: Figures 7(c) and (d)."""
    _check_size(results, dataset)
    share, draws = _connected(results, dataset, "features", {ENOUGH_FEATURES})
    fewest = share.index.min()
    return decide(
        f"frequency of connected graphs {listed(share, 'at {}')} features",
        {
            f"{short(fewest)} features: above .95": share[fewest] > CERTAIN,
            "10 features or more: below .5": share.loc[ENOUGH_FEATURES:].max() < UNLIKELY,
            "nowhere rising by more than two standard errors": _falls(share, draws),
        },
    )


def verticals_disconnect(results: pd.DataFrame) -> Judgement:
    """Claim 15: Table 5. Only exactly the printed numbers tell the real log from a stand-in."""
    components, factors = (
        seed_means(
            results, {"factors": over}, setting="verticals", method="graph", metric=metric
        )
        for metric, over in (
            ("components", tuple(TIANGONG)), ("bias_factors", ("v1, v2, position",)),
        )
    )  # fmt: skip
    judgement = decide(
        f"components: {listed(components, digits=0)}; {factors.item():.0f} bias factors",
        {
            "several components with either vertical type": components.drop("position").min() > 1,
            "more with finer bias factors": (components.diff().dropna() < 0).all(),
            "one with positions only": components["position"] == 1,
        },
    )
    exact = (components == pd.Series(TIANGONG)).all() and factors.item() == TIANGONG_FACTORS
    return _unless_real(judgement, exact)


def graph_as_printed(results: pd.DataFrame, dataset: str) -> Judgement:
    """Claim 16: Table 4. Table 3's numbers tell the real data set from a stand-in."""
    _check_size(results, dataset)
    printed = pd.Series(GRAPH[dataset], dtype=float)
    found = _statistics(results, dataset, tuple(printed.index))
    size = _statistics(results, dataset, tuple(SIZE[dataset]))
    share = (found / printed)[list(JUDGED)]
    judgement = decide(
        ", ".join(f"{name} {value:,.0f}" for name, value in found.items()),
        {
            f"{name} within a quarter of {GRAPH[dataset][name]:,}": abs(value - 1) <= CALIBRATED
            for name, value in share.items()
        },
    )
    return _unless_real(judgement, (size == pd.Series(SIZE[dataset])).all())


def real_log_identified(results: pd.DataFrame) -> Judgement:
    """Claim 19: positions are the only bias factors. On a stand-in it says nothing."""
    where = {"setting": "real_logs", "method": "graph"}
    needs = seed_means(
        results, {"metric": ("components", "merges", "interventions", "documents")}, **where
    )
    share = seed_means(results, {"share": None}, metric="connected_share", **where)
    judgement = decide(
        f"components {needs['components']:.0f}, {needs['merges']:.0f} merges and "
        f"{needs['interventions']:.0f} swaps needed; thinned from {needs['documents']:,.0f} "
        f"query-document pairs: connected in more than .95 of draws from a share of "
        f"{short(_certain_from(share))} on",
        {
            "one component": needs["components"] == 1,
            "nothing to repair": needs["merges"] == needs["interventions"] == 0,
        },
    )
    return _unless_real(judgement, needs["documents"] == YANDEX_DOCUMENTS, DRAWN)


def _statistics(results: pd.DataFrame, dataset: str, metrics: Sequence[str]) -> pd.Series:
    return seed_means(
        results, {"metric": tuple(metrics)},
        setting=f"connectivity-{dataset}", dataset=dataset, sweep="statistics",
        amount=TABLE_CONTEXTS,
    )  # fmt: skip


def _check_size(results: pd.DataFrame, dataset: str) -> None:
    """Counts of contexts, queries or features mean something on a data set of the same size.

    The bias factors that occur with 5,000 context types tell how many displays there are.
    """
    nodes = _statistics(results, dataset, ["nodes"])["nodes"]
    printed = GRAPH[dataset]["nodes"]
    if abs(nodes / printed - 1) > SAME_SIZE:
        raise NotTestable(
            f"a data set of another size: {nodes:,.0f} bias factors with 5,000 context types, "
            f"in the paper {printed:,}"
        )


def _connected(
    results: pd.DataFrame, dataset: str, sweep: str, needed: set[float]
) -> tuple[pd.Series, pd.Series]:
    """Frequency of connected graphs, and number of draws, by amount."""
    rows = select(
        results, setting=f"connectivity-{dataset}", dataset=dataset, sweep=sweep,
        metric="connected",
    )  # fmt: skip
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


def _falls(share: pd.Series, draws: pd.Series) -> bool:
    """Whether no later frequency is above an earlier one by more than chance explains.

    A frequency of n draws has a standard error of 1 / (2 sqrt n) at most.
    """
    later = np.triu_indices(len(share), 1)
    rise = -np.subtract.outer(share.to_numpy(), share.to_numpy())[later]
    error = np.sqrt(np.add.outer(0.25 / draws.to_numpy(), 0.25 / draws.to_numpy()))[later]
    return bool((rise <= 2 * error).all())


def _unless_real(judgement: Judgement, real: bool, reason: str = CALIBRATION) -> Judgement:
    """What a stand-in was made for is no evidence; that it is far off is worth a word."""
    if judgement.verdict != REPRODUCED or real:
        return judgement
    return Judgement(NOT_TESTABLE, judgement.measured, reason)
