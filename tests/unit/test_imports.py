"""Modules form no circle of imports, and some import nothing heavy; import-linter checks the order
of packages."""

import sys
from graphlib import TopologicalSorter

import grimp
import pytest

from tests.running import ran
from twotowers.root import ROOT


def test_no_modules_import_each_other_in_a_circle():
    graph = grimp.build_graph("twotowers", exclude_type_checking_imports=True, cache_dir=None)
    imports = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    TopologicalSorter(imports).prepare()  # It raises CycleError with the modules of a circle.


@pytest.mark.parametrize(
    ("module", "heavy"),
    [
        ("twotowers", "numpy scipy pandas pyarrow duckdb narwhals jax yaml jsonschema"),
        ("twotowers.workflow.plan", "snakemake numpy pandas pyarrow jax matplotlib pydantic yaml"),
        # Jobs that count no log do not need it.
        ("twotowers.datasets.sources", "duckdb"),
    ],
)
def test_nothing_heavy_is_imported(module, heavy):
    found = ran([sys.executable, "-c", f"import sys, {module}; print(*sys.modules)"], cwd=ROOT)
    assert module in found.stdout.split()
    assert {*found.stdout.split()} & {*heavy.split()} == set()
