"""All results of a paper -> a verdict on each of its claims."""

from scripts.runner import paper_module, run
from twotowers.files.artefacts import atomic
from twotowers.results.claims import judge_all
from twotowers.results.longform import read_results


def main(inputs, outputs, *, paper: str):
    # Who runs settings on a log of their own claims nothing.
    claims = paper_module(paper, "claims")
    published = paper_module(paper, "published")
    authors = published.results() if published else None
    verdicts = judge_all(claims.CLAIMS if claims else [], read_results(inputs), authors)
    verdicts.insert(0, "paper", paper)
    with atomic(outputs[0]) as path:
        verdicts.to_csv(path, index=False, lineterminator="\n")


if "snakemake" in globals():
    run(main, snakemake)  # noqa: F821
