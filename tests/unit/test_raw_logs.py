"""Logs as they are: what is missing, mixed or left out is said, and the rest is read."""

import json
import shlex

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import twotowers as tt
from tests.simulated_logs import rows_of
from twotowers.commands.main import main
from twotowers.errors import InputError
from twotowers.files import batches
from twotowers.files.yamls import line_of


def said(capsys, *arguments):
    """The exit status of a command, and what it printed."""
    status = main([*map(str, arguments)])
    printed = capsys.readouterr()
    return status, printed.out + printed.err


def simulated(pages=3000, positions=5, seed=0):
    """Rows of a log whose examination is 1 / rank, one page after the other."""
    rng = np.random.default_rng(seed)
    query = rng.integers(0, 20, pages)
    documents = np.array([rng.permutation(8)[:positions] for _ in range(pages)])
    attraction = rng.uniform(0.2, 0.9, (20, 8))[query[:, None], documents]
    clicks = rng.random(documents.shape) < attraction / np.arange(1, positions + 1)
    return rows_of(query, documents, clicks)


@pytest.fixture(scope="module")
def log():
    return simulated()


# What was not clicked is missing

COUNTED = ["query", "document", "position"]


@pytest.mark.parametrize("kind", ["pages", "impressions", "cells"])
def test_every_impression_clicked_is_an_error(log, kind, tmp_path, capsys):
    rows = log[log["clicks"] == 1]
    if kind == "impressions":
        rows = rows.drop(columns="session")
    if kind == "cells":
        rows = rows.groupby(COUNTED, as_index=False)["clicks"].sum()
        rows["impressions"] = rows["clicks"]
    path = tmp_path / "log.csv"
    rows.to_csv(path, index=False)
    for name, *options in [("propensities",), ("fit", "--model", "pbm")]:
        status, printed = said(capsys, name, path, *options)
        assert status == 2
        assert f"each of the {rows['clicks'].sum():,} impressions was clicked" in printed
    assert "but each impression was clicked" in said(capsys, "identify", path)[1]


def test_a_log_of_hardly_anything_but_clicks_is_red(log):
    rest = log[(log["clicks"] == 1) | (log["session"] % 50 == 0)].drop(columns="session")
    first = tt.diagnose(rest).recommendations[0]
    assert first.colour == "red"
    assert "what was not clicked was probably left out" in first.answer


