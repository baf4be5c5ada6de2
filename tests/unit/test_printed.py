"""Tables as pages show them: what LaTeX says, as HTML."""

import pytest

from twotowers.errors import InputError
from twotowers.report.latex import booktabs
from twotowers.report.printed import Printed, printed


def shown(table: Printed) -> list[list[str]]:
    return [[cell.html for cell in row] for group in table.groups for row in group]


def test_published_rows_and_columns_are_grey_and_marks_stand_apart():
    body = [
        ["PBM", "ours", r"$0.435 \pm .002$", r"\textbf{0.4}$^{*}$"],
        ["", "paper", r"$1{,}234$$^{\blacktriangledown}$", ""],
        r"\midrule",
        ["A & B_c".replace("&", r"\&").replace("_", r"\_"), "ours", "$< 10^{-8}$", r"-.5\,\%"],
    ]
    [table] = printed(booktabs(["Model", "", r"$\theta_{10}$", "paper"], body, columns="llrr"))
    grey = '<span class="published">{}</span>'.format
    mark = '<sup class="mark">{}</sup>'.format
    assert [[cell.html for cell in row] for row in table.head] == [
        ["Model", "", "θ<sub>10</sub>", grey("paper")]
    ]
    assert [len(group) for group in table.groups] == [2, 1]
    assert shown(table) == [
        ["PBM", "ours", "0.435 ± .002", grey(f"<b>0.4</b>{mark('*')}")],
        ["", grey("paper"), grey(f"1,234{mark('▼')}"), ""],
        ["A &amp; B_c", "ours", "&lt; 10<sup>−8</sup>", grey("−.5 %")],
    ]
    assert table.groups[0][1][2].text == "1,234▼"
    assert [cell.align for cell in table.groups[0][0]] == ["l", "l", "r", "r"]


def test_a_long_table_with_columns_that_are_grey():
    tex = r"""
\begin{longtable}{rr>{\color{gray}}r}
\toprule
 & \multicolumn{2}{c}{nDCG@10} \\ \cmidrule(lr){2-3}
$\tau$ & ours & paper \\
\midrule
\endhead
\addlinespace
\multicolumn{3}{l}{\emph{fit}, unweighted} \\*
$-1$ & $0.5$ & $\infty$ \\
\bottomrule
\end{longtable}
"""
    [table] = printed(tex)
    assert [[cell.span for cell in row] for row in table.head] == [[1, 2], [1, 1, 1]]
    assert shown(table) == [["<em>fit</em>, unweighted"], ["−1", "0.5", "∞"]]
    assert [cell.published for cell in table.groups[0][1]] == [False, False, True]


def test_two_tables_of_a_file():
    one, two = (booktabs([name], [["$1$"]], columns="r") for name in "ab")
    assert [table.head[0][0].html for table in printed(one + "\n" + two)] == ["a", "b"]


def test_an_unknown_command_is_an_error():
    with pytest.raises(InputError, match=r"tex: .*unheard' is unknown"):
        printed(booktabs(["n"], [[r"$\unheard{1}$"]], columns="r"))


def test_a_row_with_more_cells_than_columns_is_an_error():
    with pytest.raises(InputError, match="tex: a row has more cells than the 1 columns"):
        printed(booktabs(["n", "m"], [["$1$", "$2$"]], columns="l"))
