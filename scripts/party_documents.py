"""Contracts and judgments that list the details of several parties alike, as a labelled set.

::

    python scripts/party_documents.py --show 3         # documents to read
    python scripts/party_documents.py --out rows.jsonl # all rows of the set

The documents are written by a program; companies and persons are made up. They are for measuring
whether a detail is given to the party that it is of (``eval_extraction.py --sets parties``), and
nothing is learnt from them. A contract lists its parties line by line, in one sentence each, side
by side, or below a place for their seals; which details there are, and in what order, varies, and
so does whether the list comes before the clauses or behind them. A judgment names the lawyers of
each side, one or several. What the text does not say is no value.
"""

from __future__ import annotations

import argparse
import json
import random
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    #: Details of a party in order, the first one its name: (label, value).
    Party = list[tuple[str, str]]

N_DOCUMENTS = 120
_SIDES = (("甲方", "乙方"), ("出租方", "承租方"), ("买方", "卖方"))
_FAMILY = "王李张刘陈杨赵黄周吴徐孙马朱胡林郭何高罗"
_GIVEN = "伟芳娜敏静丽强磊军洋勇艳杰娟涛明超秀霞平刚桂英华建国志文斌婷"
_CITIES = ("北京", "上海", "广州", "深圳", "杭州", "南京", "成都")
_DISTRICTS = ("北京市海淀区", "上海市浦东新区", "杭州市西湖区", "深圳市南山区", "南京市鼓楼区")


def _person(chance: random.Random) -> str:
    return chance.choice(_FAMILY) + "".join(chance.sample(_GIVEN, chance.choice((1, 2))))


def _company(chance: random.Random) -> str:
    name = "".join(chance.sample("华宏达信诚德盛泰恒鑫瑞丰", 2))
    trade = chance.choice(("科技", "贸易", "建筑工程", "置业", "物流"))
    return chance.choice(_CITIES) + name + trade + chance.choice(("有限公司", "股份有限公司"))


def _address(chance: random.Random) -> str:
    road = chance.choice(("中山", "解放", "人民", "建设", "科技"))
    end = chance.choice(("路", "大道", "街"))
    return f"{chance.choice(_DISTRICTS)}{road}{end}{chance.randint(1, 999)}号"


def _telephone(chance: random.Random) -> str:
    if chance.random() < 0.5:
        return f"0{chance.randint(10, 29)}-{chance.randint(20_000_000, 89_999_999)}"
    return f"1{chance.choice('3578')}{chance.randint(10**8, 10**9 - 1)}"


def _bank(chance: random.Random) -> str:
    bank = chance.choice(("中国工商银行", "招商银行", "中国建设银行"))
    return bank + chance.choice(_CITIES) + chance.choice(("分行", "海淀支行", "天河支行"))


def _account(chance: random.Random) -> str:
    return "".join(chance.choices("0123456789", k=chance.choice((16, 19))))


_DETAILS: dict[str, Callable[[random.Random], str]] = {
    "法定代表人": _person, "地址": _address, "电话": _telephone, "开户行": _bank,
    "账号": _account, "联系人": _person,
}  # fmt: skip


def _party(chance: random.Random) -> Party:
    """A party's details, most of those there may be; a few of no field among them."""
    labels = list(_DETAILS)
    if chance.random() < 0.35:
        chance.shuffle(labels)
    found = [("", _company(chance))]
    for label in labels:
        if chance.random() < 0.8:
            found.append((label, _DETAILS[label](chance)))
        if chance.random() < 0.1:
            found.append(("邮编", str(chance.randint(100_000, 999_999))))
    return found


def _by_lines(names: tuple[str, str], parties: tuple[Party, Party]) -> str:
    return "\n".join(
        f"{label or name}：{value}"
        for name, party in zip(names, parties, strict=True)
        for label, value in party
    )


def _in_sentences(names: tuple[str, str], parties: tuple[Party, Party]) -> str:
    return "\n".join(
        "，".join(f"{label or name}：{value}" for label, value in party) + "。"
        for name, party in zip(names, parties, strict=True)
    )


def _side_by_side(names: tuple[str, str], parties: tuple[Party, Party]) -> str:
    columns = [
        [f"{label or name}：{value}" for label, value in party]
        for name, party in zip(names, parties, strict=True)
    ]
    return _columns(columns[0], columns[1])


