"""Headers of table cells. Oracle: what each cell says and whose it is, written beside the table."""

from __future__ import annotations

import pytest

from featpipe.extraction.scoring.features import PageFeatures
from featpipe.extraction.scoring.page import page_of_text
from featpipe.extraction.tables.table_headers import row_numbers, table_headers

#: Row, column, start, end, rows spanned, columns spanned.
Cell = tuple[int, int, int, int, int, int]
Spanning = dict[str, tuple[int, int]]


def table_of(rows: str, spanning: Spanning | None = None) -> tuple[str, list[Cell]]:
    """A text of rows with tabs, and its cells; "-" is covered by a cell that spans it."""
    text = rows.replace("-", "")
    cells: list[Cell] = []
    at = 0
    for row, line in enumerate(rows.split("\n")):
        for column, words in enumerate(line.split("\t")):
            if words == "-":
                at += 1
                continue
            down, across = (spanning or {}).get(words, (1, 1))
            cells.append((row, column, at, at + len(words), down, across))
            at += len(words) + 1
    return text, cells


def headers_of(rows: str, spanning: Spanning | None = None) -> dict[str, tuple[str, str]]:
    """Words of each cell with a header: the header, and the party."""
    text, cells = table_of(rows, spanning)
    return {
        text[one.start : one.end]: (one.label, one.party)
        for one in table_headers(text, [(0, len(text), cells)])
    }


def test_a_cell_knows_the_header_of_its_column() -> None:
    text, cells = table_of("项目\t金额\t备注\n甲工程\t3万元\t急\n乙工程\t4万元\t缓")
    empty = [(3, 0, len(text), len(text), 1, 1), (3, 2, len(text), len(text), 1, 1)]
    marks = table_headers(text, [(0, len(text), [*cells, *empty])])
    assert [(text[m.start : m.end], m.label, m.party) for m in marks] == [
        ("甲工程", "项目", ""), ("3万元", "金额", ""), ("急", "备注", ""),
        ("乙工程", "项目", ""), ("4万元", "金额", ""), ("缓", "备注", ""),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (  # two parties side by side
            "甲方\t宏达公司\t乙方（盖章）\t泰恒公司\n联系人\t王伟\t联系人\t张桂超\n电话\t010\t电话\t0571",
            {
                "宏达公司": ("甲方", "甲方"), "泰恒公司": ("乙方（盖章）", "乙方"),
                "王伟": ("联系人", "甲方"), "张桂超": ("联系人", "乙方"),
                "010": ("电话", "甲方"), "0571": ("电话", "乙方"),
            },
        ),
        (  # one below the other
            "甲方\t宏达公司\n地址\t北京\n乙方\t泰恒公司\n地址\t杭州",
            {
                "宏达公司": ("甲方", "甲方"), "北京": ("地址", "甲方"),
                "泰恒公司": ("乙方", "乙方"), "杭州": ("地址", "乙方"),
            },
        ),
        (  # parties head the columns, and what is told of them the rows
            "事项\t甲方\t乙方\n联系人\t王伟\t张桂超",
            {"联系人": ("事项", ""), "王伟": ("联系人", "甲方"), "张桂超": ("联系人", "乙方")},
        ),
        (  # a form without parties
            "合同编号\tHT1\t签订日期\t2023年\n付款方式\t一次\t交货日期\t2024年",
            {
                "HT1": ("合同编号", ""), "2023年": ("签订日期", ""),
                "一次": ("付款方式", ""), "2024年": ("交货日期", ""),
            },
        ),
        (  # labels and values in the cells themselves
            "甲方：宏达公司\t乙方：泰恒公司\n电话：010\t电话：0571\n邮编：1\t邮编：2",
            {},
        ),
        (  # places for seals
            "甲方（盖章）\t乙方（盖章）\n电话：010\t电话：0571",
            {"电话：010": ("甲方（盖章）", "甲方"), "电话：0571": ("乙方（盖章）", "乙方")},
        ),
        (  # a form of labels that are not known, by the values of its first row
            "车牌号码\t浙A73925\t登记人\t陆青\n停放区域\t东侧\t值守班组\t二班",
            {
                "浙A73925": ("车牌号码", ""), "陆青": ("登记人", ""),
                "东侧": ("停放区域", ""), "二班": ("值守班组", ""),
            },
        ),
        (  # by a day
            "Checked\t12 Mar 2024\tState\tdry\nRoof\tsound\tDoors\tworn",
            {
                "12 Mar 2024": ("Checked", ""), "dry": ("State", ""),
                "sound": ("Roof", ""), "worn": ("Doors", ""),
            },
        ),
        (  # days, and years with words, head columns
            "名目\t2023年6月30日\t摘要\t2022年6月30日\n存货\t三百\t甲\t二百",
            {
                "存货": ("名目", ""), "三百": ("2023年6月30日", ""),
                "甲": ("摘要", ""), "二百": ("2022年6月30日", ""),
            },
        ),
        (
            "持有者\t2022年末份数\t种类\t2023年末份数\n陆青\t三百\t普通\t二百",
            {
                "陆青": ("持有者", ""), "三百": ("2022年末份数", ""),
                "普通": ("种类", ""), "二百": ("2023年末份数", ""),
            },
        ),
        (  # rows of companies below parties: no labels at the left
            "标段\t发包人\t承包人\n东段\t宏达公司\t泰恒公司",
            {
                "东段": ("标段", ""), "宏达公司": ("发包人", "发包人"),
                "泰恒公司": ("承包人", "承包人"),
            },
        ),
        (  # heads that count
            "内容\t第一笔\t第二笔\n冻结股数\t450\t700\n期末余额\t31\t24",
            {
                "冻结股数": ("内容", ""), "450": ("冻结股数", ""), "700": ("冻结股数", ""),
                "期末余额": ("内容", ""), "31": ("期末余额", ""), "24": ("期末余额", ""),
            },
        ),
        (  # four columns of data
            "姓名\t职务\t部门\t城市\n张三\t经理\t销售部\t北京",
            {
                "张三": ("姓名", ""), "经理": ("职务", ""),
                "销售部": ("部门", ""), "北京": ("城市", ""),
            },
        ),
    ],
    ids=["beside", "below", "columns", "form", "labelled", "seals", "unknown", "day", "days",
         "years", "parties", "ordinals", "data"],
)  # fmt: skip
def test_a_cell_knows_its_label_and_its_party(
    rows: str, expected: dict[str, tuple[str, str]]
) -> None:
    assert headers_of(rows) == expected


