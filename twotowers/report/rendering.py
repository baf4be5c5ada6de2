"""How pages are rendered: templates, the links that they may hold, and sizes of images."""

from pathlib import Path
from urllib.parse import quote
from xml.etree import ElementTree

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from twotowers.claims.data_provenance import KINDS
from twotowers.claims.judging import CONTRADICTIONS
from twotowers.files.artefacts import atomic
from twotowers.report.evidence import STATES, VERDICTS, command
from twotowers.report.words import MISSING, duration, record_name, seed_range

TEMPLATES = Path(__file__).with_name("templates")


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
        record=record_name,
        shown=lambda text: text or MISSING,
        slug=lambda text: text.replace(" ", "-"),
    )
    pages.globals.update(
        verdicts=VERDICTS,
        states=STATES,
        kinds=KINDS,
        contradictions=CONTRADICTIONS,
        command=command,
    )
    html = pages.get_template(template).render(**view)
    with atomic(out) as temporary:
        temporary.write_text(html, encoding="utf-8")


def link(target: str) -> str:
    """A link to a file, quoted for an attribute."""
    return quote(Path(target).as_posix())


def svg_size(path: Path) -> tuple[int, int]:
    """Width and height in pixels, so that nothing jumps while the page loads."""
    box = ElementTree.parse(path).getroot().get("viewBox", "").split()
    # The viewBox of matplotlib is in points. Three points are four pixels.
    return round(float(box[2]) * 4 / 3), round(float(box[3]) * 4 / 3)
