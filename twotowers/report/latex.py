"""LaTeX tables: booktabs, and numbers as papers print them.

>>> count(20704), moment(0.707, 0.105), moment(2e-5, digits=1), moment(1e-8, bound=True)
('$20{,}704$', '$0.707 \\\\pm .105$', '$2 \\\\times 10^{-5}$', '$< 10^{-8}$')
"""

from collections.abc import Iterable, Sequence

import pandas as pd

PRINTED = ("paper", "thesis")
"""What rows and columns of published numbers are called. They are grey, behind ours."""
NEEDS = "% Needs the packages amssymb, booktabs, longtable and xcolor."
"""The first line of each table."""


def booktabs(
    headings: Sequence[str],
    body: Iterable[str | Sequence[str]],
    *,
    columns: str,
    above: Sequence[str] = (),
    long: bool = False,
) -> str:
    """A whole tabular, below a comment that names the packages it needs.

    The body has rows of cells; texts, such as rules, are lines as they are. `columns` are
    alignments. A `long` table goes on over pages, with its headings.

    Example:
        >>> print(booktabs(["", "n"], [["ours", "$1$"], ["paper", "$2$"]], columns="lr"))
        % Needs the packages amssymb, booktabs, longtable and xcolor.
        \\begin{tabular}{lr}
        \\toprule
         & n \\\\
        \\midrule
        ours & $1$ \\\\
        \\textcolor{gray}{paper} & \\textcolor{gray}{$2$} \\\\
        \\bottomrule
        \\end{tabular}
        <BLANKLINE>
    """
    published = [name in PRINTED for name in headings]
    rows = [
        row
        if isinstance(row, str)
        else _row(row, published, whole=any(cell in PRINTED for cell in row))
        for row in body
    ]
    head = [*above, _row(headings, published), r"\midrule", *([r"\endhead"] if long else [])]
    text, environment = "\n".join([*head, *rows]), "longtable" if long else "tabular"
    return "\n".join(
        [
            NEEDS,
            rf"\begin{{{environment}}}{{{columns}}}",
            r"\toprule",
            text,
            r"\bottomrule",
            rf"\end{{{environment}}}",
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


def _row(cells: Sequence[str], published: Sequence[bool], *, whole: bool = False) -> str:
    """A line of cells, in which those of published columns, or all, are grey."""
    texts = (
        rf"\textcolor{{gray}}{{{text}}}" if text and (whole or own) else text
        for text, own in zip(cells, published, strict=True)
    )
    return " & ".join(texts) + r" \\"


def moment(
    mean: float | None, spread: float | None = None, *, digits: int = 0, bound: bool = False
) -> str:
    """A mean and its standard deviation, if it is printed; a dash where there is none.

    The mean has three decimals, or so many significant `digits` of a power of ten; of a `bound`, it
    is known to be below that number only.
    """
    if mean is None:
        return "--"
    if bound:
        return f"$< {scientific(mean, 1)}$"
    text = scientific(mean, digits) if digits else f"{mean:.3f}"
    tail = "" if digits or spread is None else rf" \pm {spread:.3f}".replace(" 0.", " .")
    return f"${text}{tail}$"


def scientific(number: float, digits: int) -> str:
    """A number as some digits times a power of ten, in math mode.

    Digits that say 1 are left out. A whole number with at most so many digits stands as it is.

    >>> scientific(8387.0, 4), scientific(2e-5, 1), scientific(83870.0, 4)
    ('8{,}387', '2 \\\\times 10^{-5}', '8.387 \\\\times 10^{4}')
    """
    if number == 0:
        return "0"
    if 1 <= number < 10**digits and number == round(number):
        return f"{number:,.0f}".replace(",", "{,}")
    mantissa, exponent = f"{number:.{digits - 1}e}".split("e")
    power = f"10^{{{int(exponent)}}}"
    return power if float(mantissa) == 1 else rf"{mantissa} \times {power}"
