"""Readers of files that users supply: what to try, and what must hold of what they accept."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random

import numpy as np
import pyarrow as pa

from tests.fuzz import tables
from tests.fuzz.mutations import mutate
from tests.logs import cells_of
from twotowers.analysis.identification import identify
from twotowers.datasets import letor
from twotowers.errors import InputError
from twotowers.experiment.config import read_config
from twotowers.experiment.paper import load_paper
from twotowers.files.yamls import read_yaml
from twotowers.logs.formats.ubi import read as read_ubi
from twotowers.logs.formats.yandex import read as read_yandex
from twotowers.logs.tiangong import read_tiangong
from twotowers.root import ROOT

CORPUS = Path(__file__).with_name("corpus")
CONFIG = read_config(read_yaml(ROOT / "config.yaml"))
WIDTH, LABEL_MAX = 5, 4


@dataclass(frozen=True)
class Target:
    """A reader under test: what draws an input, and what reads a file of this name and asserts its
    contract. InputError refuses a file; its message matches `locates` and has the file's name."""

    draw: Callable[[Random], bytes]
    read: Callable[[Path], None]
    name: str = "input"
    locates: str = ""

    def accepts(self, text: bytes, folder: Path) -> bool:
        """Whether the input is accepted. An exception other than InputError is a fault."""
        path = folder / self.name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text)
        try:
            self.read(path)
        except InputError as error:
            message = str(error)
            assert str(path) in message, f"does not name its file: {message}"
            assert re.search(self.locates, message), f"does not say where: {message}"
            return False
        return True


def from_corpus(kind: str, *words: str) -> Callable[[Random], bytes]:
    """Draw mutations of one kind of file in the corpus."""
    seeds = [path.read_bytes() for path in sorted((CORPUS / kind).iterdir())]
    words = [word.encode() for word in words]
    return lambda rng: mutate(rng.choice(seeds), seeds, words, rng)


# Text


def check_letor(path: Path) -> None:
    rankings = letor.read_letor(path, width=WIDTH, label_max=LABEL_MAX)
    assert len(rankings.label) == len(rankings.features) > 0
    assert ((rankings.label >= 0) & (rankings.label <= LABEL_MAX)).all()
    assert np.isfinite(rankings.features).all()
    # Rows of a query stand together.
    assert len(rankings.queries) == len(set(rankings.query.tolist()))


def check_click_log(log: pa.Table) -> None:
    keys = [name for name in log.column_names if name not in ("impressions", "clicks")]
    shown, clicks, position = (
        log[name].to_numpy() for name in ("impressions", "clicks", "position")
    )
    assert log.num_rows
    assert (position >= 1).all()
    assert (clicks >= 0).all()
    assert (clicks <= shown).all()
    rows = list(zip(*(log[key].to_pylist() for key in keys), strict=True))
    assert rows == sorted(set(rows))
    counts = {name.decode(): int(count) for name, count in log.schema.metadata.items()}
    left_out = counts["repeated_clicks"] + counts["clicks_off_page"]
    assert clicks.sum() == counts["clicks"] - left_out


def check_ubi(path: Path) -> None:
    log = read_ubi(path)
    pages = [page for batch in log.batches for page in batch.to_pylist()]
    assert len(pages) == log.seen["pages"] > 0
    for page in pages:
        assert isinstance(page["query"], str)
        assert len(page["clicks"]) == len(page["documents"]) == len(set(page["documents"])) > 0
        assert all(page["documents"])
    kept = log.seen["clicks"] - log.seen["repeated_clicks"] - log.seen["clicks_off_page"]
    assert sum(sum(page["clicks"]) for page in pages) == kept
    assert all(number >= 0 for number in log.seen.values())


def check_identify(path: Path) -> None:
    report = identify(path)
    assert report.sizes.sum() == len(report.factors) <= len(report.counts)
    assert len(str(report).splitlines()) >= 3


# YAML


def check_read_config(path: Path) -> None:
    config = read_config(read_yaml(path), path)
    assert config.scale in ("smoke", "laptop", "paper")
    for dataset in config.datasets.values():
        try:
            assert dataset.of.splits
        except InputError as error:  # it names the source, not the file
            raise InputError(str(error), path=path) from error


def check_experiment(path: Path) -> None:
    paper = load_paper(path.parent.name, CONFIG, root=path.parents[2])
    assert paper.seeds
    assert all(isinstance(paper.seeds_of(name), list) for name in paper.studies)


