"""LaTeX tables: booktabs, and numbers as papers print them.

>>> count(20704), moment(0.707, 0.105), moment(2e-5, digits=1), moment(1e-8, bound=True)
('$20{,}704$', '$0.707 \\\\pm .105$', '$2 \\\\times 10^{-5}$', '$< 10^{-8}$')
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pandas as pd

PACKAGES = {r"\textcolor": "xcolor", r"\blacktriangle": "amssymb"}
"""The package of a command that tables use."""


def booktabs(headings: Sequence[str], body: Iterable[str | Sequence[str]], *, columns: str) -> str:
    """A whole tabular, below a comment that tells which packages it needs.

    Args:
        body: Rows of cells; texts, such as rules, are lines as they are.
        columns: Their alignments.

    Example:
        >>> for cells in ["$1$"], [grey("$1$")], [r"$\\blacktriangle$"]:
        ...     print(booktabs(["n"], [cells], columns="r").splitlines()[0])
        % Needs the package booktabs.
        % Needs the packages booktabs and xcolor.
        % Needs the packages booktabs and amssymb.
    """
    lines = [
        row if isinstance(row, str) else " & ".join(row) + r" \\"
        for row in (headings, r"\midrule", *body)
    ]
    text = "\n".join(lines)
    needs = ["booktabs", *(name for command, name in PACKAGES.items() if command in text)]
    return "\n".join(
        [
            f"% Needs the package{'s' * (len(needs) > 1)} {' and '.join(needs)}.",
            rf"\begin{{tabular}}{{{columns}}}",
            r"\toprule",
            text,
            r"\bottomrule",
            r"\end{tabular}",
            "",
        ]
    )


def count(number: float | None) -> str:
    """A count, with separators; three digits of a small mean; a dash where there is none.

    >>> count(1234567), count(8.162), count(14)
    ('$1{,}234{,}567$', '$8.16$', '$14$')
    """
    if number is None or pd.isna(number):
        return "--"
    whole = number >= 100 or number == round(number)
    return f"${number:{',.0f' if whole else '.3g'}}$".replace(",", "{,}")


def grey(text: str) -> str:
    """A published number stands behind ours."""
    return rf"\textcolor{{gray}}{{{text}}}"


def moment(
    mean: float | None, spread: float | None = None, *, digits: int = 0, bound: bool = False
) -> str:
    """A mean and its standard deviation; a dash where there is none.

    Args:
        mean: To three decimals, or as a power of ten.
        spread: The deviation; None if it is not told.
        digits: Significant digits of a power of ten; 0 for decimals.
        bound: Whether the mean is known to be below that number only.
    """
    if mean is None:
        return "--"
    if bound:
        return f"$< {scientific(mean, 1)}$"
    text = scientific(mean, digits) if digits else f"{mean:.3f}"
    tail = "" if digits or spread is None else rf" \pm {spread:.3f}".replace(" 0.", " .")
    return f"${text}{tail}$"


def scientific(number: float, digits: int) -> str:
    """Digits and a power of ten, in math mode; the power alone where the digits are 1."""
    if number == 0:
        return "0"
    mantissa, exponent = f"{number:.{digits - 1}e}".split("e")
    power = f"10^{{{int(exponent)}}}"
    return power if float(mantissa) == 1 else rf"{mantissa} \times {power}"
