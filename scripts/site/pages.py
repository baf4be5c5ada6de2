"""README, docs/*.md and docstrings -> a site of plain files, with a search and no server."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from html import escape
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markdown_it import MarkdownIt
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound

import twotowers
from scripts.site.docstrings import BEHIND, described, overview, page_of
from twotowers import ROOT
from twotowers.report.rendering import TEMPLATES

HERE = Path(__file__).parent
CONTENTS = {
    "Your click log": {
        "docs/logs.md": "Bring your log",
        "docs/diagnosis.md": "What can it tell?",
        "docs/propensities.md": "Position bias",
        "docs/use.md": "Judgments and weights",
        "docs/warehouses.md": "Count in a database",
        "papers/own_log/README.md": "Fits side by side",
    },
    "In Python": {
        "api": "All names",
        "docs/extending.md": "Add a model, a method, a paper",
        "docs/settings.md": "All keys of settings",
        "config/README.md": "Configuration files",
    },
    "The papers": {
        "docs/verdicts.md": "What “undecided” means",
        "papers/hager2025/README.md": "hager2025",
        "papers/chen2024/README.md": "chen2024",
        "papers/zhang2023/README.md": "zhang2023",
        "papers/hager2023/README.md": "hager2023",
        "papers/clax2025/README.md": "clax2025",
        "papers/hager2024/README.md": "hager2024",
        "papers/dehaan2024/README.md": "dehaan2024",
        "figures/README.md": "What a run writes",
    },
    "Stand-ins": {
        "docs/standins.md": "MSLR-WEB30K",
        "docs/standins_lists.md": "Long lists",
        "docs/standins_wscd.md": "WSCD-2012",
        "docs/standins_uva.md": "Baidu-ULTR",
        "docs/standins_baidu.md": "Baidu-ULTR with text",
        "docs/standins_chen2024.md": "Those of Chen et al.",
    },
    "Inside": {
        "docs/glossary.md": "Glossary",
        "docs/architecture.md": "Architecture",
        "docs/clusters.md": "Clusters, GPUs, containers",
        "docs/scaling.md": "Scaling",
        "benchmarks/README.md": "Benchmarks",
        "benchmarks/clickmodels.md": "Beside CLAX and PyClick",
        "benchmarks/identifiability.md": "Identifiability, measured",
        "docs/reliability.md": "Reliability",
        "docs/fuzzing.md": "Fuzzing",
        "docs/soak.md": "Random kills",
        "CONTRIBUTING.md": "Contributing",
        "CHANGELOG.md": "Changes",
    },
}
"""Every page but the first by its group, with a name that a stranger understands."""


@dataclass
class Page:
    """A page: its source, a path in the repository or the name of a public name; and its text."""

    source: str
    text: str
    title: str = ""
    html: str = ""
    sections: list[tuple[str, str, str]] = field(default_factory=list)
    """Anchor, heading and words of each section."""

    @property
    def file(self) -> str:
        """Where it lies on the site, which has no folders."""
        if self.source in twotowers.FACE:
            return page_of(self.source)
        path = PurePosixPath(self.source)
        name = path.parent.name if path.stem == "README" else path.stem.lower()
        return f"{name or 'index'}.html"


def sources() -> list[Page]:
    """All pages, with Markdown as text."""
    names = ["README.md", *(name for group in CONTENTS.values() for name in group if name != "api")]
    found = [Page(name, (ROOT / name).read_text(encoding="utf-8")) for name in names]
    found.append(Page("api", overview()))
    return [*found, *(Page(name, described(name)) for name in sorted(twotowers.FACE))]


def build(out: Path) -> list[Page]:
    """Write the site into a folder."""
    pages = sources()
    at = {page.source: page.file for page in pages}
    out.mkdir(parents=True, exist_ok=True)
    for page in pages:
        Renderer(page, at, out).run()
    environment = Environment(
        loader=FileSystemLoader([HERE, TEMPLATES]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    template = environment.get_template("page.html.j2")
    contents = {
        group: [(at[source], name) for source, name in entries.items()]
        for group, entries in CONTENTS.items()
    }
    colours = {
        theme: HtmlFormatter(style=style).get_style_defs(".code pre") for theme, style in THEMES
    }
    for page in pages:
        html = template.render(page=page, contents=contents, colours=colours)
        (out / page.file).write_text(html, encoding="utf-8")
    index = [[p.file + a, p.title, h, w] for p in pages for a, h, w in p.sections]
    text = f"const INDEX = {json.dumps(index, ensure_ascii=False)};\n"
    text += (HERE / "search.js").read_text(encoding="utf-8")
    (out / "search.js").write_text(text, encoding="utf-8")
    return pages


THEMES = (("light", "default"), ("dark", "github-dark"))
SQL = ("all", "duckdb", "postgres", "trino", "spark", "bigquery", "snowflake", "clickhouse")
"""Names of blocks that hold a statement: docs/warehouses.md."""


class Renderer:
    """Markdown -> HTML of one page, with anchors, links within the site, and words to search."""

    def __init__(self, page: Page, at: dict[str, str], out: Path):
        self.page, self.at, self.out = page, at, out

    def run(self) -> None:
        markdown = MarkdownIt("commonmark", {"html": False, "highlight": _coloured}).enable("table")
        markdown.add_render_rule("table_open", _table_open)
        markdown.add_render_rule("table_close", _table_close)
        tokens = markdown.parse(re.sub(r"<!--.*?-->\n?", "", self.page.text, flags=re.S))
        used: dict[str, int] = {}
        anchor, heading, words = "", "", []
        for number, token in enumerate(tokens):
            if token.type == "heading_open":
                if words or heading:
                    self.page.sections.append((anchor, heading, " ".join(words)))
                heading, words = _plain(tokens[number + 1]), []
                name = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
                used[name] = used.get(name, -1) + 1
                name += f"-{used[name]}" if used[name] else ""
                token.attrSet("id", name)
                anchor = "" if token.tag == "h1" else f"#{name}"
                self.page.title = self.page.title or heading
            elif token.type in ("fence", "code_block"):
                words.append(token.content)
            elif token.type == "inline":
                words.append(_plain(token))
                for child in token.children or []:
                    self._link(child)
                if self.page.source == "api" or self.page.source in twotowers.FACE:
                    token.children = list(self._named(token.children or []))
        self.page.sections.append((anchor, heading, " ".join(words)))
        self.page.html = markdown.renderer.render(tokens, markdown.options, {})

    def _link(self, token) -> None:
        attribute = {"link_open": "href", "image": "src"}.get(token.type)
        if attribute:
            token.attrSet(attribute, self._target(str(token.attrGet(attribute))))

    def _target(self, href: str) -> str:
        """Where a link leads: to a page, to a copy of a picture, or to a file beside the site."""
        parts = urlsplit(href)
        if parts.scheme or not parts.path or parts.path in self.at.values():
            return href
        path = os.path.normpath(PurePosixPath(self.page.source).parent / parts.path)
        fragment = f"#{parts.fragment}" if parts.fragment else ""
        for name in (path, f"{path}/README.md"):
            if name in self.at:
                return self.at[name] + fragment
        if path.endswith((".png", ".svg")):
            name = path.replace("/", "-")
            shutil.copyfile(ROOT / path, self.out / name)
            return name
        return Path(os.path.relpath(ROOT / path, self.out.resolve())).as_posix()

    def _named(self, children: list) -> Iterator:
        """Public names in a docstring, and pages of docs/, lead to their pages."""
        inside = False
        for child in children:
            inside = {"link_open": True, "link_close": False}.get(child.type, inside)
            name = child.content.removeprefix("tt.")
            if child.type == "code_inline" and name in {*twotowers.FACE, *BEHIND} and not inside:
                child.type, child.content = (
                    "html_inline",
                    (f'<a href="{page_of(name)}"><code>{escape(child.content)}</code></a>'),
                )
            elif child.type == "text":
                html = re.sub(
                    r"docs/\w+\.md",
                    lambda found: f'<a href="{self.at[found[0]]}">{found[0]}</a>',
                    escape(child.content),
                )
                child.type, child.content = "html_inline", html
            yield child


def _plain(token) -> str:
    """The words of a line, without markup."""
    kept = ("text", "code_inline", "softbreak")
    return "".join(c.content or " " for c in token.children or [] if c.type in kept)


def _table_open(renderer, tokens, number, options, env) -> str:
    return '<div class="scroll" tabindex="0"><table>'


def _table_close(renderer, tokens, number, options, env) -> str:
    return "</table></div>"


def _coloured(code: str, language: str, _attributes: str) -> str:
    """Code with its colours. An unknown language has none."""
    try:
        lexer = get_lexer_by_name("sql" if language in SQL else language)
    except ClassNotFound:
        return escape(code)
    return highlight(code, lexer, HtmlFormatter(nowrap=True))
