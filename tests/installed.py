"""Packages that are installed, and what they need."""

from importlib.metadata import distribution

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name


def names(requirements) -> set[str]:
    return {canonicalize_name(requirement.name) for requirement in requirements}


def needed(requirements: list[Requirement]) -> set[str]:
    """Names of all packages that the given ones need, according to the installed ones."""
    found, waiting = set(), [(one, extra) for one in requirements for extra in ("", *one.extras)]
    while waiting:
        if (key := waiting.pop()) not in found:
            found.add(key)
            requirement, extra = key
            wanted = map(Requirement, distribution(requirement.name).requires or ())
            wanted = [w for w in wanted if w.marker is None or w.marker.evaluate({"extra": extra})]
            waiting += [(one, extra) for one in wanted for extra in ("", *one.extras)]
    return names(requirement for requirement, _ in found)
