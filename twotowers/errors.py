"""The error that bad input raises. It says where, what, and what was expected."""

import difflib
import inspect
from collections.abc import Callable, Iterable, Mapping
from numbers import Integral, Real

TRY = "; try read_log(..., "
"""Before settings that would read a log."""
LONGEST = 2_000
"""The most characters of each part of a message."""


class InputError(ValueError):
    """Bad input from outside the program: a file, a configuration, an argument.

    Args:
        message: What is wrong, in one sentence, with the value found.
        path: The file, or what is in its place.
        line: The 1-based line of the file.
        field: The column, key or parameter.
        expected: What would have been accepted.
        settings: Of `read_log`, that would read the log.
    """

    def __init__(
        self,
        message: str,
        *,
        path: object = None,
        line: int | None = None,
        field: str | None = None,
        expected: str | None = None,
        settings: Mapping[str, object] | None = None,
    ):
        self.path, self.line, self.field, self.expected = path, line, field, expected
        self.message = message
        where = ":".join(str(part) for part in (path, line) if part is not None)
        parts = [where, *map(_shortened, (field, message))]
        text = ": ".join(part for part in parts if part)
        text = f"{text} (expected {_shortened(expected)})" if expected else text
        self.settings = dict(settings or {})
        proposed = ", ".join(f"{name}={value!r}" for name, value in self.settings.items())
        super().__init__(f"{text}{TRY}{proposed})" if proposed else text)


def _shortened(text: str | None) -> str | None:
    """The text, shortened: a value from a file may have any length."""
    return text if text is None or len(text) <= LONGEST else text[:LONGEST] + "..."


def check_range(
    value: float, *, field: str, low: float, high: float, path: object = None, whole: bool = False
) -> float:
    """Return `value` if it is a number in [low, high], else raise InputError.

    The error names the argument, `field`, and the file, `path`, if there is one. NumPy's numbers
    count, too; True and NaN do not. With `whole`, only integers do.
    """
    kind = Integral if whole else Real
    if isinstance(value, bool) or not isinstance(value, kind) or not low <= value <= high:
        raise InputError(
            f"{value!r} is out of range",
            field=field,
            path=path,
            expected=f"{'an integer' if whole else 'a number'} in [{low:g}, {high:g}]",
        )
    return value


def check_choice(
    value: object, known: Iterable[str], *, field: str, path: object = None, what: str = "unknown"
) -> None:
    """Raise InputError unless the value is one of the known names; the nearest is offered."""
    known = list(known)
    if value not in known:
        message, hint = f"{value!r} is {what}", nearest(str(value), known)
        raise InputError(message, path=path, field=field, expected=hint)


def check_options(given: Iterable[str], function: Callable[..., object], *, field: str) -> None:
    """Raise InputError for an option that a function does not have; the nearest is offered."""
    parameters = inspect.signature(function).parameters.values()
    known = [each.name for each in parameters if each.kind is each.KEYWORD_ONLY]
    for name in given:
        check_choice(name, known, field=field, what="no option")


def check_names(
    value: object, *, field: str, of: str = "columns", example: str = "position"
) -> list[str]:
    """The names of some things as a list, each once; raise InputError unless there are some.

    A single text is refused, since it is a sequence of letters.

    >>> check_names(("position", "device"), field="bias")
    ['position', 'device']
    """
    names = list(value) if isinstance(value, Iterable) and not isinstance(value, str) else []
    if not names or not all(isinstance(each, str) for each in names):
        expected = f"a list of names of {of}, one or more, such as [{example!r}]"
        raise InputError(f"{value!r}", field=field, expected=expected)
    return list(dict.fromkeys(names))


def nearest(name: str, valid: Iterable[str]) -> str:
    """The valid names, and the one that is nearest to a mistyped name."""
    valid = sorted(valid)
    close = difflib.get_close_matches(name, valid, n=1, cutoff=0.5)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    return f"one of {', '.join(map(repr, valid))}{hint}"
