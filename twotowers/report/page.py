"""The page: every item beside the published numbers, every claim with its verdict.

`build_page` turns papers into one static html file that needs neither network nor script.
What it shows comes from the items' csv and from the claims' rows; nothing is written here by
hand, and anything that does not fit the schema stops the build.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from urllib.parse import quote, urlsplit
from xml.etree import ElementTree

import numpy as np
import pandas as pd
from jinja2 import Environment, StrictUndefined

from twotowers.errors import InputError, nearest
from twotowers.files.artefacts import atomic
from twotowers.results import claims
from twotowers.results.statistics import select
from twotowers.running.experiments import seed_range
from twotowers.running.progress import spell

VERDICTS = (claims.REPRODUCED, claims.NOT_REPRODUCED, claims.NOT_TESTABLE)
CLAIM_COLUMNS = ("paper", *claims.COLUMNS)
PROVENANCE = ("datasets", "scale", "seeds", "version", "seconds")
SOURCES = ("reproduced", "published")
FORMATS = ("csv", "pdf", "svg", "tex")

# Everything else in an item's csv is a key column: it says which number this is.
_MEASURES = ("value", "low", "high", "n", "source")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9._-]*")
_MISSING = "–"


@dataclass(frozen=True)
class ItemPage:
    """One table or figure, as the page shows it.

    Attributes:
        name: As printed in the paper: fig1, table2, fig3a.
        title: A few words.
        caption: What is drawn.
        expected: What is expected to be seen.
        kind: 'figure' or 'table'.
        table: The item's csv, in long form: key columns, value, low, high, source.
        highlight: From key column to the values that the page compares; None compares all.
        claims: Rows of the claims csv that belong to this item.
        files: From format (csv, pdf, svg, tex) to a link relative to the page.
        provenance: datasets (by name, whether it is a stand-in), scale, seeds, version, seconds.
    """

    name: str
    title: str
    caption: str
    expected: str
    kind: str
    table: pd.DataFrame
    highlight: Mapping[str, Sequence[Hashable]] | None
    claims: Sequence[Mapping[str, object]]
    files: Mapping[str, str]
    provenance: Mapping[str, object]


@dataclass(frozen=True)
class PaperPage:
    """One paper, as the page shows it.

    Attributes:
        key: The paper's folder: hager2025.
        title, citation: As printed.
        items: In the order of the paper.
        provenance: Like an item's, over the whole paper; seconds in total.
        readme: Link, relative to the page, to the README that lists the deviations.
        claims: Rows of the claims csv that belong to no single item.
    """

    key: str
    title: str
    citation: str
    items: Sequence[ItemPage]
    provenance: Mapping[str, object]
    readme: str
    claims: Sequence[Mapping[str, object]] = field(default=())


def build_page(
    papers: Sequence[PaperPage], out: str | Path, *, provenance: Mapping[str, object]
) -> None:
    """Write the page.

    Args:
        papers: In the order in which they appear.
        out: The html file; every link is relative to its folder.
        provenance: scale, version and seconds of the whole run.

    Raises:
        InputError: a column is missing, a verdict or source is unknown, a name cannot be an
            anchor, a link is not relative or leads nowhere.
    """
    out = Path(out)
    _check_keys(provenance, ("scale", "version", "seconds"), "provenance")
    views = [_paper_view(paper, out.parent) for paper in papers]
    anchors = [view["key"] for view in views] + [i["anchor"] for v in views for i in v["items"]]
    for anchor, count in Counter(anchors).items():
        if count > 1:
            raise InputError(f"{anchor!r} occurs {count} times on the page", field="name")
    html = (
        _environment()
        .from_string(_template())
        .render(
            papers=views,
            provenance=provenance,
            verdicts=VERDICTS,
            totals=_tally(row for paper in papers for row in _rows(paper)),
            stand_in=any(view["stand_in"] for view in views),
        )
    )
    with atomic(out) as temporary:
        temporary.write_text(html, encoding="utf-8")


def side_by_side(
    table: pd.DataFrame, highlight: Mapping[str, Sequence[Hashable]] | None = None
) -> pd.DataFrame:
    """Published beside reproduced, matched on every key column.

    Args:
        table: Key columns, value, low, high, source, and possibly n.
        highlight: From key column to the values to keep.

    Returns:
        Key columns, published, reproduced, low, high, and difference (reproduced minus
        published), in the table's order; NaN where one side is missing.

    Raises:
        InputError: a column is missing, a source is unknown, a row occurs twice, or nothing
            is left to compare.
    """
    _check_columns(table.columns, ("value", "low", "high", "source"))
    unknown = sorted(set(map(str, table["source"])) - set(SOURCES))
    if unknown:
        raise InputError(f"unknown source {unknown[0]!r}", field="source", expected=str(SOURCES))
    keys = [column for column in table.columns if column not in _MEASURES]
    if not keys:
        raise InputError("no key column says which number a row is", field="table")
    rows = _highlighted(_rounded(table, keys), highlight or {})
    reproduced, published = (_half(rows, source, keys) for source in SOURCES)
    merged = (
        rows[keys]
        .drop_duplicates()
        .merge(published.rename(columns={"value": "published"})[[*keys, "published"]], "left", keys)
        .merge(reproduced.rename(columns={"value": "reproduced"}), "left", keys)
    )
    merged["difference"] = merged["reproduced"] - merged["published"]
    return merged[[*keys, "published", "reproduced", "low", "high", "difference"]]


def _rounded(table: pd.DataFrame, keys: Sequence[str]) -> pd.DataFrame:
    # A temperature that went through float32 is no longer .333 exactly, and would meet
    # neither its published counterpart nor the highlight.
    floats = [key for key in keys if pd.api.types.is_float_dtype(table[key])]
    return table.assign(**{key: table[key].astype(float).round(6) for key in floats})


def _highlighted(table: pd.DataFrame, highlight: Mapping[str, Sequence[Hashable]]) -> pd.DataFrame:
    _check_columns(table.columns, highlight)
    table = select(table, **{column: list(values) for column, values in highlight.items()})
    if table.empty:
        raise InputError(f"no row is left of {dict(highlight)}", field="highlight")
    return table


def _half(rows: pd.DataFrame, source: str, keys: list[str]) -> pd.DataFrame:
    half = rows.loc[rows["source"] == source, [*keys, "value", "low", "high"]]
    repeated = half[half.duplicated(keys)]
    if len(repeated):
        where = ", ".join(f"{key} {repeated.iloc[0][key]}" for key in keys)
        raise InputError(f"a {source} value occurs twice, at {where}", field="table")
    return half


def _paper_view(paper: PaperPage, folder: Path) -> dict:
    """What the template needs of a paper, checked."""
    _check_name(paper.key)
    _check_keys(paper.provenance, PROVENANCE, "provenance")
    for row in _rows(paper):
        _check_claim(row)
    return {
        "key": paper.key,
        "title": paper.title,
        "citation": paper.citation,
        "provenance": paper.provenance,
        "readme": _link(paper.readme, folder),
        "tally": _tally(_rows(paper)),
        "items": [_item_view(paper, item, folder) for item in paper.items],
        "claims": paper.claims,
        "claims_tally": _tally(paper.claims),
        "stand_in": any(paper.provenance["datasets"].values()),
    }


def _item_view(paper: PaperPage, item: ItemPage, folder: Path) -> dict:
    """What the template needs of an item, checked."""
    _check_name(item.name)
    _check_keys(item.provenance, PROVENANCE, "provenance")
    if item.kind not in ("figure", "table"):
        raise InputError(
            f"{item.kind!r} is no kind of item", field="kind", expected="figure, table"
        )
    if item.kind == "figure":
        _check_keys(item.files, ("svg",), "files")
    for name in item.files:
        if name not in FORMATS:
            raise InputError(
                f"{name!r} is no format", field="files", expected=nearest(name, FORMATS)
            )
    links = {name: _link(item.files[name], folder) for name in FORMATS if name in item.files}
    return {
        "anchor": f"{paper.key}-{item.name}",
        "label": printed_name(item.name),
        "title": item.title,
        "caption": item.caption,
        "expected": item.expected,
        "image": links.get("svg"),
        "size": _svg_size(folder / item.files["svg"]) if "svg" in links else None,
        "links": links,
        "provenance": item.provenance,
        "comparison": _comparison_view(item),
        "claims": item.claims,
        "tally": _tally(item.claims),
    }


def _comparison_view(item: ItemPage) -> dict:
    """The comparison as text: what is the same in all rows goes to the caption."""
    frame = side_by_side(item.table, item.highlight)
    keys = list(frame.columns[:-5])
    constant = [key for key in keys if len(frame) > 1 and frame[key].nunique(dropna=False) == 1]
    varying = [key for key in keys if key not in constant]
    numbers = frame[["published", "reproduced", "low", "high", "difference"]]
    # A logit and an nDCG in one table keep decimals of their own.
    metric = frame["metric"].astype(str) if "metric" in keys else pd.Series("", index=frame.index)
    formats = {name: _format(rows) for name, rows in numbers.groupby(metric)}
    cells = [[_key_text(value) for value in row] for row in frame[varying].itertuples(index=False)]
    return {
        "constant": [(_heading(key), _key_text(frame[key].iloc[0])) for key in constant],
        "keys": [_heading(key) for key in varying],
        "published": bool(frame["published"].notna().any()),
        "reproduced": bool(frame["reproduced"].notna().any()),
        "interval": bool(frame["low"].notna().any()),
        "rows": [
            {"keys": _marked(row, before), **_number_texts(values, formats[name])}
            for row, before, values, name in zip(
                cells, [None, *cells[:-1]], numbers.itertuples(index=False), metric, strict=True
            )
        ],
    }


def _marked(row: Sequence[str], before: Sequence[str] | None) -> list[tuple[str, bool]]:
    """Each key's text, and whether it and all keys to its left repeat the row above."""
    repeats = (
        [False] * len(row) if before is None else [a == b for a, b in zip(row, before, strict=True)]
    )
    return [(text, all(repeats[: index + 1])) for index, text in enumerate(row)]


