"""YAML files: plain values only, and every error with file and line."""

import re
from collections.abc import Sequence
from pathlib import Path

import yaml

from twotowers.errors import InputError


def read_yaml(path: str | Path) -> dict:
    """The mapping in a YAML file."""
    text = Path(path).read_bytes()
    try:
        content = yaml.load(text, _Loader)  # noqa: S506 (a safe loader)
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or getattr(error, "reason", error)
        raise InputError(
            f"not YAML: {str(problem)[:200]}", path=path, line=mark.line + 1 if mark else None
        ) from error
    if not isinstance(content, dict):
        raise InputError(f"holds a {type(content).__name__}", path=path, expected="a mapping")
    return content


# libyaml reads quickly. Nodes are composed in Python all the same, since deeply nested ones would
# overflow the stack of C.
_BASES = (yaml.composer.Composer, yaml.CSafeLoader) if yaml.__with_libyaml__ else (yaml.SafeLoader,)


class _Loader(*_BASES):
    """PyYAML's safe loader. It raises a YAMLError with a line for everything it refuses."""

    def __init__(self, stream):
        _BASES[-1].__init__(self, stream)
        self.anchors = {}

    def construct_object(self, node, deep=False):
        try:
            return super().construct_object(node, deep)
        except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError) as error:
            raise yaml.constructor.ConstructorError(
                None, None, f"{str(node.value)[:40]!r} is not a {node.tag}", node.start_mark
            ) from error

    def compose_mapping_node(self, anchor):
        # PyYAML would keep the last of equal keys. Merged keys are not in the node yet.
        node, seen = super().compose_mapping_node(anchor), set()
        # A key that is a list or a mapping is refused later.
        for key in (key for key, _ in node.value if isinstance(key, yaml.ScalarNode)):
            if key.value in seen:
                raise yaml.composer.ComposerError(
                    None, None, f"the key {key.value[:40]!r} occurs twice", key.start_mark
                )
            seen.add(key.value)
        return node

    def construct_mapping(self, node, deep=False):
        mapping = super().construct_mapping(node, deep)
        for key in mapping:
            if not isinstance(key, str):
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key {str(key)[:40]} is not text", node.start_mark
                )
        return mapping


def line_of(path: str | Path, keys: Sequence[str | int]) -> int | None:
    """The line of a YAML file that has a key: of the deepest of nested keys that the file has.

    A key with parts in braces stands for all names of its form.
    """
    return _found(path, keys)[1]


def file_with(paths: Sequence[str | Path], keys: Sequence[str | int]) -> str | Path:
    """The YAML file that has most of nested keys; of several, the last, which overrides."""
    return max(reversed(paths), key=lambda path: _found(path, keys)[0])


def _found(path: str | Path, keys: Sequence[str | int]) -> tuple[int, int | None]:
    """How many of nested keys a file has, from the outermost, and the line of the last of these."""
    try:
        node = yaml.compose(Path(path).read_text(encoding="utf-8"), yaml.SafeLoader)
    except (yaml.YAMLError, UnicodeDecodeError, OSError):
        return 0, None
    line = None
    for depth, key in enumerate(keys):
        if isinstance(node, yaml.MappingNode):
            fitting = [pair for pair in node.value if _stands_for(pair[0].value, str(key))]
            if not fitting:
                return depth, line
            exact = [pair for pair in fitting if pair[0].value == str(key)]
            line, node = (exact or fitting)[-1][0].start_mark.line + 1, (exact or fitting)[-1][1]
        elif isinstance(node, yaml.SequenceNode) and isinstance(key, int) and key < len(node.value):
            node = node.value[key]
            line = node.start_mark.line + 1
        else:
            return depth, line
    return len(keys), line


def _stands_for(written: str, key: str) -> bool:
    pattern = re.sub(r"\\{\w+\\}", ".+", re.escape(str(written)))
    return re.fullmatch(pattern, key) is not None
