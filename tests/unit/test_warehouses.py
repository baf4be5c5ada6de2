"""The statements of docs/warehouses.md: run where an engine is there, else parsed."""

import json
import os
import re
import shutil
import subprocess
import tempfile
from collections import Counter
from pathlib import Path

import duckdb
import pandas as pd
import pyarrow as pa
import pytest

import twotowers as tt
from tests.logs import clicked_rows, count_sessions
from twotowers.logs.sessions import write_sessions
from twotowers.root import ROOT

TEXT = (ROOT / "docs" / "warehouses.md").read_text(encoding="utf-8")
BLOCKS = dict(re.findall(r"```sql (\w+)\n(.*?)```", TEXT, re.S))
ROWS, COUNTED, GA4 = (BLOCKS.pop(name) for name in ("all", "counted", "ga4"))
LAYOUTS = ("rows", "pages", "counted")
PAGES = [
    {
        "split": split,
        "query": query,
        "documents": [*documents],
        "clicks": [c == "1" for c in clicks],
    }
    for split, query, documents, clicks in [
        ("train", "tv", "abc", "010"),
        ("train", "tv", "abc", "101"),
        ("train", "tv", "abc", "101"),
        ("train", "tv", "bac", "000"),
        ("train", "ram", "a", "1"),
        ("test", "it's", "cab", "011"),
        ("test", "tv", "aab", "010"),
        ("test", "none", "", ""),
    ]
]
FLAT = [
    (page["split"], page["query"], document, place, int(click))
    for page in PAGES
    for place, (document, click) in enumerate(
        zip(page["documents"], page["clicks"], strict=True), start=1
    )
]
CREATE = """
CREATE TEMP TABLE log_rows (split TEXT, query TEXT, document TEXT, position INT, click INT);
CREATE TEMP TABLE log_pages (split TEXT, query TEXT, documents TEXT[], clicks BOOLEAN[]);
"""
ENGINES = ("duckdb", "postgres", "trino", "spark", "bigquery", "snowflake", "clickhouse")


def statement(engine: str, layout: str) -> str:
    totals = (
        f"SELECT COUNT(*) AS distinct_pages, SUM(page_count) AS pages FROM ({COUNTED}) AS found"
    )
    return {"rows": ROWS, "counted": totals}.get(layout) or BLOCKS[engine]


def literal(value) -> str:
    """A value as most engines write it."""
    if isinstance(value, list):
        return f"[{', '.join(map(literal, value))}]"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if value is None:
        return "NULL"
    return str(value).lower() if isinstance(value, bool) else str(value)


def values(rows) -> str:
    return ", ".join(f"({', '.join(map(literal, row))})" for row in rows)


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    """As our own counting has it, which a plain count confirms."""
    folder = tmp_path_factory.mktemp("cells")
    types = {"documents": pa.list_(pa.string()), "clicks": pa.list_(pa.bool_())}
    columns = {name: [page[name] for page in PAGES] for name in PAGES[0]}
    arrays = {name: pa.array(column, types.get(name)) for name, column in columns.items()}
    write_sessions(folder / "sessions.parquet", [pa.table(arrays)])
    count_sessions(folder / "sessions.parquet", folder / "cells.parquet")
    found = duckdb.sql(f"SELECT * FROM '{folder}/cells.parquet'").fetchall()
    shown = Counter(row[:4] for row in FLAT)
    assert {row[:4]: row[4] for row in found} == shown
    return counted(found)


def counted(rows):
    return sorted((*row[:3], *map(int, row[3:])) for row in rows)


def check(rows, layout, expected):
    """Cells; or how many pages there are, different ones and all."""
    if layout == "counted":
        distinct = {
            str([page[name] for name in ("query", "documents", "clicks")]) for page in PAGES
        }
        assert [tuple(map(int, row)) for row in rows] == [(len(distinct), len(PAGES))]
    else:
        assert counted(rows) == expected


def test_every_engine_is_there():
    assert set(BLOCKS) == set(ENGINES)
    heads = {block.partition("FROM")[0] for block in BLOCKS.values()}
    assert len(heads) == 1
    assert ROWS.startswith(next(iter(heads)).partition("SUM")[0])


@pytest.mark.parametrize("layout", LAYOUTS)
def test_duckdb(expected, layout):
    with duckdb.connect() as connection:
        connection.execute(
            f"{CREATE} INSERT INTO log_rows VALUES {values(FLAT)};"
            f"INSERT INTO log_pages VALUES {values(page.values() for page in PAGES)}"
        )
        check(connection.execute(statement("duckdb", layout)).fetchall(), layout, expected)


