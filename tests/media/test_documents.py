"""Blocks of documents that no result has in such a form, or not at every width."""

import pytest
from rich.cells import cell_len

from report.in_terminal import in_terminal
from webdyno.media.document import (
    Block,
    Cell,
    Column,
    Document,
    FactList,
    RowGroup,
    Table,
    simple_table,
)
from webdyno.media.markdown import markdown
from webdyno.media.page import html

RATES = simple_table({"variant": "name", "ratio": "ratio"}, [["nginx", Cell("2×", below="1.5–3")]])


def printed(block: Block, width: int = 40) -> list[str]:
    return in_terminal(Document("", "", [block]), width).splitlines()


@pytest.mark.parametrize("width", [20, 40])
def test_terms_of_any_length_leave_half_of_the_line(width: int) -> None:
    lines = printed(FactList([("where " * 40, "said " * 40)]), width)
    assert max(map(cell_len, lines)) <= width
    assert "said" in lines[0]


def test_what_rows_share_is_said_once() -> None:
    table = Table(RATES.columns, [RowGroup([["2×"], ["3×"]], shared=["nginx"])])
    assert [line.split() for line in printed(table)] == [["ratio"], ["nginx", "2×"], ["3×"]]
    assert "| nginx | 2× |\n|  | 3× |" in markdown(Document("", "", [table]))
    assert 'rowspan="2"' in html(Document("", "", [table]), brand="", version="")


def test_a_second_line_has_a_column_of_its_own_so_that_a_cell_holds_one_figure() -> None:
    columns = [Column("variant", "name"), Column("ratio", "ratio", below="worst case")]
    table = Table(columns, [RowGroup([["nginx", Cell("2×", below="1.5–3")], ["node", "1×"]])])
    page = html(Document("", "", [table]), brand="", version="")
    assert '<th scope="col" class="num">worst case</th>' in page
    assert '2×</td>\n<td class="num ratio soft">1.5–3</td>' in page
    assert printed(table)[1].split() == ["nginx", "2×", "1.5–3"]
    assert "worst case" not in "".join(printed(Table(columns, [RowGroup([["node", "1×"]])])))
