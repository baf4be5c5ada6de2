"""Reader of the files of Baidu-ULTR-UVA on Hugging Face: a row per shown document, with text.

A log is many files, `part-2_split-0.feather` and so on, with the columns

    query_no                   the session; its rows follow each other, perhaps across batches
    query_md5, url_md5         text; both together are the document
    position                   from 1, with gaps where a placeholder was dropped
    click                      0 or 1
    query, title, abstract     lists of token ids from 10 on: lower ones are special
    query_document_embedding   a list of numbers, often in half precision
    bm25, ... (`LEXICAL`)      twelve lexical features

and one file of annotations, with `label` and `text_md5` instead of `url_md5`, `position` and
`click`. A reader takes the columns that it needs, and one batch of the file is in memory at a time.

Baidu's own files, `part-00000.gz`, are lines of text without features. A query is a line of at most
three columns, of which the second has its tokens. The lines behind it are its results, with
address, title, abstract and click in columns 2, 3, 4 and 6 of many. Tabs separate columns, and the
byte 1 token ids. As in the UvA's files, results without content leave a gap in positions, and "what
other people searched" leaves none.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from hashlib import md5
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from twotowers.errors import InputError, check_choice, nearest
from twotowers.files.artefacts import files_of
from twotowers.files.batches import column_names, opened_text, placed_batches
from twotowers.files.columns import Rows, check_names, is_text, value_text, whole_runs, wrong_type
from twotowers.files.distinct import Seen, hashed
from twotowers.files.rankings import Rankings
from twotowers.logs.sessions import Stream, check_free, conform
from twotowers.logs.strays import Tally
from twotowers.splits import ANNOTATIONS, part_of

LAYOUT = "a row per shown document, with tokens and features"

EMBEDDING, LABEL = "query_document_embedding", "label"
TOKENS = ("query", "title", "abstract")
LEXICAL = (
    "bm25", "bm25_title", "bm25_abstract", "tf_idf", "tf", "idf", "ql_jelinek_mercer_short",
    "ql_jelinek_mercer_long", "ql_dirichlet", "document_length", "title_length", "abstract_length",
)  # fmt: skip
"""Lexical features: BM25, TF-IDF, query likelihoods and lengths."""
FEATURES = (*LEXICAL, EMBEDDING)
IDS = ("query_md5", "url_md5")
POSITIONS = "positions"
"""The bias feature that keeps positions as they are: the place in a page's list closes the gaps."""
LINES = ".gz"
"""The ending of Baidu's own files."""
ROWS = 20_000
"""Rows to decode at a time."""
SEPARATOR = "\x01"
EMPTY, SEARCHED = "21429", SEPARATOR.join(["3742", "11492", "12169", "5061", "16905"])
"""The title of a result without content, and that of "what other people searched"."""
OFFSET = 10
"""The first token id of the UvA's files. Those below are of special tokens, which no text has."""
COLUMNS = {
    "query_no": pa.int64(), "query_md5": pa.string(), "url_md5": pa.string(),
    "position": pa.int64(), "click": pa.int64(),
    **dict.fromkeys(TOKENS, pa.list_(pa.int64())),
}  # fmt: skip
"""What is read of Baidu's own files, with the names of the UvA's."""


def read(path: str | Path, *, bias: Sequence[str] = (), repeats: str = "drop") -> Stream:
    """Read a log's pages, without features and texts; see `documents_of` and `texts_of`.

    Args:
        path: a feather or parquet file, or a pattern such as `parts/part-*_split-*.feather`.
        bias: further columns of documents to keep, such as `serp_height`.

    Returns:
        Pages with the bias feature `positions`. Documents
        are in order of position. A document is a number below 2^63, a hash of query and address,
        and a query is a hash. `split` is `part-2` of a file with such a name, or else `log`.
    """
    check_free([*bias, POSITIONS])
    tally = Tally(path, repeats=repeats)
    files = files_of(path)
    for file in files:
        check_names(["query_no", *IDS, "position", "click", *bias], _columns(file), file)
    return Stream(_pages(files, list(bias), tally), tally.seen)


