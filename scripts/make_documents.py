# ruff: noqa: E501 - one document a line
"""Write the project's own documents and what a reader should find in them.

Guarantees: the same bytes on every machine and Python (nothing but the seed, the name of the
document and this code decides them); every expected value occurs in its document, because values
are marked where they are written. All names are invented; likeness to anyone real is chance.

`data/documents/*` are the documents, `data/templates/expected.jsonl` one line for each:
`{"document", "template", "fields": {name: [value, ...]}, "records": [{name: value}],
"spans": {name: {value: [[start, end], ...]}}}`. Values are written as the document writes them.
Spans are character offsets into the decoded text, end exclusive, and are given for .txt only:
the text of the other formats is decided by their loader.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

ROOT = Path(__file__).resolve().parent.parent
# The parts lie beside this script, whichever way it is started.
sys.path.insert(0, str(Path(__file__).resolve().parent))

from own_documents import announcements, contracts, deeds, judgments  # noqa: E402 - the path comes first
from own_documents.draft import (  # noqa: E402
    Draft,
    as_docx,
    as_html,
    as_markdown,
    as_text,
    locate_marks,
)  # fmt: skip

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True, slots=True)
class Plan:
    """One document to write: its file name, its template, and who writes it."""

    name: str
    template: str
    write: Callable[[Draft], None]
    encoding: str = "utf-8"


PLANS = (
    Plan("contracts/purchase_cable.txt", "采购合同", partial(contracts.purchase, trade="电缆", n_rows=3)),
    Plan("contracts/purchase_pumps.txt", "采购合同", partial(contracts.purchase, trade="流体设备", n_rows=6, n_general=9)),
    Plan("contracts/purchase_clothes.md", "采购合同", partial(contracts.purchase, trade="纺织", n_rows=2, n_general=2)),
    Plan("contracts/purchase_medical.docx", "采购合同", partial(contracts.purchase, trade="医疗器械", n_rows=8)),
    Plan("contracts/purchase_framework.txt", "采购合同", partial(contracts.purchase, trade="电气", n_rows=300, n_general=20)),
    Plan("contracts/purchase_gb18030.txt", "采购合同", partial(contracts.purchase, trade="办公用品", n_rows=5), "gb18030"),
    Plan("contracts/lease_factory.txt", "租赁合同", partial(contracts.lease, kind="厂房")),
    Plan("contracts/lease_shop.txt", "租赁合同", partial(contracts.lease, kind="商铺", n_general=0)),
    Plan("contracts/lease_office.md", "租赁合同", partial(contracts.lease, kind="写字楼")),
    Plan("contracts/lease_warehouse.docx", "租赁合同", partial(contracts.lease, kind="仓库", n_general=6)),
    Plan("contracts/construction_road.txt", "施工合同", partial(contracts.construction, works="{c}城东快速路第{n}标段")),
    Plan("contracts/construction_hospital.txt", "施工合同", partial(contracts.construction, works="{c}人民医院门诊综合楼工程", n_rows=90, n_general=16)),
    Plan("contracts/construction_pipes.md", "施工合同", partial(contracts.construction, works="{c}老旧小区改造配套管网工程", n_rows=12)),
    Plan("contracts/construction_reservoir.html", "施工合同", partial(contracts.construction, works="{c}水库除险加固工程第{n}标段", n_rows=20)),
    Plan("contracts/loan_working_capital.txt", "借款合同", deeds.loan),
    Plan("contracts/loan_guaranteed.txt", "借款合同", partial(deeds.loan, n_general=7)),
    Plan("contracts/loan_bridge.md", "借款合同", partial(deeds.loan, n_general=1)),
    Plan("contracts/service_maintenance.txt", "服务合同", partial(deeds.service, kind="信息系统运行维护")),
    Plan("contracts/service_property.txt", "服务合同", partial(deeds.service, kind="物业管理", n_general=10)),
    Plan("contracts/service_testing.md", "服务合同", partial(deeds.service, kind="第三方检测")),
    Plan("contracts/service_logistics.docx", "服务合同", partial(deeds.service, kind="仓储物流", n_general=3)),
    Plan("contracts/equity_single.txt", "股权转让协议", deeds.equity_transfer),
    Plan("contracts/equity_three_sellers.txt", "股权转让协议", partial(deeds.equity_transfer, n_sellers=3)),
    Plan("contracts/equity_two_sellers.md", "股权转让协议", partial(deeds.equity_transfer, n_sellers=2)),
    Plan("contracts/supplement.txt", "补充协议", deeds.supplement),
    Plan("announcements/bid_single_a.html", "中标公告", announcements.winning_bid),
    Plan("announcements/bid_single_b.html", "中标公告", announcements.winning_bid),
    Plan("announcements/bid_single_c.txt", "中标公告", announcements.winning_bid),
    Plan("announcements/bid_three_lots.html", "中标公告", partial(announcements.winning_bid, n_lots=3)),
    Plan("announcements/bid_five_lots.html", "中标公告", partial(announcements.winning_bid, n_lots=5)),
    Plan("announcements/bid_twelve_lots.html", "中标公告", partial(announcements.winning_bid, n_lots=12)),
    Plan("announcements/contract_a.html", "重大合同公告", announcements.major_contract),
    Plan("announcements/contract_b.html", "重大合同公告", announcements.major_contract),
    Plan("announcements/contract_c.html", "重大合同公告", announcements.major_contract),
    Plan("announcements/contract_d.txt", "重大合同公告", announcements.major_contract),
    Plan("announcements/contract_e.md", "重大合同公告", announcements.major_contract),
    Plan("announcements/related_three.html", "关联交易公告", announcements.related_party),
    Plan("announcements/related_six.html", "关联交易公告", partial(announcements.related_party, n_parties=6)),
    Plan("announcements/related_two.txt", "关联交易公告", partial(announcements.related_party, n_parties=2)),
    Plan("announcements/related_forty.html", "关联交易公告", partial(announcements.related_party, n_parties=40)),
    Plan("announcements/reduction_one.html", "减持公告", announcements.reduction),
    Plan("announcements/reduction_two.html", "减持公告", partial(announcements.reduction, n_holders=2)),
    Plan("announcements/reduction_four.html", "减持公告", partial(announcements.reduction, n_holders=4)),
    Plan("announcements/reduction_person.txt", "减持公告", announcements.reduction),
    Plan("announcements/dividend_a.html", "分红公告", announcements.dividend),
    Plan("announcements/dividend_b.html", "分红公告", announcements.dividend),
    Plan("announcements/dividend_c.txt", "分红公告", announcements.dividend),
    Plan("announcements/dividend_d.md", "分红公告", announcements.dividend),
    Plan("judgments/sale.txt", "民事判决书", partial(judgments.civil_judgment, cause="买卖合同纠纷")),
    Plan("judgments/construction.txt", "民事判决书", partial(judgments.civil_judgment, cause="建设工程施工合同纠纷")),
    Plan("judgments/loan.txt", "民事判决书", partial(judgments.civil_judgment, cause="金融借款合同纠纷")),
    Plan("judgments/lease.html", "民事判决书", partial(judgments.civil_judgment, cause="房屋租赁合同纠纷")),
)  # fmt: skip


def write_draft(plan: Plan) -> Draft:
    """The random stream belongs to the document's name: adding a document changes no other."""
    draft = Draft(plan.template, Random(f"featpipe documents 1 {plan.name}"))  # noqa: S311 - not a secret
    plan.write(draft)
    return draft


