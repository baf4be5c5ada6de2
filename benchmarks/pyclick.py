"""Parameters of PyClick on its own example, against ours.

    .venv/bin/python -m benchmarks.pyclick PYCLICK_FOLDER trainSample [--most 2000] [--rounds 50]

The folder is a checkout of markovi/PyClick on GitHub (the package `pyclick` of PyPI is another
project). Both fit the first so many sessions. PyClick's EM makes 50 rounds, or as many as are asked
for; ours ends by itself.
Printed are the largest difference of each part's parameters, the log-likelihood of both by our
model (plus the log density of the prior), and the seconds of both.
"""

import argparse
import sys
import time

import numpy as np
import pyarrow as pa

from twotowers.experiment.components import build_model
from twotowers.fitting.em import fit_counts, fit_em
from twotowers.fitting.prior import Prior
from twotowers.fitting.statistics import Statistics, distinct_pages
from twotowers.fitting.steps import EMState
from twotowers.logs.click_log import read_log
from twotowers.logs.page_arrays import page_arrays
from twotowers.models.names import MODELS as SHORT
from twotowers.models.page import last_clicks
from twotowers.models.protocol import ONCE, PER_DOCUMENT, PER_JUMP, PER_POSITION

# PyClick's class, our model, and from our parts to PyClick's names.
MODELS = {
    "GCTR": ("gctr", {"rate": "ctr"}),
    "RCTR": ("rctr", {"examination": "ctr"}),
    "DCTR": ("dctr", {"attraction": "ctr"}),
    "CM": ("cm", {"attraction": "attr"}),
    "DCM": ("dependent_click_simplified", {"attraction": "attr", "continuation": "cont"}),
    "SDBN": ("simplified_bayesian_counted", {"attraction": "attr", "satisfaction": "sat"}),
    "PBM": ("pbm", {"attraction": "attr", "examination": "exam"}),
    "UBM": ("ubm", {"attraction": "attr", "examination": "exam"}),
    "CCM": (
        "ccm",
        {
            "attraction": "attr",
            "after_none": "cont_noclick",
            "after_dissatisfied": "cont_click_nonrel",
            "after_satisfied": "cont_click_rel",
        },
    ),
    "DBN": ("dbn", {"attraction": "attr", "satisfaction": "sat", "continuation": "cont"}),
}
HOMES = dict.fromkeys(("GCTR", "RCTR", "DCTR"), "CTR")
PRIOR = Prior(1, 2)


def main(folder: str, path: str, most: int, rounds: int) -> None:
    # PyClick's own parser reads the contest's file, which the sample is not.
    log = read_log(path, format="yandex")
    length = log.longest
    read = page_arrays(log, positions=length)
    pair, clicks, where = (each[:most] for each in (read.pair, read.clicks, read.where))
    sessions = sessions_of(folder, read.ids, pair, clicks, where)
    pages, last = distinct_pages(pair, clicks, where), last_clicks(clicks)
    for name, (ours, parts) in MODELS.items():
        home = HOMES.get(name, name)
        kind = getattr(__import__(f"pyclick.click_models.{home}", fromlist=[name]), name)
        theirs, start = kind(), time.perf_counter()
        theirs._inference.iter_num = rounds
        theirs.train(sessions)
        seconds = time.perf_counter() - start
        start = time.perf_counter()
        model = build_model(SHORT.get(ours, ours))
        statistics = Statistics.of_pages(model, pages)
        fit = fit_em if model.counts is None else fit_counts
        fitted = fit(statistics, prior=PRIOR).parameters
        own_seconds = time.perf_counter() - start
        peers = {part: values.copy() for part, values in fitted.items()}
        for row, session in enumerate(sessions):
            given = theirs.get_session_params(session)
            for rank in range(len(session.web_results)):
                values = {key.name: value for key, value in given[rank].items()}
                at = {
                    PER_DOCUMENT: pair[row, rank],
                    PER_POSITION: rank,
                    PER_JUMP: rank * length + last[row, rank],
                    ONCE: 0,
                }
                for part, other in parts.items():
                    peers[part][at[model.parts[part]]] = values[other].value()
        gaps = {part: np.abs(peers[part] - fitted[part]).max() for part in parts}
        words = ", ".join(f"{part} {gap:.1e}" for part, gap in gaps.items())
        problem = EMState(statistics, PRIOR)
        reached = (problem.objective(np.concatenate([*each.values()])) for each in (peers, fitted))
        words += "; log-likelihood with prior {:.4f} and {:.4f}".format(*reached)
        print(f"{name:5} {words}; {seconds:.1f} s and {own_seconds:.2f} s", flush=True)


def sessions_of(pyclick: str, ids: pa.Table, *arrays: np.ndarray) -> list:
    """Pages as PyClick's sessions, from a checkout of it."""
    sys.path.insert(0, pyclick)
    from pyclick.search_session.SearchResult import SearchResult
    from pyclick.search_session.SearchSession import SearchSession

    query, document = (ids[name].to_pylist() for name in ("query", "document"))
    sessions = []
    for pair, clicks, where in zip(*arrays, strict=True):
        session = SearchSession(query[pair[0]])
        shown = zip(pair[where], clicks[where], strict=True)
        session.web_results = [SearchResult(document[each], int(click)) for each, click in shown]
        sessions.append(session)
    return sessions


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", help="the checkout of PyClick")
    parser.add_argument("path", help="its trainSample")
    parser.add_argument("--most", type=int, default=2_000, help="sessions to fit")
    parser.add_argument("--rounds", type=int, default=50, help="of PyClick's EM")
    main(**vars(parser.parse_args()))
