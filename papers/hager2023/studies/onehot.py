"""Documents without features: a parameter for each, or one for several (Sections 2.6.3 and 2.6.4).

There is no data set: documents are numbers, relevance is drawn, and every split shows the same
documents in lists of its own. The linear layer on one-hot vectors is a table of parameters.
"""

import numpy as np
import pandas as pd

from twotowers.claims.metrics import ndcg
from twotowers.experiment.simulated import Policy, Sessions, SimulatedLog, draw_cells
from twotowers.logs.cells import Pairs
from twotowers.logs.counts import of_cells
from twotowers.logs.policies import ScoredPairs
from twotowers.methods import ips, likelihood
from twotowers.methods.task import Split, Task
from twotowers.models.document_rate import DocumentRate
from twotowers.models.position_based import PositionBased
from twotowers.randomness import stream
from twotowers.splits import SPLITS
from twotowers.towers.lane import KNOWN

BUDGETS = (1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8)
# Linear layer, Adam at .1 (the authors' code); otherwise as the paper trains.
TRAINING = {
    "optimizer": "adam", "learning_rate": 0.1, "batch": 50, "epochs": 200, "patience": 5,
    "min_delta": 0.0,
}  # fmt: skip
TABLE = {"examination": None, "dropout": 0.0}
METHODS = {
    "naive": (likelihood, DocumentRate(), TABLE),
    "estimated": (likelihood, PositionBased(), TABLE),
    "pbm": (likelihood, PositionBased(), {**TABLE, "examination": KNOWN}),
    "ips": (ips, DocumentRate(), TABLE),
}


def run(
    inputs, *, seed: int, sessions: float, queries: int, documents: int, collisions: list[float]
) -> pd.DataFrame:
    """nDCG@10 by method: along budgets without collisions, and along collisions after all sessions.

    `sessions` is the largest budget; the smaller ones are powers of ten from 100 on. `collisions`
    are shares p of documents that have another's parameter: the document's number modulo queries x
    documents x (1 - p).
    """
    budgets = [int(budget) for budget in BUDGETS if budget <= sessions]
    splits = draw(seed, queries, documents, budgets)
    rows = []
    for share in collisions:
        # Without collisions all budgets are fitted, with them the largest.
        logs = range(len(budgets)) if share == 0 else [len(budgets) - 1]
        parameters = max(round(queries * documents * (1 - share)), 1)
        for method in METHODS:
            values = fit(method, splits, parameters, list(logs), documents, seed)
            rows += [
                {"method": method, "collisions": share, "sessions": budgets[log], "value": value}
                for log, value in zip(logs, values, strict=True)
            ]
    return pd.DataFrame(rows).assign(metric="ndcg@10", position=None)


def draw(seed: int, queries: int, documents: int, budgets: list[int]) -> dict[str, Split]:
    """Each split: its lists, in one order of all documents, and the logs of all budgets."""
    rng = stream("one-hot documents", seed)
    relevance = rng.integers(0, 5, queries * documents).astype(np.float32)
    log = SimulatedLog(
        dataset="documents",
        relevance="annotated",
        policy=Policy(ranker="expert"),
        user=PositionBased(),
        sessions=Sessions(**dict.fromkeys(SPLITS, budgets)),
        positions=documents,
    )
    splits = {}
    for split in SPLITS:
        shown = rng.permutation(queries * documents)
        pairs = Pairs(
            np.repeat(np.arange(queries), documents),
            np.tile(np.arange(documents), queries),
            np.arange(queries + 1) * documents,
        )
        # Ranked at random: nobody has features to rank by.
        policy = ScoredPairs(pairs, relevance[shown], rng.random(len(shown)))
        drawn = (measured.counts for measured in draw_cells(log, split, policy, seed=seed))
        splits[split] = Split(
            inputs=shown.reshape(queries, documents).astype(np.int32),
            where=np.ones((queries, documents), bool),
            relevance=relevance[shown].reshape(queries, documents),
            counts=of_cells(drawn, queries, documents),
        )
    return splits


def fit(method: str, splits, parameters: int, logs: list[int], positions: int, seed: int) -> list:
    """Test nDCG@10 of each log."""
    module, model, examination = METHODS[method]
    # The last number is the same for every share, so that all fits are of one compiled program.
    unused = splits["train"].inputs.size - parameters
    shared = {
        name: Split(part.inputs % parameters + unused, part.where, part.relevance, part.counts)
        for name, part in splits.items()
    }
    task = Task(
        model=model,
        tower="embedding",
        splits=shared,
        lanes=[(log, {}) for log in logs],
        training=TRAINING,
        positions=positions,
        seed=seed,
        users=[PositionBased()] * len(splits["train"].counts.impressions),
        examination=examination,
    )
    test = shared["test"]
    return [
        float(ndcg(measured.scores(test.inputs), test.relevance, where=test.where).mean())
        for measured in module.fit(task, weighting="queries")
    ]
