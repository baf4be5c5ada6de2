"""The stand-in `baidu_mlm` as files of format `baidu` (`twotowers.logs.formats`)."""

from collections.abc import Iterator, Mapping
from functools import cache
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa

from twotowers.errors import check_choice
from twotowers.files.rankings import write_rankings
from twotowers.logs.described import write_documents
from twotowers.logs.formats import baidu
from twotowers.logs.formats.baidu import LEXICAL
from twotowers.logs.sessions import write_sessions
from twotowers.randomness import hashed
from twotowers.standins.baidu import CANDIDATES, LARGEST_POOL, PARTS, Pages, World, world_of
from twotowers.standins.baidu_texts import VOCABULARY, document_tokens, query_tokens
from twotowers.standins.lexical import PAD, Corpus, lexical_features

FAR, COLLECTION = 10**12, 500
"""Queries from here on are no log's. Documents of so many of them are what BM25 counts."""
EMPTY, SEARCHED = VOCABULARY, tuple(range(VOCABULARY + 1, VOCABULARY + 6))
"""The title of a result without content, and that of "what other people searched"."""
QUERIES = 256
"""Annotated queries of a batch."""
PLAIN, LEXICALS, TEXTS = "plain", "lexical", "texts"
"""What rows have besides ids, position and click: nothing; lexical columns; tokens, too."""
WRITTEN = {"pages": PLAIN, "documents": LEXICALS, "annotations": TEXTS}
"""The parts of `write_part`, and the columns that each needs."""


@cache
def collection(world: World) -> Corpus:
    """What lexical features count: documents of queries that are none of the log's."""
    query = np.repeat(np.arange(FAR, FAR + COLLECTION), CANDIDATES)
    slot = np.tile(np.arange(CANDIDATES), COLLECTION)
    traits = world.candidates(np.arange(FAR, FAR + COLLECTION)).traits
    texts = document_tokens(world.seed, query, slot, traits.reshape(len(query), -1))
    return Corpus.of([texts], VOCABULARY)


def write_log(folder: str | Path, world: World, *, columns: str = TEXTS) -> None:
    """Write `part-<0 to 3>_split-0.feather` below a folder; see `log_rows`."""
    for part in range(PARTS):
        write_rows(Path(folder) / f"part-{part}_split-0.feather", log_rows(world, part, columns))


def write_part(path: str | Path, part: str, world: World, *, queries: int = 0) -> None:
    """Write one part of the data set as the pipeline keeps it, through the files and their reader.

    A part is 'pages' (sessions), 'documents' (numbers and lexical features) or 'annotations'
    (rankings), of so many queries before a few are dropped.
    """
    check_choice(part, WRITTEN, field="part")
    with TemporaryDirectory(dir=Path(path).parent) as folder:
        if part == "annotations":
            judged = Path(folder) / "validation.feather"
            write_rows(judged, annotation_rows(world, queries))
            write_rankings(baidu.read_annotations(judged), path)
            return
        files = Path(folder) / "part-*_split-0.feather"
        write_log(folder, world, columns=WRITTEN[part])
        if part == "pages":
            log = baidu.read(files)
            write_sessions(path, log.batches, log.seen)
        else:
            write_documents(path, baidu.documents_of(files))


def write(
    path: str | Path, part: str, *, name: str, size: int, seed: int, law: Mapping, sessions: int
) -> None:
    """Write a part of a log of so many sessions, or of `size` annotated queries (`world_of`).

    The name is not used: there is one log with text, whose law may be changed.
    """
    write_part(path, part, world_of(sessions, seed, law), queries=size)


def log_rows(
    world: World, part: int, columns: str = TEXTS, *, placeholders: bool = False
) -> Iterator[pa.RecordBatch]:
    """A row per shown document of a part, 0 to 3, in the order of the log.

    Columns are 'plain', 'lexical', or 'texts' for lexical columns and tokens. `placeholders` keeps
    the results that are no documents (such as what other people searched), and with them the
    original positions. It needs columns 'texts'; lexical columns then count the tokens of such
    results as unknown.
    """
    corpus = None if columns == PLAIN else collection(world)
    for pages in world.pages(part):
        page, position, slot, click, kind = _cells(world, pages, placeholders)
        query = pages.query[page]
        batch = {
            "query_no": pages.session[page],
            "query_id": _names("query id", pages.session[page]),
            "query_md5": _names("query", query),
            "url_md5": _names("url", np.where(kind == 0, world.urls(query, slot), kind)),
            "position": position,
            "click": click.astype(np.int64),
        }
        if columns != PLAIN:
            pair = (query * CANDIDATES + slot) * 3 + kind
            first, at = np.unique(pair, return_index=True, return_inverse=True)[1:]
            asked, own = np.unique(query[first], return_inverse=True)
            traits = world.candidates(asked).traits[own, slot[first]]
            texts = _texts(world, query[first], slot[first], traits, kind[first])
            batch |= _columns([each[at] for each in texts], corpus, columns)
        yield pa.RecordBatch.from_pydict(batch)


