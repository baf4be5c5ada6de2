"""How accurate Example 2 is, and how long random swaps take."""

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
        "Considering the following simplified example: each feature x ∈ X and bias factor t ∈ T "
        "are selected independently and uniformly to construct a dataset D. Then the probability "
        "of identifiability can be estimated by: P(identifiability) ∼ 1 − |T| exp(−|D| + f), where "
        "f = |X| |T| log[2 − exp(−|D| / (|X| |T|))].",
        "Example 2",
        "No accuracy is promised. The estimate is far too high where |D| is not small against "
        "|X|: the edges of a bias factor come from the same rows, while Lemma A.2 takes edges as "
        "independent. At |T| = {factors:.0f} and |D| = {rows:.0f} it is off by {off:.2f}. The "
        "direction of Remark 2 holds (claim 17a).",
        example,
        arguable=True,
    ),
    Finding(
        "20b",
        "On the fully synthetic datasets, we implemented the ranking and observation models as "
        "embedding models and controlled T = 20,000 to ensure the convergence.",
        "Appendix C.3",
        "With swaps of random cost, which may join distant positions, DLA needs more steps: in "
        "{many} of {all} runs its MCC is more than .001 from where the steps converge, at most "
        "{off:.2f}. So Figure 4(a) may show unfinished optimisation besides noise. With swaps of "
        "least cost, and with merging, 20,000 steps suffice (claim 20a).",
        swaps,
        arguable=True,
    ),
]
