"""What `tt.diagnose` says of logs whose truth is known.

Logs are those of `benchmarks.validate.coverage`. These limits of `alarms` were committed before any
of it was run, and chosen without other seeds:

* `STOPS`: the share of logs of users who do not stop, product or additive, of whom the page says
  that they do.
* `NOTICED`: the share of logs of cascade users that it notices.
* `WRONG_FORM`: the share of logs of product users of whom it says that odds describe them better.
* `SILENT`: the share of logs of additive users at which the third recommendation is green although
  the product curve's interval excludes a true ratio of odds. Both forms agree on rare clicks.

A first run, of 9 draws, missed `SILENT` (.33 of sparse logs of additive users): errors of the
difference of both curves took them for independent. Since then the seeds are others.
"""

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa

from benchmarks.pages import table
from benchmarks.validate.coverage import SETTINGS, draw_pages
from benchmarks.validate.study import Study
from twotowers.diagnosis import rules
from twotowers.diagnosis.evidence import gather
from twotowers.logs.click_log import read_log
from twotowers.root import ROOT

STOPS, NOTICED, WRONG_FORM, SILENT = 0.03, 0.95, 0.05, 0.2
PAGE = ROOT / "docs" / "diagnosis.md"
JUDGED = (
    *("sparse", "sparse, following", "sparse, known, high rate", "sparse, additive"),
    *("sparse, additive, known", "sparse, cascade", "dense, cascade"),
)


def one_draw(name: str, seed: int) -> list[dict]:
    """What is recommended of one log."""
    query, order, clicks, _, truth = draw_pages(SETTINGS[name], seed)
    pages = pa.table({"query": query, "documents": list(order), "clicks": list(clicks)})
    evidence = gather(read_log(pages), ["position"], models=())
    curve = evidence.curve
    with np.errstate(invalid="ignore"):
        missed = evidence.reliable & ((truth < curve.low) | (truth > curve.high))
    assert evidence.above is not None
    row = {
        "setting": name,
        "users": SETTINGS[name].users,
        "seed": seed,
        "stops": rules.clicks_above(evidence) == "fewer",
        "ratio": evidence.above.value,
        "form": rules.form_of(evidence),
        "advice": rules.first(rules.ADVICE, evidence).colour,
        "missed": int(missed.sum()),
    }
    return [row]


def summary(rows: pd.DataFrame) -> pd.DataFrame:
    """A row per setting, with the limits that apply."""
    rows = rows.assign(
        odds=rows["form"] == "odds",
        undecided=rows["form"] == "open",
        silent=(rows["advice"] == "green") & (rows["missed"] > 0),
    )
    named = rows.groupby("setting", sort=False)
    means = named[["stops", "ratio", "odds", "undecided", "silent"]].mean()
    means["draws"], means["users"] = named.size(), named["users"].first()
    cascade, additive = means["users"] == "cascade", means["users"] == "additive"
    means["meets"] = np.where(cascade, means["stops"] >= NOTICED, means["stops"] <= STOPS)
    means.loc[additive, "meets"] &= means["silent"] <= SILENT
    means.loc[means["users"] == "product", "meets"] &= means["odds"] <= WRONG_FORM
    return means.reset_index()


STUDIES = {"alarms": Study("diagnosis", "setting", JUDGED, one_draw, summary, 20, 100)}
"""Seeds below 100 were seen."""


def tables() -> dict[Path, dict[str, str]]:
    return {
        PAGE: {
            "diagnosis": table(
                STUDIES["alarms"].table().to_dict("records"),
                "logs = setting | users | says that they stop = stops : .2f | "
                "odds are better = odds : .2f | form is undecided = undecided : .2f | "
                "green, and wrong = silent : .2f | odds ratio = ratio : .2f | "
                "meets the limits = meets : ?",
            )
        }
    }
