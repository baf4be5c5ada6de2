"""What a fitted lane is measured by.

`measure` gives what every fit reports. `FURTHER` names what a setting may ask for besides.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from twotowers.claims.metrics import (
    arp,
    correlation,
    joined_by_number,
    logged_ndcg,
    mrr,
    ndcg,
    nll_of_pages,
    of_each_query,
    page_perplexities,
    perplexities,
    shown_arp,
    shown_ndcg,
)
from twotowers.errors import InputError
from twotowers.fitting.information import holds_scale
from twotowers.methods.task import Fitted, Split, Task
from twotowers.models.protocol import PER_DOCUMENT


@dataclass(frozen=True)
class Judged:
    """Annotated documents of queries that need not be in the log.

    `inputs` [queries, documents, width] are of the relevance tower; `where` is False on padding.
    """

    inputs: np.ndarray
    where: np.ndarray
    labels: np.ndarray


def measure(
    fitted: Fitted, test: Split, log: int, judged: Judged | None = None
) -> list[tuple[str, int | None, float]]:
    """Metric, position (or None) and value of one lane on its unweighted test log."""
    rows = []
    if judged is not None and fitted.scores is not None:
        # Means over all annotated queries; those without a relevant document count 0.
        scores = fitted.scores(judged.inputs)
        metrics = of_each_query(scores, judged.labels, where=judged.where)
        rows += [(name, None, values.mean()) for name, values in metrics.items()]
    if fitted.bias is not None:
        bias = fitted.bias - fitted.bias[0]
        known = enumerate(bias, start=1)
        rows += [("position_bias", rank, value) for rank, value in known if not np.isnan(value)]
    if fitted.bias_error is not None:
        errors = enumerate(fitted.bias_error, start=1)
        rows += [("position_bias_error", rank, value) for rank, value in errors]
    if test.relevance is not None:
        if fitted.scores is not None:
            scores = fitted.scores(test.inputs)
            rows += [
                ("ndcg@5", None, _ndcg_at_5(fitted, test).mean()),
                ("ndcg@10", None, ndcg(scores, test.relevance, where=test.where).mean()),
                ("arp", None, arp(scores, test.relevance, where=test.where).mean()),
                ("mrr@10", None, mrr(scores, test.relevance, where=test.where).mean()),
            ]
        rows += _policy(test, log)
    if test.sessions is not None and fitted.page_losses is not None:
        rows += page_perplexities(*fitted.page_losses(test), test.sessions[log].where)
    elif test.relevance is None and fitted.cell_losses is not None:
        rows += perplexities(fitted.cell_losses(test), test.counts, log)
    return [*rows, *((metric, None, value) for metric, value in fitted.values.items())]


def of_validation(fitted: Fitted, task: Task, log: int) -> Iterator[dict]:
    """Loss per impression, watched loss (its lowest, and its mean over epochs) and, where relevance
    is known, nDCG@5 on the validation split.

    A paper may choose lanes by these. A lane that diverged has an infinite watched loss.
    """
    split = task.splits["validation"]
    if fitted.cell_losses is not None:
        shown = split.counts.of_log(log).impressions.sum()
        yield {"metric": "validation_nll", "value": fitted.cell_losses(split).sum() / shown}
    if fitted.history is not None:
        watched = fitted.history[: int(fitted.values["epochs"])]
        watched = np.where(np.isfinite(watched), watched, np.inf)
        yield {"metric": "validation_loss", "value": watched.min()}
        yield {"metric": "validation_loss_mean", "value": watched.mean()}
    if split.relevance is not None:
        yield {"metric": "validation_ndcg@5", "value": _ndcg_at_5(fitted, split).mean()}


def of_recovery(fitted: Fitted, task: Task, log: int) -> Iterator[dict]:
    """How well the simulated user's relevance is recovered: MCC, and nDCG@1 and @3.

    MCC is Pearson's correlation of scores with P(attractive), over the documents of the test split,
    a document that is on several lists once (Chen et al. 2024).
    """
    test = task.splits["test"]
    scores = fitted.scores(test.inputs)
    for topn in (1, 3):
        gains = ndcg(scores, test.relevance, where=test.where, topn=topn)
        yield {"metric": f"ndcg@{topn}", "value": gains.mean()}
    shown = np.flatnonzero(test.where)
    if test.inputs.ndim == 2:
        shown = shown[np.unique(test.inputs.ravel()[shown], return_index=True)[1]]
    truth = expit(task.users[log].truth(test.relevance.ravel()[shown], 1)["attraction"])
    yield {"metric": "mcc", "value": correlation(truth, scores.reshape(1, -1)[:, shown])[0]}


def of_places(fitted: Fitted, task: Task, log: int) -> Iterator[dict]:
    """MCC over all places of the test split. A document counts on each of its lists, with its label
    there. `of_recovery` counts it once."""
    test = task.splits["test"]
    truth = expit(task.users[log].truth(test.relevance[test.where], 1)["attraction"])
    scores = fitted.scores(test.inputs)[test.where]
    yield {"metric": "mcc", "value": correlation(truth, scores[None])[0]}


def of_ties(fitted: Fitted, task: Task, log: int) -> Iterator[dict]:
    """nDCG@5 and @10, where the later of two documents with equal scores ranks first."""
    test = task.splits["test"]
    rank = np.argsort(np.argsort(fitted.scores(test.inputs), kind="stable", axis=-1), axis=-1)
    for topn in (5, 10):
        gains = ndcg(rank, test.relevance, where=test.where, topn=topn)
        yield {"metric": f"ndcg@{topn}_later_first", "value": gains.mean()}


def of_queries(fitted: Fitted, task: Task, log: int) -> Iterator[dict]:
    """nDCG@5 of every test query, by its place in the split, for paired tests."""
    for query, value in enumerate(_ndcg_at_5(fitted, task.splits["test"])):
        yield {"metric": "query_ndcg@5", "query": query, "value": value}


def of_epochs(fitted: Fitted, task: Task, log: int) -> Iterator[dict]:
    """The loss that early stopping watched, after each epoch."""
    for epoch, value in enumerate(fitted.history, start=1):
        if not np.isnan(value):
            yield {"metric": "watched_loss", "epoch": epoch, "value": value}


def of_annotated(judged: Judged, fitted: Fitted, task: Task, log: int) -> Iterator[dict]:
    """Metrics of every annotated query, and NLL of the test page with its number, for paired tests;
    the mean of these NLL; and nDCG of the logged order of test pages.

    That numbers of pages and annotated queries coincide says nothing. As published, the mean leaves
    out queries whose number no test page has, and tests take their NLL for 0.
    """
    test = task.splits["test"]
    if fitted.scores is not None:
        metrics = of_each_query(fitted.scores(judged.inputs), judged.labels, where=judged.where)
        for name, values in metrics.items():
            for query, value in enumerate(values):
                yield {"metric": f"query_{name}", "query": query, "value": value}
        pages = test.sessions[log]
        scores = test.on_pages(log, fitted.scores)
        yield {"metric": "logged_ndcg@10", "value": logged_ndcg(scores, where=pages.where).mean()}
    if fitted.page_losses is not None:
        _, given = fitted.page_losses(test)
        pages = test.sessions[log]
        nll, queries = nll_of_pages(given, pages.where), np.arange(len(judged.labels))
        joined = joined_by_number(nll, pages.page, queries)
        if np.isfinite(joined).any():
            yield {"metric": "joined_nll", "value": np.nanmean(joined)}
        for query, value in enumerate(np.nan_to_num(joined)):
            yield {"metric": "query_nll", "query": query, "value": value}


def _ndcg_at_5(fitted: Fitted, split: Split) -> np.ndarray:
    return ndcg(fitted.scores(split.inputs), split.relevance, where=split.where, topn=5)


QUERIES = "queries"


def of_uncertainty(fitted: Fitted, task: Task, log: int) -> Iterator[dict]:
    """What the intervals of a lane's probabilities are worth, by part (`fitting.information`).

    `intervals` is their number, of those that the clicks tell something of. `standard_error` and
    `impressions` are their medians. Where the log's user is of the model's kind, `coverage` is the
    share that holds the truth; the truth is above the share `too_low`, and below the share
    `too_high`. A log of another user has no truth for this model: nothing is measured there.
    """
    user = task.users[log] if task.users else None
    if user is not None and type(user) is not type(task.model):
        return
    if fitted.estimate is None:
        raise InputError(
            "this fit has no probability for every pair",
            field="measure",
            expected="'uncertainty' of method 'em' or 'counting', or of a tower per pair",
        )
    intervals, parameters, truth = fitted.estimate.intervals, fitted.estimate.parameters, {}
    if user is not None:
        truth = _truth(task, user)
        if holds_scale(task.model):
            # As the fit has it: what examination lacks, attraction has.
            scale = parameters["examination"][0] / truth["examination"][0]
            truth["examination"] = truth["examination"] * scale
            truth["attraction"] = truth["attraction"] / scale
    for part, each in intervals.items():
        known = ~np.isnan(each.error)
        measured = {"intervals": known.sum()}
        if known.any():
            measured["standard_error"] = np.median(each.error[known])
            measured["impressions"] = np.median(each.impressions[known])
        if known.any() and truth:
            low, high = (each.high < truth[part])[known], (each.low > truth[part])[known]
            measured |= {"too_low": low.mean(), "too_high": high.mean()}
            measured["coverage"] = 1 - measured["too_low"] - measured["too_high"]
        yield from (
            {"metric": name, "part": part, "value": value} for name, value in measured.items()
        )


def _truth(task: Task, user) -> Mapping[str, np.ndarray]:
    """Per part [size] the user's own probabilities."""
    split, true = task.splits["train"], {}
    for part, logits in user.truth(split.relevance, task.positions).items():
        chances = expit(np.asarray(logits, float))
        if task.model.parts[part] == PER_DOCUMENT:
            true[part] = np.full(task.pairs, np.nan)
            true[part][split.inputs[split.where]] = chances[split.where]
        else:
            true[part] = chances.ravel()
    return true


FURTHER = {
    "validation": of_validation,
    "recovery": of_recovery,
    "places": of_places,
    "ties": of_ties,
    QUERIES: of_queries,
    "epochs": of_epochs,
    "uncertainty": of_uncertainty,
}
"""The function behind each name that a setting's `measure` may have."""


def _policy(test: Split, log: int) -> Iterator[tuple[str, None, float]]:
    """nDCG and ARP of the rankings that a log showed: means over the queries that were asked."""
    counts, asked = test.counts.of_log(log), test.counts.sessions[log] > 0
    for topn in (5, 10):
        shown = shown_ndcg(counts, test.relevance, where=test.where, topn=topn)
        yield f"policy_ndcg@{topn}", None, shown[asked].mean()
    shown = shown_arp(counts, test.relevance, where=test.where)
    yield "policy_arp", None, shown[asked].mean()
