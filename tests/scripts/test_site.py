"""The documentation as a site: every page has its place, every link leads somewhere."""

from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

import twotowers
from scripts.site.docstrings import markdown, page_of
from scripts.site.pages import CONTENTS, build
from tests.browser import check_page, find_chromium, opened
from twotowers import ROOT


class Links(HTMLParser):
    """The anchors of a page, and where its links lead."""

    def __init__(self, path: Path):
        super().__init__()
        self.ids: list[str] = []
        self.targets: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.ids += [found["id"]] if "id" in found else []
        self.targets += [found[key] for key in ("href", "src") if key in found]


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    build(folder)
    return folder


@pytest.fixture(scope="module")
def links(site) -> dict[str, Links]:
    return {path.name: Links(path) for path in site.glob("*.html")}


def test_no_link_is_dead(site, links):
    dead = []
    for name, page in links.items():
        for target in page.targets:
            parts = urlsplit(target)
            if parts.scheme:
                continue
            path = site / unquote(parts.path) if parts.path else site / name
            known = links.get(path.name) if path.parent == site else None
            if not path.exists() or (parts.fragment and known and parts.fragment not in known.ids):
                dead.append(f"{name}: {target}")
    assert sorted(set(dead)) == []


def test_no_anchor_stands_twice(links):
    assert {
        name: page.ids for name, page in links.items() if len(set(page.ids)) < len(page.ids)
    } == {}


def test_every_public_name_has_a_page_and_every_page_a_place(site, links):
    for name in twotowers.FACE:
        text = (site / page_of(name)).read_text(encoding="utf-8")
        assert f">tt.{name}</h1>" in text
        assert page_of(name) in links["api.html"].targets
    named = {name for group in CONTENTS.values() for name in group}
    written = {f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md")}
    papers = {f"papers/{path.parent.name}/README.md" for path in ROOT.glob("papers/*/README.md")}
    assert (written | papers) - named == set()


def test_a_stranger_finds_the_way_from_the_first_page(links):
    # My log; what "undecided" means; a model of one's own.
    assert {"logs.html", "verdicts.html", "extending.html"} <= set(links["index.html"].targets)
    assert "a-click-model-with-em" in links["extending.html"].ids


def test_a_docstring_becomes_lists_and_code():
    text = markdown(
        "A sum.\n\n    a + b\n\nArgs:\n    a, b: numbers, each\n        at least 0.\n\n"
        "Returns:\n    the sum: a number.\n\nExample:\n    Two of them.\n\n    >>> 1 + 1\n    2\n"
    )
    assert text == (
        "A sum.\n\n    a + b\n\n**Args**\n\n- `a, b`: numbers, each at least 0.\n\n"
        "**Returns**\n\nthe sum: a number.\n\n**Example**\n\nTwo of them.\n\n"
        "```pycon\n>>> 1 + 1\n2\n```"
    )


@pytest.mark.skipif(not find_chromium(), reason="Chromium is not installed")
@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("name", ["index.html", "settings.html", "function-fit.html"])
def test_pages_in_a_browser(site, name, width):
    assert check_page(site / name, width) == []


@pytest.mark.skipif(not find_chromium(), reason="Chromium is not installed")
def test_the_search_finds_sections(site):
    search = """(() => {
      const field = document.getElementById("search");
      field.value = "%s";
      field.dispatchEvent(new Event("input"));
      return [...document.querySelectorAll("#found a")].map(a => a.getAttribute("href")).join(" ");
    })()"""
    with opened(site / "index.html", 1280) as tab:
        assert "logs.html#user-behavior-insights" in tab.evaluate(search % "opensearch ubi")
        assert tab.evaluate(search % "opensearch qqqq") == ""
