"""How pages are rendered: templates, the links that they may hold, and sizes of images."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote
from xml.etree import ElementTree

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from twotowers.claims import claims
from twotowers.claims.data_provenance import KINDS
from twotowers.errors import InputError
from twotowers.files.artefacts import atomic
from twotowers.report.words import claim_text, duration, seed_range

TEMPLATES = Path(__file__).with_name("templates")

VERDICTS = {
    claims.REPRODUCED: "✓",
    claims.CONTRADICTED: "✗",
    claims.UNDECIDED: "?",
    claims.NOT_TESTABLE: "○",
}
"""Every verdict and its sign."""


def environment(*, autoescape: bool = True) -> Environment:
    """What reads the templates."""
    return Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=autoescape,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def render(template: str, out: str | Path, **view) -> None:
    """Write a page that needs no other file but those that it links to."""
    pages = environment()
    pages.filters.update(
        duration=duration,
        gigabytes=lambda megabytes: f"{megabytes / 1000:.1f} GB",
        seeds=seed_range,
        shown=claim_text,
        slug=lambda text: text.replace(" ", "-"),
    )
    pages.globals.update(verdicts=VERDICTS, kinds=KINDS)
    html = pages.get_template(template).render(**view)
    with atomic(out) as temporary:
        temporary.write_text(html, encoding="utf-8")


def link(target: str, folder: Path) -> str:
    """A link from a page in `folder` to a file that exists, quoted for an attribute."""
    if not (folder / target).exists():
        raise InputError("the page would link to a file that is not there", path=folder / target)
    return quote(Path(target).as_posix())


def svg_size(path: Path) -> tuple[int, int]:
    """Width and height in pixels, so that nothing jumps while the page loads."""
    try:
        root = ElementTree.parse(path).getroot()
        box = [float(number) for number in root.get("viewBox", "").split()]
    except (ElementTree.ParseError, ValueError) as error:
        raise InputError(f"not an svg file: {error}", path=path) from error
    if len(box) != 4:
        raise InputError("the svg has no viewBox", path=path)
    # The viewBox of matplotlib is in points. Three points are four pixels.
    return round(box[2] * 4 / 3), round(box[3] * 4 / 3)
