# ruff: noqa: E501 - the sentences of the documents stand unbroken
"""Loan, service and equity transfer contracts, and a short supplement."""

from __future__ import annotations

from typing import TYPE_CHECKING

from own_documents import clauses, names
from own_documents.articles import (
    Article,
    Party,
    draw_number,
    write_articles,
    write_parties,
    write_signatures,
)  # fmt: skip
from own_documents.figures import (
    cn,
    cn_numerals,
    dashed,
    draw_amount,
    draw_date,
    later,
    small_number,
)  # fmt: skip

if TYPE_CHECKING:
    from own_documents.draft import Draft

BANKS = ("农村商业银行", "城市商业银行", "村镇银行")


def loan(draft: Draft, *, n_general: int = 3) -> None:
    """A bank or company loan with a guarantor."""
    rng, mark = draft.rng, draft.mark
    day = draw_date(rng)
    city = names.draw_place(rng)[1]
    bank = f"{names.short_city(city)}{names.draw_brand(rng)}{rng.choice(BANKS)}股份有限公司"
    lender = Party(
        "贷款人",
        draft.pick(
            bank, f"{bank}{names.draw_place(rng)[2]}支行", names.draw_company(rng, "invest")
        ),
    )
    borrower = Party("借款人", names.draw_company(rng, rng.choice(("goods", "listed", "building"))))
    guarantor = Party(
        "保证人", draft.pick(names.draw_person(rng), names.draw_company(rng, "invest"))
    )
    amount = draw_amount(rng, 50, 30000)
    months = rng.choice((6, 12, 24, 36))
    end = later(day, months * 30 + rng.randrange(10))
    rate = mark("年利率", f"{rng.uniform(3.2, 11.5):.2f}%")
    draft.add("title", draft.pick("流动资金借款合同", "借款合同", "保证借款合同"))
    draft.add("line", f"编号：{mark('合同编号', draw_number(rng, '借', day.year))}")
    write_parties(draft, [lender, borrower, guarantor])
    articles: list[Article] = [
        ("借款金额", [f"贷款人同意向借款人发放借款人民币（大写）{amount.capitals.removeprefix('人民币')}，小写{mark('借款金额', amount.wan if rng.random() < 0.5 else amount.yuan)}。"]),
        ("借款用途", [f"本合同项下借款用于{mark('借款用途', draft.pick('采购原材料', '补充流动资金', '支付工程款', '置换他行贷款'))}。未经贷款人书面同意，借款人不得改变借款用途。"]),
        ("借款期限", [f"借款期限{mark('借款期限', small_number(months) + '个月')}，自{mark('起息日', cn(day))}起至{mark('到期日', cn(end))}止。实际放款日与上述日期不一致的，以借据所载日期为准。"]),
        ("利率与结息", [f"借款年利率为{rate}，{draft.pick('按月结息，每月20日为结息日', '按季结息，每季末月的20日为结息日')}，到期利随本清。",
                   "借款人未按期归还借款本金的，贷款人自逾期之日起按约定利率上浮百分之五十计收罚息。"]),
        ("还款", [draft.pick("借款人应于到期日一次性归还全部本金。", f"借款人应自放款后第七个月起每季度归还本金{amount.share(10).yuan}，余额到期一次性付清。"),
                "借款人提前还款的，应提前三十日书面通知贷款人并征得其同意。"]),
        ("担保", [f"{mark('保证人', guarantor.name)}为借款人在本合同项下的全部债务提供连带责任保证，保证期间为主债务履行期限届满之日起三年。",
                "保证范围包括借款本金、利息、罚息、违约金、损害赔偿金以及贷款人实现债权的费用。"]),
        ("借款人的承诺", ["按贷款人要求提供真实、完整的财务报表及其他资料，并接受贷款人对借款使用情况的检查。",
                    "发生合并、分立、减资、股权转让、重大诉讼等可能影响偿债能力的事项，应提前书面通知贷款人。"]),
        *clauses.closing(rng, "借款人", "贷款人", city, n_general, is_delivery=False),
    ]  # fmt: skip
    write_articles(draft, articles)
    write_signatures(draft, [lender, borrower, guarantor], cn(day))