def render(plan: Plan, draft: Draft) -> bytes:
    """The bytes of the file; its suffix says in which format."""
    suffix = Path(plan.name).suffix
    if suffix == ".docx":
        return as_docx(draft)
    if suffix == ".html":
        return as_html(draft).encode(plan.encoding)
    if suffix == ".md":
        return as_markdown(draft).encode(plan.encoding)
    return locate_marks(as_text(draft))[0].encode(plan.encoding)


def expected(plan: Plan, draft: Draft) -> dict[str, object]:
    """The line of expected.jsonl."""
    spans = locate_marks(as_text(draft))[1] if plan.name.endswith(".txt") else {}
    return {
        "document": plan.name,
        "template": plan.template,
        "fields": draft.fields,
        "records": draft.records,
        "spans": spans,
    }


def make(data: Path) -> int:
    """Write all documents and expectations below `data`; returns how many documents."""
    lines = []
    for plan in PLANS:
        draft = write_draft(plan)
        path = data / "documents" / plan.name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(render(plan, draft))
        lines.append(json.dumps(expected(plan, draft), ensure_ascii=False) + "\n")
    (data / "templates").mkdir(parents=True, exist_ok=True)
    (data / "templates" / "expected.jsonl").write_bytes("".join(lines).encode())
    return len(lines)


def main() -> int:
    """Write everything and say how much it was."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, default=ROOT / "data", help="folder to write below")
    arguments = parser.parse_args()
    print(f"{make(arguments.data)} documents written below {arguments.data / 'documents'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
