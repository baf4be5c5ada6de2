"""Train an encoder on a generated log with text, and write its vectors of all documents."""

import logging

from scripts.runner import run
from twotowers.experiment.config import Encoder
from twotowers.experiment.fields import read
from twotowers.jobs.encode import encode
from twotowers.standins.baidu import world_of

LOGGER = logging.getLogger("twotowers.encode")


def main(
    inputs, outputs, *, encoder: dict, law: dict, sessions: int, queries: int, seed: int
) -> None:
    """Write documents and annotations.

    Args:
        inputs: none.
        outputs: one path each.
        encoder: see `twotowers.experiment.config.Encoder`.
        law, sessions, seed: see `twotowers.standins.baidu.world_of`.
        queries: annotated.
    """
    losses = encode(
        *outputs, world_of(sessions, seed, law), read(Encoder, encoder), queries=queries
    )
    for name, column in zip(("clicks", "masked tokens"), losses.T, strict=True):
        if not len(column):
            break
        few = max(len(column) // 10, 1)
        LOGGER.info("loss of %s: %.3f to %.3f", name, column[:few].mean(), column[-few:].mean())


if "snakemake" in globals():
    run(main, snakemake)  # noqa: F821
