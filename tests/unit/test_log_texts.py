"""Readers of click logs in text formats: WSCD and the Yandex sample."""

import pytest

from tests.logs import refused, taken


def write_wscd_text(folder, *lines):
    path = folder / "wscd.txt"
    path.write_text("".join("\t".join(map(str, line)) + "\n" for line in lines))
    return path


def test_wscd_clicks_are_of_the_latest_page_of_their_session(tmp_path):
    path = write_wscd_text(
        tmp_path,
        (5, 0, "Q", 7, 1, 30, 10),
        (5, 3, "C", 10),
        (5, 4, "C", 10),
        (5, 9, "Q", 8, 1, 10, 20),
        (5, 9, "C", 30),
        (6, 0, "Q", 7, 2, 30),
    )
    found, seen = taken(path, "wscd")
    assert [(p["query"], p["documents"], p["clicks"]) for p in found] == [
        (7, [30, 10], [False, True]),
        (8, [10, 20], [False, False]),
        (7, [30], [False]),
    ]
    assert seen == {"pages": 3, "clicks": 3, "repeated_clicks": 1, "clicks_off_page": 1}
    assert "line 4: '30' is clicked and not" in str(refused(path, "wscd", strays="error"))


def test_a_page_that_lists_a_document_twice_is_left_out_and_counted(tmp_path):
    """A click does not tell which of the two it was on, whether the page has one or not."""
    lines = [(5, 0, "Q", 7, 1, 3, 4, 3), (5, 0, "C", 3), (6, 0, "Q", 7, 1, 4, 4)]
    path = write_wscd_text(tmp_path, *lines, (7, 0, "Q", 7, 1, 3, 4), (7, 0, "C", 4))
    found, seen = taken(path, "wscd")
    assert [(page["documents"], page["clicks"]) for page in found] == [([3, 4], [False, True])]
    assert [seen[name] for name in ("pages_left_out", "pages", "clicks")] == [2, 1, 1]
    assert "line 1: '3' is listed twice" in str(refused(path, "wscd", repeats="error"))
    sample = tmp_path / "trainSample"
    sample.write_text("1_0\t5,6,5 : 5; 1_0\t5,6 : 6")
    found, seen = taken(sample, "yandex")
    assert [page["clicks"] for page in found] == [[False, True]]
    assert seen["pages_left_out"] == 1
    assert "record 1: 5 is listed twice" in str(refused(sample, "yandex", repeats="error"))
    sample.write_text("1_0\t5,6 : 5; 1_0\t5,6 : 6 , 6")
    repeated = refused(sample, "yandex", repeats="error")
    assert "record 2: a document is clicked more than once" in str(repeated)


def test_tabs_at_the_end_of_a_line_are_no_ids(tmp_path):
    path = tmp_path / "wscd.txt"
    path.write_text("5\t0\tQ\t7\t1\t30\t10\t\r\n5\t3\tC\t10\t\t\n")
    found, _ = taken(path, "wscd")
    assert [(page["documents"], page["clicks"]) for page in found] == [([30, 10], [False, True])]


@pytest.mark.parametrize(
    ("lines", "line", "field"),
    [
        ([(5, 0, "Q", 7, 1)], 1, "TypeOfAction"),
        ([(5, 0, "Q", 7, 1, 3), (5, 0, "X", 3)], 2, "TypeOfAction"),
        ([(5, 0, "C", 7)], 1, "SessionID"),
        ([(5, 0, "Q", 7, 1, 3), (6, 0, "C", 3)], 2, "SessionID"),
        ([], None, None),
    ],
)
def test_wrong_lines_are_named(tmp_path, lines, line, field):
    error = refused(write_wscd_text(tmp_path, *lines), "wscd")
    assert (error.line, error.field) == (line, field)
