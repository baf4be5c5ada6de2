"""What judgments and weights are worth, on logs whose relevance is known.

`judgments` simulates users of several click models, and grades documents by click models and by two
rates: clicks over impressions, and clicks over expected clicks of the positions (COEC; Zhang and
Jones 2007). `seen` leaves out documents below the lowest click of a page. `debiasing` simulates
position-based users on rankings with labels, and trains LightGBM (and XGBoost, if it is installed)
on their clicks: `--cases mslr30k mq2008=FOLDER mslr_sample=FOLDER`.
"""

import importlib.util
from collections.abc import Callable
from pathlib import Path

import lightgbm
import numpy as np
import pandas as pd
import pyarrow as pa

import twotowers as tt
from benchmarks.pages import table
from benchmarks.validate.study import Study
from twotowers.claims.metrics import ndcg
from twotowers.claims.statistics import over_seeds
from twotowers.datasets.letor import read_letor
from twotowers.datasets.preprocess import preprocess
from twotowers.files.rankings import Rankings
from twotowers.models.names import MODELS
from twotowers.randomness import stream
from twotowers.root import ROOT

DOCS = ROOT / "docs"
PAGES, QUERIES, SESSIONS = 10_000, 500, 100
"""Pages and queries of a log that is graded; sessions of a query of one that rankers learn from."""
SHOWN = 10
EXAMINATION = 1 / np.arange(1, SHOWN + 1)
TITLES = {
    "mslr30k": "MSLR-WEB30K, stand-in", "mq2008": "MQ2008",
    "mslr_sample": "MSLR-WEB30K, sample",
}  # fmt: skip
DATA = {
    "mq2008": (46, 2, ("Fold1/train.txt", "Fold1/test.txt")),
    "mslr_sample": (136, 4, ("train.derived.txt", "test.txt")),
}
"""Features, largest label, and files for training and testing, of real data sets by name."""


# Judgments

USERS = ("position-based", "cascade", "satisfied")
EVIDENCE = (0, 3, 10, 30, 100, np.inf)


def pages_of(user: str, seed: int) -> tuple[pa.Table, pd.DataFrame]:
    """Pages of ten of 14 documents of a query, sorted by relevance with noise; and the truth.

    Queries have the traffic of a power law, so documents have little and much evidence.
    """
    rng = stream("benchmark of judgments", user, seed)
    relevance = np.round(rng.beta(0.6, 2, (QUERIES, 14)), 6)
    traffic = 1 / np.arange(1, QUERIES + 1)
    query = rng.choice(QUERIES, PAGES, p=traffic / traffic.sum())
    noisy = relevance[query] + rng.normal(0, 0.3, (PAGES, 14))
    order = np.argsort(-noisy, 1)[:, :SHOWN]
    attraction = np.take_along_axis(relevance[query], order, 1)
    uniform, clicks = rng.random(order.shape), np.zeros(order.shape, bool)
    reading, seen = np.ones(PAGES, bool), np.zeros(relevance.shape, int)
    for place in range(SHOWN):
        examined = reading
        if user == "position-based":
            examined = rng.random(PAGES) < EXAMINATION[place]
        np.add.at(seen, (query, order[:, place]), examined)
        clicks[:, place] = examined & (uniform[:, place] < attraction[:, place])
        # Who is satisfied by a click stops, and others read on with .85; a cascade ends by a click.
        stop = clicks[:, place] & (rng.random(PAGES) < {"cascade": 1.0}.get(user, 0.6))
        reading = reading & ~stop & (rng.random(PAGES) < 0.85)
    table = pa.table({"query": query, "documents": order.tolist(), "clicks": clicks.tolist()})
    asked, document = np.indices(relevance.shape).reshape(2, -1)
    truth = {"query": asked, "document": document, "truth": relevance.ravel()}
    return table, pd.DataFrame({**truth, "seen": seen.ravel()})


GRADERS = {
    "click rate": None,
    "COEC": None,
    **{name: "rate" for name in MODELS if name not in ("gctr", "rctr")},
    "pbm, one click in two": (2, 0.5),
}
"""Graders, and their priors."""
ENOUGH = 10
"""True examinations of a document whose place among others is judged."""


