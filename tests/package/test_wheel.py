"""The package from its wheel, in an environment without the repository and without JAX."""

import ast
import subprocess
import sys
import tomllib
import venv
import zipfile
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.installed import needed
from tests.logs import shop_rows
from tests.running import ran
from twotowers.root import ROOT

pytestmark = pytest.mark.xdist_group("wheel")  # which is built once

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
DATA = {
    "sources.yaml", "overview.html.j2", "diagnosis.html.j2", "style.css", "filter.js", "py.typed",
}  # fmt: skip
FACE = """
import sys, time
start = time.perf_counter()
import twotowers as tt
took = time.perf_counter() - start
assert not tt.__file__.startswith({repository!r}), tt.__file__

log = tt.read_log("clicks.csv", query="q", document="sku", position="rank", clicks="click",
                  session="sid")
found = tt.identify(log, bias=["position", "device"])
print(found.identified, len(found.components), found.swaps)
fit = tt.fit(log, "dbn", prior=(2, 0.2))
print(fit.relevance().columns.tolist())
print(tt.fit(log, "pbm").examination().shape)
print(tt.compare(log, ["pbm", "ubm", "dbn"]).columns.tolist())
tt.diagnose(log).save("page.html")
fit.save("fit.parquet")
print(1 < tt.load("fit.parquet").evaluate(log)["perplexity"] < 2)
assert not {{"jax", "flax", "optax", "rax", "sklearn"}} & set(sys.modules)
assert took < 0.5, took  # .05 s where nothing else runs
"""


AUTHOR = """
import twotowers as tt

rankings = tt.stand_in("mslr30k", queries=30)
log = tt.simulate(rankings, policy=tt.policy(strength=1), user=tt.PositionBased(eta=1),
                  sessions=2_000, seed=1)
fit = tt.fit(log, tt.TwoTower(relevance=tt.Dense([8])), method=tt.Method("likelihood"),
             training={"steps": 5, "epochs": 2}, seeds=[1, 2])
print(fit.examination().columns.tolist())
print(fit.evaluate(rankings.test).columns.tolist())
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel, built as `pip install .` builds it."""
    asked = ["index", "versions", "hatchling", "--timeout=10", "--retries=0"]
    if subprocess.run([sys.executable, "-m", "pip", *asked], capture_output=True).returncode:
        pytest.skip("pip reaches no index to fetch the build backend")
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", folder, ROOT]
    subprocess.run(list(map(str, command)), check=True)
    (found,) = folder.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def clean(wheel, tmp_path_factory):
    """An environment with the wheel, and with the packages that it declares and no others."""
    folder = tmp_path_factory.mktemp("clean")
    venv.create(folder / "venv", symlinks=True)
    lend(folder, PROJECT["dependencies"])
    python = folder / "venv" / "bin" / "python"
    command = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps"]
    subprocess.run([*map(str, command), str(wheel)], check=True)
    table = shop_rows(300)
    table.to_csv(folder / "clicks.csv", index=False)
    table.to_parquet(folder / "clicks.parquet")
    (folder / "parts").mkdir()
    for number, part in enumerate((table[table["sid"] < 100], table[table["sid"] >= 100])):
        part.to_csv(folder / "parts" / f"part-{number}.csv.gz", index=False)
    return folder


def lend(folder: Path, asked: list[str]) -> None:
    """Links to packages that are installed here, and to what they need, so that none is fetched."""
    (site,) = (folder / "venv").glob("lib/python*/site-packages")
    for name in needed([*map(Requirement, asked)]):
        own = distribution(name)
        for top in {file.parts[0] for file in own.files if file.parts[0] not in ("..", ".")}:
            if not (site / top).exists():
                (site / top).symlink_to(own.locate_file(top))


def run(folder: Path, *command: str) -> subprocess.CompletedProcess:
    path = folder / "venv" / "bin"
    environment = {"PATH": str(path), "HOME": str(folder)}
    return ran([str(path / command[0]), *command[1:]], cwd=folder, env=environment)


def test_the_wheel_has_its_data(wheel):
    files = zipfile.ZipFile(wheel).namelist()
    assert {Path(name).name for name in files} >= DATA
    assert not any("papers/" in name for name in files)


def test_the_package_works_without_the_repository(clean):
    done = run(clean, "python", "-W", "error", "-c", FACE.format(repository=str(ROOT)))
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        "True 3 None",
        "['query', 'document', 'estimate', 'error', 'low', 'high', 'trials', 'impressions', "
        "'clicks', 'examinations']",
        "(3, 11)",
        "['model', 'perplexity', 'conditional', 'log_likelihood', 'behind', 'error']",
        "True",
    ]


def test_commands_on_logs_of_all_sorts(clean):
    said = []
    for command in (
        ["identify", "clicks.csv"],
        ["fit", "clicks.parquet", "--model", "pbm", "--out", "fit.parquet"],
        ["compare", "parts", "--fitted", "fit.parquet"],
        ["count", "parts/part-*.csv.gz", "--out", "cells.parquet"],
    ):
        done = run(clean, "twotowers", *command)
        assert (done.returncode, done.stderr) == (0, "")
        assert "document in 'sku'" in done.stdout.splitlines()[0]
        said.append(done.stdout.splitlines()[-1])
    assert said[1:3] == ["saved in fit.parquet", said[2]]
    assert said[2].split()[0] == "pbm"
    assert said[3] == "45 cells written to cells.parquet"


def test_simulating_needs_the_extra_that_trains(clean):
    done = run(clean, "python", "-c", AUTHOR)
    last = done.stderr.splitlines()[-1]
    assert last.startswith("ModuleNotFoundError: stand_in needs ")
    assert last.endswith(": pip install '.[jax]', in a clone of the project")
    lend(clean, PROJECT["optional-dependencies"]["jax"])
    done = run(clean, "python", "-c", AUTHOR)
    assert done.returncode == 0, done.stderr
    bias, ranking = map(ast.literal_eval, done.stdout.splitlines())
    assert bias[-3:] == ["seed", "position", "estimate"]
    assert ranking[-5:] == ["seed", "ndcg@5", "ndcg@10", "mrr@10", "arp"]


def test_the_extras_need_what_the_groups_of_jobs_need():
    text = (ROOT / "pyproject.toml").read_text()
    groups = tomllib.loads(text)["dependency-groups"]
    extras = PROJECT["optional-dependencies"]
    every = {each for group in (*extras.values(), PROJECT["dependencies"]) for each in group}
    jobs = {
        each
        for name, group in groups.items()
        if name not in ("checks", "cluster", "jax-cuda")
        for each in group
        if isinstance(each, str)  # and no group that is included
    }
    assert every - {"two-towers[jax,trees,plots]"} == jobs