YAML_WORDS = (
    *("? ", "- ", ": ", "{", "}", "[", "]", "|\n ", "> ", "# ", "---"),
    *("!!python/object/apply:os.system [x]", "!!int ", "!!timestamp ", "!!bool ", "!!binary ", "!"),
    *("2001-13-41", "0b_", "1:60", "~", "null", "yes", ".nan", "-.inf", "!!set {", "!!omap [", "="),
    *("scale", "papers", "datasets", "replace", "source", "folder", "standin", "smoke", "width"),
    *("seeds", "studies", "settings", "logs", "items", "needs", "training", "rankers", "sessions"),
    *("title", "kind", "figure", "strengths", "ranker", "splits", "sha256", "files_sha256", "log"),
    *("module", "dataset", "%YAML 9.9\n", "\n  ", "- - - ", "1: 2", "true: x", "[1, 2]: 3", "{}: "),
)


TARGETS = {
    "letor": Target(
        from_corpus(
            "letor",
            *("qid:", "1:", "2:0.5", "3:nan", "0:1", "4:inf", "6:1", "1000000000:1", "5:1e-50"),
            *("# 1:2", ":", "1:2:3", " 5:-1e39", "qid:1 "),
            *("\n3 qid:7 1:2 5:4", "2 qid:9 3:.1\n", *"0123456789", " ", "  ", "\t", "\n"),
            *("\r\n", "#", "# a\n", " 1:7", "\n1 qid:4 2:3\n", "+", "-", ".", "e5", "1e+3"),
            *("1:x", "qid:-1", "infinity", "nan(1)", "1d3", "\x0b"),
        ),
        check_letor,
        locates=r"input:\d+: |holds no row",
    ),
    "yandex": Target(
        from_corpus("yandex", "; ", ";", "\t", " :", " , ", ",", "_", "1_0\t5,6 : 5", "5", "6,6"),
        lambda path: check_click_log(cells_of(read_yandex(path))),
        locates=r"record \d+: |holds no record",
    ),
    "ubi": Target(
        from_corpus(
            "ubi",
            *('"query_id"', '"user_query"', '"query_response_hit_ids"', '"doc_ids"', '"timestamp"'),
            *('"action_name"', '"event_attributes"', '"object"', '"object_id"', '"position"'),
            *('"ordinal"', '"_source"', '"hits"', '"response"', '"docs"', '"index"', '"click"'),
            *('"impression"', '"a"', '"x"', '"x,y"', '"[1]"', '"[x"', '""', "null", "[]", "{}"),
            *("[null]", "true", "-1", "1e99", "99999999999999999999", "0", "1", "2.5", '"2"'),
            *(",", ":", "{", "}", "[", "]", "\n", '"', "\\", '"\\ud800"', '"\\u0000"', "[1, 2]"),
        ),
        check_ubi,
        name="input.ndjson",
    ),
    "tiangong": Target(
        from_corpus(
            "tiangong",
            *(f"<{end}{name}>" for end in ("", "/") for name in (*"abc", "root", "session")),
            *("<interaction>", "</interaction>", "<query_id>q2</query_id>", "<rank>1</rank>"),
            *('<result rank="3">', "</result>", "<docid>d7</docid>", "<vtype>x#y</vtype>"),
            *("<clicked>", "</clicked>", "<click>", "</click>", "<results>", "</results>", "/>"),
            *("<!DOCTYPE root>", "<![CDATA[x]]>", "<!-- x -->", "<?pi x?>", "&lt;", "&a;", "&#0;"),
            *('<?xml version="1.0" encoding="utf-16"?>', "rot13", "idna", "utf-7", "big5", "hex"),
            *("latin-1", "cp037", "xmlns:a='b'", "a:b", "#", "<query>", "</query>", "&#x10FFFF;"),
        ),
        lambda path: check_click_log(read_tiangong(path)),
        locates=r"input:\d+: |holds no result",
    ),
    "csv": Target(
        from_corpus(
            "csv",
            *("query", "document", "position", "impressions", "clicks", ",", "\n", ",,", '"', ";"),
            *("1,5,1,10,3,a\n", "1.5", "inf", "NaN", "1e400", "True", "-1", "3,", "a,b,c\n", "#"),
        ),
        check_identify,
        name="input.csv",
    ),
    "config": Target(from_corpus("config", *YAML_WORDS), check_read_config),
    "experiment": Target(
        from_corpus("experiment", *YAML_WORDS), check_experiment, name="papers/p/experiment.yaml"
    ),
    "log": Target(tables.drawn_from(tables.LOG), check_identify, name="input.parquet"),
}
