"""Tables as pages show them: what LaTeX says, as HTML."""

from twotowers.report.latex import booktabs
from twotowers.report.printed import Cell, printed


def shown(*groups: list[list[Cell]]) -> list[list[str]]:
    return [[cell.html for cell in row] for group in groups for row in group]


def test_published_rows_and_columns_are_grey_and_marks_stand_apart():
    body = [
        ["PBM", "ours", r"$0.435 \pm .002$", r"\textbf{0.4}$^{*}$"],
        ["", "paper", r"$1{,}234$$^{\blacktriangledown}$", ""],
        r"\midrule",
        ["A & B_c".replace("&", r"\&").replace("_", r"\_"), "ours", "$< 10^{-8}$", r"-.5\,\%"],
    ]
    [[head, *groups]] = printed(
        booktabs(["Model", "", r"$\theta_{10}$", "paper"], body, columns="llrr")
    )
    grey = '<span class="published">{}</span>'.format
    mark = '<sup class="mark">{}</sup>'.format
    assert shown(head) == [["Model", "", "θ<sub>10</sub>", grey("paper")]]
    assert [len(group) for group in groups] == [2, 1]
    assert shown(*groups) == [
        ["PBM", "ours", "0.435 ± .002", grey(f"<b>0.4</b>{mark('*')}")],
        ["", grey("paper"), grey(f"1,234{mark('▼')}"), ""],
        ["A &amp; B_c", "ours", "&lt; 10<sup>−8</sup>", grey("−.5 %")],
    ]
    assert groups[0][1][2].text == "1,234▼"
    assert [cell.align for cell in groups[0][0]] == ["l", "l", "r", "r"]


def test_a_long_table_with_cells_over_several_columns():
    above = r" & \multicolumn{2}{c}{nDCG@10} \\"
    title = r"\multicolumn{3}{l}{\emph{fit}, unweighted} \\*"
    body = [r"\addlinespace", title, ["$-1$", "$0.5$", r"$\infty$"]]
    heads = [r"$\tau$", "ours", "paper"]
    [[head, *groups]] = printed(booktabs(heads, body, columns="rrr", above=[above], long=True))
    assert [[cell.span for cell in row] for row in head] == [[1, 2], [1, 1, 1]]
    grey = '<span class="published">∞</span>'
    assert shown(*groups) == [["<em>fit</em>, unweighted"], ["−1", "0.5", grey]]
