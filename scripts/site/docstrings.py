"""Docstrings of the library's public names -> Markdown."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Any

import twotowers
from twotowers.face.fits import fit_click_model
from twotowers.face.towers import TowerFit, fit_towers

LISTS = ("Args", "Attributes", "Raises")
BEHIND = {each.__name__: each for each in (fit_click_model, fit_towers, TowerFit)}
"""What `fit` passes its arguments to, and what it may return. Its page describes them, too."""
SECTION = re.compile(r"^(Args|Attributes|Raises|Returns|Yields|Examples?):$", re.M)


def page_of(name: str) -> str:
    """Where a public name is described. Some file systems take `Fit` and `fit` for one name."""
    if name in BEHIND:
        return f"{page_of('fit')}#{name.lower()}"
    kind = "class" if inspect.isclass(getattr(twotowers, name)) else "function"
    return f"{kind}-{name.lower()}.html"


def overview() -> str:
    """All public names, each with its first sentence."""
    lines = ["# Python: all names", "", "`import twotowers as tt` has these names.", ""]
    for title, classes in (("Functions", False), ("Classes", True)):
        lines += [f"## {title}", "", "| name | what it is |", "|---|---|"]
        for name in sorted(twotowers.FACE):
            each = getattr(twotowers, name)
            if inspect.isclass(each) == classes:
                first = inspect.cleandoc(each.__doc__ or "").splitlines()[0]
                first = first.replace("|", r"\|")
                lines.append(f"| [`tt.{name}`]({page_of(name)}) | {first} |")
        lines.append("")
    return "\n".join(lines)


def described(name: str) -> str:
    """The page of a public name: signature, docstring and methods."""
    parts = [f"# tt.{name}", *_entry(f"tt.{name}", getattr(twotowers, name), 2)]
    for other, each in BEHIND.items() if name == "fit" else ():
        parts += [f"## {other}", *_entry(other, each, 3)]
    return "\n\n".join(parts)


def _entry(name: str, each: Any, level: int) -> Iterator[str]:
    signature = _signature(name, each)
    if signature:
        yield f"```python\n{signature}\n```"
    yield markdown(inspect.cleandoc(each.__doc__ or ""))
    if inspect.isclass(each):
        for key, member in _members(each):
            kind = inspect.isfunction(member)
            yield f"{'#' * level} .{key}{'()' if kind else ''}"
            if kind:
                yield f"```python\n{_signature(f'.{key}', member)}\n```"
            yield markdown(inspect.getdoc(member) or "")


def _members(kind: type) -> Iterator[tuple[str, Any]]:
    """Public methods and properties that have a docstring, in the order of the source."""
    seen = set()
    for each in kind.__mro__:
        if each.__module__.startswith("twotowers"):
            for key, member in vars(each).items():
                plain = getattr(member, "__func__", member)
                told = inspect.isfunction(plain) or hasattr(plain, "fget") or hasattr(plain, "func")
                if told and not key.startswith("_") and key not in seen and plain.__doc__:
                    seen.add(key)
                    yield key, plain


def _signature(name: str, each: Any) -> str:
    """How it is called. Classes that a function makes have none."""
    signature = inspect.signature(each)
    parameters = [one for one in signature.parameters.values() if one.name != "self"]
    if inspect.isclass(each):
        if any(one.default is one.empty for one in parameters):
            return ""
        signature = signature.replace(return_annotation=signature.empty)
    text = str(signature.replace(parameters=parameters))
    text = name + re.sub(r"(: |-> )'([^']*)'", r"\1\2", text)
    if len(text) <= 90:
        return text
    shown = [str(one) for one in parameters]
    keyword = [one.kind is one.KEYWORD_ONLY for one in parameters]
    if True in keyword and not any(one.kind is one.VAR_POSITIONAL for one in parameters):
        shown.insert(keyword.index(True), "*")
    lines = ",\n    ".join(re.sub(r": '([^']*)'", r": \1", one) for one in shown)
    return f"{name}(\n    {lines},\n)" + text[text.rindex(")") + 1 :]


def markdown(text: str) -> str:
    """A docstring in Google's style as Markdown.

    Example:
        >>> print(markdown("Half.\\n\\nArgs:\\n    x: a number,\\n        at least 0."))
        Half.
        <BLANKLINE>
        **Args**
        <BLANKLINE>
        - `x`: a number, at least 0.
    """
    start, *rest = SECTION.split(text)
    parts = [_doctests(start.strip())]
    for title, body in zip(rest[::2], rest[1::2], strict=True):
        body = inspect.cleandoc("\n" + body)
        parts += [f"**{title}**", _items(body) if title in LISTS else _doctests(body)]
    return "\n\n".join(filter(None, parts))


def _items(body: str) -> str:
    lines = []
    for line in body.splitlines():
        name, colon, text = line.partition(": ")
        if line[:1].strip() and colon:
            lines.append(f"- `{name}`: {text}")
        elif line.strip():
            lines[-1:] = [f"{lines[-1]} {line.strip()}"] if lines else [line]
    return "\n".join(lines)


def _doctests(text: str) -> str:
    """The text with its examples as blocks of code."""
    blocks = []
    for block in re.split(r"\n\s*\n", text):
        code = inspect.cleandoc("\n" + block)
        blocks.append(f"```pycon\n{code}\n```" if code.startswith(">>>") else block)
    return "\n\n".join(blocks)