def grades(log: pa.Table, grader: str) -> pd.DataFrame:
    """Query, document, relevance and evidence, by a click model or a rate."""
    if prior := GRADERS[grader]:
        fit = tt.fit(log, grader.partition(",")[0], prior=prior)
        frame = fit.judgments(min_examinations=0).table.to_pandas()
        return frame.rename(columns={"examinations": "evidence"})
    cells = tt.read_log(log).count().to_pandas()
    rates = cells.groupby("position")[["clicks", "impressions"]].sum()
    rate = cells["position"].map(rates["clicks"] / rates["impressions"])
    expected = cells["impressions"] * (rate if grader == "COEC" else 1.0)
    own = cells.assign(expected=expected).groupby(["query", "document"], as_index=False)
    sums = own[["clicks", "expected"]].sum()
    return sums.assign(relevance=sums["clicks"] / sums["expected"])


def ordered(found: pd.DataFrame) -> dict[str, float]:
    """How well relevance orders documents of a query that were examined often, and how many."""
    seen = found[found["seen"] >= ENOUGH]
    ranks = seen.groupby("query")[["relevance", "truth"]].rank().assign(query=seen["query"])
    of_query = [own["relevance"].corr(own["truth"]) for _, own in ranks.groupby("query")]
    correlation = np.nanmean([each for each in of_query if each is not None])
    return {"pairs": len(seen), "correlation": correlation}


def judge(user: str, seed: int) -> list[dict]:
    """A row per grader, and of click models one per class of evidence."""
    log, truth = pages_of(user, seed)
    rows = []
    for grader in GRADERS:
        graded = grades(log, grader).merge(truth, on=["query", "document"])
        row = {"user": user, "seed": seed, "grader": grader}
        rows.append({**row, "evidence": "all", **ordered(graded)})
        if "evidence" in graded:
            off = (graded["relevance"] - graded["truth"]).abs()
            inside = graded["truth"].between(graded["low"], graded["high"])
            graded = graded.assign(off=off, inside=inside)
            classes = pd.cut(graded["evidence"], EVIDENCE, right=False)
            for name, own in graded.groupby(classes, observed=True):
                more = {"error": own["off"].mean(), "covered": own["inside"].mean()}
                rows.append({**row, "evidence": f"{name.left:g}", "pairs": len(own), **more})
    return rows


# A rule for what was seen

RULES = (None, "clicked+0", "clicked+1", "clicked+3")
PLACES = (2, 5, 10)
"""Positions whose examination is shown."""


def truncate(user: str, seed: int) -> list[dict]:
    """A row per rule: the examination of some positions, estimated."""
    log, _ = pages_of(user, seed)
    rows = []
    for rule in RULES:
        curve = tt.propensities(tt.read_log(log, seen=rule)).frame().to_pandas()
        places = curve.set_index("position")["estimate"].reindex(PLACES)
        row = {"user": user, "seed": seed, "rule": rule or "all"}
        rows.append(row | dict(zip(map(str, PLACES), places, strict=True)))
    return rows


# Debiasing

METHODS = ("labels", "weights, true curve", "weights", "weights, unclipped", "click rates",
           "LightGBM, clicks", "LightGBM, its own", "XGBoost, clicks", "XGBoost, its own",
           "production")  # fmt: skip
DEBIASED = {"weights": "click rates", "weights, true curve": "click rates",
            "LightGBM, its own": "LightGBM, clicks",
            "XGBoost, its own": "XGBoost, clicks"}  # fmt: skip
"""Methods that debias, and what they are compared with."""


def rankings_of(name: str, folder: Path | None) -> tuple[Rankings, Rankings, int]:
    """The training and test split of a data set, and its largest label."""
    if folder is None:
        rankings = tt.stand_in(name, queries=300)
        return rankings.train, rankings.test, 4
    width, largest, files = DATA[name]
    read = [read_letor(folder / file, width=width, label_max=largest) for file in files]
    # Raw labels, and every document: users see the best ten of a ranker, not the ten best labels.
    train, test = (preprocess(each, top=120, label_max=largest) for each in read)
    return train, test, 4


def trees(**options) -> dict:
    """Options of LightGBM that all methods share."""
    return {"num_leaves": 15, "learning_rate": 0.05, "min_child_samples": 20, "verbose": -1,
            "deterministic": True, "num_threads": 1, **options}  # fmt: skip


