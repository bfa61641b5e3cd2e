"""Labels of forms that have no colon: filled-in blanks, gaps, and details in a row."""

from __future__ import annotations

import pytest
from test_statements import first

from featpipe.extraction.names.form_labels import find_form_labels
from featpipe.extraction.values.text import fold_width

LEASE = (
    "租赁合同\n出租方（甲方）___沈玉芬___  身份证号___310107196809124423___\n"
    "承租方（乙方）___罗逸舟___  身份证号___420111199503087713___\n"
)
BANK = (
    "合同\n甲方：天成公司\n乙方：华信公司\n3.3 乙方收款信息\n"
    "    户  名  华信公司\n    开户行  长江银行武昌支行\n"
)
CONTACTS = (
    "保密协议\n披露方：天成公司\n接收方：华信公司\n"
    "致披露方：收件人 严培，邮箱 yan@tc.example，电话 0512-62994801\n"
    "致接收方：收件人 程宁，邮箱 cheng@hx.example，电话 0571-88602237\n"
)


def labels(text: str) -> list[tuple[str, str, str]]:
    folded = fold_width(text)
    return [(x.words, x.qualifier, folded[x.value : x.end]) for x in find_form_labels(folded)]


def test_blanks_that_were_filled_in_and_gaps_part_known_labels_from_values() -> None:
    assert labels(LEASE) == [
        ("出租方", "甲方", "沈玉芬"),
        ("身份证号", "", "310107196809124423"),
        ("承租方", "乙方", "罗逸舟"),
        ("身份证号", "", "420111199503087713"),
    ]
    assert labels(BANK)[-1] == ("开户行", "", "长江银行武昌支行")
    # Two places for seals, two labels, an unknown word.
    assert labels("甲方（盖章）        乙方（盖章）\n采购人    供应商\n里程碑    交付物\n") == []


def test_details_stand_in_a_row() -> None:
    text = "联系人 李四 电话 0571-1234567，邮箱 li@x.example；他的电话 不通。\n"
    assert labels(text) == [
        ("联系人", "", "李四"),
        ("电话", "", "0571-1234567"),
        ("邮箱", "", "li@x.example"),
    ]


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        (LEASE, "甲方身份证号", "310107196809124423"),
        (LEASE, "乙方身份证号", "420111199503087713"),
        (BANK, "乙方开户行", "长江银行武昌支行"),
        (CONTACTS, "接收方邮箱", "cheng@hx.example"), (CONTACTS, "披露方电话", "0512-62994801"),
        (CONTACTS, "接收方收件人", "程宁"),
    ],
)  # fmt: skip
def test_details_are_those_of_the_party_above_or_beside(text: str, name: str, value: str) -> None:
    assert first(text, name) == value


@pytest.mark.parametrize(
    "text", ["甲方" + " " * 300_000 + ":", "甲" * 300_000, "甲方__" * 60_000, "电话 " * 60_000]
)
def test_long_runs_of_one_sign_are_read_once(text: str) -> None:
    # Squared time would take hours on these; the suite's own time limit is the assertion.
    assert not [*find_form_labels(text)]
