"""The tutorials of the documentation print what they say they print."""

import re

import pytest

from scripts.run_tutorials import PAGES, ran, same


# Each fits the models that it shows, which takes some twenty seconds.
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_tutorial_prints_what_its_page_says(page, tmp_path):
    text = page.read_text(encoding="utf-8")
    now = ran(text, tmp_path)
    assert now.count("```text\n") >= 1
    assert same(now, text), now


def test_outputs_are_written_into_the_page(tmp_path):
    page = "A\n\n```sh\necho 2\n```\n\n```text\n1\n```\n\n```python\nx = 1\n```\n\n"
    page += "```python\nprint(x + 2)\n```\n\n```python nosuchmodule\nprint(4)\n```\n\nB\n"
    now = ran(page, tmp_path)
    assert re.findall(r"```text\n(.*?)```", now, re.DOTALL) == ["2\n", "3\n"]
    assert now.startswith("A\n\n```sh\necho 2\n```\n\n```text\n2\n```\n\n```python\nx = 1\n```\n\n")
    assert now.endswith("```python nosuchmodule\nprint(4)\n```\n\nB\n")
    assert ran(now, tmp_path) == now
    assert not same(now, page)


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [("0.25 of 1,000", "0.26 of 1,001", True), ("0.25", "0.27", False), ("0.2", "0.25", False),
     ("1.9726590692773216", "1.9726590692773212", True),
     ("a 3", "b 3", False), ("3", "3 4", False), ("", "", True)],
)  # fmt: skip
def test_numbers_may_differ_by_one_of_their_last_digit(one, other, expected):
    assert same(one, other) is expected


def test_weights_come_closer_to_the_truth_than_clicks():
    (page,) = (page for page in PAGES if page.stem == "tutorial_log")
    clicks, weighted = map(float, re.findall(r"^ +error +(\S+)$", page.read_text(), re.MULTILINE))
    assert weighted < clicks / 3


def test_what_tables_say_to_do_here_is_run_by_a_block():
    text = next(page for page in PAGES if page.stem == "coming_from").read_text(encoding="utf-8")
    run = "".join(re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL))
    here = re.findall(r"^\|.*\|(.*)\|$", text, re.MULTILINE)
    calls = [code for cell in here for code in re.findall(r"`(.*?)`", cell)]
    assert len(calls) >= 10
    assert [code for code in calls if code not in run] == []
