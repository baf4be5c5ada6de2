"""Readers of click logs in tables (pages, rows, cells), and their refusals."""

import gzip

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from tests.logs import clicked_rows, refused, taken, to_cells, to_sessions
from twotowers.commands.main import main
from twotowers.errors import InputError
from twotowers.files import batches as tables
from twotowers.logs.layouts import recognised
from twotowers.logs.opening import FORMATS, open_log

BEYOND = "123456789012345678901234567890"  # no int64


# Pages


def write_table(folder, name="log.parquet", **columns):
    path = folder / name
    pq.write_table(pa.table(columns), path)
    return path


def test_pages_of_clax_datasets(tmp_path):
    path = write_table(
        tmp_path,
        query_id=pa.array([7, 8], pa.int32()),
        query_doc_ids=pa.array([[30, 10], [5]], pa.list_(pa.int32())),
        clicks=pa.array([[0.0, 1.0], [0.0]], pa.list_(pa.float16())),
    )
    found, seen = taken(path, "pages")
    assert found == [
        {"split": "log", "query": 7, "documents": [30, 10], "clicks": [False, True]},
        {"split": "log", "query": 8, "documents": [5], "clicks": [False]},
    ]
    assert seen == {"pages": 2, "clicks": 1, "repeated_clicks": 0, "clicks_off_page": 0}


def test_pages_without_a_query_as_of_baidu(tmp_path):
    path = write_table(tmp_path, query_doc_ids=[[30, 10]], clicks=[[True, False]])
    assert taken(path, "pages")[0][0]["query"] == 0


def test_pages_in_many_files(tmp_path):
    for part in range(3):
        columns = {"query_doc_ids": [[part + 1, 9]], "clicks": [[0, 1]]}
        write_table(tmp_path, f"part-{part}.parquet", **columns)
    log = open_log(tmp_path / "part-*.parquet", "pages")
    assert [row for batch in log.batches for row in batch["documents"].to_pylist()] == [
        [1, 9], [2, 9], [3, 9],
    ]  # fmt: skip
    assert log.seen["pages"] == 3
    wrong = write_table(tmp_path, "part-1.parquet", query_doc_ids=[[1]], clicks=[[-1]])
    with pytest.raises(InputError, match="row 1: -1") as error:
        list(open_log(tmp_path / "part-*.parquet", "pages").batches)
    assert str(wrong) in str(error.value)


def test_pages_of_other_names_with_bias_features(tmp_path):
    lists = {"shown": [["é", BEYOND]], "hit": [[0, 1]], "h": [[3, 4]]}
    path = write_table(tmp_path, q=[BEYOND], part=["test"], **lists)
    columns = {"query": "q", "documents": "shown", "clicks": "hit", "split": "part", "height": "h"}
    found, _ = taken(path, "pages", columns=columns, bias=["height"])
    page = {"split": "test", "query": BEYOND, "documents": ["é", BEYOND]}
    assert found == [page | {"clicks": [False, True], "height": [3, 4]}]


def test_clicks_as_documents_drop_strays_and_repeats_or_refuse_them(tmp_path):
    lists = {"query": [1, 2], "documents": [["a", "b"], ["c"]], "clicks": [["b", "z", "b"], []]}
    path = write_table(tmp_path, **lists)
    found, seen = taken(path, "pages", clicks="documents")
    assert [page["clicks"] for page in found] == [[False, True], [False]]
    assert seen == {"pages": 2, "clicks": 3, "repeated_clicks": 1, "clicks_off_page": 1}
    stray = refused(path, "pages", clicks="documents", strays="error")
    assert "row 1: 'z' is clicked and not on the page" in str(stray)
    repeated = refused(path, "pages", clicks="documents", repeats="error")
    assert "row 1: a document is clicked more than once" in str(repeated)