def test_a_party_at_the_left_of_several_rows_has_them() -> None:
    rows = "甲方\t名称\t宏达公司\n-\t地址\t北京\n乙方\t名称\t泰恒公司\n-\t地址\t杭州"
    found = headers_of(rows, {"甲方": (2, 1), "乙方": (2, 1)})
    assert found == {
        "宏达公司": ("名称", "甲方"), "北京": ("地址", "甲方"),
        "泰恒公司": ("名称", "乙方"), "杭州": ("地址", "乙方"),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("rows", "numbers"),
    [
        ("包号\t货物\t金额（万元）\n1\t电缆\t3,000\n2\t变压器\t2,000", ["1", "2"]),
        ("序号\t货物\t金额（万元）\n01\t电缆\t3,000", ["01"]),
        ("货物\t第几批\t金额（亿元）\n电缆\t1\t1\n变压器\t2\t2\n开关\t3\t3", ["1", "2", "3"]),
        ("货物\t数量\t金额（万元）\n电缆\t1\t3,000\n变压器\t1\t2,000", []),
        ("货物\t数量\t金额（万元）\n电缆\t5\t3,000\n变压器\t6\t2,000", []),
    ],
)
def test_what_counts_the_rows_of_a_table_is_no_amount(rows: str, numbers: list[str]) -> None:
    text, cells = table_of(rows)
    found = list(row_numbers(text, table_headers(text, [(0, len(text), cells)])))
    assert [text[start:end] for start, end in found] == numbers
    features = PageFeatures(page_of_text(text, tables=[(0, len(text), cells)]))
    covered = features.no_amounts("money").covered
    assert all(covered[end] > covered[start] for start, end in found)