def _number_texts(values: Iterable[float], form: str) -> dict[str, str]:
    published, reproduced, low, high, difference = values
    interval = f"[{_text(low, form)}, {_text(high, form)}]" if not math.isnan(low) else ""
    return {
        "published": _text(published, form),
        "reproduced": _text(reproduced, form),
        "interval": interval,
        "difference": _text(difference, "+" + form),
    }


def _format(numbers: pd.DataFrame) -> str:
    """How to print numbers so that a thousandth of the largest shows: 4 decimals for an nDCG,
    3 for a logit; powers of ten for errors that would be 0.0000."""
    values = numbers[["published", "reproduced"]].abs().to_numpy(dtype=float)
    finite = values[np.isfinite(values)]
    largest = finite.max() if len(finite) else 1.0
    if 0 < largest < 1e-3:
        return ".1e"
    return ".4f" if largest <= 1 else ".3f" if largest < 100 else ".1f"


def _text(value: float, form: str) -> str:
    if value is None or math.isnan(value):
        return _MISSING
    text = re.sub(r"e([+-])0", r"e\1", f"{value:{form}}")
    # Neither -0.000 nor +0.000 says anything that 0.000 does not.
    if float(text) == 0:
        text = "0" if "e" in form else text.lstrip("+-")
    return text.replace("-", "−")