SERVICES = {"信息系统运行维护": "系统巡检、故障处理、数据备份、版本升级", "物业管理": "秩序维护、环境保洁、设备设施运行、绿化养护",
    "环境影响评价": "现状监测、报告书编制、专家评审、报批跟进", "第三方检测": "抽样、送检、出具报告、异议复检",
    "财务顾问": "尽职调查、方案设计、材料制作、申报协调", "仓储物流": "入库验收、分拣打包、干线运输、末端配送",
    "数据标注": "规则制定、文本标注、交叉校验、成果交付",}  # fmt: skip


def service(draft: Draft, *, kind: str, n_general: int = 5) -> None:
    """Services with milestones and fees in a table."""
    rng, mark = draft.rng, draft.mark
    day = draw_date(rng)
    content = SERVICES[kind]
    city = names.draw_place(rng)[1]
    client = Party("委托方", names.draw_company(rng, rng.choice(("listed", "estate", "goods"))))
    agent = Party("受托方", names.draw_company(rng, "service"))
    fee = draw_amount(rng, 6, 900)
    end = later(day, rng.choice((90, 180, 364, 729)))
    draft.add("title", draft.pick(f"{kind}服务合同", f"{kind}委托协议"))
    draft.add("line", f"合同编号：{mark('合同编号', draw_number(rng, 'FW', day.year))}")
    write_parties(draft, [client, agent])
    draft.add(
        "para",
        f"委托方因经营管理需要，委托受托方提供{kind}服务。双方本着互利共赢、诚实信用的原则，签订本合同。",
    )
    articles: list[Article] = [
        ("服务内容", [f"受托方向委托方提供的服务包括：{mark('服务内容', content)}。", "服务的具体范围、频次和质量要求见附件《服务说明书》。"]),
        ("服务期限", [f"服务期自{mark('开始日期', cn(day))}至{mark('结束日期', cn(end))}。期满前三十日内双方均未提出异议的，{draft.pick('自动顺延一年', '可另行协商续签')}。"]),
        ("服务费用", [f"服务费总额为{mark('服务费', fee.wan)}，大写：{fee.capitals}，该费用为固定包干价。",
                  "委托方按下表约定的节点支付服务费，受托方应在每次付款前开具增值税发票。"]),
        ("委托方的权利义务", ["及时提供开展服务所必需的资料、场地和工作条件，并对资料的真实性负责。", "有权对服务过程进行监督检查，对不合格的服务要求限期整改。"]),
        ("受托方的权利义务", ["按照约定的标准和期限完成服务工作，按时提交工作成果。", f"指派{mark('项目负责人', names.draw_person(rng))}为项目负责人，负责与委托方的日常联络。",
                     draft.pick("接到故障报告后应在2小时内响应，8小时内到达现场。", "每月5日前向委托方提交上月服务报告。")]),
        ("成果验收", [f"受托方提交成果后，委托方应在{rng.choice(('五', '十', '十五'))}个工作日内组织验收，逾期未提出书面异议的视为验收合格。"]),
        *clauses.closing(rng, "委托方", "受托方", city, n_general),
    ]  # fmt: skip
    write_articles(draft, articles)
    shares = rng.choice(((30, 40, 30), (50, 50), (20, 30, 40, 10)))
    stages = rng.sample(("合同生效", "方案确认", "中期成果提交", "试运行", "最终验收"), len(shares))
    draft.table([["付款节点", "比例", "金额"],
                 *([s, f"{p}%", fee.share(p).yuan] for s, p in zip(stages, shares, strict=True))])  # fmt: skip
    write_signatures(draft, [client, agent], dashed(day) if rng.random() < 0.3 else cn(day))


