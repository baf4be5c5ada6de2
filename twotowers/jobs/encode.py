"""The vectors that a cross-encoder gives the documents of a log with text, as features.

The real files come with such vectors, of a network that was trained on clicks of the same log. A
stand-in gets them here: a small network (`twotowers.towers.monobert`) reads pages of part 1, with
the loss of masked tokens and the pointwise loss of clicks, and then every document. Features are
the lexical ones, and behind them the vectors, as in the real files. After a few hundred steps,
vectors differ in almost one direction only, and towers learn little from them. So each column is
standardised. For cross-encoders that are themselves compared, features are tokens, of a stand-in
or of the real files.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
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
from twotowers.losses.pointwise import sigmoid_loss
from twotowers.randomness import stream
from twotowers.standins.baidu import POSITIONS, World
from twotowers.standins.baidu_files import (
    SEARCHED,
    annotation_rows,
    log_rows,
    write_log,
    write_rows,
)
from twotowers.standins.baidu_texts import VOCABULARY
from twotowers.towers.monobert import MonoBert
from twotowers.towers.pretraining import (
    Pretraining,
    ShownTexts,
    forever,
    over_documents,
    pretrain,
    vectors_of,
)
from twotowers.towers.sequences import ABSENT, Sequences, sequences

SPECIAL = len(SEARCHED) + 1
"""Tokens of placeholders, which come behind those of texts."""
FILE = "part-1_split-0.feather"
"""What encoders are trained on."""
HEADS = 2
"""Of an encoder's attention."""
MEASURED = 4096
"""The most documents of part 1 that tell the mean and the deviation of each column of vectors."""


def encode(
    documents: str | Path, annotations: str | Path, world: World, encoder: Encoder, *, queries: int
) -> np.ndarray:
    """Train an encoder on a stand-in, and write documents and annotations with its vectors.

    [steps, 2] losses of clicks and of masked tokens. Without steps, features are tokens.
    """
    kept = Path(documents).with_suffix(".state")
    with TemporaryDirectory(dir=Path(documents).parent) as folder:
        log, judged = Path(folder) / "part-*_split-0.feather", Path(folder) / "annotations.feather"
        write_log(folder, world)
        write_rows(judged, annotation_rows(world, queries))
        vectors: Callable = partial(tokens_of, length=encoder.length)
        losses = np.zeros((0, 2))
        if encoder.steps:
            model, losses = train(folder, world, encoder, checkpoint=kept)
            vectors = _standardised(model, Path(folder) / FILE, world, encoder)
        write_encoded(documents, annotations, log, judged, vectors)
    kept.unlink(missing_ok=True)
    return losses


def _standardised(
    model: MonoBert, first: Path, world: World, encoder: Encoder
) -> Callable[[pa.RecordBatch], np.ndarray]:
    """The vectors of some texts, standardised on documents of a file."""
    dropout = world.seed if encoder.dropout else None

    def raw(batch: pa.RecordBatch) -> np.ndarray:
        texts = Sequences.of(tokens_of(batch, length=encoder.length), marks=True)
        return np.concatenate([*vectors_of(model, texts, dropout=dropout)])

    some = raw(next(baidu.texts_of(first)).slice(0, MEASURED))
    mean, deviation = some.mean(0), some.std(0)
    return lambda batch: (raw(batch) - mean) / deviation


def write_encoded(
    documents: str | Path,
    annotations: str | Path,
    log: str | Path,
    judged: str | Path,
    vectors: Callable[[pa.RecordBatch], np.ndarray],
) -> None:
    """Write the documents of a log and annotated ones: lexical features, and behind them vectors.

    `log` and `judged` are files of format `baidu`, or patterns of such; for the files that are
    written see `twotowers.logs.described` and `twotowers.files.rankings`.
    """
    texts = zip(baidu.documents_of(log, columns=baidu.LEXICAL), baidu.texts_of(log), strict=True)
    write_documents(
        documents,
        ((number, np.hstack([lexical, vectors(text)])) for (number, lexical), text in texts),
    )
    rankings = baidu.read_annotations(judged, columns=baidu.LEXICAL)
    encoded = np.concatenate([vectors(text) for text in baidu.annotated_texts(judged)])
    write_rankings(replace(rankings, features=np.hstack([rankings.features, encoded])), annotations)


def train(
    folder: str | Path, world: World, encoder: Encoder, *, checkpoint: str | Path | None = None
) -> tuple[MonoBert, np.ndarray]:
    """Train an encoder on part 1 of a log whose files are in a folder; see `pretrain`."""
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
    model = MonoBert(
        vocabulary=VOCABULARY + SPECIAL,
        **encoder.model_dump(include={"length", "layers", "width", "inner"}),
        heads=HEADS,
        segments=3,  # of queries, of texts, and of their tokens that the query has, too
        rngs=nnx.Rngs(int(stream("encoder", world.seed).integers(2**31))),
    )
    pages = partial(pages_of, [log], length=encoder.length, positions=POSITIONS + 2)
    trained, losses = pretrain(
        model,
        islice(forever(pages, settings, marks=True), encoder.steps),
        pointwise if encoder.clicks else no_clicks,
        settings=settings,
        seed=world.seed,
        checkpoint=checkpoint,
        about=(str(world), encoder.plain()),
    )
    return trained.encoder, losses


def pages_of(files: Iterable[Path], *, length: int, positions: int) -> Iterator[ShownTexts]:
    """The pages of files of format `baidu`, down to a position, with their texts."""
    for batch in baidu.shown_texts(files):
        columns = ("page", "position", "click")
        page, position, click = (batch[name].to_numpy(zero_copy_only=False) for name in columns)
        own = position <= positions
        at = page[own] - page[0], position[own] - 1
        where = np.zeros((page[-1] - page[0] + 1, positions), bool)
        clicks = where.copy()
        where[at] = True
        clicks[at] = click[own]
        yield ShownTexts(tokens_of(batch, length=length)[own], clicks, where)


def pointwise(scores, bias, clicks, where):
    """[pages] `sigmoid_loss` over documents, without a bias."""
    return over_documents(sigmoid_loss(scores, clicks, where=where), where)


def no_clicks(scores, bias, clicks, where):
    """[pages] 0: the encoder learns from masked tokens only."""
    return jnp.zeros(len(scores))


def tokens_of(batch: pa.RecordBatch, *, length: int) -> np.ndarray:
    """[rows, length] what an encoder reads of some texts."""
    return sequences(*(padded(batch[name], length) for name in baidu.TOKENS), length=length)


def padded(column: pa.ListArray, most: int) -> np.ndarray:
    """[rows, tokens] the first tokens of lists, `ABSENT` behind their ends."""
    lengths = column.value_lengths().to_numpy()
    place = np.arange(min(lengths.max(initial=0), most))
    at = column.offsets.to_numpy()[:-1, None] + place
    there = place < lengths[:, None]
    filled = np.full(there.shape, ABSENT)
    filled[there] = column.values.to_numpy()[at[there]]
    return filled
