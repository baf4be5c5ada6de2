"""Write the documents of a log with text, with what an encoder says of them or reads."""

import json
import logging
from functools import partial
from pathlib import Path

from scripts.runner import job
from twotowers.experiment.config import Encoder
from twotowers.experiment.fields import read
from twotowers.jobs.encode import encode, tokens_of, write_encoded
from twotowers.splits import ANNOTATIONS, LOG
from twotowers.standins.baidu import world_of

LOGGER = logging.getLogger("twotowers.encode")


@job
def main(inputs, outputs, *, encoder: dict, generated: dict | None) -> None:
    """Write documents and annotations of a stand-in, or of real files, whose manifest is the input.

    `generated` has law, sessions, seed and annotated queries of a stand-in; of real files, tokens
    are written.
    """
    settings = read(Encoder, encoder)
    if generated is None:
        files = json.loads(Path(inputs[0]).read_text(encoding="utf-8"))
        paths = (files[part]["path"] for part in (LOG, ANNOTATIONS))
        write_encoded(*outputs, *paths, partial(tokens_of, length=settings.length))
        return
    queries = generated.pop("queries")
    losses = encode(*outputs, world_of(**generated), settings, queries=queries)
    for name, column in zip(("clicks", "masked tokens"), losses.T, strict=True):
        if not len(column):
            break
        few = max(len(column) // 10, 1)
        LOGGER.info("loss of %s: %.3f to %.3f", name, column[:few].mean(), column[-few:].mean())
