"""A policy's scores -> click counts of every strength, temperature and split."""

from scripts.runner import run
from twotowers import SPLITS
from twotowers.files.rankings import mask, pad
from twotowers.logs.cells import LaneLog, write_logs
from twotowers.logs.policies import policy_scores, ranking_order, read_policy
from twotowers.logs.simulation import Counts, Traffic, simulate_clicks
from twotowers.models.additive import Additive
from twotowers.randomness import stream


def main(
    inputs,
    outputs,
    *,
    strengths: list[float],
    temperatures: list[float],
    queries: str | None,
    sessions: dict[str, int],
    positions: int,
    seed: int,
):
    policies = {split: read_policy(inputs.policy, queries or split) for split in SPLITS}
    logs = (
        log
        for split, policy in policies.items()
        for log in simulate(
            split,
            policy,
            strengths=strengths,
            temperatures=temperatures,
            sessions=sessions[split],
            positions=positions,
            seed=seed,
        )
    )
    write_logs(outputs[0], logs, {split: policy.pairs for split, policy in policies.items()})


def simulate(split, policy, *, strengths, temperatures, sessions, positions, seed):
    """Yield the log of each lane; lanes share their sessions, each has clicks of its own."""
    pairs = policy.pairs
    where = mask(pairs.lengths, positions)
    relevance = pad(policy.relevance, pairs.offsets, positions)
    chance = Additive().chance(relevance, positions)
    traffic = Traffic(
        pairs.lengths,
        sessions=sessions,
        temperatures=temperatures,
        length=positions,
        rng=stream("traffic", seed, split),
    )
    for strength in strengths:
        # Every strength draws the same noise and ties, so that strengths differ in nothing else.
        rng = stream("policy noise", seed, split)
        scores = pad(policy_scores(policy.score, strength, rng=rng), pairs.offsets, positions)
        order = ranking_order(scores, where, tiebreak=rng.random(scores.shape))
        for temperature in temperatures:
            impressions = traffic.impressions(order, temperature)
            rng = stream("clicks", seed, split, strength, temperature)
            clicks = simulate_clicks(impressions, chance, rng=rng)
            yield LaneLog(split, strength, temperature, Counts(impressions, clicks))


if "snakemake" in globals():
    run(main, snakemake)  # noqa: F821