def test_numbers_of_clicks_are_repeats(tmp_path):
    path = write_table(tmp_path, query=[1, 1], documents=[["a"], ["b", "c"]], clicks=[[0], [3, 1]])
    found, seen = taken(path, "pages")
    assert [page["clicks"] for page in found] == [[False], [True, True]]
    assert (seen["clicks"], seen["repeated_clicks"]) == (4, 2)
    assert "row 2: 3 clicks on one document" in str(refused(path, "pages", repeats="error"))


@pytest.mark.parametrize(
    ("format", "name", "columns"),
    [
        ("pages", "query", {}),
        ("pages", "documents", {"query": "query", "documents": "query_doc_ids"}),
        ("rows", "query", {}),
        ("rows", "query", {"clicks": "click"}),
        ("cells", "document", {}),
    ],
)
def test_the_name_of_one_column_changes_no_other(tmp_path, format, name, columns):
    ids = {"split": ["test"] * 2, "user": ["u", "u"], "query": [7, 7]}
    shown = {"document": ["b", "a"], "position": [2, 1], "clicks": [0, 1], "height": [3, 4]}
    shown |= {"session": ["s", "s"], "impressions": [1, 1]}
    if format == "pages":
        shown = {"documents": [["b", "a"], ["c"]], "clicks": [[0, 1], [0]], "height": [[3, 4], [5]]}
    theirs = {ours: columns.get(ours, ours) for ours in ids | shown}
    path = write_table(tmp_path, **{theirs[ours]: each for ours, each in (ids | shown).items()})
    expected = taken(path, format, bias=["height"])
    page = expected[0][0]
    assert (page["split"], page["query"]) == ("test", 7)
    assert "position" in page or page["documents"] == (
        ["a", "b"] if format == "rows" else ["b", "a"]
    )
    table = pq.read_table(path)
    other = [f"{each}_" if each == theirs[name] else each for each in table.column_names]
    pq.write_table(table.rename_columns(other), path)
    assert taken(path, format, columns={name: theirs[name] + "_"}, bias=["height"]) == expected


@pytest.mark.parametrize(
    ("format", "settings", "message"),
    [
        ("rows", {"columns": {"quary": "query"}}, "'quary' is not read .*did you mean 'query'"),
        ("rows", {"bias": ["position"]}, "position: is the name of another column"),
        ("cells", {"bias": ["document"]}, "document: is the name of another column"),
        ("cells", {"bias": ["t", "t"]}, "t: is named twice"),
        ("pages", {"bias": ["impressions"]}, "impressions: is the name of another column"),
        ("sessions", {"bias": ["position"]}, "position: is the name of another column"),
        ("pages", {"columns": {"query": "qq"}}, "no column 'qq'"),
        ("pages", {"clicks": "hits"}, "clicks: 'hits'"),
        ("rows", {}, "or `columns` with the names in the file"),
        ("page", {}, "'page'.*did you mean 'pages'"),
        ("yandex", {"gaps": "close"}, "gaps: format 'yandex' has no such setting"),
        ("yandex", {"strays": "ignore"}, "strays: 'ignore'"),
    ],
)
def test_names_and_settings_that_there_are_not(tmp_path, format, settings, message):
    lists = {"documents": [["a"]], "clicks": [[1]], "position": [[1]]}
    path = write_table(tmp_path, session=[1], split=["log"], query=[7], t=[1], **lists)
    with pytest.raises(InputError, match=message):
        to_cells(path, tmp_path / "c.parquet", format=format, **settings)


def test_a_column_may_have_two_meanings(tmp_path):
    path = write_rows(tmp_path, "7,a,1,0\n7,b,2,1\n", "query,document,position,clicks\n")
    (page,), _ = taken(path, "rows", columns={"session": "query"})
    assert (page["query"], page["documents"]) == (7, ["a", "b"])


# Rows

HEADER = "session,query,document,position,clicks\n"
COUNTED = "query,document,position,impressions,clicks\n"


def write_rows(folder, text, header=HEADER, name="rows.csv"):
    path = folder / name
    path.write_text(header + text)
    return path


