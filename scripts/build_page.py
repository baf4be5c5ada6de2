"""All items, claims and timings -> the page, and the claims of all papers in one csv."""

import os

import pandas as pd

from scripts.runner import run
from twotowers.files.artefacts import atomic
from twotowers.report.page import ItemPage, PaperPage, build_page
from twotowers.running.joblogs import seconds


def main(inputs, outputs, *, papers: list[dict], scale: str, version: str):
    pages, verdicts = [], []
    for paper in papers:
        claims = pd.read_csv(paper["claims"], keep_default_na=False, dtype=str)
        verdicts.append(claims)
        pages.append(paper_page(paper, claims, os.path.dirname(outputs.page), scale, version))
    with atomic(outputs.claims) as path:
        pd.concat(verdicts).to_csv(path, index=False, lineterminator="\n")
    logs = [log for paper in papers for log in paper["logs"]]
    provenance = {"scale": scale, "version": version, "seconds": seconds(logs)}
    build_page(pages, outputs.page, provenance=provenance)


def paper_page(paper: dict, claims: pd.DataFrame, folder: str, scale: str, version: str):
    def provenance(part):
        return {
            "datasets": part["datasets"],
            "seeds": part["seeds"],
            "scale": scale,
            "version": version,
            "seconds": seconds(part["logs"]),
        }

    items = [
        ItemPage(
            name=name,
            **{word: item[word] for word in ("title", "caption", "expected", "kind", "highlight")},
            table=pd.read_csv(next(path for path in item["files"] if path.endswith(".csv"))),
            claims=claims[claims["item"] == name].to_dict("records"),
            files={path.rsplit(".")[-1]: os.path.relpath(path, folder) for path in item["files"]},
            provenance=provenance(item),
        )
        for name, item in paper["items"].items()
    ]
    return PaperPage(
        **{word: paper[word] for word in ("key", "title", "citation", "readme")},
        items=items,
        provenance=provenance(paper),
        claims=claims[~claims["item"].isin(list(paper["items"]))].to_dict("records"),
    )


if "snakemake" in globals():
    run(main, snakemake)  # noqa: F821