def annotation_rows(world: World, queries: int) -> Iterator[pa.RecordBatch]:
    """A row per annotated document, with texts and lexical columns.

    A few of the queries, with less than five documents, are dropped.
    """
    corpus = collection(world)
    query, length = world.annotated(queries)
    for start in range(0, len(query), QUERIES):
        own, number = query[start : start + QUERIES], length[start : start + QUERIES]
        documents = world.candidates(own, LARGEST_POOL)
        row, slot = np.nonzero(world.seen(own, number, documents))
        texts = _texts(world, own[row], slot, documents.traits[row, slot], np.zeros(len(row), int))
        yield pa.RecordBatch.from_pydict(
            {
                "query_no": start + row,
                "query_id": _names("annotated", start + row),
                "query_md5": _names("query", own[row]),
                "text_md5": _names("text", world.urls(own[row], slot)),
                "label": world.labels(documents.relevance[row, slot]),
                **_columns(texts, corpus, TEXTS),
            }
        )


def _cells(world: World, pages: Pages, placeholders: bool) -> tuple[np.ndarray, ...]:
    """Page, position, slot, click and kind of each row: 0 a document, 1 without content, 2 what
    others searched."""
    page, place = np.nonzero(pages.where)
    slot, click = pages.slot[pages.where], pages.clicks[pages.where]
    if not placeholders:
        return page, place + 1, slot, click, np.zeros(len(page), int)
    raw = world.raw(pages)
    empty_page, empty_place = np.nonzero(raw.empty)
    (searched,) = np.nonzero(raw.searched)
    page_of = np.concatenate([page, empty_page, searched])
    position = np.concatenate(
        [raw.position[page, place], raw.position[empty_page, empty_place], raw.searched[searched]]
    )
    order = np.lexsort([position, page_of])
    none = np.zeros(len(empty_page) + len(searched), int)
    kind = np.repeat([0, 1, 2], [len(page), len(empty_page), len(searched)])
    columns = page_of, position, np.append(slot, none), np.append(click, none), kind
    return tuple(column[order] for column in columns)


def _texts(world, query, slot, traits, kind) -> list[np.ndarray]:
    """Tokens of queries, titles and abstracts: [rows, tokens] each."""
    title, abstract = document_tokens(world.seed, query, slot, traits)
    for number, tokens in ((1, (EMPTY,)), (2, SEARCHED)):
        own = kind == number
        title[own], abstract[own] = PAD, PAD
        title[own, : len(tokens)] = tokens
    return [query_tokens(world.seed, query), title, abstract]


def _columns(texts: list[np.ndarray], corpus: Corpus, columns: str) -> dict:
    query, title, abstract = texts
    # Placeholders are in no collection, and no query has their tokens.
    values = lexical_features(query, title, abstract, corpus).astype(float)
    named = dict(zip(LEXICAL, values.T, strict=True))
    for name in ("document_length", "title_length", "abstract_length"):
        named[name] = named[name].astype(np.int64)
    if columns == TEXTS:
        names = zip(("query", "title", "abstract"), texts, strict=True)
        named |= {name: _lists(tokens) for name, tokens in names}
    return named


def _lists(tokens: np.ndarray) -> pa.ListArray:
    there = tokens != PAD
    offsets = pa.array(np.append(0, np.cumsum(there.sum(1))), pa.int32())
    return pa.ListArray.from_arrays(offsets, pa.array(tokens[there] + baidu.OFFSET, pa.int64()))


def _names(purpose: str, number: np.ndarray) -> pa.Array:
    """32 hexadecimal digits each, such as a hash has."""
    salt = np.uint64(int.from_bytes(purpose.encode()[:8], "big"))
    halves = np.stack([hashed(salt + np.uint64(half), number) for half in range(2)], axis=1)
    digits = halves.astype(">u8").tobytes().hex()
    return pa.array([digits[at : at + 32] for at in range(0, len(digits), 32)])


def write_rows(path: str | Path, batches: Iterator[pa.RecordBatch]) -> None:
    """Write a feather file of batches of one kind."""
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    options = pa.ipc.IpcWriteOptions(compression="lz4")
    first = next(batches)
    with (
        pa.OSFile(str(path), "wb") as file,
        pa.ipc.new_file(file, first.schema, options=options) as writer,
    ):
        for batch in chain([first], batches):
            writer.write_batch(batch)