def test_no_interval_has_no_width():
    """Clicks in proportion to examination exactly, as no sample has them."""
    cells = [
        (query, document, position, 120, 120 // position // (2 + document))
        for query in range(30) for document in range(3) for position in (1, 2, 3)
    ]  # fmt: skip
    table = pd.DataFrame(cells, columns=[*COUNTED, "impressions", "clicks"])
    for estimator in ("conditional", "odds", "all_pairs", "adjacent_chain", "pivot_one"):
        curve = tt.propensities(table, estimator=estimator).curve
        assert (curve.low[1:] < 0.999 * curve.high[1:]).all()
        assert all("doubtful" in each for each in curve.reason[1:])


# What a reader leaves out


def ubi(tmp_path, log, *, click=lambda page, document: (page, document), **further):
    """A log as UBI: its pages as hits, and clicks on them as `click` names them."""
    queries, events = [], []
    for page, rows in log.groupby("session"):
        hits = [f"d{each}" for each in rows["document"]]
        queries.append(
            {"query_id": f"p{page}", "user_query": f"q{rows['query'].iloc[0]}",
             "query_response_hit_ids": hits, **further}
        )  # fmt: skip
        for document, rank in zip(rows["document"], rows["position"], strict=True):
            if rows["clicks"].iloc[rank - 1]:
                of, what = click(f"p{page}", f"d{document}")
                place = {"object": {"object_id": what}, "position": {"ordinal": rank}}
                events.append({"query_id": of, "action_name": "click", "event_attributes": place})
    path = tmp_path / "ubi.ndjson"
    path.write_text("".join(json.dumps(each) + "\n" for each in [*queries, *events]))
    return path


def test_what_is_left_out_reaches_every_command_and_the_first_light(log, tmp_path, capsys):
    """Clicks on no document of their page, of no query of the log, and on nothing."""

    def click(page, what):
        strays = {"3": (page, "z"), "4": ("z", what), "5": (page, None)}
        return strays.get(page[-1], (page, what))

    path = ubi(tmp_path, log, click=click)
    words = ("not on their page", "queries that the log does", "that name no document")
    first = tt.diagnose(tt.read_log(path)).recommendations[0]
    assert first.colour == "amber"
    assert all(each in first.answer for each in words)
    for name, *options in [
        ("propensities",), ("weights", "--out", tmp_path / "weights.csv"), ("fit",),
        ("judgments", "--out", tmp_path / "qrels.txt"), ("compare", "--models", "pbm"),
    ]:  # fmt: skip
        status, printed = said(capsys, name, path, *options)
        assert status == 0
        assert all(each in printed for each in words)


def test_clicks_that_are_all_off_their_pages_are_said_as_that(log, tmp_path):
    path = ubi(tmp_path, log, click=lambda page, document: (page, f"ean-{document}"))
    clicks = f"{log['clicks'].sum():,}"
    with pytest.raises(InputError, match=f"documents that are not on their page: {clicks}"):
        tt.propensities(path)


# Rows that tell their page


def estimates(*log, **how):
    return tt.propensities(tt.read_log(*log, **how)).curve.estimate


def read(log):
    return log.pages


def cells(log):
    return log.count().frame().to_numpy().tolist()


def test_rows_in_any_order_are_sorted(log):
    mixed = log.sample(frac=1, random_state=1)
    assert cells(tt.read_log(mixed)) == cells(tt.read_log(log))
    assert tt.read_log(mixed).pages == tt.read_log(log).pages


def test_users_at_the_same_time_have_pages_of_their_own(log, tmp_path):
    """Rows in the order of time, of two pages in turn, in two files."""
    turns = log.assign(turn=log["position"] + 10 * (log["session"] // 2)).sort_values(
        "turn", kind="stable"
    )
    for part, rows in enumerate((turns[:7003], turns[7003:])):
        rows.drop(columns="turn").to_csv(tmp_path / f"part-{part}.csv", index=False)
    found = tt.read_log(tmp_path)
    assert cells(found) == cells(tt.read_log(log))
    first = next(found.batches())
    assert first["documents"][0].as_py() == log["document"][:5].to_list()


@pytest.mark.parametrize("queries", [20, 2], ids=["searches differ", "searches come again"])
def test_a_visit_has_pages(log, queries):
    """Three searches of one visit; with two queries, positions start again."""
    log = log.assign(query=log["query"] % queries)
    visits = log.assign(session_id=log["session"] // 3).drop(columns="session")
    with pytest.raises(InputError, match=r"page=\['session_id', 'query'\]"):
        read(tt.read_log(visits))
    found = tt.read_log(visits, page=["session_id", "query"])
    assert (found.pages, cells(found)) == (3000, cells(tt.read_log(log)))


def test_searches_of_a_visit_in_no_order_are_refused(log):
    visits = log.assign(visit=log["session"] // 9, query=0).sample(frac=1, random_state=1)
    with pytest.raises(InputError, match=r"row \d+: rows of several pages .* in no order"):
        read(tt.read_log(visits, page=["visit", "query"]))


def test_without_positions_a_document_that_comes_again_begins_a_page():
    rows = pd.DataFrame({"visit": 1, "query": "q", "document": [*"abcabdab"], "clicks": 0})
    found = tt.read_log(rows, page=["visit", "query"])
    assert [len(page) for page in next(found.batches())["documents"]] == [3, 3, 2]


def test_a_click_in_a_row_of_its_own_is_one_of_its_impression(log):
    shown = log.assign(clicks=0, at=2 * log.index)
    clicked = log[log["clicks"] == 1].assign(at=lambda rows: 2 * rows.index + 1)
    late = clicked.assign(at=10 * clicked["session"] + 9.5)
    for clicks in (clicked, late):
        events = pd.concat([shown, clicks]).sort_values("at").drop(columns="at")
        assert cells(tt.read_log(events)) == cells(tt.read_log(log))


def test_second_screens_run_on_or_start_again(log):
    later = log.assign(position=log["position"] + 5)
    both = pd.concat([log, later]).sort_values(["session", "position"])
    assert tt.read_log(both).pages == 3000
    runs_on = estimates(both)
    assert runs_on[5:] == pytest.approx(runs_on[:5], rel=0.02)
    again = pd.concat([log, log]).sort_values("session", kind="stable")
    assert tt.read_log(again).pages == 6000
    assert estimates(again) == pytest.approx(estimates(log))


@pytest.mark.parametrize("command", ["propensities", "weights", "fit", "judgments", "compare"])
def test_gaps_keep_their_positions_in_every_command(log, command, tmp_path, capsys):
    seen = np.random.default_rng(2).random(len(log)) < 0.7
    path = tmp_path / "log.csv"
    log[seen].to_csv(path, index=False)
    models = {"fit": ["--model", "pbm"], "compare": ["--models", "pbm", "dbn"]}.get(command, ())
    out = ["--out", tmp_path / "out.csv"] if command in ("weights", "judgments") else []
    status, printed = said(capsys, command, path, *models, *out)
    assert status == 0
    missing = log[seen].groupby("session")["position"].agg(["max", "size"])
    number = (missing["max"] > missing["size"]).sum()
    assert f"pages that miss positions, and keep those of their documents: {number:,}" in printed


def test_gaps_bend_no_curve(log):
    """Of viewed rows only, by chance and not by clicks."""
    seen = np.random.default_rng(2).random(len(log)) < 0.7
    curve = tt.propensities(log[seen])
    truth = 1 / np.arange(1, 6)
    assert np.abs(np.log(curve.curve.estimate / truth)).max() < 0.15
    assert curve.curve.reference == 0
    fitted = tt.fit(log[seen], "pbm").examination()["estimate"]
    assert (fitted / fitted[0]).to_numpy() == pytest.approx(truth, rel=0.15)


@pytest.mark.parametrize(
    ("kept", "colour", "words"),
    [
        (lambda log, chance: (log["clicks"] == 1) | (chance < 0.2), "amber", "most of what"),
        (lambda log, chance: log.groupby("session")["clicks"].transform("sum") > 0, "amber",
         "hardly any page is without a click"),
        (lambda log, chance: log["position"].isin([1, 3, 4]), "green", "nothing that looks wrong"),
        (lambda log, chance: (log["position"] > 2) | (log["session"] % 2 == 0), "green",
         "1,500 pages begin below the first"),
    ],
    ids=["part", "clicked pages", "sparse ranks", "second screens"],
)  # fmt: skip
def test_no_green_curve_where_clicks_may_decide_what_is_logged(log, kept, colour, words):
    found = tt.diagnose(log[kept(log, np.random.default_rng(0).random(len(log)))])
    _, able, advice = found.recommendations
    assert able.colour == colour
    assert (advice.colour == "green") == (colour == "green")
    assert words in str(found)
    if words.startswith("hardly any page"):  # They are no evidence of users who stop.
        assert "whether they do or not" in advice.answer


def test_users_and_times_that_are_missing_on_some_pages(log, tmp_path):
    path, page = tmp_path / "log.csv", log["session"]
    known = log.assign(user=page % 50, time=page * 60.0)
    some = known.assign(
        user=known["user"].where(page % 10 > 0), time=known["time"].where(page % 40 != 39)
    )
    some.to_csv(path, index=False)
    for given in (path, some, some.assign(user=some["user"].astype("Int64"))):
        curve = tt.propensities(tt.read_log(given))
        assert curve.feedback.order == "time"
        assert curve.log.seen["pages_without_user"] == 300
        assert curve.log.seen["pages_without_time"] == 75
        assert "pages whose user is not known, each as of a user of its own: 300" in str(curve)
        assert curve.log.count(["user"]).frame().shape[0] == 45 + 300
    listed = some.groupby("session").agg(
        query=("query", "first"), documents=("document", list), clicks=("clicks", list),
        user=("user", "first"),
    )  # fmt: skip
    found = tt.read_log(listed)
    assert found.pages == 3000
    assert found.count(["user"]).frame().shape[0] == 45 + 300


def test_gaps_outlive_a_sessions_file(log, tmp_path):
    seen = log[np.random.default_rng(2).random(len(log)) < 0.7]
    tt.read_log(seen).write(tmp_path / "sessions.parquet")
    assert cells(tt.read_log(tmp_path / "sessions.parquet")) == cells(tt.read_log(seen))
    with pytest.raises(InputError, match="3 was found where 2 should be"):
        read(tt.read_log(log[log["position"] != 2], gaps="error"))


def test_clicked_rows_that_lost_their_position_are_refused(log):
    lost = log.assign(position=log["position"].where(log["clicks"] == 0, 0))
    for how in ({}, {"first": 0}):
        with pytest.raises(InputError, match="clicks are at position 0, and no other row"):
            read(tt.read_log(lost, **how))
    some = log.assign(position=log["position"].astype(float).where(log["session"] != 7))
    with pytest.raises(
        InputError, match=r"row 36: a value is missing \(expected a position"
    ) as raised:
        read(tt.read_log(some))
    assert "first=0" not in str(raised.value)


# One refusal says all, and what to type


def tried(printed, capsys):
    """What the command that an error proposes prints."""
    line = printed.splitlines()[-1]
    assert line.startswith("try: twotowers ")
    return said(capsys, *shlex.split(line)[2:])


STRANGE = {"query": "Suchanfrage", "document": "Doku ment", "clicks": "Klick (ja)"}


@pytest.mark.parametrize(
    "names",
    [
        {**STRANGE, "session": "Sitzung", "position": "Rang"},
        {"document": "article"},
        {"clicks": "taps", "query": "asked"},
        {"session": "serp nr", "document": "thing"},
    ],
    ids=["all", "documents", "two", "no session"],
)
def test_a_missing_column_is_named_and_the_proposed_command_works(log, names, tmp_path, capsys):
    path = tmp_path / "my log.csv"
    table = log.assign(document="d" + log["document"].astype(str)).rename(columns=names)
    table.to_csv(path, index=False)
    status, printed = said(capsys, "propensities", path)
    assert status == 2
    missing = [each for each in ("query", "document", "clicks") if each in names]
    assert f"no column is named as {' or '.join(missing)}" in printed
    status, printed = tried(printed, capsys)
    assert status == 0
    assert f"{estimates(log)[1]:.3f}" in printed


def test_all_faults_of_a_layout_are_in_one_refusal(log, tmp_path, capsys):
    """A visit, positions from 0, gaps, rows in no order, and a strange name."""
    path = tmp_path / "log.csv"
    page = {"session_id": log["session"] // 3, "query": log["session"] % 20}
    rows = log.assign(**page, position=log["position"] - 1)
    rows = rows[np.random.default_rng(0).random(len(rows)) < 0.8].drop(columns="session")
    turns = rows.sort_values("position", kind="stable").rename(columns={"document": "thing"})
    turns.to_csv(path, index=False)
    status, printed = said(capsys, "propensities", path)
    assert status == 2
    status, printed = tried(printed, capsys)
    assert status == 0
    assert "1.000  reference" in printed
    rows.to_csv(path, index=False)
    _, printed = said(capsys, "propensities", path)
    assert "of which 'session_id' has several" in printed
    assert "positions count from 0" in printed
    assert tried(printed, capsys)[0] == 0


# Files as other programs write them


def as_csv(**how):
    return lambda log, to: log.to_csv(to, **{"index": False, **how})


def as_text(change):
    return lambda log, to: to.write_text(change(log.to_csv(index=False)))


def as_json(log, to):
    log.to_json(to, orient="records", lines=True)


def packed(codec, write):
    def pack(log, to):
        with pa.CompressedOutputStream(str(to), codec) as file:
            write(log, file)

    return pack


def parts(log, folder):
    """Two files, with an empty one between them."""
    folder.mkdir()
    for part, rows in enumerate((log[:7000], log[:0], log[7000:])):
        rows.to_csv(folder / f"part-{part}.csv", index=False, header=len(rows) > 0)
    (folder / "_SUCCESS").touch()


def nested(log, folder):
    for day, rows in enumerate((log[:7000], log[7000:])):
        (folder / f"dt=2024-03-0{day}").mkdir(parents=True)
        rows.to_parquet(folder / f"dt=2024-03-0{day}" / "part-0.parquet", index=False)


def as_pages(log):
    pages = log.groupby("session").agg({"query": "first", "document": list, "clicks": list})
    return pages.rename(columns={"document": "documents"})


def padded(log):
    """Pages as CLAX has them: ids from 1, of one length."""
    pages = as_pages(log.assign(document=log["document"] + 1))
    for name in ("documents", "clicks"):
        pages[name] = pages[name].map(lambda each: [*each, 0, 0, 0])
    return pages.rename(columns={"query": "query_id", "documents": "query_doc_ids"})


def as_parquet(column, values):
    def write(log, to):
        place = log.columns.get_loc(column)
        pq.write_table(pa.table(log).set_column(place, column, values(log[column])), to)

    return write


FILES = {
    "gzip": ("log.csv.gz", as_csv()),
    "tabs": ("log.tsv", as_csv(sep="\t")),
    "semicolons": ("log.csv", as_csv(sep=";", index=True)),
    "decimal commas": (
        "log.csv", lambda log, to: as_csv(sep=";", decimal=",")(log.astype({"position": float}), to)
    ),
    "bars": ("log.csv", as_csv(sep="|")),
    "utf-16": ("log.csv", as_csv(encoding="utf-16")),
    "a comment": ("log.csv", as_text(lambda text: f"# of 2024, by us\n{text}")),
    "spaces": ("log.csv", as_text(lambda text: text.replace(",", ", "))),
    "upper case": ("LOG.CSV", as_csv()),
    "zstd": ("log.csv.zst", packed("zstd", as_csv())),
    "bz2": ("log.csv.bz2", packed("bz2", as_csv())),
    "gzip without a name": ("log.csv", packed("gzip", as_csv())),
    "folders in a folder": ("hive", nested),
    "an empty part": ("parts", parts),
    "rows of JSON": ("log.ndjson", as_json),
    "a list of JSON": ("log.json", lambda log, to: log.to_json(to, orient="records")),
    "packed rows of JSON": ("log.jsonl.gz", packed("gzip", as_json)),
    "pages of JSON": ("log.ndjson", lambda log, to: as_json(as_pages(log), to)),
    "decimal ids": (
        "log.parquet",
        as_parquet(
            "query", lambda ids: pa.array(ids).cast(pa.decimal128(19)).cast(pa.decimal128(9))
        ),
    ),
    "binary text": (
        "log.parquet", as_parquet("session", lambda ids: pa.array(map(b"%d".__mod__, ids)))
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", FILES)
def test_files_as_other_programs_write_them(log, kind, tmp_path):
    name, write = FILES[kind]
    write(log, tmp_path / name)
    for path in (name, "hive/dt=*/*.parquet") if name == "hive" else (name,):
        found = cells(tt.read_log(tmp_path / path))
        assert sorted([*map(int, row)] for row in found) == cells(tt.read_log(log))


def test_pages_padded_with_0_are_read_without_it(log, tmp_path):
    padded(log).to_parquet(tmp_path / "pages.parquet", index=False)
    plain = tt.read_log(log.assign(document=log["document"] + 1))
    assert cells(tt.read_log(tmp_path / "pages.parquet")) == cells(plain)
    assert cells(tt.read_log(as_pages(log))) == cells(tt.read_log(log))  # Here 0 is a document.


def test_another_encoding_is_an_option(log, tmp_path, capsys):
    path = tmp_path / "log.csv"
    log.assign(query="sök " + log["query"].astype(str)).to_csv(
        path, index=False, encoding="latin-1"
    )
    status, printed = said(capsys, "propensities", path)
    assert status == 2
    assert "--encoding latin-1" in printed
    status, printed = said(capsys, "propensities", path, "--encoding", "latin-1")
    assert status == 0
    assert "sök 7" in tt.read_log(path, encoding="latin-1").count().frame()["query"].to_list()
    with pytest.raises(InputError, match="encoding: 'latin-x'"):
        tt.read_log(path, encoding="latin-x")


def test_line_ends_in_quotes_of_a_large_file(log, tmp_path, monkeypatch):
    monkeypatch.setattr(batches, "BLOCK", 1000)
    rows = log[:3000].assign(query="two\nlines, " + log["query"].astype(str))
    rows.to_csv(tmp_path / "log.csv", index=False)
    found = tt.read_log(tmp_path / "log.csv").count().frame()["query"]
    assert {*found} == {*rows["query"]}


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("log.txt", lambda text: text, "that of a table: session,.*that ends in .csv"),
        ("log.csv", lambda text: text.replace(",1,", ",1.5,", 1), "a mean position tells nothing"),
        ("log.csv", lambda text: text.replace(",1,", ',"1,000",', 1), "'1,000' was found"),
        ("log.jsonl", lambda text: '{"a": 1}', "the first object has the keys a .*those of a tab"),
    ],
)
def test_what_stays_refused_says_what_it_saw(log, name, change, message, tmp_path):
    (tmp_path / name).write_text(change(log.to_csv(index=False)))
    with pytest.raises(InputError, match=message):
        read(tt.read_log(tmp_path / name))


def test_a_key_that_is_written_out_comes_before_one_of_its_form(tmp_path):
    (tmp_path / "a.yaml").write_text("a:\n  x_1: 1\n  x_{n}: 2\n")
    assert [line_of(tmp_path / "a.yaml", ["a", name]) for name in ("x_1", "x_5")] == [2, 3]


def test_a_device_is_proposed_as_no_query(tmp_path):
    rng = np.random.default_rng(0)
    pages = 600
    rows = rows_of(rng.integers(50, size=pages), rng.integers(300, size=(pages, 5)),
                   rng.random((pages, 5)) < 0.2)  # fmt: skip
    rows["device"] = np.where(rows["session"] % 300 < 150, "mobile", "desktop")
    rows = rows.drop(columns="session").rename(columns={"query": "asked_phrase"})
    rows.to_csv(tmp_path / "log.csv", index=False)
    with pytest.raises(InputError) as refused:
        tt.read_log(tmp_path / "log.csv")
    assert refused.value.settings["columns"]["query"] == "asked_phrase"
