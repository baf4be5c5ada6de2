"""What catalogues, citation tools and CI read of the repository is there, and is true."""

import re
import tomllib

import yaml

import twotowers
from twotowers.root import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def test_the_citation_is_that_of_the_package():
    assert CITATION["version"] == PROJECT["version"] == twotowers.__version__
    assert CITATION["license"] == PROJECT["license"]
    assert (ROOT / "LICENSE").read_text(encoding="utf-8").startswith(f"{CITATION['license']} ")
    name = CITATION["title"].partition(":")[0]
    assert name.lower().replace(" ", "-") == PROJECT["name"]
    assert (ROOT / "README.md").read_text(encoding="utf-8").startswith(f"# {name}\n")


def test_a_release_has_one_date():
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    version, released = re.search(r"^## (\S+), (.+)$", text, re.MULTILINE).groups()
    assert version == CITATION["version"]
    assert released == str(CITATION.get("date-released", "not yet released"))


def test_ci_runs_what_is_there():
    targets = re.findall(r"^([\w./-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    jobs = [job for path in WORKFLOWS for job in yaml.safe_load(path.read_text())["jobs"].values()]
    steps = [step["run"].split() for job in jobs for step in job["steps"] if "run" in step]
    assert [".ci/run"] in steps
    for words in steps:
        if words[0] == "make":
            assert words[1] in targets
        for word in words:
            if word.startswith((".ci/", "tests/")):
                assert (ROOT / word).is_file()
    versions = jobs[0]["strategy"]["matrix"]["python"]
    assert PROJECT["requires-python"] == f">={versions[0]},<3.{int(versions[-1][2:]) + 1}"


def test_the_output_in_the_readme_is_that_of_the_tutorial():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    tutorial = (ROOT / "docs" / "tutorial_log.md").read_text(encoding="utf-8").splitlines()
    lines = re.search(r"```text\n(.*?)```", readme, re.DOTALL)[1].splitlines()
    assert len(lines) > 5
    assert set(lines) <= set(tutorial)