@pytest.fixture(scope="module")
def spark():
    sql = pytest.importorskip("pyspark.sql", reason="pyspark is not installed")
    if not shutil.which("java"):
        pytest.skip("Spark needs Java")
    builder = sql.SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    session = builder.config("spark.sql.shuffle.partitions", "1").getOrCreate()
    names = ["split", "query", "document", "position", "click"]
    session.createDataFrame(FLAT, names).createOrReplaceTempView("log_rows")
    schema = "split string, query string, documents array<string>, clicks array<boolean>"
    pages = [tuple(page.values()) for page in PAGES]
    session.createDataFrame(pages, schema).createOrReplaceTempView("log_pages")
    yield session
    session.stop()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("layout", LAYOUTS)
def test_spark(spark, expected, layout):
    found = spark.sql(statement("spark", layout)).collect()
    check(map(tuple, found), layout, expected)


@pytest.mark.filterwarnings("ignore")
def test_what_spark_counts_is_fitted_here(spark, tmp_path):
    names = {"spark": spark, "statement": statement("spark", "pages")}
    for block in re.findall(r"```python\n(.*?)```", TEXT, re.S):
        # Spark's own process has a folder of its own.
        exec(block.replace('"cells"', f'"{tmp_path}/cells"'), names)  # noqa: S102 (our own documentation)
    shown = pd.DataFrame([page for page in PAGES if page["documents"]])
    log, ours = names["log"], names["tt"].read_log(shown)
    assert log.counted
    assert log.count().frame().to_numpy().tolist() == ours.count().frame().to_numpy().tolist()
    fits = [names["tt"].fit(each, "pbm").relevance() for each in (log, ours)]
    keys = ["query", "document"]
    first, second = (fit.sort_values(keys).reset_index(drop=True) for fit in fits)
    pd.testing.assert_frame_equal(first, second)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("layout", LAYOUTS)
def test_clickhouse(expected, layout):
    session = pytest.importorskip("chdb.session", reason="chdb is not installed").Session()
    try:
        session.query(
            "CREATE TABLE log_rows (split String, query String, document String, position Int32, "
            "click Int8) ENGINE = Memory"
        )
        session.query(
            "CREATE TABLE log_pages (split String, query String, documents Array(String), "
            "clicks Array(Bool)) ENGINE = Memory"
        )
        session.query(f"INSERT INTO log_rows VALUES {values(FLAT)}")
        session.query(f"INSERT INTO log_pages VALUES {values(page.values() for page in PAGES)}")
        found = str(session.query(statement("clickhouse", layout), "JSONCompactEachRow"))
        check(map(json.loads, found.splitlines()), layout, expected)
    finally:
        session.close()


@pytest.fixture(scope="module")
def postgres():
    """What runs SQL in a server of its own, which listens in a folder only."""
    found = shutil.which("initdb") or next(Path("/usr/lib/postgresql").glob("*/bin/initdb"), None)
    if found is None:
        pytest.skip("PostgreSQL is not installed")
    programs = Path(found).resolve().parent
    # PostgreSQL refuses to run for root. The path of its socket is short.
    user = {"user": "nobody", "group": "nogroup", "extra_groups": []} if os.geteuid() == 0 else {}
    with tempfile.TemporaryDirectory(dir="/tmp", ignore_cleanup_errors=True) as home:

        def run(program, *options, **how):
            how = {"check": True, "capture_output": True, "text": True, "cwd": home, **how}
            return subprocess.run([programs / program, *options], **how, **user).stdout

        try:
            if user:
                shutil.chown(home, "nobody", "nogroup")
            run("initdb", "-D", "data", "-A", "trust", "-U", "test", "--no-sync")
            listen = f"-c listen_addresses='' -k {home}"
            run("pg_ctl", "-D", "data", "-w", "-l", "log", "-o", listen, "start")
        except (OSError, LookupError, subprocess.CalledProcessError) as error:
            pytest.skip(f"PostgreSQL does not start: {error}")
        how = ["-h", home, "-U", "test", "-d", "postgres", "-v", "ON_ERROR_STOP=1"]
        try:
            yield lambda sql: run("psql", *how, "-q", "-A", "-t", "-F", "\t", input=sql)
        finally:
            run("pg_ctl", "-D", "data", "-m", "immediate", "stop")


