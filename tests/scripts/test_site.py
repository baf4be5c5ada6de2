"""The documentation as a site: every page has its place, every link leads somewhere."""

import sys
from pathlib import Path

import pytest
from sphinx.util.inventory import InventoryFile

import twotowers
from tests.browser import check_page, needs_chromium
from tests.running import ran
from twotowers.models.names import MODELS
from twotowers.root import ROOT


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    """The site as `make docs` makes it: a dead link, and a page without a place, are errors."""
    folder = tmp_path_factory.mktemp("site")
    options = ["-q", "-W", "--keep-going", "-b", "html", "-c", "docs", ".", folder]
    made = ran([sys.executable, "-m", "sphinx", *options], cwd=ROOT)
    assert (made.returncode, made.stderr) == (0, "")
    return folder


def test_every_public_name_and_every_page_is_there(site):
    found = InventoryFile.loads((site / "objects.inv").read_bytes(), uri="").data
    names = {name for kind in ("function", "class", "exception") for name in found[f"py:{kind}"]}
    assert {f"twotowers.{name}" for name in twotowers.PUBLIC} - names == set()
    pages = {*ROOT.glob("docs/*.md"), *ROOT.glob("papers/*/README.md")}
    pages = {str(page.relative_to(ROOT).with_suffix("")) for page in pages}
    assert pages - set(found["std:doc"]) == set()


def test_each_click_model_has_its_name_and_formula(site):
    text = (site / "docs/models.html").read_text(encoding="utf-8")
    for name, file in MODELS.items():
        heading, model = f'<section id="{name}">', f'id="twotowers.models.{file}.'
        assert model in text.partition(heading)[2].partition("<section ")[0], name


@needs_chromium
@pytest.mark.parametrize(
    ("name", "width"),
    [("docs/index", 1280), ("docs/models", 1280), ("docs/settings", 390), ("docs/api", 390)],
)
def test_pages_in_a_browser(site, name, width):
    # A link to "#" leads to the top.
    assert set(check_page(site / f"{name}.html", width)) <= {"link to no anchor: #"}
