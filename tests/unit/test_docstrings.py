"""Every example in a docstring of the library or of a paper runs and prints what it says."""

import doctest
from importlib import import_module

import pytest

from twotowers.root import ROOT

MODULES = [
    ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for folder in ("twotowers", "papers")
    for path in sorted((ROOT / folder).rglob("*.py"))
    if ">>>" in path.read_text()
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name, tmp_path, monkeypatch):
    # Examples write files. Some of these have the same name, so each module has its own folder.
    monkeypatch.chdir(tmp_path)
    ran = doctest.testmod(import_module(name))
    assert ran.attempted
    assert not ran.failed
