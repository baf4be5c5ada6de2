"""Generate one part of a stand-in data set, as raw as the real files."""

import pyarrow.parquet as pq

from scripts.runner import run
from twotowers import ANNOTATIONS, DOCUMENTS, LOG, PAGES
from twotowers.files.artefacts import atomic
from twotowers.files.rankings import write_rankings
from twotowers.logs.described import write_documents
from twotowers.logs.sessions import write_sessions
from twotowers.standins import uva
from twotowers.standins.baidu import world_of
from twotowers.standins.baidu_files import write_part
from twotowers.standins.logs import generate_log, generate_pages
from twotowers.standins.rankings import generate


def main(
    inputs, outputs, *, name: str, split: str, size: int, seed: int, texts: dict | None = None
) -> None:
    """Write the split, or the click log, to parquet.

    Args:
        inputs: none.
        outputs: one path.
        name, split, size, seed: see `twotowers.standins.rankings.generate`,
            `twotowers.standins.logs` and `twotowers.standins.uva`; the size is queries or
            sessions.
        texts: of a log with text, the changes of its law, and its sessions.
    """
    if texts is not None:
        write_part(outputs[0], split, world_of(seed=seed, **texts), queries=size)
    elif split == ANNOTATIONS:
        write_rankings(uva.generate_annotations(size, seed=seed), outputs[0])
    elif split == DOCUMENTS:
        write_documents(outputs[0], uva.generate_documents(size, seed=seed))
    elif split == PAGES and name == uva.NAME:
        write_sessions(outputs[0], uva.generate_pages(size, seed=seed))
    elif split == PAGES and name == uva.WHOLE:
        write_sessions(outputs[0], uva.generate_hashed_pages(size, seed=seed))
    elif split == PAGES:
        write_sessions(outputs[0], generate_pages(name, sessions=size, seed=seed))
    elif split == LOG:
        with atomic(outputs[0]) as path:
            pq.write_table(generate_log(name, sessions=size, seed=seed), path)
    else:
        write_rankings(generate(name, split, queries=size, seed=seed), outputs[0])


if "snakemake" in globals():
    run(main, snakemake)  # noqa: F821
