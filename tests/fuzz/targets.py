"""Every reader of files: what to try on it, and what must hold of whatever it accepts."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

import numpy as np
import pyarrow as pa

from tests.fuzz import archives, oracle, tables
from tests.fuzz.mutations import mutate
from twotowers import ROOT
from twotowers.datasets import letor, sources
from twotowers.datasets.download import fetch
from twotowers.datasets.sources import load_sources, resolve
from twotowers.errors import InputError
from twotowers.files.rankings import read_rankings
from twotowers.files.yamls import read_yaml
from twotowers.identifiability.diagnosis import check_log
from twotowers.identify import describe, read_log
from twotowers.logs.cells import read_logs
from twotowers.logs.policies import read_scores
from twotowers.logs.tiangong import read_tiangong
from twotowers.logs.yandex import read_yandex
from twotowers.results.longform import REQUIRED, read_results
from twotowers.running.experiments import check_config, load_experiment

CORPUS = Path(__file__).with_name("corpus")
CONFIG = read_yaml(ROOT / "config.yaml")
WIDTH, LABEL_MAX = 5, 4


@dataclass(frozen=True)
class Target:
    """A reader under test.

    Attributes:
        draw: one input.
        read: reads the file and asserts its contract; raises InputError where it refuses.
        name: of the file, where the reader goes by it.
        locates: what an error must match beside the file's name, at least.
        join: inputs -> files; several accepted inputs may share one.
    """

    draw: Callable[[Random], bytes]
    read: Callable[[Path], None]
    name: str = "input"
    locates: str = ""
    join: Callable[[Sequence[bytes]], Sequence[bytes]] = lambda inputs: inputs

    def accepts(self, text: bytes, folder: Path) -> bool:
        """Whether the input is accepted; whatever else than an InputError is raised is a fault."""
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
    """Draw mutations of the corpus's files of a kind."""
    seeds = [path.read_bytes() for path in sorted((CORPUS / kind).iterdir())]
    words = [word.encode() for word in words]
    return lambda rng: mutate(rng.choice(seeds), seeds, words, rng)


# Text


def check_letor(path: Path) -> None:
    expected = oracle.parse(path.read_bytes(), WIDTH, LABEL_MAX)
    try:
        rankings = letor.read_letor(path, width=WIDTH, label_max=LABEL_MAX)
    except InputError as error:
        if error.line != (expected or None):
            raise AssertionError(f"{error}, but the oracle says {expected}") from error
        raise
    assert isinstance(expected, list), f"accepted, but the oracle blames line {expected}"
    oracle.assert_equal(rankings, expected, WIDTH)


def mostly_allowed(draw: Callable[[Random], bytes]) -> Callable[[Random], bytes]:
    """Two draws of three try again a few times until the rules allow the text.

    What is refused is looked at no further than its first bad line; what is accepted is compared
    to the last bit, and together with others costs a tenth.
    """

    def again(rng: Random) -> bytes:
        text = draw(rng)
        for _ in range(5 if rng.random() < 2 / 3 else 0):
            if isinstance(oracle.parse(text, WIDTH, LABEL_MAX), list):
                break
            text = draw(rng)
        return text

    return again


def join_letor(inputs: Sequence[bytes]) -> list[bytes]:
    """Inputs that the rules allow in one file, which costs the reader little more than one."""
    allowed = [isinstance(oracle.parse(text, WIDTH, LABEL_MAX), list) for text in inputs]
    files = [text for text, good in zip(inputs, allowed, strict=True) if not good]
    together = b"\n".join(text for text, good in zip(inputs, allowed, strict=True) if good)
    return [*files, together] if any(allowed) else files


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


def check_identify(path: Path) -> None:
    feature, bias = ["query", "document"], ["position"]
    log = read_log(path, [*feature, *bias])
    report = check_log(log, feature=feature, bias=bias, path=path)
    assert report.sizes.sum() == len(report.factors) <= report.rows <= len(log)
    assert len(list(describe(report))) >= 3


# YAML


def check_read_config(path: Path) -> None:
    config = check_config(read_yaml(path), path)
    assert config["scale"] in ("smoke", "laptop", "paper")
    for entry in config["datasets"].values():
        try:
            resolve(entry["source"])
        except InputError as error:  # which names the source; the file is read long before
            raise InputError(str(error), path=path) from error


def check_experiment(path: Path) -> None:
    experiment = load_experiment(path.parent.name, CONFIG, root=path.parents[2])
    assert experiment.seeds
    assert all(isinstance(experiment.seeds_of(name), list) for name in experiment.studies)


def check_sources(path: Path) -> None:
    table, sources.TABLE = sources.TABLE, path
    try:
        assert all(source.splits for source in load_sources().values())
    finally:
        sources.TABLE = table