def _key_text(value: object) -> str:
    if pd.isna(value):
        return _MISSING
    if isinstance(value, float):
        return f"{value:g}".replace("-", "−")
    return str(value).replace("-", "−") if isinstance(value, int) else str(value)


def _heading(column: str) -> str:
    text = column.replace("_", " ")
    return text[:1].upper() + text[1:]


def _claim_text(value: object) -> str:
    """A claim's value as it should be read: four digits of a number, any other text as it is."""
    if value is None or (isinstance(value, float) and math.isnan(value)) or value == "":
        return _MISSING
    if isinstance(value, bool):
        return "yes" if value else "no"
    try:
        return f"{float(value):.4g}".replace("-", "−")
    except (TypeError, ValueError):
        return str(value)


def _rows(paper: PaperPage) -> list[Mapping[str, object]]:
    """Every claim of a paper, of its items first."""
    return [row for rows in (*(item.claims for item in paper.items), paper.claims) for row in rows]


def _tally(rows: Iterable[Mapping[str, object]]) -> dict[str, int]:
    counts = Counter(row["verdict"] for row in rows)
    return {verdict: counts[verdict] for verdict in VERDICTS}


def printed_name(name: str) -> str:
    """An item's name as a reader says it: fig3a is Figure 3a."""
    kinds = {"fig": "Figure", "table": "Table", "appendix": "Appendix"}
    match = re.fullmatch(r"(fig|table|appendix)([0-9A-Z][\w.]*)", name)
    return f"{kinds[match[1]]} {match[2]}" if match else name