def equity_transfer(draft: Draft, *, n_sellers: int = 1, n_general: int = 4) -> None:
    """Transfer of shares in one company by one or several sellers: one record each."""
    rng, mark = draft.rng, draft.mark
    day = draw_date(rng)
    city = names.draw_place(rng)[1]
    target = names.draw_company(rng, "goods", form="有限公司")
    buyer = Party("受让方", names.draw_company(rng, "invest"))
    sellers = [Party("转让方", draft.pick(names.draw_person(rng), names.draw_company(rng, "invest")))
               for _ in range(n_sellers)]  # fmt: skip
    draft.add("title", draft.pick("股权转让协议", f"关于{target}之股权转让协议"))
    write_parties(draft, [*sellers, buyer])
    rows, lines = [["转让方", "转让比例", "对应出资额", "转让价款"]], []
    for seller in sellers:
        share, price = f"{rng.uniform(4, 48 / n_sellers):.2f}%", draw_amount(rng, 80, 26000)
        capital = draw_amount(rng, 50, 3000).wan
        record = {"转让方": seller.name, "转让比例": share, "转让价款": price.wan}
        draft.records.append(record)
        name, part, money = (mark(key, value) for key, value in record.items())
        rows.append([name, part, capital, money])
        lines.append(
            f"{name}同意将其持有的标的公司{part}的股权以{money}的价格转让给受让方，受让方同意受让。"
        )
    draft.add(
        "para",
        f"鉴于：{mark('标的公司', target)}（以下简称“标的公司”）系依法设立并有效存续的有限责任公司，注册资本为{draw_amount(rng, 1000, 20000).wan}；转让方合法持有标的公司的股权并愿意转让，受让方愿意受让。各方经协商一致，达成协议如下：",
    )
    articles: list[Article] = [
        ("股权转让", lines),
        ("定价依据", [f"各方同意，以{cn(later(day, -rng.randrange(60, 200)))}为基准日，参考{names.draw_brand(rng)}资产评估有限公司出具的评估报告，协商确定转让价款。"]),
        ("价款支付", [f"本协议生效之日起{rng.choice((5, 10, 15))}个工作日内，受让方支付转让价款的{rng.choice((30, 50, 60))}%；工商变更登记完成后十个工作日内，付清其余价款。"]),
        ("交割", ["转让方应配合标的公司在收到首期价款后二十个工作日内办理股东名册变更及工商变更登记手续，变更登记完成之日为交割日。",
                "自交割日起，受让方享有标的股权对应的股东权利并承担股东义务。"]),
        ("过渡期安排", ["自基准日至交割日期间标的公司产生的盈利由受让方享有，亏损由转让方按转让比例承担。"]),
        ("转让方的陈述与保证", ["标的股权不存在质押、冻结、查封等权利受限情形，不存在任何第三方的权利主张。", "转让方已如实披露标的公司的债务及对外担保，未披露的债务由转让方承担。"]),
        *clauses.closing(rng, "受让方", "转让方", city, n_general, is_delivery=False),
    ]  # fmt: skip
    write_articles(draft, articles)
    if n_sellers > 1:
        draft.table(rows)
    write_signatures(draft, [*sellers, buyer], cn_numerals(day) if rng.random() < 0.5 else cn(day))


def supplement(draft: Draft) -> None:
    """The shortest contract there is: about a hundred characters."""
    rng, mark = draft.rng, draft.mark
    day = draw_date(rng)
    first, second = names.draw_company(rng, "goods"), names.draw_company(rng, "service")
    draft.add("title", "补充协议")
    draft.add(
        "para",
        f"{mark('甲方', first)}与{mark('乙方', second)}同意将原合同的交货日期延至{mark('交货日期', cn(later(day, 45)))}，{first}应在新的交货日期前备妥全部货物并书面通知{second}验收，由此增加的仓储费用由{first}承担。其余条款不变。本协议自双方盖章之日起生效。",
    )
    draft.add("sign", mark("签订日期", cn(day)))
