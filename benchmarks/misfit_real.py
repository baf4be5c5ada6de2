"""Tests of a two-tower model on real features with simulated clicks, and on a real log without.

    python -m benchmarks.misfit_real config/mq2008.yaml config/mslr_sample.yaml
    python -m benchmarks.misfit_real config/yandex.yaml --folder ../shared/data/yandex_20_queries

A configuration names the folder of the files. Nothing of them is kept but what is printed, and the
rows of `benchmarks/results/misfit_real.csv`: shares of alarms, and sizes.

Of files in LETOR format, every query with 10 documents or more takes part, with 10 of its documents
at random, features after signed log1p as the papers prepare them, and 100 sessions, a third of them
in random order. Relevance is linear in the features, a network's of them, or the annotation, by
which the policy then sorts. A linear tower is right in the first case and wrong in both others.

A click log has no features here. What can be said: whether each form of the curve, product and
odds, is the same for unattractive and for attractive documents (`twotowers.fitting.specification`),
and whether a model without any feature has the same curve. That is Hausman's test of whether
relevance is independent of rank, as click rates by position assume.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pandas as pd

import twotowers as tt
from benchmarks.misfit import POSITIONS, net, simulate, standard
from twotowers.datasets.download import locate
from twotowers.datasets.letor import read_letor
from twotowers.datasets.preprocess import signed_log1p
from twotowers.datasets.sources import LETOR
from twotowers.experiment.config import DataSet
from twotowers.files.yamls import read_yaml
from twotowers.fitting.conditional import fit_conditional
from twotowers.fitting.feature_counts import FeatureCounts
from twotowers.fitting.feature_towers import fit_tower
from twotowers.fitting.specification import fit_slope
from twotowers.identifiability.hausman import hausman
from twotowers.identifiability.misfit import misfit
from twotowers.randomness import stream

SESSIONS, TEMPERATURE = 100, 1 / 3
LAWS = ("linear", "network", "annotation")
RESULTS = Path(__file__).parent / "results" / "misfit_real.csv"


def lists(data: DataSet) -> tuple[np.ndarray, np.ndarray]:
    """[queries, documents, width] features, and [queries, documents] labels in [0, 4]."""
    features, labels = [], []
    for path in locate(data.of, data.folder).values():
        read = read_letor(path, width=data.of.width)
        for start, end in zip(read.offsets[:-1], read.offsets[1:], strict=True):
            if end - start >= POSITIONS:
                features.append(signed_log1p(read.features[start:end]))
                labels.append(read.label[start:end] * (4 / data.of.label_max))
    rng = stream("documents of the benchmark of misfit")
    chosen = [rng.permutation(len(each))[:POSITIONS] for each in labels]
    pick = [
        np.stack([each[rows] for each, rows in zip(kind, chosen, strict=True)])
        for kind in (features, labels)
    ]
    return pick[0].astype(float), pick[1].astype(float)


def simulated(features: np.ndarray, labels: np.ndarray, law: str, seed: int) -> dict:
    """A log of additive users, whose policy sorts by relevance."""
    rng = stream("benchmark of misfit, real features", law, seed)
    rows = features.reshape(-1, features.shape[-1])
    spread = rows.std(0)
    x = (rows - rows.mean(0))[:, spread > 1e-9] / spread[spread > 1e-9]
    if law == "annotation":
        gamma = labels.ravel() - 2
    else:
        value = x @ rng.normal(size=x.shape[1])
        gamma = 1.2 * standard(net(x, rng) if law == "network" else value)
    logged = simulate(
        gamma.reshape(labels.shape), temperature=TEMPERATURE, sessions=SESSIONS, rng=rng
    )
    pair = logged["pair"]
    return logged | {"features": x[pair], "score": gamma[pair]}


def on_features(name: str, data: DataSet, *, tower: str, draws: int) -> list[dict]:
    """A row per law of relevance and test: alarms at .05, the median p, and what is found."""
    features, labels = lists(data)
    found = []
    for law in LAWS:
        for seed in range(draws):
            given = simulated(features, labels, law, seed)
            tests = misfit(**given, tower=tower, folds=2, seed=seed, with_overlap=False)
            table = tests.tests.assign(law=law, seed=seed)
            largest = tests.curve["difference"].abs().max()
            table.loc[table["test"] == "hausman", "value"] = largest
            every = {"test": "any", "p": table["adjusted"].min(), "law": law, "seed": seed}
            found.append(pd.concat([table, pd.DataFrame([every])]))
    rows = pd.concat(found)
    rows["alarm"] = rows["p"] <= 0.05
    by = rows.groupby(["law", "test"], sort=False)
    table = by.agg(tests=("p", "count"), alarms=("alarm", "sum"), p=("p", "median"),
        value=("value", "median")).reset_index()  # fmt: skip
    table.insert(0, "tower", tower)
    table.insert(0, "queries", len(labels))
    table.insert(0, "data", name)
    return table.to_dict("records")


def without_features(name: str, data: DataSet) -> list[dict]:
    """What a click log says of its model where documents have no features."""
    (path,) = locate(data.of, data.folder).values()
    log = tt.read_log(str(path), format=data.of.format)
    cells = pd.DataFrame(log.cells().to_pandas())
    pair = cells.groupby(["query", "document"], sort=True).ngroup().to_numpy()
    factor = cells["position"].to_numpy() - 1
    counted = cells["impressions"].to_numpy(), cells["clicks"].to_numpy()
    none = np.zeros((len(cells), 0))
    given = FeatureCounts.of_arrays(cells["query"], pair, factor, *counted, none)
    rows = []
    for form in ("product", "additive"):
        curve = fit_conditional(given.counts, form=form)
        slope = fit_slope(given.counts, curve, form=form, rng=stream("slope", name, form))
        compared = hausman(given, fit_tower(given, "linear", form=form))
        print(f"{name}, {form}: curve given each pair, and of click rates by position")
        print(compared.curve.round(3).to_string(index=False))
        common = {"data": name, "queries": len(given.counts.query), "law": form}
        rows.append(common | {"test": "slope of the form", "p": slope.p, "value": slope.value})
        largest = compared.curve["difference"].abs().max()
        rank = {"test": "relevance by rank", "p": compared.test.p, "value": largest}
        rows.append(common | rank | {"reason": compared.test.reason})
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "configs", nargs="+", help="configurations that name the data sets' folders"
    )
    parser.add_argument("--folder", help="instead of the folder of the configuration")
    parser.add_argument("--tower", default="linear", choices=["linear", "deep"])
    parser.add_argument("--draws", type=int, default=20, help="of clicks")
    options = parser.parse_args()
    rows = []
    for config in options.configs:
        for name, given in read_yaml(config)["datasets"].items():
            data = DataSet(**given | ({"folder": options.folder} if options.folder else {}))
            if data.folder is None:
                raise SystemExit(f"{config}: {name} has no folder; give one with --folder")
            if data.of.format == LETOR:
                rows += on_features(name, data, tower=options.tower, draws=options.draws)
            else:
                rows += without_features(name, data)
    table = pd.DataFrame(rows)
    print(table.round(4).to_string(index=False))
    if RESULTS.exists():
        before = pd.read_csv(RESULTS)
        table = pd.concat([before[~before["data"].isin(table["data"])], table])
    table.to_csv(RESULTS, index=False, float_format="%.4g")


if __name__ == "__main__":
    main()
