"""Pages with places for tables, `<!-- name -->` to `<!-- /name -->`, that programs fill."""

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from twotowers.files.artefacts import atomic


def filled(text: str, tables: Mapping[str, str]) -> str:
    """The page with new tables. A place without one keeps what it has."""

    def block(match: re.Match) -> str:
        name = match[1]
        return f"<!-- {name} -->\n{tables[name]}\n<!-- /{name} -->" if name in tables else match[0]

    return re.sub(r"<!-- ([\w-]+) -->.*?<!-- /\1 -->", block, text, flags=re.S)


def fill_page(path: Path, tables: Mapping[str, str]) -> None:
    """Fill a page on disk."""
    text = filled(path.read_text(encoding="utf-8"), tables)
    with atomic(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def markdown(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table."""
    head, *body = (f"| {' | '.join(map(str, line))} |" for line in [heads, *rows])
    return "\n".join([head, "|---" * len(heads) + "|", *body])