@pytest.mark.parametrize("layout", LAYOUTS)
def test_postgres(postgres, expected, layout):
    names = ("documents", "clicks")
    lists = [
        (page["split"], page["query"], *(f"{{{','.join(map(str, page[name]))}}}" for name in names))
        for page in PAGES
    ]
    found = postgres(
        f"{CREATE} INSERT INTO log_rows VALUES {values(FLAT)};"
        f"INSERT INTO log_pages VALUES {values(lists)}; {statement('postgres', layout)};"
    )
    check((line.split("\t") for line in found.splitlines()), layout, expected)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_what_duckdb_gives_is_a_log(layout, tmp_path):
    """Each statement's result, exported, as `read_log` counts it."""
    rows = clicked_rows(3000, *(f"q{number}" for number in range(5)))
    pages = rows.groupby("session").agg(
        query=("query", "first"), documents=("document", list), clicks=("clicks", list)
    )
    tables = {
        "log_rows": rows.rename(columns={"clicks": "click"}).assign(split="log"),
        "log_pages": pages.assign(split="log"),
    }
    asked = COUNTED if layout == "counted" else statement("duckdb", layout)
    with duckdb.connect() as connection:
        for name, table in tables.items():
            connection.register("given", pa.Table.from_pandas(table, preserve_index=False))
            cast = "* REPLACE (clicks::BOOLEAN[] AS clicks)" if name == "log_pages" else "*"
            connection.execute(f"CREATE TABLE {name} AS SELECT {cast} FROM given")
        connection.execute(f"COPY ({asked}) TO '{tmp_path}/out.parquet'")
    found, ours = (tt.read_log(each).count() for each in (tmp_path / "out.parquet", rows))
    assert found.frame().to_numpy().tolist() == ours.frame().to_numpy().tolist()


def in_duckdb() -> str:
    """GA4's statement in DuckDB's words: four names of types and functions differ."""
    duck = GA4.replace("`project.analytics_123.events_*`", "exported")
    duck = duck.replace("UNNEST(items) AS item", "UNNEST(items) AS each(item)")
    duck = duck.replace("INT64", "BIGINT").replace("STRING", "VARCHAR")
    duck = re.sub(
        r"\(SELECT (value\.\w+) FROM UNNEST\(event_params\) WHERE key = ('\w+')\)",
        r"[each.\1 FOR each IN event_params IF each.key = \2][1]",
        duck,
    )
    return duck


def exported(events) -> str:
    """Events of GA4 as a statement that makes their table."""
    made = ", ".join(
        f"({at}, {name!r}, {user!r}, [{{'key': 'ga_session_id', 'value': {{'int_value': {visit}, "
        f"'string_value': NULL}}}}, {{'key': 'search_term', 'value': {{'int_value': NULL, "
        f"'string_value': {literal(query)}}}}}], "
        f"[{', '.join(f'{{item_id: {d!r}, item_list_index: {literal(k)}}}' for d, k in items)}])"
        for at, (user, visit, name, query, items) in enumerate(events)
    )
    names = "t(event_timestamp, event_name, user_pseudo_id, event_params, items)"
    return f"CREATE TABLE exported AS SELECT * FROM (VALUES {made}) AS {names}"


def test_events_of_ga4_become_rows():
    duck = in_duckdb()
    seen, chosen = "view_item_list", "select_item"
    events = [
        ("ann", 1, seen, "tv", [("a", "1"), ("b", "2")]),
        ("ann", 1, chosen, "tv", [("b", "9")]),  # where it was seen counts
        ("ann", 1, seen, "tv", [("b", "1"), ("c", "2")]),  # the search once more
        ("ann", 2, seen, "tv", [("b", "1")]),  # a later visit
        ("bob", 1, chosen, "tv", [("z", "1")]),  # never shown
        ("bob", 1, "purchase", "tv", [("a", "1")]),
        ("bob", 1, seen, None, [("a", "1")]),  # no search
        ("bob", 1, seen, "tv", [("c", "1"), ("d", None)]),  # an item without a position
        ("bob", 1, seen, "tv", [("e", "2")]),  # and then more of the page
        ("bob", 1, chosen, "tv", [("c", None)]),
    ]
    with duckdb.connect() as connection:
        connection.execute(exported(events))
        table = connection.execute(duck).df()
    log = tt.read_log(table)
    assert (log.pages, log.layout.time) == (4, "event_time")
    assert log.layout.columns["user"] == "user_pseudo_id"
    assert sorted(map(tuple, table.to_numpy().tolist())) == [
        ("ann 1 tv 0", "tv", "a", "ann", 1, 0, 0),
        ("ann 1 tv 0", "tv", "b", "ann", 2, 1, 0),
        ("ann 1 tv 1", "tv", "b", "ann", 1, 0, 2),
        ("ann 1 tv 1", "tv", "c", "ann", 2, 0, 2),
        ("ann 2 tv 0", "tv", "b", "ann", 1, 0, 3),
        ("bob 1 tv 0", "tv", "c", "bob", 1, 1, 7),
        ("bob 1 tv 0", "tv", "e", "bob", 2, 0, 7),
    ]