def _below_seals(names: tuple[str, str], parties: tuple[Party, Party]) -> str:
    columns = [
        [f"{name}（盖章）", *(f"{label or '名称'}：{value}" for label, value in party)]
        for name, party in zip(names, parties, strict=True)
    ]
    return _columns(columns[0], columns[1])


def _columns(left: list[str], right: list[str]) -> str:
    width = max(map(len, left)) + 6
    lines = zip_longest(left, right, fillvalue="")
    return "\n".join(f"{one:<{width}}{other}".rstrip() for one, other in lines)


_LAYOUTS = (_by_lines, _in_sentences, _side_by_side, _below_seals)


def make_contract(chance: random.Random, names: tuple[str, str]) -> tuple[str, dict]:
    """A text and its values by field."""
    parties = _party(chance), _party(chance)
    listed = chance.choice(_LAYOUTS)(names, parties)
    clauses = (
        f"根据《中华人民共和国民法典》，双方就{chance.choice(('设备采购', '房屋租赁', '软件开发'))}"
        f"事宜协商一致，订立本合同。\n第一条 合同金额为人民币{chance.randint(10, 900)}000元。\n"
        f"第二条 付款方式：{chance.choice(('一次性付清', '分三期支付'))}。\n"
        f"第三条 争议由{names[0]}所在地人民法院管辖。"
    )
    number = chance.choice(("", f"合同编号：HT-2023-{chance.randint(1, 999):03}\n"))
    parts = chance.sample((listed, clauses), 2)
    fields = {
        name + label: [value]
        for name, party in zip(names, parties, strict=True)
        for label, value in party
        if label in {"", *_DETAILS}
    }
    return f"合同书\n{number}" + "\n".join(parts) + "\n", fields


def make_judgment(chance: random.Random) -> tuple[str, dict]:
    """A text and its values by field."""
    sides = [chance.choice((_person, _company))(chance) for _ in range(2)]
    lawyers = [[_person(chance) for _ in range(chance.choice((1, 2)))] for _ in range(2)]
    firms = chance.sample(("宏达", "信诚", "德盛", "泰恒"), 2)
    judge, clerk = _person(chance), _person(chance)
    mark = chance.choice("、，和")
    blocks = "".join(
        f"{name}：{side}，住所地{_address(chance)}。\n"
        f"委托诉讼代理人：{mark.join(own)}，{firm}律师事务所律师。\n"
        for name, side, own, firm in zip(("原告", "被告"), sides, lawyers, firms, strict=True)
    )
    text = (
        f"{chance.choice(_DISTRICTS)}人民法院\n民事判决书\n"
        f"（2023）京0108民初{chance.randint(1000, 99_999)}号\n{blocks}"
        f"原告{sides[0]}与被告{sides[1]}买卖合同纠纷一案，本院立案后，依法公开开庭进行了审理。\n"
        f"判决如下：被告{sides[1]}于本判决生效之日起十日内支付货款{chance.randint(1, 90)}0000元。\n"
        f"审判员　{judge}\n书记员　{clerk}\n"
    )
    fields = {"原告": [sides[0]], "被告": [sides[1]], "原告律师": lawyers[0],
              "被告律师": lawyers[1], "审判员": [judge], "书记员": [clerk]}  # fmt: skip
    return text, fields


def make_rows() -> list[dict]:
    """All documents of the set, the same in every run."""
    rows = []
    for number, names in enumerate((*_SIDES, None)):
        template = "judgment" if names is None else f"contract {number + 1}"
        for at in range(N_DOCUMENTS):
            chance = random.Random(f"{template} {at}")  # noqa: S311  # a draw, no secret
            text, fields = make_judgment(chance) if names is None else make_contract(chance, names)
            rows.append(
                {"doc_id": f"{template} {at}", "template": template, "text": text, "fields": fields}
            )
    return rows


def main() -> None:
    """Read the options, write."""
    parser = argparse.ArgumentParser(description="Documents with the details of several parties.")
    parser.add_argument("--show", type=int, default=0, help="documents of each template to print")
    parser.add_argument("--out", type=Path, help="file for all rows, as JSON Lines")
    options = parser.parse_args()
    rows = make_rows()
    for row in rows:
        if int(row["doc_id"].rpartition(" ")[2]) < options.show:
            print(row["text"], json.dumps(row["fields"], ensure_ascii=False), sep="\n", end="\n\n")
    if options.out:
        lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        options.out.write_text("".join(lines), "utf-8")


if __name__ == "__main__":
    main()
