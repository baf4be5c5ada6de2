"""The pages in a real browser: sound at a desk, on a phone and in print, and searchable.

The checker must be able to say no.
"""

import json
import re

import pytest

from tests.browser import check_page, needs_chromium, opened
from tests.sites import site

pytestmark = needs_chromium

DESK, PHONE = 1280, 390
A4 = 673  # pixels between the margins


@pytest.fixture(scope="module")
def overview(tmp_path_factory):
    """The overview of two made-up papers."""
    return site(tmp_path_factory.mktemp("pages") / "figures", papers=2)


@pytest.mark.parametrize("width", [DESK, PHONE])
@pytest.mark.parametrize("page", ["index.html", "sample2025/index.html"])
def test_pages_are_sound(overview, page, width):
    assert check_page(overview.parent / page, width) == []


def test_a_phone_shows_every_column_of_a_comparison(overview):
    with opened(overview.parent / "sample2025" / "index.html", PHONE) as tab:
        widths = tab.evaluate(
            """[...document.querySelectorAll(".comparison")]
              .map(table => [table.scrollWidth, table.parentElement.clientWidth])"""
        )
    assert len(widths) == 7
    assert all(needed <= there for needed, there in widths)


def choose(tab, **fields) -> dict:
    """Fill the form as a reader does; returns what is shown then, how many, and the address."""
    return json.loads(
        tab.evaluate(
            f"""(() => {{
              const form = document.querySelector(".filter");
              for (const [name, value] of Object.entries({json.dumps(fields)}))
                form.elements[name].value = value;
              form.dispatchEvent(new Event("input", {{bubbles: true}}));
              return JSON.stringify({{
                shown: [...document.querySelectorAll(".claims > li")]
                  .filter(row => row.checkVisibility()).map(row => row.id),
                number: form.querySelector("output").textContent,
                address: location.hash,
              }});
            }})()"""
        )
    )


def test_verdicts_are_filtered_and_searched_and_the_address_remembers(overview):
    with opened(overview, DESK) as tab:
        everything = choose(tab)
        assert everything["number"] == f"{len(everything['shown'])} of 12 verdicts"
        failed = choose(tab, verdict="contradicted")
        assert failed["shown"] == ["sample2025-claim-5b", "sample2026-claim-5b"]
        both = choose(tab, verdict="", paper="sample2026", words="REAL confounded")
        assert both["shown"] == ["sample2026-claim-11"]
        none = choose(tab, stands="simulation", words="no such word")
        assert none == {
            "shown": [],
            "number": "0 of 12 verdicts",
            "address": "#verdicts?paper=sample2026&stands=simulation&words=no+such+word",
        }
        # What only the folded part says is found too.
        assert len(choose(tab, paper="", stands="", words=".402")["shown"]) == 10
    with opened(overview, DESK, failed["address"]) as tab:
        assert choose(tab)["shown"] == failed["shown"]


def test_print_has_pictures_no_form_and_cuts_no_table(overview):
    with opened(overview.parent / "sample2025" / "index.html", A4) as tab:
        tab.call("Emulation.setEmulatedMedia", media="print")
        assert tab.evaluate("document.documentElement.scrollWidth") <= A4
    with opened(overview, DESK) as tab:
        # Without scrolling. Otherwise pictures below the fold may be missing on paper.
        tab.evaluate("Promise.all([...document.images].map(image => image.decode()))")
        tab.call("Emulation.setEmulatedMedia", media="print")
        assert not tab.evaluate("document.querySelector('.filter').checkVisibility()")
        printed = len(tab.print_pdf())
        tab.evaluate("document.querySelectorAll('.cards img').forEach(i => i.remove()) ?? true")
        assert tab.evaluate("document.querySelectorAll('details:not([open])').length") == 0
        # Drawings are most of the file.
        assert printed > 2 * len(tab.print_pdf())


def test_dark_pages_are_dark(overview):
    with opened(overview, DESK) as tab:
        dark = [{"name": "prefers-color-scheme", "value": "dark"}]
        colour = "getComputedStyle(document.body).backgroundColor"
        light = tab.evaluate(colour)
        tab.call("Emulation.setEmulatedMedia", features=dark)
        assert (light, tab.evaluate(colour)) == ("rgb(255, 255, 255)", "rgb(21, 24, 28)")


HEAD = (
    '<!DOCTYPE html><html lang="en"><meta charset="utf-8">'
    '<meta name="viewport" content="width=device-width, initial-scale=1">'
)


BROKEN = {
    '<div id="bar" style="width:500px">wide</div>': "sideways scroll: 5.. px at 390 px.*#bar",
    '<img src="missing.svg" alt="none">': "image does not load: missing.svg",
    '<img src="data:image/gif;base64,R0lGODlhAQABAAAAACw=">': "image without alt text",
    "<script>console.error('oh no')</script>": "console error: oh no",
    "<script>undefined.name</script>": "script error",
    '<a href="#nowhere">x</a>': "link to no anchor: #nowhere",
    '<a href="nothing.csv">x</a>': "link to no file: .*nothing.csv",
    '<p id="a"></p><p id="a"></p>': "id occurs twice: a",
    '<img src="http://127.0.0.1:9/x.png" alt="x">': "request that leaves the disk",
}


def test_the_checker_finds_each_problem_of_a_page(tmp_path):
    path = tmp_path / "broken.html"
    path.write_text(HEAD + "".join(BROKEN))
    found = check_page(path, PHONE)
    missed = [each for each in BROKEN.values() if not any(re.search(each, line) for line in found)]
    assert missed == [], found
