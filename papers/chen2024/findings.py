"""How accurate Example 2 is, and how long random swaps take."""

from __future__ import annotations

from papers.chen2024.judges.repairs import CLICKS, VISIBLE, by_seed
from papers.chen2024.judges.theory import SIZES, _example2, _off
from twotowers.claims.findings import Finding

LARGEST = 4


def example(results, authors):
    sizes = _example2(results)
    sizes = sizes.assign(off=_off(sizes)).nlargest(LARGEST, "off")
    worst = sizes.iloc[0]
    table = sizes[[*SIZES, "estimate", "simulated", "simulated_seen"]].astype(float)
    names = ["|X|", "|T|", "|D|", "estimate", "simulated", "of factors that are drawn"]
    table = table.set_axis(names, axis=1).set_index("|X|")
    return table, {"off": worst["off"], "factors": worst["bias_factors"], "rows": worst["rows"]}


def swaps(results, authors):
    over = {"repair": ("random intervention",)}
    mcc = {
        name: by_seed(results, over, setting=setting, metric="mcc", views=CLICKS).iloc[0]
        for name, setting in (("20,000 steps", "k2"), ("until they converge", "k2-limit"))
    }
    off = (mcc["until they converge"] - mcc["20,000 steps"]).abs()
    worst = off.nlargest(LARGEST).index
    table = mcc["20,000 steps"][worst].to_frame("MCC, 20,000 steps")
    table["until they converge"] = mcc["until they converge"][worst]
    return table.rename_axis("run"), {
        "off": off.max(),
        "many": (off > VISIBLE).sum(),
        "all": len(off),
    }


FINDINGS = [
    Finding(
        "17b",
        "Then the probability of identifiability can be estimated by: P(identifiability) ∼ 1 − |T| "
        "exp(−|D| + f), where f = |X| |T| log[2 − exp(−|D| / (|X| |T|))].",
        "Example 2",
        "No accuracy is promised, and it is far too high when |D| is not small against |X|, "
        "since a factor’s edges share its rows: at |T| = {factors:.0f} and |D| = {rows:.0f} it "
        "is off by {off:.2f}. Remark 2’s direction holds (claim 17a).",
        example,
    ),
    Finding(
        "20b",
        "On the fully synthetic datasets, we implemented the ranking and observation models as "
        "embedding models and controlled T = 20,000 to ensure the convergence.",
        "Appendix C.3",
        "Random swaps may join distant parts, and need more steps: {many} of {all} runs end more "
        "than .001 from where they converge, at most {off:.2f}. So Figure 4(a) may mix noise with "
        "unfinished optimisation. Swaps of least cost converge (claim 20a).",
        swaps,
        arguable=True,
    ),
]
