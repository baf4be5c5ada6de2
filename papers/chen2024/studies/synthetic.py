"""Fully synthetic lists of K components, with and without repair (Section 5.1).

One seed is one of the published runs: it draws the clicks and the starts of the fits. The data
set of each K is drawn once for all seeds, as the authors' is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from papers.chen2024.contexts import EXAMINATION, POSITIONS
from papers.chen2024.estimators import (
    converge_dla,
    fit_dla,
    fit_regression_em,
    fit_two_tower,
)
from papers.chen2024.lists import RELEVANCE, Lists, generate
from twotowers.fitting.alternating import (
    ClickRates,
    RateEstimate,
    click_mse,
    fit_naive,
    simulate_rates,
)
from twotowers.identifiability.graph import factor_components
from twotowers.identifiability.intervention import node_intervention, random_intervention
from twotowers.identifiability.merging import merge_pairs, node_merging
from twotowers.randomness import stream
from twotowers.results.metrics import correlation, ndcg

TOPS = (1, 3, 5, 10)
SMALLEST = 1e-6
"""Estimates of 0, from documents without a click, would make a swap's cost infinite."""


def run(
    inputs,
    *,
    seed: int,
    components: list[int],
    clicks: list[int],
    named_merges: dict[str, list[int]],
    steps: dict[str, int],
    data_seed: int,
) -> pd.DataFrame:
    """Measure every method, repair and number of clicks.

    Args:
        inputs: none.
        seed: draws clicks, starts, and random swaps.
        components: numbers of components K.
        clicks: numbers of clicks N per place of a list, the largest last.
        named_merges: pairs of positions, from 0, that are merged at K = 2 (Figure 4b).
        steps: of each iterative method.
        data_seed: draws the lists.
    """
    frames = []
    for number in components:
        lists = generate(number, seed=data_seed)
        variants = {"plain", "merging", "intervention"} if number > 1 else {"plain"}
        extra = named_merges if number == 2 else {}
        frames.append(
            dla(lists, variants, extra, clicks, steps["dla"], seed=seed).assign(components=number)
        )
        if number == 2:
            others = baselines(lists, clicks[-1], steps, seed=seed)
            frames.append(others.assign(components=number))
    return pd.concat(frames, ignore_index=True)


def dla(lists: Lists, variants, named_merges, clicks, steps: int, *, seed: int) -> pd.DataFrame:
    """DLA on every number of clicks: plain, repaired, and with the repairs of the ablations."""
    log = Log(lists, clicks, seed=seed)
    merges = {"plain": np.arange(POSITIONS)}
    if "merging" in variants:
        merges["merging"] = merged_positions(lists)
    for name, pair in named_merges.items():
        merges[name] = merge_pairs(np.array([pair]), POSITIONS)
    fitted = log.fit(fit_dla, merges, steps)
    frames = [fitted.measures]
    if "intervention" in variants:
        # "We trained the ranking model and observation model using node merging and used their
        # values to implement the cost function" (Appendix C.3).
        estimates = fitted.estimates["merging"]
        swaps = {"intervention": [node_intervention(*log.rows, *pair) for pair in estimates]}
        if named_merges:
            swaps["random intervention"] = [
                random_intervention(*log.rows, *pair, rng=stream("random swaps", seed, number))
                for number, pair in zip(clicks, estimates, strict=True)
            ]
        frames += [log.intervened(fit_dla, name, swap, steps) for name, swap in swaps.items()]
    return pd.concat(frames, ignore_index=True).assign(method="dla")


def baselines(lists: Lists, clicks: int, steps: dict[str, int], *, seed: int) -> pd.DataFrame:
    """The other methods of Table 1, at one number of clicks."""
    log = Log(lists, [clicks], seed=seed)
    merges = {"plain": np.arange(POSITIONS), "merging": merged_positions(lists)}
    frames = [log.no_debias()]
    for method, fit in {"regression_em": fit_regression_em, "two_tower": fit_two_tower}.items():
        fitted = log.fit(fit, merges, steps[method])
        swaps = [node_intervention(*log.rows, *pair) for pair in fitted.estimates["merging"]]
        intervened = log.intervened(fit, "intervention", swaps, steps[method])
        measures = pd.concat([fitted.measures, intervened], ignore_index=True)
        frames.append(measures.assign(method=method))
    return pd.concat(frames, ignore_index=True)