def test_rows_become_pages_in_order_of_position(tmp_path):
    path = write_rows(tmp_path, "s,7,30,2,1\ns,7,10,1,0\nt,7,10,1,0\nu,8,5,1,2\n")
    found, seen = taken(path, "rows")
    assert [(p["query"], p["documents"], p["clicks"]) for p in found] == [
        (7, [10, 30], [False, True]),
        (7, [10], [False]),
        (8, [5], [True]),
    ]
    assert seen == {"pages": 3, "clicks": 3, "repeated_clicks": 1, "clicks_off_page": 0}
    assert "row 4: 2 clicks" in str(refused(path, "rows", repeats="error"))


def test_numbers_may_be_written_in_several_ways(tmp_path):
    path = write_rows(tmp_path, "s,7,a,1, 1\ns,7,b,2.0,0.0\n")
    assert taken(path, "rows")[0][0]["clicks"] == [True, False]
    path = write_rows(tmp_path, "s,7,a,1,true\ns,7,b,2,False\n")
    assert taken(path, "rows")[0][0]["clicks"] == [True, False]


def test_rows_without_positions_stand_in_their_order(tmp_path):
    path = write_rows(tmp_path, "s,7,b,0\ns,7,a,1\n", "session,query,document,clicks\n")
    assert taken(path, "rows")[0][0]["documents"] == ["b", "a"]


def test_gaps_close_or_are_refused(tmp_path):
    path = write_rows(tmp_path, "s,7,b,3,1\ns,7,a,0,0\n")
    error = refused(path, "rows", first=0, gaps="error")
    assert "row 1: 3 was found where 1 should be" in str(error)
    mixed = write_rows(tmp_path, "s,7,a,1,0\nt,7,a,1,0\ns,7,b,3,1\n")
    found, _ = taken(mixed, "rows", gaps="close")
    assert [page["documents"] for page in found] == [["a", "b"], ["a"]]


@pytest.mark.parametrize("rows", [1, 2, 3, 5, 100])
def test_rows_in_small_batches_equal_a_plain_loop(tmp_path, monkeypatch, rows):
    monkeypatch.setattr(tables, "ROWS", rows)
    rng = np.random.default_rng(rows)
    pages = [
        (f"s{number}", int(rng.integers(3)), rng.permutation(9)[:size].tolist())
        for number, size in enumerate(rng.integers(1, 6, 40))
    ]
    shown = [
        (session, query, document, at + 1, int(rng.random() < 0.4))
        for session, query, documents in pages
        for at, document in enumerate(documents)
    ]
    names = ["session", "query", "document", "position", "clicks"]
    path = tmp_path / "rows.parquet"
    pd.DataFrame(shown, columns=names).to_parquet(path)
    found, _ = taken(path, "rows")
    assert [(p["query"], p["documents"]) for p in found] == [page[1:] for page in pages]
    assert [click for p in found for click in p["clicks"]] == [click == 1 for *_, click in shown]


def test_several_files_and_any_memory_give_the_same_cells(tmp_path, capsys):
    rows, keys = clicked_rows(2000, *"abcdefgh"), ["query", "document", "position"]
    for part in range(2):
        rows[rows["session"] % 2 == part].to_parquet(tmp_path / f"part-{part}.parquet")
    expected = rows.groupby(keys, as_index=False)["clicks"].agg(["size", "sum"])
    for memory in ("3GB", "1KB"):
        out = ["--memory", memory, "--out", str(tmp_path / "cells.parquet")]
        assert main(["count", str(tmp_path / "part-*"), *out]) == 0
        assert f"{8 * 3 * 3} cells written to" in capsys.readouterr().out
        cells = pd.read_parquet(tmp_path / "cells.parquet").drop(columns="split")
        assert cells.to_numpy().tolist() == expected.to_numpy().tolist()


def test_a_page_without_end(tmp_path, monkeypatch):
    monkeypatch.setattr("twotowers.files.columns.LONGEST", 50)
    columns = {"session": [1] * 60, "query": [1] * 60, "document": [*range(60)], "clicks": [0] * 60}
    assert "more than 50 rows" in str(refused(write_table(tmp_path, **columns), "rows"))


# Cells


