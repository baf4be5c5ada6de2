"""Every example in a docstring of the library or of a paper runs and prints what it says."""

import doctest
from importlib import import_module

import pytest

from twotowers import ROOT

MODULES = [
    ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for folder in ("twotowers", "papers")
    for path in sorted((ROOT / folder).rglob("*.py"))
    if ">>>" in path.read_text()
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name, tmp_path, monkeypatch):
    # Examples write files, and some have the same names: each module has a folder of its own.
    monkeypatch.chdir(tmp_path)
    ran = doctest.testmod(import_module(name))
    assert ran.attempted
    assert not ran.failed