def debias(case: str, seed: int, rounds: int = 150) -> list[dict]:
    """A row per method: nDCG@10 on the labels of test queries. A case is NAME or NAME=FOLDER."""
    name, _, folder = case.partition("=")
    train, test, largest = rankings_of(name, Path(folder) if folder else None)
    rng = stream("benchmark of debiasing", name, seed)
    chance = 0.05 + 0.95 * (2**train.label - 1) / (2**largest - 1)
    starts = train.offsets
    # Production: a ranker from the labels of one query in ten, at least ten.
    queries = len(starts) - 1
    few = rng.permutation(queries)[: max(queries // 10, 10)]
    own = np.isin(np.repeat(np.arange(queries), np.diff(starts)), few)
    production = _regression(train.features[own], train.label[own], None, rounds=50)
    scores = production.predict(train.features)
    scores = (scores - scores.mean()) / scores.std()
    pages = [
        _pages(starts[k], starts[k + 1], scores, chance, SESSIONS, rng) for k in range(queries)
    ]
    rows = pd.concat(pages, ignore_index=True)
    by = rows.groupby(["query", "document", "position"], as_index=False)["clicks"]
    cells = by.agg(["sum", "size"]).rename(columns={"sum": "clicks", "size": "impressions"})
    models = {
        "production": production.predict,
        "labels": _regression(train.features, chance, None, rounds=rounds).predict,
    }
    for label, weight in _weightings(cells):
        given = cells.assign(label=cells["clicks"] * cells["position"].map(weight))
        pairs = given.groupby("document")[["label", "impressions"]].sum()
        rate = pairs["label"] / pairs["impressions"]
        features = train.features[pairs.index.to_numpy()]
        models[label] = _regression(features, rate, pairs["impressions"], rounds=rounds).predict
    models |= _lists(train, rows, rounds)
    return [
        {"data": name, "seed": seed, "sessions": SESSIONS, "method": method,
         "ndcg": _ndcg(predict(test.features), test)}
        for method, predict in models.items()
    ]  # fmt: skip


def _pages(start, end, scores, chance, sessions, rng) -> pd.DataFrame:
    """Rows of the result pages of a query; a document is the number of its row."""
    noisy = scores[start:end] + rng.gumbel(0, 0.3, (sessions, end - start))
    order = np.argsort(-noisy, 1)[:, :SHOWN] + start
    clicks = rng.random(order.shape) < chance[order] * EXAMINATION[: order.shape[1]]
    return pd.DataFrame(
        {
            "page": np.repeat(np.arange(sessions), order.shape[1]) + int(start) * sessions,
            "query": start,
            "document": order.ravel(),
            "position": np.tile(np.arange(1, order.shape[1] + 1), sessions),
            "clicks": clicks.ravel().astype(int),
        }
    )


def _weightings(cells: pd.DataFrame):
    """Weights of each position, by the name of the method."""
    places = np.arange(1, SHOWN + 1)
    yield "click rates", pd.Series(1.0, places)
    yield "weights, true curve", pd.Series(1 / EXAMINATION, places)
    for name, clip in (("weights", 10.0), ("weights, unclipped", 1e6)):
        table = tt.weights(cells, clip=clip).frame().set_index("position")["weight"]
        yield name, table.fillna(0.0)


def _lists(train: Rankings, rows: pd.DataFrame, rounds: int) -> dict[str, Callable]:
    """Rankers that learn from pages, with and without the debiasing of their library, as functions
    of features."""
    clicked = rows.groupby("page")["clicks"].transform("max") > 0
    rows = rows[clicked]
    group, at = rows.groupby("page", sort=False).size(), rows["document"].to_numpy()
    options = trees(objective="lambdarank", lambdarank_truncation_level=SHOWN)
    trained = {}
    for name, position in (("clicks", None), ("its own", rows["position"].to_numpy())):
        lists = lightgbm.Dataset(
            train.features[at], rows["clicks"], group=group, position=position, free_raw_data=True
        )
        booster = lightgbm.train(options, lists, num_boost_round=rounds)
        trained[f"LightGBM, {name}"] = booster.predict
    if importlib.util.find_spec("xgboost"):
        import xgboost

        lists = xgboost.DMatrix(train.features[at], rows["clicks"], qid=rows["page"])
        for name, own in (("clicks", False), ("its own", True)):
            about = {"objective": "rank:ndcg", "lambdarank_unbiased": own, "eta": 0.05,
                     "lambdarank_pair_method": "topk", "max_leaves": 15, "grow_policy": "lossguide",
                     "tree_method": "hist", "nthread": 1, "seed": 0,
                     "lambdarank_num_pair_per_sample": SHOWN}  # fmt: skip
            booster = xgboost.train(about, lists, num_boost_round=rounds)
            trained[f"XGBoost, {name}"] = booster.inplace_predict
    return trained


def _regression(features, label, weight, *, rounds: int) -> lightgbm.Booster:
    data = lightgbm.Dataset(features, np.asarray(label), weight=weight)
    return lightgbm.train(trees(objective="regression"), data, num_boost_round=rounds)


def _ndcg(scores: np.ndarray, rankings: Rankings) -> float:
    """Mean nDCG@10 over queries with a relevant document."""
    scores, labels, where = rankings.padded(scores.astype(np.float32), rankings.label)
    return float(np.nanmean(ndcg(scores, labels, where=where)[labels.max(1) > 0]))


STUDIES = {
    "judgments": Study("use_judgments", "user", USERS, judge, draws=2, first=1),
    "seen": Study("use_seen", "user", USERS[:1], truncate, draws=2, first=1),
    "debiasing": Study("use_debiasing", "data", ("mslr30k",), debias, draws=5, first=1),
}


def tables() -> dict[Path, dict[str, str]]:
    return {
        DOCS / "use.md": judgment_tables() | debiasing_tables(),
        DOCS / "logs.md": seen_tables(),
    }


def judgment_tables() -> dict[str, str]:
    rows = STUDIES["judgments"].table().astype({"evidence": str})
    whole = rows[(rows["evidence"] == "all") & rows["grader"].isin(GRADERS)]
    wide = _over_seeds(whole, "correlation", ["grader", "user"])[list(USERS)]
    own = rows[(rows["grader"] == "pbm") & (rows["user"] == "position-based")]
    own = own[own["evidence"] != "all"].rename(columns={"evidence": "examinations from"})
    by = own.groupby("examinations from", sort=False)[["pairs", "error", "covered"]].mean()
    columns = "examinations from | pairs : ,.0f | error : .3f | covered : .3f"
    evidence = table(by.reset_index().to_dict("records"), columns)
    return {"judgments": _table(wide), "evidence": evidence}


def seen_tables() -> dict[str, str]:
    rows = STUDIES["seen"].table().rename(columns={"rule": "documents"})
    curve = rows.groupby("documents", sort=False)[[*map(str, PLACES)]].mean()
    curve = curve.rename(columns="examination at {}".format)
    curve.loc["truth"] = EXAMINATION[np.subtract(PLACES, 1)]
    return {"seen-curve": _table(curve, " : .3f")}


def debiasing_tables() -> dict[str, str]:
    rows = STUDIES["debiasing"].table().replace({"data": TITLES})
    wide = _over_seeds(rows, "ndcg", ["method", "data"])
    wide = wide.reindex([method for method in METHODS if method in wide.index])
    own = rows.pivot(index=["data", "seed"], columns="method", values="ndcg")
    gains = {f"{new} less {old}": own[new] - own[old] for new, old in DEBIASED.items()
             if new in own}  # fmt: skip
    long = pd.DataFrame(gains).melt(var_name="methods", ignore_index=False).reset_index()
    band = over_seeds(long, ["methods", "data"]).set_index(["methods", "data"])
    texts = band.apply(lambda b: f"{b['value']:.3f} ({b['low']:.3f} to {b['high']:.3f})", axis=1)
    gained = texts.unstack("data").loc[list(gains)]
    return {"debiasing": _table(wide), "debiased": _table(gained)}


def _over_seeds(rows: pd.DataFrame, name: str, by: list[str]) -> pd.DataFrame:
    """The mean with its error in brackets: a row per first, a column per second of `by`."""
    means = rows.groupby(by, sort=False)[name].agg(["mean", "sem"])
    texts = means.apply(lambda row: f"{row['mean']:.3f} ({row['sem']:.3f})", axis=1)
    return texts.unstack(by[1])


def _table(frame: pd.DataFrame, form: str = "") -> str:
    """The index and the columns, all of them in one form."""
    heads = [frame.index.name, *(f"{column}{form}" for column in frame)]
    return table(frame.reset_index().to_dict("records"), " | ".join(heads))