def duration(seconds: float | None) -> str:
    """Seconds as a reader says them, with a decimal below ten: 4.2 s, 4 min 05 s."""
    if seconds is None:
        return "an unknown time"
    return f"{seconds:.1f} s" if seconds < 10 else spell(seconds)


def _check_claim(row: Mapping[str, object]) -> None:
    _check_keys(row, CLAIM_COLUMNS, "claims")
    if row["verdict"] not in VERDICTS:
        raise InputError(
            f"{row['verdict']!r} is no verdict (claim {row['claim']})",
            field="verdict",
            expected=nearest(str(row["verdict"]), VERDICTS),
        )


def _check_columns(columns: Iterable[str], required: Iterable[str]) -> None:
    columns = list(columns)
    missing = [column for column in required if column not in columns]
    if missing:
        raise InputError(
            f"no column {', '.join(map(repr, missing))}",
            field="table",
            expected=f"among {', '.join(map(repr, columns))}",
        )


def _check_keys(mapping: Mapping[str, object], required: Iterable[str], name: str) -> None:
    missing = [key for key in required if key not in mapping]
    if missing:
        raise InputError(
            f"no {', '.join(map(repr, missing))}",
            field=name,
            expected=f"among {', '.join(map(repr, mapping))}",
        )


def _check_name(name: str) -> None:
    if not _NAME.fullmatch(name):
        raise InputError(
            f"{name!r} cannot be a link's target",
            field="name",
            expected="a letter, then letters, digits, '.', '_' or '-'",
        )


def _link(link: str, folder: Path) -> str:
    """A relative link to a file that exists, quoted for an attribute."""
    parts = urlsplit(link)
    if parts.scheme or parts.netloc or Path(link).is_absolute():
        raise InputError(f"{link!r} is not relative to the page", field="files")
    if not (folder / link).exists():
        raise InputError("the page would link to a file that is not there", path=folder / link)
    return quote(Path(link).as_posix())


def _svg_size(path: Path) -> tuple[int, int]:
    """Width and height in pixels, so that nothing jumps while the page loads."""
    try:
        root = ElementTree.parse(path).getroot()
        box = [float(number) for number in root.get("viewBox", "").split()]
    except (ElementTree.ParseError, ValueError) as error:
        raise InputError(f"not an svg file: {error}", path=path) from error
    if len(box) != 4:
        raise InputError("the svg has no viewBox", path=path)
    # matplotlib's viewBox counts points, of which three make four pixels.
    return round(box[2] * 4 / 3), round(box[3] * 4 / 3)


def _environment() -> Environment:
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters.update(
        duration=duration, seeds=seed_range, shown=_claim_text, slug=lambda v: v.replace(" ", "-")
    )
    return environment


def _template() -> str:
    return (resources.files("twotowers.report") / "templates" / "page.html.j2").read_text(
        encoding="utf-8"
    )