def test_cells_are_counted_already(tmp_path):
    text = "7,a,1,20,3\n7,a,1,10,1\n7,b,2,0,0\n7,a,2147483647,9,1\n"
    path = write_rows(tmp_path, text, COUNTED, "cells.csv")
    assert to_cells(path, tmp_path / "c.parquet", format="cells") == 2
    row, last = pq.read_table(tmp_path / "c.parquet").to_pylist()
    key = {"split": "log", "query": 7, "document": "a", "position": 1}
    assert row == key | {"impressions": 30, "clicks": 4}
    assert last["position"] == 2147483647
    with pytest.raises(InputError, match="is counted, so its pages are not known"):
        to_sessions(path, tmp_path / "s.parquet", format="cells")


def test_cells_of_cells_are_the_same(tmp_path):
    path = write_table(
        tmp_path, query=["x", "x"], documents=[["a", "b"], ["a"]], clicks=[[1, 0], [1]]
    )
    to_cells(path, tmp_path / "c.parquet", format="pages")
    columns = {"split": "split"}
    to_cells(tmp_path / "c.parquet", tmp_path / "d.parquet", format="cells", columns=columns)
    read = pq.read_table
    assert read(tmp_path / "c.parquet").equals(read(tmp_path / "d.parquet"))


def test_bias_features_tell_cells_apart(tmp_path):
    header = "query,document,position,kind,impressions,clicks\n"
    path = write_rows(tmp_path, "7,a,1,x,20,3\n7,a,1,y,10,1\n", header, "cells.csv")
    assert to_cells(path, tmp_path / "c.parquet", format="cells", bias=["kind"]) == 2
    assert to_cells(path, tmp_path / "c.parquet", format="cells") == 1
    lists = {"query": [1, 1], "documents": [["a"], ["a"]], "clicks": [[1], [0]]}
    path = write_table(tmp_path, **lists, kind=[["x"], ["y"]])
    assert to_cells(path, tmp_path / "c.parquet", format="pages", bias=["kind"]) == 2


def test_empty_logs(tmp_path):
    rows = write_rows(tmp_path, "")
    assert to_sessions(rows, tmp_path / "s.parquet", format="rows") == 0
    assert to_cells(rows, tmp_path / "c.parquet", format="rows") == 0
    assert to_cells(write_rows(tmp_path, "", COUNTED), tmp_path / "c.parquet", format="cells") == 0
    none = write_table(
        tmp_path,
        query=pa.array([], pa.int64()),
        documents=pa.array([], pa.list_(pa.string())),
        clicks=pa.array([], pa.list_(pa.bool_())),
    )
    assert to_cells(none, tmp_path / "c.parquet", format="pages") == 0


# All


WRONG = [
    ("pages", {"clicks": [[0], [1, 0]]}, "clicks", "row 1: 1 values and 2 documents"),
    ("pages", {"clicks": [[0, 1], [-1, 0]]}, "clicks", "row 2: -1 was found"),
    ("pages", {"clicks": [["0", "no"], ["1", "0"]]}, "clicks", "row 1: 'no' was found"),
    ("pages", {"clicks": [[0, 1], [None, 1]]}, "clicks", "row 2: a value is missing"),
    ("pages", {"clicks": [1, 0]}, "clicks", "a list per page"),
    ("pages", {"documents": ["a|b", "c"]}, "documents", "a list per page"),
    ("pages", {"documents": [["a", "b"], ["c", ""]]}, "documents", "row 2: a value is missing"),
    ("rows", "s,7,a,1,1_0\n", "clicks", "row 1: '1_0' was found"),
    ("rows", "s,7,a,1,1e400\n", "clicks", "row 1: '1e400' was found"),
    ("rows", "s,7,a,0,1\n", "position", "row 1: '0' was found"),
    ("rows", "s,7,a,1.5,1\n", "position", "row 1: '1.5' was found"),
    ("rows", "s,7,a,1,0\ns,7,b,1,0\n", "position", "row 2: 1 is the position of two rows"),
    ("rows", "s,7,a,1,0\ns,8,b,2,0\n", "query", "row 2: 8 and 7 on one page"),
    ("rows", "s,7,a,1,0\nt,7,b\n", None, "Expected 5 columns, got 3"),
    ("rows", ",7,a,1,0\n", "session", "row 1: a value is missing"),
    ("rows", "s,,a,1,0\n", "query", "row 1: a value is missing"),
    ("rows", 's,7,a,1,0\ns,7,"",2,0\n', "document", "row 2: a value is missing"),
    ("cells", "7,a,1,2,3\n", "clicks", "row 1: 3 clicks in 2 impressions"),
    ("cells", "7,a,1,2,1\n7,a,2147483648,2,1\n", "position", "row 2: '2147483648' was found"),
    ("cells", "7,a,1,2,1\n7,,1,2,1\n", "document", "row 2: a value is missing"),
    ("cells", "7,a,1,2,1\n7,a,1,two,1\n", "impressions", "row 2: 'two' was found"),
]


