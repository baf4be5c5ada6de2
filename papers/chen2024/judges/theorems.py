"""Claims 21 to 24 and 28: Theorem 1, Example 1, Proposition 3, the number of swaps, Figure 5."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from papers.chen2024.judges.synthetic import FITTED, POOR
from papers.chen2024.judges.words import NAMES, metric_name
from twotowers.claims.claims import Claims, Measured, means_of, rows_of, seed_means
from twotowers.claims.conditions import above, at_most, below, exactly, holds, shown
from twotowers.claims.statistics import select
from twotowers.files.yamls import read_yaml
from twotowers.root import ROOT

CLAIMS = Claims(names=NAMES, chance=False)

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
    "21a", "theorems", "Sec. 3, Theorem 1, if",
    "If the identifiability graph is connected, clicks fix relevance up to one constant",
    exactly("the number of connected random logs with more than one free constant", 0),
    above("the number of connected logs checked", 0),
    theorem="theorem 1, connected", metrics=("wrong", "checked"),
)  # fmt: skip
@CLAIMS.add(
    "21b", "theorems", "Sec. 3, Theorem 1, only if; one constant for each component is ours",
    "If it is disconnected, they do not: each component has a constant of its own",
    exactly("the number of disconnected random logs with fewer or more constants than components",
            0),
    above("the number of disconnected logs checked", 0),
    theorem="theorem 1, disconnected", metrics=("wrong", "checked"),
)  # fmt: skip
@CLAIMS.add(
    "23", "theorems", "App. A.5.1, Proposition 3 and the note after it",
    "Merging along a tree agrees with all clicks; one pair more does not",
    at_most("along trees: the largest error of a click or of a merged pair", EXACT),
    above("with one pair more: the least contradiction", EXACT), shown("logs checked"),
    theorem="proposition 3", metrics=("tree", "cycle", "checked"),
)  # fmt: skip
# Fewer swaps cannot do: a swap joins two components at most.
@CLAIMS.add(
    "24", "theorems", "Sec. 4.1", "Node intervention needs only K - 1 swaps",
    exactly("the number of logs where there are more or fewer", 0),
    exactly("the number of logs that these swaps leave disconnected", 0),
    above("the number of logs checked", 0),
    theorem="swaps", metrics=("other", "apart", "checked"),
)  # fmt: skip
def measured(results: pd.DataFrame, theorem: str, metrics: Sequence[str]) -> Measured:
    values = seed_means(results, {"metric": metrics}, setting="theorems", theorem=theorem)
    return [values[metric] for metric in metrics]


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
