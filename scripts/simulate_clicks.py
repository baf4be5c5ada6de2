"""A policy's scores -> the clicks of every lane and split.

Given lists need nothing, or the documents with the policy that ranks them.
"""

from scripts.runner import run
from twotowers import SPLITS
from twotowers.experiment.settling_logs import LISTS, queries_of
from twotowers.jobs.list_files import write_lists
from twotowers.jobs.lists import simulate_lists
from twotowers.jobs.ranked_lists import simulate_ranked
from twotowers.jobs.simulation import simulate, simulate_pages
from twotowers.logs.cells import write_logs
from twotowers.logs.policies import read_scores
from twotowers.logs.sessions import write_sessions


def main(inputs, outputs, *, paper: str, log: dict, positions: int, seed: int):
    given = {"positions": positions, "seed": seed, "paper": paper}
    if log.get("from") == LISTS:
        ranked = "contexts" in log
        lanes = simulate_ranked(log, inputs, **given) if ranked else simulate_lists(log, **given)
        write_lists(outputs[0], lanes)
        return
    policies = {split: read_scores(inputs.policy, *queries_of(log, split)) for split in SPLITS}
    simulated = simulate_pages if log.get("record") == "sessions" else simulate
    logs = (
        part
        for split, policy in policies.items()
        for part in simulated(split, policy, log, **given)
    )
    if log.get("record") == "sessions":
        write_sessions(outputs[0], logs)
    else:
        write_logs(outputs[0], logs, {split: policy.pairs for split, policy in policies.items()})


if "snakemake" in globals():
    run(main, snakemake)  # noqa: F821
