"""The vectors that a cross-encoder gives the documents of a log with text, as features.

The real files come with such vectors, of a network that was trained on clicks of the same log. A
stand-in gets them here: a small network (`twotowers.towers.monobert`) reads pages of part 1, with
the loss of masked tokens and the pointwise loss of clicks, and then every document. Features are
the lexical ones, and behind them the vectors, as in the real files. After a few hundred steps,
vectors differ in almost one direction only, and towers learn little from them. So each column is
standardised.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

import jax.numpy as jnp
import numpy as np
import pyarrow as pa
from flax import nnx

from twotowers.experiment.config import Encoder
from twotowers.files.rankings import write_rankings
from twotowers.logs.described import write_documents
from twotowers.logs.formats import baidu
from twotowers.logs.log import Log
from twotowers.logs.page_arrays import page_arrays
from twotowers.losses.pointwise import sigmoid_loss
from twotowers.randomness import stream
from twotowers.standins.baidu import POSITIONS, World
from twotowers.standins.baidu_files import (
    SEARCHED,
    log_rows,
    write_annotations,
    write_log,
    write_rows,
)
from twotowers.standins.baidu_texts import VOCABULARY
from twotowers.towers.monobert import MonoBert
from twotowers.towers.pretraining import (
    Batch,
    Pretraining,
    batches,
    over_documents,
    pretrain,
    vectors_of,
)
from twotowers.towers.sequences import Sequences, marked, sequences

SPECIAL = len(SEARCHED) + 1
"""Tokens of placeholders, which come behind those of texts."""
LONGEST = {"query": 6, "title": 12, "abstract": 40}
FILE = "part-1_split-0.feather"
"""What encoders are trained on."""
MEASURED = 4096
"""The most documents of part 1 that tell the mean and the deviation of each column of vectors."""


def encode(
    documents: str | Path, annotations: str | Path, world: World, encoder: Encoder, *, queries: int
) -> np.ndarray:
    """Train an encoder, and write documents and annotations with its vectors.

    Args:
        documents, annotations: the files to write; see `twotowers.logs.described` and
            `twotowers.files.rankings`.
        world: the stand-in.
        encoder: its sizes, and how it is trained.
        queries: annotated.

    Returns:
        [steps, 2] the losses of clicks and of masked tokens.
    """
    with TemporaryDirectory(dir=Path(documents).parent) as folder:
        log, judged = Path(folder) / "part-*_split-0.feather", Path(folder) / "annotations.feather"
        write_log(folder, world)
        write_annotations(judged, world, queries)
        model, losses = None, np.zeros((0, 2))
        if encoder.steps:
            model, losses = train(folder, world, encoder)
        dropout = world.seed if encoder.dropout else None

        def raw(batch: pa.RecordBatch) -> np.ndarray:
            texts = read(batch, encoder)
            return np.concatenate([*vectors_of(model, texts, dropout=dropout)])

        if model is not None:
            some = raw(next(baidu.texts_of(Path(folder) / FILE)).slice(0, MEASURED))
            mean, deviation = some.mean(0), some.std(0)

        def vectors(batch: pa.RecordBatch) -> np.ndarray:
            if model is None:
                return read(batch, encoder).tokens.astype(np.float32)
            return (raw(batch) - mean) / deviation

        texts = zip(baidu.documents_of(log), baidu.texts_of(log), strict=True)
        write_documents(
            documents,
            ((number, np.hstack([lexical, vectors(text)])) for (number, lexical), text in texts),
        )
        rankings = baidu.read_annotations(judged)
        found = np.concatenate([vectors(text) for text in baidu.annotated_texts(judged)])
        features = np.hstack([rankings.features, found])
        write_rankings(replace(rankings, features=features), annotations)
    return losses


def train(folder: str | Path, world: World, encoder: Encoder) -> tuple[MonoBert, np.ndarray]:
    """Train an encoder on part 1 of a log whose files are in a folder."""
    log = Path(folder) / FILE
    if encoder.placeholders:
        log = Path(folder) / f"placeholders-{log.name}"
        write_rows(log, log_rows(world, 1, placeholders=True))
    settings = Pretraining(
        learning_rate=encoder.learning_rate,
        mask=encoder.mask,
        documents=encoder.documents,
        pages=encoder.documents // 4,
    )
    pages = Log.of_batches(baidu.read(log).batches)
    shown = page_arrays(pages, positions=POSITIONS + 2, places=baidu.POSITIONS)
    texts = pa.Table.from_batches(baidu.texts_of(log))
    order = np.argsort(texts["document"].to_numpy())
    ids = shown.ids["document"].to_numpy()
    rows = order[np.searchsorted(texts["document"].to_numpy()[order], ids)]
    model = MonoBert(
        vocabulary=VOCABULARY + SPECIAL,
        **encoder.model_dump(include={"length", "layers", "heads", "width", "inner"}),
        segments=3 if encoder.marks else 2,
        rngs=nnx.Rngs(int(stream("encoder", world.seed).integers(2**31))),
    )
    steps = islice(forever(rows[shown.pair], shown.clicks, shown.where, settings), encoder.steps)
    (whole,) = texts.combine_chunks().to_batches()
    trained, losses = pretrain(
        model,
        read(whole, encoder),
        steps,
        pointwise if encoder.clicks else no_clicks,
        settings=settings,
        seed=world.seed,
    )
    return trained.encoder, losses


def forever(*log) -> Iterator[Batch]:
    """The batches of a log, again and again."""
    while True:
        yield from batches(*log)


def pointwise(scores, bias, clicks, where):
    """[pages] `sigmoid_loss` over documents, without a bias."""
    return over_documents(sigmoid_loss(scores, clicks, where=where), where)


def no_clicks(scores, bias, clicks, where):
    """[pages] 0: the encoder learns from masked tokens only."""
    return jnp.zeros(len(scores))


def read(batch: pa.RecordBatch, encoder: Encoder) -> Sequences:
    """What an encoder reads of some texts."""
    texts = [padded(batch[name], longest) for name, longest in LONGEST.items()]
    found = sequences(*texts, length=encoder.length)
    return marked(found) if encoder.marks else found


def padded(column: pa.ListArray, longest: int) -> np.ndarray:
    """[rows, longest] tokens of lists, -1 behind their ends."""
    lengths = column.value_lengths().to_numpy()
    found = np.full((len(lengths), longest), -1)
    found[np.arange(longest) < lengths[:, None]] = column.flatten().to_numpy()
    return found