def documents_of(
    path: str | Path, *, columns: Sequence[str] | None = None
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """The distinct documents of a log: numbers [documents], features [documents, width] float32.

    Lexical columns pass sign(x) ln(1 + |x|), as in both papers. A document has the features of its
    first row. A number of eight bytes per document stays in memory, and no features but those of a
    batch. `columns` are of `FEATURES`; the default is those that the first file has.
    """
    width, columns = None, feature_columns(files_of(path)[0], columns)
    for rows, batch, numbers in _distinct(path, columns):
        features = feature_matrix(batch, rows, columns, width)
        width = features.shape[1]
        yield numbers, features


def texts_of(path: str | Path) -> Iterator[pa.RecordBatch]:
    """The distinct documents of a log: `document`, and lists of token ids from 0, `query`, `title`,
    `abstract`. A document has the text of its first row.
    """
    for rows, batch, numbers in _distinct(path, TOKENS):
        texts = text_columns(batch, rows)
        yield pa.RecordBatch.from_pydict({"document": pa.array(numbers), **texts})


def _distinct(
    path: str | Path, columns: Sequence[str]
) -> Iterator[tuple[Rows, pa.RecordBatch, np.ndarray]]:
    """The first row of each document: their places, columns, and [rows] numbers."""
    seen = Seen()
    for file in files_of(path):
        for rows, batch in _placed(file, [*IDS, *columns]):
            numbers = text_numbers(batch, IDS, rows)
            fresh = seen.new(numbers)
            if len(fresh):
                yield replace(rows, number=fresh), batch.take(pa.array(fresh)), numbers[fresh]


def shown_texts(files: Iterable[Path]) -> Iterator[pa.RecordBatch]:
    """What pages show, some whole pages at a time, in the order of the files: `page`, a number that
    rises, `position`, `click`, and lists of token ids from 0, `query`, `title`, `abstract`.
    """
    before = 0
    for file in files:
        for rows, batch, starts in _sessions(file, TOKENS):
            numbers = {
                "page": before + _page_of(starts, len(batch)),
                "position": batch["position"],
                "click": rows.whole(batch["click"], "click") > 0,
            }
            before += len(starts)
            yield pa.RecordBatch.from_pydict({**numbers, **text_columns(batch, rows)})


def read_annotations(path: str | Path, *, columns: Sequence[str] | None = None) -> Rankings:
    """Read annotated documents.

    Queries are numbered from 0 in the order of rows; a change of `query_no` begins the next one,
    even if `query_id` stays the same.
    """
    queries, labels, features, width = [], [], [], None
    files = files_of(path)
    columns = feature_columns(files[0], columns)
    for file in files:
        for rows, batch in _placed(file, ["query_no", LABEL, *columns]):
            queries.append(rows.whole(batch["query_no"], "query_no"))
            labels.append(rows.labels(batch[LABEL], LABEL))
            features.append(feature_matrix(batch, rows, columns, width))
            width = features[-1].shape[1]
    if not sum(map(len, queries)):
        raise InputError("there is no query", path=path, expected="a row per annotated document")
    query, expected = pa.array(np.concatenate(queries)), "the rows of a query one after the other"
    starts = Rows(path).runs(query, "query_no", expected, others="queries")
    lengths = np.diff(starts, append=len(query))
    return Rankings.of_lists(lengths, np.concatenate(labels), np.concatenate(features))


def annotated_texts(path: str | Path) -> Iterator[pa.RecordBatch]:
    """The texts of `read_annotations`, row by row: lists of tokens `query`, `title`, `abstract`."""
    for file in files_of(path):
        for rows, batch in _placed(file, list(TOKENS)):
            yield pa.RecordBatch.from_pydict(text_columns(batch, rows))


def ids_of(log: str | Path, annotations: str | Path) -> Iterator[pa.RecordBatch]:
    """Who is where: the part of the log, as `split` of `read`, or `annotations`; and hashes of
    `query` and `document`. A document is an address in the log, and a text in annotations, which
    have no addresses. The rows of a batch differ.
    """
    for path, document in ((log, "url_md5"), (annotations, "text_md5")):
        for file in files_of(path):
            split = part_of(file) if document == "url_md5" else ANNOTATIONS
            for rows, batch in _placed(file, ["query_md5", document]):
                ids = [text_numbers(batch, [name], rows) for name in ("query_md5", document)]
                query, number = np.unique(np.column_stack(ids), axis=0).T
                columns = {"split": pa.repeat(split, len(query)), "query": query}
                yield pa.RecordBatch.from_pydict({**columns, "document": number})


def feature_columns(path: str | Path, columns: Sequence[str] | None = None) -> list[str]:
    """The columns of features of a file, or those that were asked for, after a check."""
    for name in columns or ():
        check_choice(name, FEATURES, field="columns")
    present = _columns(Path(path))
    chosen = [name for name in FEATURES if name in (present if columns is None else columns)]
    if not chosen:
        raise InputError("has no features", path=path, expected=nearest(EMBEDDING, FEATURES))
    check_names(chosen, present, path)
    return chosen


def text_numbers(batch: pa.RecordBatch, names: Sequence[str], rows: Rows) -> np.ndarray:
    """[rows] the `hashed` text of some columns, with a space between them."""
    texts = [rows.present(batch[name], name) for name in names]
    for name, column in zip(names, texts, strict=True):
        if not is_text(column.type):
            raise wrong_type(column.type, name, rows.path, "text")
    joined = pc.binary_join_element_wise(*texts, " ")
    return hashed(map(str.encode, joined.to_pylist()))


# Files


def _placed(file: Path, columns: Sequence[str]) -> Iterator[tuple[Rows, pa.RecordBatch]]:
    """`placed_batches` of a table, or of Baidu's own lines."""
    if file.suffix != LINES:
        yield from placed_batches(file, columns, rows=ROWS)
        return
    before = 0
    for batch in read_lines(file, rows=ROWS):
        yield Rows(file, before), batch.select(columns)
        before += len(batch)


def _columns(file: Path) -> list[str]:
    return [*COLUMNS] if file.suffix == LINES else column_names(file)


def read_lines(path: str | Path, *, rows: int) -> Iterator[pa.RecordBatch]:
    """The results of a file, with `COLUMNS`: whole queries, at least `rows` results at a time.

    A file whose name ends in `.gz` is unpacked.

    Example:
        >>> lines = ["7\\t4\\x015", "1\\tabc\\t8\\t9\\x019\\t0\\t1", "2\\tdef\\t21429\\t-\\t0\\t0"]
        >>> _ = Path("part-00000").write_text("\\n".join(lines))
        >>> (batch,) = read_lines("part-00000", rows=100)
        >>> [batch[name].to_pylist() for name in ("query", "position", "abstract", "click")]
        [[[14, 15]], [1], [[19, 19]], [1]]
    """
    results: list[tuple] = []
    number, position, name, query = -1, 0, "", []
    with opened_text(path, encoding="utf-8") as file:
        for at, line in enumerate(file, 1):
            cells = line.rstrip("\n").split("\t")
            try:
                if len(cells) <= 3:
                    name, query = _md5(cells[1]), _tokens(cells[1])
                    number, position = number + 1, 0
                    if len(results) >= rows:
                        yield _batch(results)
                        results = []
                    continue
                _, address, title, abstract, _, click = cells[:6] if number >= 0 else []
                if title == SEARCHED:
                    continue
                position += 1
                if title == EMPTY:
                    continue
                shown = number, name, address, position, int(click)
                results.append((*shown, query, _tokens(title), _tokens(abstract)))
            except (ValueError, IndexError) as error:
                raise InputError(
                    f"line {at}: {line[:60]!r} is no query, and no result of one",
                    path=path,
                    expected="the token files of Baidu-ULTR (https://huggingface.co/datasets/"
                    "philipphager/baidu-ultr-pretrain)",
                ) from error
    if results:
        yield _batch(results)


def _batch(found: list[tuple]) -> pa.RecordBatch:
    columns = zip(COLUMNS.items(), zip(*found, strict=True), strict=True)
    return pa.RecordBatch.from_pydict(
        {name: pa.array(each, kind) for (name, kind), each in columns}
    )


def _tokens(text: str) -> list[int]:
    return [int(token) + OFFSET for token in text.split(SEPARATOR) if token.strip()]


def _md5(text: str) -> str:
    """As the UvA's files have it: of ids between spaces."""
    return md5(text.replace(SEPARATOR, " ").encode(), usedforsecurity=False).hexdigest()


# Pages


def _sessions(
    file: Path, columns: Sequence[str]
) -> Iterator[tuple[Rows, pa.RecordBatch, np.ndarray]]:
    """Rows of whole sessions in order of position: places, columns, and the first row of each.

    Columns are position, click, and further ones.
    """
    wanted = ["query_no", "position", "click", *columns]
    tables = (pa.Table.from_batches([batch]) for _, batch in _placed(file, wanted))
    for rows, table, starts in whole_runs(tables, _starts, file, "query_no", "session"):
        position = rows.whole(table["position"].combine_chunks(), "position", 1)
        order = np.lexsort([position, _page_of(starts, len(table))])
        table = table.set_column(1, "position", pa.array(position)).take(pa.array(order))
        (batch,) = table.combine_chunks().to_batches()
        yield replace(rows, number=order), batch, starts


def _starts(table: pa.Table, rows: Rows) -> np.ndarray:
    """The first row of each session."""
    session = rows.whole(table["query_no"].combine_chunks(), "query_no")
    starts = np.flatnonzero(np.append(True, np.diff(session) != 0))
    own = session[starts]
    replace(rows, number=starts).check(
        ~pd.Index(own).duplicated(),
        "query_no",
        lambda at: f"{own[at]} was there before other sessions",
        "the rows of a session one after the other",
    )
    return starts


def _page_of(starts: np.ndarray, rows: int) -> np.ndarray:
    """[rows] the session of each row, from 0."""
    return np.repeat(np.arange(len(starts)), np.diff(starts, append=rows))


def _pages(files: list[Path], bias: list[str], tally: Tally) -> Iterator[pa.RecordBatch]:
    for file in files:
        tally.path, split = file, part_of(file)
        for rows, batch, starts in _sessions(file, [*IDS, *bias]):
            yield _page_batch(rows, batch, starts, split, bias, tally)


def _page_batch(
    rows: Rows, batch: pa.RecordBatch, starts: np.ndarray, split: str, bias: list[str], tally: Tally
) -> pa.RecordBatch:
    page, query = _page_of(starts, len(batch)), text_numbers(batch, IDS[:1], rows)
    rows.check(
        query == query[starts][page],
        "query_md5",
        lambda at: f"{batch['query_md5'][at]} in a session of another query",
        "one query per session",
    )
    position = batch["position"].to_numpy()
    rows.check(
        (np.diff(position, prepend=-1) != 0) | (np.diff(page, prepend=-1) != 0),
        "position",
        lambda at: f"{position[at]} is the position of two rows of a session",
        "a row per position",
    )
    inside = {
        "documents": pa.array(text_numbers(batch, IDS, rows)),
        "clicks": pa.array(tally.numbers(rows.whole(batch["click"], "click"), rows.name)),
        POSITIONS: batch["position"],
        **{name: rows.present(batch[name], name) for name in bias},
    }
    tally.seen["pages"] += len(starts)
    offsets = pa.array(np.append(starts, len(batch)), pa.int32())
    lists = {name: pa.ListArray.from_arrays(offsets, each) for name, each in inside.items()}
    columns = {"split": pa.repeat(split, len(starts)), "query": pa.array(query[starts]), **lists}
    return conform(pa.RecordBatch.from_pydict(columns), rows.path)


# Columns


def feature_matrix(
    batch: pa.RecordBatch, rows: Rows, columns: Sequence[str], width: int | None
) -> np.ndarray:
    """[rows, width] float32."""
    parts = []
    for name in columns:
        column = rows.present(batch[name], name, "finite numbers")
        if name == EMBEDDING:
            own = None if width is None else width - len(columns) + 1
            parts.append(rows.vectors(column, name, own))
        else:
            values = rows.numbers(column, name)[:, None]
            parts.append(np.sign(values) * np.log1p(np.abs(values)))
    return np.hstack(parts)


def text_columns(batch: pa.RecordBatch, rows: Rows) -> dict[str, pa.Array]:
    lists = {}
    for name in TOKENS:
        column = rows.present(batch[name], name)
        flat = column.flatten() if hasattr(column, "value_lengths") else None
        if flat is None or not pa.types.is_integer(flat.type):
            raise wrong_type(column.type, name, rows.path, "a list of token ids")
        tokens = flat.to_numpy(zero_copy_only=False)
        good = (tokens >= OFFSET) & (tokens < 2**31)
        rows.inside(column).check(
            good, name, lambda at, flat=flat: value_text(flat[at]), f"token ids from {OFFSET} on"
        )
        lists[name] = pa.ListArray.from_arrays(
            pa.array(np.append(0, np.cumsum(column.value_lengths())), pa.int32()),
            pa.array(tokens.astype(np.int32) - OFFSET),
        )
    return lists