@pytest.mark.parametrize(("format", "content", "field", "message"), WRONG, ids=str)
def test_what_is_wrong_is_named(tmp_path, format, content, field, message):
    if format == "pages":
        good = {"query": [1, 2], "documents": [["a", "b"], ["c", "d"]], "clicks": [[0, 1], [1, 0]]}
        path = write_table(tmp_path, **good | content)
    else:
        path = write_rows(tmp_path, content, HEADER if format == "rows" else COUNTED)
    error = refused(path, format)
    assert message in str(error)
    assert error.field == field


@pytest.mark.parametrize("format", FORMATS)
def test_no_file_and_no_table(tmp_path, format):
    path = tmp_path / "none.parquet"
    assert refused(path, format)
    path.write_bytes(gzip.compress(b"no table"))
    assert refused(path, format)
    if format == "rows":
        assert "ending '.xlsx'" in str(refused(path.rename(tmp_path / "rows.xlsx"), format))


# Counted pages


@pytest.mark.parametrize("clicks", ["flags", "documents"])
def test_pages_that_are_counted(tmp_path, monkeypatch, clicks):
    monkeypatch.setattr("twotowers.logs.formats.pages.BATCH", 3)
    rng = np.random.default_rng(0)
    pages, twice = [], []
    for _ in range(20):
        shown, flags = rng.permutation(3).tolist(), rng.integers(0, 3, 3).tolist()
        listed = [d for d, times in zip(shown, flags, strict=True) for _ in range(times)]
        pages.append((int(rng.integers(2)), shown, flags if clicks == "flags" else [*listed, 9]))
        twice.append(max(flags) > 1)
    counts = [int(each) for each in rng.integers(0, 8, len(pages))]
    query, documents, clicked = (list(each) for each in zip(*pages, strict=True))
    columns = {"query": query, "documents": documents, "clicks": clicked}
    counted = write_table(tmp_path, "counted.parquet", **columns, page_count=counts)
    again = {name: [value for value, n in zip(each, counts, strict=True) for _ in range(n)]
             for name, each in columns.items()}  # fmt: skip
    single = write_table(tmp_path, "single.parquet", **again)
    (whole, seen), (found, counted_seen) = (
        taken(each, "pages", clicks=clicks) for each in (single, counted)
    )
    assert counted_seen == seen
    assert [page for page in found for _ in range(page.pop("page_count"))] == whole
    layout = recognised(counted)
    assert layout.columns["page_count"] == "page_count"
    assert str(layout).endswith(", a row for so many pages as 'page_count' says")
    more = {"split": ["train"] * len(counts), "page_count": counts}
    assert recognised(write_table(tmp_path, "split.parquet", **columns, **more)).format == "pages"
    error = refused(counted, "pages", clicks=clicks, repeats="error")
    assert f"row {twice.index(True) + 1}: " in str(error)
    wrong = write_table(tmp_path, **columns, page_count=[*counts[:-1], -1])
    assert "page_count: row 20: -1" in str(refused(wrong, "pages", clicks=clicks))