YAML_WORDS = (
    *("&a ", "*a", "*s", "<<: *a", "? ", "- ", ": ", "{", "}", "[", "]", "|\n ", "> ", "# ", "---"),
    *("!!python/object/apply:os.system [x]", "!!int ", "!!timestamp ", "!!bool ", "!!binary ", "!"),
    *("2001-13-41", "0b_", "1:60", "~", "null", "yes", ".nan", "-.inf", "!!set {", "!!omap [", "="),
    *("scale", "papers", "datasets", "replace", "source", "folder", "standin", "smoke", "width"),
    *("seeds", "studies", "settings", "logs", "items", "needs", "training", "rankers", "sessions"),
    *("title", "kind", "figure", "strengths", "ranker", "splits", "sha256", "files_sha256", "log"),
    *("module", "dataset", "%YAML 9.9\n", "\n  ", "- - - ", "1: 2", "true: x", "[1, 2]: 3", "{}: "),
)


# Archives


def check_archive(path: Path) -> None:
    folder = path.parent
    around = set(folder.parent.iterdir())
    archive = path.read_bytes()
    try:
        fetch(archives.source_of(archive), folder)
    finally:
        made = [*folder.rglob("*")]
        assert set(folder.parent.iterdir()) == around, "written outside of the folder"
        assert all(each.is_dir() or (each.is_file() and not each.is_symlink()) for each in made)
        assert sum(each.stat().st_size for each in made) < 300 * len(archive) + (1 << 20)
        shutil.rmtree(folder)


# Parquet


def check_rankings(path: Path) -> None:
    rankings = read_rankings(path)
    assert rankings.features.shape[0] == len(rankings.query)
    types = [
        column.dtype
        for column in (rankings.query, rankings.document, rankings.label, rankings.features)
    ]
    assert types == [np.int64, np.int32, np.float32, np.float32]


def check_policy(path: Path) -> None:
    policy = read_scores(path, "train")
    pairs = policy.pairs
    assert pairs.lengths.sum() == len(pairs.query) == len(policy.score) == len(policy.relevance)
    assert (pairs.lengths >= 1).all()
    assert [pairs.query.dtype, pairs.document.dtype] == [np.int64, np.int32]


def check_counts(path: Path) -> None:
    counts = read_logs(path, [tables.LANE], split="train", pairs=tables.PAIRS, length=2)
    assert counts.impressions.shape == (1, 2, 2, 2)
    assert (counts.clicks <= counts.impressions).all()
    assert (counts.impressions >= 0).all()


def check_results(path: Path) -> None:
    results = read_results([path])
    assert not set(REQUIRED) - set(results)
    assert str(results["position"].dtype) == "Int64"
    assert results["value"].dtype == np.float64


TARGETS = {
    "letor": Target(
        mostly_allowed(
            from_corpus(
                "letor",
                *("qid:", "1:", "2:0.5", "3:nan", "0:1", "4:inf", "6:1", "1000000000:1", "5:1e-50"),
                *("# 1:2", ":", "1:2:3", " 5:-1e39", "qid:1 "),
                *("\n3 qid:7 1:2 5:4", "2 qid:9 3:.1\n", *"0123456789", " ", "  ", "\t", "\n"),
                *("\r\n", "#", "# a\n", " 1:7", "\n1 qid:4 2:3\n", "+", "-", ".", "e5", "1e+3"),
                *("1:x", "qid:-1", "infinity", "nan(1)", "1d3", "\x0b"),
            )
        ),
        check_letor,
        locates=r"input:\d+: (label|qid|feature): |holds no row",
        join=join_letor,
    ),
    "yandex": Target(
        from_corpus("yandex", "; ", ";", "\t", " :", " , ", ",", "_", "1_0\t5,6 : 5", "5", "6,6"),
        lambda path: check_click_log(read_yandex(path)),
        locates=r"record \d+: |holds no record",
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
        from_corpus("experiment", *YAML_WORDS),
        check_experiment,
        name="papers/p/experiment.yaml",
    ),
    "sources": Target(from_corpus("sources", *YAML_WORDS), check_sources),
    "archive": Target(archives.draw, check_archive, name=f"inner/{archives.NAME}"),
    "rankings": Target(tables.drawn_from(tables.RANKINGS), check_rankings),
    "policy": Target(tables.drawn_from(tables.POLICY), check_policy),
    "counts": Target(tables.drawn_from(tables.COUNTS), check_counts),
    "results": Target(tables.drawn_from(tables.RESULTS), check_results),
    "log": Target(tables.drawn_from(tables.LOG), check_identify, name="input.parquet"),
}
