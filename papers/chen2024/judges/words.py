"""Measured values in the words of a judgement."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from twotowers.results.conditions import number, short


def listed(values: pd.Series, name: str = "{}", digits: int | None = 3) -> str:
    """Each value after its index; without digits, as a power of ten."""
    return ", ".join(
        f"{name.format(label if isinstance(label, str) else short(label))} "
        f"{power(value) if digits is None else number(value, digits)}"
        for label, value in values.items()
    )


def named(names: Sequence[str], values: Sequence[float]) -> str:
    """Each value after its name."""
    return ", ".join(f"{name} {number(value)}" for name, value in zip(names, values, strict=True))


def metric_name(name: str) -> str:
    """A metric of the studies as the paper writes it: test_ndcg@5 is test nDCG@5."""
    return name.replace("mcc", "MCC").replace("test_", "test ").replace("ndcg", "nDCG")


def power(value: float) -> str:
    """Two digits and a power of ten."""
    return f"{value:.1e}"