def merged_positions(lists: Lists) -> np.ndarray:
    """Node merging with the position as bias feature (Appendix C.3)."""
    feature, factor = rows_of(lists.documents)
    return node_merging(feature, factor, np.arange(POSITIONS, dtype=float)[:, None]).merged


def rows_of(documents: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Document and position of every place of the lists."""
    return documents.ravel(), np.tile(np.arange(POSITIONS), len(documents))


def with_swap(documents: np.ndarray, swap) -> np.ndarray:
    """The lists to add for an intervention: for each swap one that shows its document, swapped.

    As published, a whole list is shown again in which two documents have changed places.
    """
    added = []
    for document, source, target in zip(swap.feature, swap.source, swap.target, strict=True):
        again = documents[np.flatnonzero(documents[:, source] == document)[0]].copy()
        again[[source, target]] = again[[target, source]]
        added.append(again)
    return np.array(added)


def is_connected(feature: np.ndarray, factor: np.ndarray, shown: np.ndarray) -> bool:
    """Is the graph of the rows that were shown connected?"""
    seen, factor = np.unique(factor[shown], return_inverse=True)
    return factor_components(feature[shown], factor, factors=len(seen)).max() == 0


@dataclass(frozen=True)
class Fitted:
    """What was measured, and per variant the estimates (relevance, examination) of each lane."""

    measures: pd.DataFrame
    estimates: dict[str, list[tuple[np.ndarray, np.ndarray]]]


class Log:
    """The clicks of one run on the given lists, at several numbers of clicks.

    All repairs but interventions see the same clicks; an intervention adds lists to them.
    """

    def __init__(self, lists: Lists, clicks: list[int], *, seed: int):
        self.lists, self.clicks, self.seed = lists, clicks, seed
        self.rows = rows_of(lists.documents)
        self.rate = np.stack([self.sample("clicks", *self.rows, number) for number in clicks])

    def sample(self, purpose: str, feature, factor, clicks: int) -> np.ndarray:
        chance = RELEVANCE[self.lists.labels][feature] * EXAMINATION[factor]
        return simulate_rates(chance, clicks, stream(purpose, self.seed, clicks))

    def fit(self, method, merges: dict[str, np.ndarray], steps: int) -> Fitted:
        """Fit under every merging of positions, at every number of clicks: one lane each."""
        feature, factor = self.rows
        lanes = [(name, number) for name in merges for number in self.clicks]
        rates = ClickRates(
            feature=feature,
            factor=np.stack([merges[name][factor] for name, _ in lanes]),
            rate=np.tile(self.rate, (len(merges), 1)),
            weight=np.ones((len(lanes), len(feature)), np.float32),
            features=len(self.lists.labels),
            factors=POSITIONS,
        )
        return self.fitted(method, rates, lanes, merges, steps)

    def fitted(self, method, rates: ClickRates, lanes, merges, steps: int) -> Fitted:
        """Fit and measure the lanes, which are pairs of a variant and a number of clicks."""
        estimate: RateEstimate = method(rates, self.start(method, lanes), steps=steps)
        error = click_mse(rates, estimate)
        frames, estimates = [], {name: [] for name in merges}
        for lane, (name, number) in enumerate(lanes):
            examination = estimate.examination[lane][merges[name]]
            pair = np.maximum(estimate.relevance[lane], SMALLEST), np.maximum(examination, SMALLEST)
            estimates[name].append(pair)
            frames.append(
                self.measure(estimate.relevance[lane], examination, error[lane], name, number)
            )
        if method is fit_dla:
            frames.append(self.converged(rates, estimate, lanes))
        return Fitted(pd.concat(frames, ignore_index=True), estimates)

    def converged(self, rates: ClickRates, estimate: RateEstimate, lanes) -> pd.DataFrame:
        """MCC where DLA's steps end, of the lanes whose graph is connected."""
        whole = [
            lane for lane in range(len(lanes))
            if is_connected(rates.feature, rates.factor[lane], rates.weight[lane] > 0)
        ]  # fmt: skip
        part = replace(
            rates, factor=rates.factor[whole], rate=rates.rate[whole], weight=rates.weight[whole]
        )
        end = converge_dla(part, np.maximum(estimate.examination[whole], SMALLEST))
        truth = RELEVANCE[self.lists.labels]
        return (
            pd.DataFrame(
                {
                    "metric": "converged_mcc",
                    "value": correlation(truth, end.relevance),
                    "variant": [lanes[lane][0] for lane in whole],
                    "clicks": [lanes[lane][1] for lane in whole],
                }
            )
            if whole
            else pd.DataFrame()
        )

    def intervened(self, method, name: str, swaps: list, steps: int) -> pd.DataFrame:
        """Fit with the lists that the swaps add; `swaps` has one set per number of clicks."""
        added = [with_swap(self.lists.documents, swap) for swap in swaps]
        new = [rows_of(documents) for documents in added]
        lanes = [(name, number) for number in self.clicks]
        # Lanes differ in the rows that are added: each has its own at weight 1.
        feature = np.concatenate([self.rows[0], *(rows[0] for rows in new)])
        factor = np.concatenate([self.rows[1], *(rows[1] for rows in new)])
        rate = np.zeros((len(lanes), len(feature)), np.float32)
        weight = np.zeros_like(rate)
        first = self.rate.shape[1]
        rate[:, :first], weight[:, :first] = self.rate, 1
        for lane, (rows, number) in enumerate(zip(new, self.clicks, strict=True)):
            own = slice(first, first + len(rows[0]))
            rate[lane, own] = self.sample(name, *rows, number)
            weight[lane, own] = 1
            first += len(rows[0])
        rates = ClickRates(
            feature=feature,
            factor=np.tile(factor, (len(lanes), 1)),
            rate=rate,
            weight=weight,
            features=len(self.lists.labels),
            factors=POSITIONS,
        )
        return self.fitted(method, rates, lanes, {name: np.arange(POSITIONS)}, steps).measures

    def no_debias(self) -> pd.DataFrame:
        """Clicks taken for relevance, which needs neither a start nor steps."""
        plain = {"plain": np.arange(POSITIONS)}
        fitted = self.fit(lambda rates, start, steps: fit_naive(rates), plain, steps=0)
        return fitted.measures.assign(method="naive")

    def start(self, method, lanes: list[tuple[str, int]]) -> np.ndarray:
        """[lanes, positions] where examination starts: U(0, 1), or logits N(0, 1) of towers."""
        draw = {fit_two_tower: "standard_normal"}.get(method, "random")
        return np.stack(
            [getattr(stream("start", self.seed, *lane), draw)(POSITIONS) for lane in lanes]
        )

    def measure(self, relevance, examination, error, variant: str, clicks: int) -> pd.DataFrame:
        labels = self.lists.labels
        shown = self.lists.documents
        where = np.ones(shown.shape, bool)
        values = {"mcc": correlation(RELEVANCE[labels], relevance[None])[0], "click_mse": error}
        for top in TOPS:
            gains = ndcg(relevance[shown], labels[shown].astype(float), where=where, topn=top)
            values[f"ndcg@{top}"] = gains.mean()
        rows = [(metric, None, value) for metric, value in values.items()]
        if clicks == self.clicks[-1]:
            curve = examination / max(examination[0], SMALLEST)
            rows += [("examination", rank, value) for rank, value in enumerate(curve, start=1)]
        frame = pd.DataFrame(rows, columns=["metric", "position", "value"])
        return frame.astype({"value": float}).assign(variant=variant, clicks=clicks)
