"""Pins: the lock, the conda environment of each kind of job, and the container."""

import ast
import re
import sys
import tomllib
from functools import cache
from importlib.metadata import distribution, packages_distributions
from pathlib import Path
from typing import get_args

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.installed import names, needed
from twotowers.experiment.config import RunConfig
from twotowers.root import ROOT
from twotowers.workflow.plan import WILDCARDS
from twotowers.workflow.provenance import _closure

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
GROUPS = PROJECT["dependency-groups"]
ENVIRONMENTS = {path.stem: yaml.safe_load(path.read_text()) for path in ROOT.glob("envs/*.yaml")}
CUDA = "jax-cuda"
TESTED = sorted(set(ENVIRONMENTS) - {CUDA})
"""Groups with packages that are installed here."""
UNIMPORTED = {"tqdm", "duckdb"}
"""What no job imports: tqdm only where another package does; the others for jobs to come."""


def locked() -> set[str]:
    """The pins of requirements.txt, as name==version."""
    return set(re.findall(r"^\S+==\S+", (ROOT / "requirements.txt").read_text(), re.MULTILINE))


def pins(name: str) -> list[str]:
    """The lines of an environment for pip."""
    return ENVIRONMENTS[name]["dependencies"][2]["pip"]


def declared(group: str) -> list[Requirement]:
    """The packages of a group of pyproject.toml, and of the groups that it includes."""
    found = []
    for entry in GROUPS[group]:
        is_name = isinstance(entry, str)
        found += [Requirement(entry)] if is_name else declared(entry["include-group"])
    return found


# Drift


def test_there_is_an_environment_for_every_group_but_the_tests():
    assert set(ENVIRONMENTS) == set(GROUPS) - {"checks", "cluster"}


@pytest.mark.parametrize("name", TESTED)
def test_an_environment_pins_what_the_lock_pins(name):
    # The lock may have a package that this environment does not need: markers may differ.
    assert {pin.split(" ;")[0] for pin in pins(name)} <= locked()


@pytest.mark.parametrize("name", TESTED)
def test_an_environment_has_all_that_its_group_needs_and_no_more(name):
    here = [pin for pin in map(Requirement, pins(name)) if not pin.marker or pin.marker.evaluate()]
    assert names(here) == needed(declared(name))


def test_cuda_adds_only_its_own_packages():
    assert set(pins("jax-cpu")) <= set(pins(CUDA))
    added = {Requirement(pin) for pin in set(pins(CUDA)) - set(pins("jax-cpu"))}
    assert all(re.match("nvidia-|jax-cuda12-", pin.name) for pin in added)
    plugins = [Requirement(one) for one in distribution("jax").requires if "cuda12" in one]
    for plugin in plugins:
        if plugin.marker.evaluate({"extra": "cuda12"}) and plugin.name.startswith("jax-cuda12"):
            (pin,) = (pin for pin in added if pin.name == plugin.name)
            assert str(pin.specifier).removeprefix("==") in plugin.specifier


def test_the_lock_has_every_package_asked_for():
    wanted = names(
        one for group in GROUPS if group not in (CUDA, "cluster") for one in declared(group)
    )
    assert wanted <= names(Requirement(line) for line in locked())


# What jobs import


def rules() -> dict[str, tuple[str, str]]:
    """The environment and the script of every rule, by the rule's name."""
    found = {}
    for path in sorted(ROOT.glob("rules/*.smk")):
        for body in re.split(r"^rule ", path.read_text(), flags=re.MULTILINE)[1:]:
            rule = re.match(r"\w+", body)[0]
            environment = re.search(
                r'^    conda:\n        f?"../envs/(.+).yaml"', body, re.MULTILINE
            )
            script = re.search(r'^    script:\n        "\.\./(.+)"', body, re.MULTILINE)[1]
            found[rule] = environment[1].replace("{config['device']}", "cpu"), script
    return found


RULES = rules()
USED = sorted({environment for environment, _ in RULES.values()})
OWNERS = packages_distributions()


def by_name(script: Path) -> list[Path]:
    """The papers' modules that a script imports by a name which it puts together."""
    calls = [node for node in ast.walk(ast.parse(script.read_text())) if isinstance(node, ast.Call)]
    texts = [call.args[0].values for call in calls if ast.unparse(call.func) == "import_module"]
    patterns = [
        "".join(part.value if isinstance(part, ast.Constant) else "*" for part in text)
        for text in texts
    ]
    return [path for one in patterns for path in ROOT.glob(one.replace(".", "/") + ".py")]


def imported(*files: Path) -> set[str]:
    """Packages that files import, directly or through the project's modules."""
    modules = set()
    for file in (each for each in _closure(files, ROOT) if each.suffix == ".py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Import):
                modules |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                modules.add(node.module)
    tops = {module.split(".")[0] for module in modules} - set(sys.stdlib_module_names)
    own = {"twotowers", "papers", "scripts"}
    return {canonicalize_name(owner) for top in tops - own for owner in OWNERS[top]}


@cache
def imported_in(name: str) -> set[str]:
    """Packages that the jobs of an environment import."""
    scripts = [ROOT / script for environment, script in RULES.values() if environment == name]
    modules = [module for script in scripts for module in by_name(script)]
    return imported(ROOT / "scripts" / "runner.py", *scripts, *modules)


def test_the_rules_are_all_found():
    text = "".join(path.read_text() for path in [ROOT / "Snakefile", *ROOT.glob("rules/*.smk")])
    assert set(RULES) == set(re.findall(r"^rule (\w+):", text, re.MULTILINE)) - {"all"}
    assert set(RULES) == set(WILDCARDS)


@pytest.mark.parametrize("name", USED)
def test_a_group_declares_what_its_jobs_import(name):
    missing = imported_in(name) - names(declared(name))
    assert not missing


def test_every_declared_package_is_imported_by_a_job():
    used = set().union(*(imported_in(name) for name in USED))
    wanted = names(one for name in USED for one in declared(name))
    assert wanted == used | UNIMPORTED


def test_training_has_the_same_packages_on_both_devices():
    assert names(declared("jax-cpu")) == names(declared(CUDA))
    devices = get_args(RunConfig.model_fields["device"].annotation)
    assert {f"jax-{device}" for device in devices} == {"jax-cpu", CUDA}
