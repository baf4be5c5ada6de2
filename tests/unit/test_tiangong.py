"""The reader of TianGong-ST: a naive reader, broken files, and connected components."""

from collections import Counter
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.logs import counts_by_cell, seen
from twotowers.errors import InputError
from twotowers.logs.tiangong import read_tiangong


def result(rank, document, kind="-1#-1", url="http://a.b/"):
    return (
        f'<result rank="{rank}">\n<url>{url}</url>\n<docid>d{document}</docid>\n'
        f"<title>t</title>\n<vtype>{kind}</vtype>\n"
        "<relevance>\n<TACM>0.1</TACM>\n<PSCM>0.2</PSCM>\n</relevance>\n</result>\n"
    )


def page(query, results, clicks=()):
    clicked = "".join(
        f"<click>\n<rank>{rank}</rank>\n<time>3</time>\n</click>\n" for rank in clicks
    )
    return (
        f'<interaction num="1">\n<query>text</query>\n<query_id>q{query}</query_id>\n'
        f"<results>\n{''.join(results)}</results>\n"
        + (f"<clicked>\n{clicked}</clicked>\n" if clicks else "")
        + "</interaction>\n"
    )


def sessions(*pages):
    return (
        '<?xml version="1.0" encoding="utf-8"?>\n<root>\n<session num="1">\n'
        + "".join(pages)
        + "</session>\n</root>\n"
    )


def write(folder, text):
    path = folder / "sessions.xml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def naive(path):
    """The counts, from the whole tree at once."""
    impressions, clicks = Counter(), Counter()
    for each in ElementTree.parse(path).iter("interaction"):
        clicked = {int(click.findtext("rank")) for click in each.iter("click")}
        for one in each.iter("result"):
            rank = int(one.get("rank"))
            key = (
                int(each.findtext("query_id")[1:]),
                int(one.findtext("docid")[1:]),
                rank,
                *one.findtext("vtype").split("#"),
            )
            impressions[key] += 1
            clicks[key] += rank in clicked
    return {key: (impressions[key], clicks[key]) for key in impressions}


pages = st.builds(
    lambda query, kinds, documents, clicks: page(
        query,
        [result(n, d, k) for n, (d, k) in enumerate(zip(documents, kinds, strict=False), start=1)],
        clicks,
    ),
    st.integers(1, 3),
    st.lists(st.sampled_from(["-1#-1", "30000701#131", "30000701#-1", "-1#86"]), max_size=4),
    st.lists(st.integers(1, 4), max_size=4),
    st.lists(st.integers(1, 5), max_size=4),
)


@settings(max_examples=100)
@given(st.lists(pages, max_size=6))
def test_equals_a_naive_reader(tmp_path_factory, drawn):
    whole = page(9, [result(1, 1)], [1])
    path = write(tmp_path_factory.mktemp("xml"), sessions(*drawn, whole))
    assert counts_by_cell(read_tiangong(path)) == naive(path)


def test_repeated_clicks_and_clicks_off_the_page_are_named(tmp_path):
    shown = [result(1, 5), result(2, 6)]
    text = sessions(page(1, shown, [2, 2, 7]), page(1, shown, [1]), page(1, []))
    log = read_tiangong(write(tmp_path, text))
    assert counts_by_cell(log) == {(1, 5, 1, "-1", "-1"): (2, 1), (1, 6, 2, "-1", "-1"): (2, 1)}
    assert seen(log) == {
        "sessions": 1,
        "pages": 3,
        "empty_pages": 1,
        "clicks": 4,
        "repeated_clicks": 1,
        "clicks_off_page": 1,
    }


def test_text_that_nobody_reads_need_not_be_xml(tmp_path):
    shown = [result(1, 5, url="http://a.b/?c&d=<e>&f"), result(2, 6, url="\x01\x02")]
    text = sessions(page(1, shown)).encode().replace(b"<title>t<", b"<title>\xff\xfe & co<")
    assert read_tiangong(write(tmp_path, text)).num_rows == 2


def test_line_ends_and_line_breaks_do_not_matter(tmp_path):
    text = sessions(page(1, [result(1, 5), result(2, 6)], [2]))
    expected = counts_by_cell(read_tiangong(write(tmp_path, text)))
    head, rest = text.split("\n", 1)
    for same in (
        text.replace("\n", "\r\n"),
        text.replace("\n", "\n  "),
        head + rest.replace("\n", ""),
    ):
        assert counts_by_cell(read_tiangong(write(tmp_path, same))) == expected


@pytest.mark.parametrize(
    ("good", "bad", "field", "found"),
    [
        ("<query_id>q1</query_id>", "<query_id>q</query_id>", "query_id", "'q' is not an id"),
        ("<query_id>q1</query_id>", "<other>q1</other>", "query_id", "without one"),
        ("<docid>d5</docid>", "<docid>http://a</docid>", "docid", "'http://a' is not an id"),
        ("<docid>d5</docid>", "<docid/>", "docid", "'' is not an id"),
        ("<docid>d5</docid>", "", "docid", "without one"),
        ("<vtype>-1#-1</vtype>", "<vtype>-1</vtype>", "vtype", "'-1' is not a vertical type"),
        ("<vtype>-1#-1</vtype>", "", "vtype", "without one"),
        ('<result rank="1">', '<result rank="0">', "rank", "'0' is out of range"),
        ('<result rank="1">', "<result>", "rank", "is missing"),
        ('<result rank="1">', '<result rank="2">', "rank", "2 is the rank of two results"),
        ("<rank>2</rank>", "<rank>two</rank>", "rank", "'two' is out of range"),
    ],
)
def test_what_is_wrong_is_named(tmp_path, good, bad, field, found):
    text = sessions(page(1, [result(1, 5), result(2, 6)], [2]))
    path = write(tmp_path, text.replace(good, bad, 1))
    with pytest.raises(InputError, match=found) as error:
        read_tiangong(path)
    assert error.value.field == field
    assert error.value.path == path
    assert error.value.expected
