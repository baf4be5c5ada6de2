"""All results of a paper -> a verdict on each claim, the gates of its fits, and its findings."""

import json

from scripts.runner import job, paper_module
from twotowers.claims import published
from twotowers.claims.findings import measured
from twotowers.claims.gates import gates_of
from twotowers.claims.judging import judge_all
from twotowers.claims.statistics import read_results
from twotowers.experiment.matrix import item_needs
from twotowers.files.artefacts import atomic


@job
def main(inputs, outputs, *, paper: str, needs: dict[str, list[str]], data: dict[str, str]):
    # A paper of one's own may have no claims.py.
    claims, findings = (paper_module(paper, name) for name in ("claims", "findings"))
    judged = claims.CLAIMS if claims else []
    results, authors = read_results(inputs), published.results(paper)
    known = item_needs(paper)
    gates = gates_of(results)
    verdicts = judge_all(judged, results, authors, gates, items=needs, data=data, known=known)
    verdicts.insert(0, "paper", paper)
    shown_gates = gates.drop(columns="columns")
    for table, output in (verdicts, outputs.claims), (shown_gates, outputs.gates):
        with atomic(output) as path:
            table.to_csv(path, index=False, lineterminator="\n")
    shown = measured(findings.FINDINGS, results, authors) if findings else []
    with atomic(outputs.findings) as path:
        path.write_text(json.dumps(shown, ensure_ascii=False, indent=1), encoding="utf-8")
