# ruff: noqa: E501 - the sentences of the documents stand unbroken
"""Announcements of listed companies: winning bids, major contracts, related parties, reductions, dividends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from own_documents import names
from own_documents.figures import (
    Amount,
    cn,
    cn_numerals,
    dashed,
    draw_amount,
    draw_date,
    later,
    percent,
)  # fmt: skip

if TYPE_CHECKING:
    from random import Random

    from own_documents.draft import Draft

OATHS = (
    "本公司及董事会全体成员保证公告内容的真实、准确、完整，不存在虚假记载、误导性陈述或者重大遗漏。",
    "本公司董事会及全体董事保证本公告内容不存在任何虚假记载、误导性陈述或者重大遗漏，并对其内容的真实性、准确性和完整性承担个别及连带责任。",
)
RISKS = (
    "合同在履行过程中如遇到市场、经济、政治等不可预计的或不可抗力等因素的影响，有可能影响合同正常履行，敬请广大投资者注意投资风险。",
    "项目的具体执行存在不确定性，最终以正式签订的合同为准。公司将根据进展情况及时履行信息披露义务，敬请投资者谨慎决策，注意投资风险。",
    "本合同履行期限较长，存在因原材料价格波动、政策调整等导致项目收益不及预期的风险。",
)
CLIENTS = ("{c}公共资源交易中心", "{c}水务集团有限公司", "{c}交通投资建设集团有限公司", "{c}供电局",
           "{c}轨道交通集团有限公司", "{c}生态环境局", "{c}第三人民医院")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Listed:
    """A listed company and how it calls itself."""

    name: str
    short: str
    code: str


def draw_listed(rng: Random) -> Listed:
    """A company of the exchange, with a code that none has."""
    brand, line = names.draw_brand(rng), rng.choice(names.TRADES["listed"])
    province = names.draw_place(rng)[0].removesuffix("省")[:2]
    # 68xxxx-like and 00xxxx-like numbers in ranges that no exchange has given out.
    code = rng.choice(
        (
            f"0099{rng.randrange(10, 99)}",
            f"6999{rng.randrange(10, 99)}",
            f"3099{rng.randrange(10, 99)}",
        )
    )
    return Listed(f"{province}{brand}{line}股份有限公司", brand + line[:2], code)


def open_announcement(draft: Draft, title: str, year: int) -> Listed:
    """Codes, company, title, oath: the head that all announcements share."""
    rng, mark = draft.rng, draft.mark
    listed = draw_listed(rng)
    number = f"{year}-{rng.randrange(1, 160):03d}"
    draft.add(
        "line",
        f"证券代码：{mark('证券代码', listed.code)}　证券简称：{mark('证券简称', listed.short)}　公告编号：{mark('公告编号', number)}",
    )
    draft.add("title", f"{listed.name}{title}")
    draft.add("para", rng.choice(OATHS))
    return listed


def close_announcement(draft: Draft, listed: Listed, text_date: str, *, files: bool = True) -> None:
    """Files for inspection, the closing formula, who signs and when."""
    rng = draft.rng
    if files and rng.random() < 0.5:
        draft.add("heading", "备查文件")
        draft.add(
            "para",
            draft.pick(
                "1、中标通知书；2、公司董事会决议。",
                "1、双方签署的合同文本；2、深圳证券交易所要求的其他文件。",
                "1、第五届董事会第十二次会议决议；2、独立董事事前认可意见。",
            ),
        )
    draft.add("para", "特此公告。")
    draft.add("sign", listed.name + "董事会")
    draft.add("sign", draft.mark("公告日期", text_date))


def winning_bid(draft: Draft, *, n_lots: int = 1) -> None:
    """One or several lots won; several lots stand in a table, one record each."""
    rng, mark = draft.rng, draft.mark
    day = draw_date(rng, 2016)
    listed = open_announcement(
        draft,
        draft.pick("关于项目中标的公告", "关于收到中标通知书的公告", "关于子公司中标的提示性公告"),
        day.year,
    )
    winner = names.draw_company(rng, "building") if rng.random() < 0.4 else listed.name
    rows, total = _draw_lots(draft, n_lots)
    own = "公司" if winner == listed.name else f"公司全资子公司{winner}"
    if n_lots == 1:
        project, client, money = rows[1][1:4]
        draft.add(
            "para",
            f"{listed.name}（以下简称“公司”）于{cn(day)}收到{client}发来的中标通知书，确定{own}为“{project}”的中标人，中标金额为人民币{money}。",
        )
        draft.add("heading", "一、中标项目的主要内容")
        draft.add(
            "para",
            f"1、项目名称：{project}",
            f"2、招标人：{client}",
            f"3、中标人：{mark('中标人', winner)}",
            f"4、中标价：{money}",
            f"5、工期：{rows[1][4]}",
        )
    else:
        draft.add(
            "para",
            f"{listed.name}（以下简称“公司”）近日陆续收到中标通知书，{own}中标{n_lots}个项目，中标金额合计{mark('中标总金额', total.wan)}。",
        )
        draft.add("heading", "一、中标项目的具体情况")
        draft.add("para", f"{mark('中标人', winner)}为下列项目的中标人：")
        draft.table(rows)
    draft.add("heading", "二、交易对方情况")
    draft.add(
        "para",
        f"招标人与公司及公司控股股东、实际控制人之间不存在关联关系，最近一个会计年度与公司{draft.pick('未发生类似业务', f'发生类似业务的金额为{draw_amount(rng, 10, 900).wan}')}。",
    )
    draft.add("heading", "三、中标对公司业绩的影响")
    draft.add(
        "para",
        f"上述项目中标金额约占公司最近一个会计年度经审计营业总收入的{percent(rng, 0.8, 46)}，{draft.pick('项目的实施将对公司未来经营业绩产生积极的影响', '预计对公司当期业绩影响较小')}。项目的履行不影响公司业务的独立性。",
    )
    draft.add("heading", "四、风险提示")
    draft.add("para", rng.choice(RISKS))
    close_announcement(draft, listed, cn(day) if rng.random() < 0.6 else cn_numerals(day))


def _draw_lots(draft: Draft, n_lots: int) -> tuple[list[list[str]], Amount]:
    """The table of lots with their marks, and what they add up to."""
    rng, total = draft.rng, 0
    rows = [["序号", "项目名称", "招标人", "中标金额", "工期"]]
    for number in range(1, n_lots + 1):
        city = names.draw_place(rng)[1]
        price = draw_amount(rng, 180, 62000)
        total += price.fen
        record = {
            "项目名称": names.draw_project(rng, names.short_city(city)),
            "招标人": rng.choice(CLIENTS).format(c=city),
            "中标金额": price.yi
            if price.fen > 10_000_000_000 and rng.random() < 0.5
            else price.wan,
        }
        draft.records.append(record)
        marked = [draft.mark(key, value) for key, value in record.items()]
        rows.append([str(number), *marked, f"{rng.choice((90, 150, 300, 730))}日历天"])
    return rows, Amount(total)


def major_contract(draft: Draft) -> None:
    """A significant contract with terms in list or table."""
    rng, mark = draft.rng, draft.mark
    day = draw_date(rng, 2016)
    listed = open_announcement(
        draft,
        draft.pick("关于签订重大合同的公告", "关于签署日常经营重大合同的公告", "重大合同公告"),
        day.year,
    )
    city = names.short_city(names.draw_place(rng)[1])
    other, project = names.draw_company(rng, "listed"), names.draw_project(rng, city)
    price = draw_amount(rng, 5200, 290000)
    shown = mark("合同金额", draft.pick(price.wan, price.yi))
    signed = mark("签订日期", cn(later(day, -2)))
    draft.add("heading", "特别提示")
    draft.add(
        "para",
        f"1、合同类型及金额：{draft.pick('设备销售合同', '工程总承包合同', '战略采购合同')}，合同金额{shown}（含税）。",
        "2、合同生效条件：双方签字盖章并经公司董事会审议通过后生效。",
        f"3、对上市公司业绩的影响：本合同金额占公司上年度经审计营业收入的{percent(rng, 8, 75)}。",
    )
    draft.add("heading", "一、合同签署概况")
    draft.add(
        "para",
        f"{listed.name}（以下简称“公司”或“乙方”）与{mark('交易对方', other)}（以下简称“甲方”）于{signed}签署了《{mark('合同名称', project + draft.pick('设备采购合同', '总承包合同'))}》，合同总金额为{shown}。",
    )
    draft.add("heading", "二、交易对手方介绍")
    if rng.random() < 0.6:
        draft.table([["项目", "内容"], ["企业名称", mark("交易对方", other)], ["法定代表人", names.draw_person(rng)], ["注册资本", draw_amount(rng, 1000, 90000).wan],
                     ["住所", names.address_of(rng, other)], ["统一社会信用代码", names.draw_credit_code(rng)]])  # fmt: skip
    else:
        draft.add(
            "para",
            f"{other}成立于{cn(later(day, -rng.randrange(900, 6000)))}，法定代表人为{names.draw_person(rng)}，注册资本{draw_amount(rng, 1000, 90000).wan}，住所为{names.address_of(rng, other)}。",
        )
    draft.add(
        "para",
        "公司与交易对手方不存在关联关系。经查询，该公司经营情况正常，信用状况良好，具备履约能力，不属于失信被执行人。",
    )
    draft.add("heading", "三、合同主要内容")
    term = mark("履行期限", f"{rng.choice((6, 10, 18, 24, 36))}个月")
    draft.add(
        "para",
        f"1、合同标的：{mark('项目名称', project)}所需的成套设备及相关服务。",
        f"2、合同价款：{shown}（大写：{price.capitals}）。",
        f"3、履行期限：自合同生效之日起{term}。",
        f"4、结算方式：合同生效后甲方支付{price.share(20).wan}作为预付款，到货验收后支付至80%，质保期满后付清尾款。",
        "5、违约责任：任何一方违反合同约定给对方造成损失的，应当承担赔偿责任，赔偿总额不超过合同总价的20%。",
    )
    draft.add("heading", "四、合同对上市公司的影响")
    draft.add(
        "para",
        draft.pick(
            "本合同的签订有利于公司进一步拓展区域市场，提升品牌影响力，对公司未来年度的营业收入和净利润将产生积极影响。",
            "合同的履行对公司业务独立性不构成影响，公司主要业务不会因履行合同而对交易对手方形成依赖。",
        ),
    )
    draft.add("heading", "五、风险提示")
    draft.add("para", rng.choice(RISKS))
    close_announcement(draft, listed, cn(day))


RELATIONS = (
    "受同一实际控制人控制的企业",
    "公司控股股东",
    "公司董事担任高级管理人员的企业",
    "持有公司5%以上股份的股东",
)
DEALS = ("采购原材料", "销售产品", "接受劳务", "提供技术服务", "房屋租赁", "商标使用许可")


def related_party(draft: Draft, *, n_parties: int = 3) -> None:
    """Expected dealings with related parties: one record per line of the table."""
    rng, mark = draft.rng, draft.mark
    day = draw_date(rng, 2016)
    listed = open_announcement(draft, f"关于{day.year}年度日常关联交易预计的公告", day.year)
    rows, paragraphs, total = [["关联方", "关联交易类别", "预计金额", "上年实际发生金额"]], [], 0
    for number in range(1, n_parties + 1):
        amount = draw_amount(rng, 60, 9000)
        total += amount.fen
        record = {
            "关联方": names.draw_company(rng, rng.choice(("goods", "service", "invest"))),
            "交易类别": rng.choice(DEALS),
            "预计金额": amount.wan,
        }
        draft.records.append(record)
        party, deal, money = (mark(key, value) for key, value in record.items())
        rows.append([party, deal, money, amount.share(rng.randrange(40, 120)).wan])
        paragraphs.append(
            f"（{number}）{record['关联方']}：法定代表人{names.draw_person(rng)}，注册资本{draw_amount(rng, 500, 30000).wan}，注册地址为{names.address_of(rng, record['关联方'])}，系{rng.choice(RELATIONS)}。"
        )
    draft.add("heading", "一、日常关联交易基本情况")
    draft.add(
        "para",
        f"{listed.name}（以下简称“公司”）于{mark('审议日期', cn(later(day, -1)))}召开第{rng.choice('四五六')}届董事会第{rng.choice(('八', '十一', '十七'))}次会议，审议通过了《关于{day.year}年度日常关联交易预计的议案》，预计{day.year}年度与关联方发生的日常关联交易总金额不超过{mark('预计总金额', Amount(total).wan)}。关联董事{names.draw_person(rng)}、{names.draw_person(rng)}回避表决。",
    )
    draft.table(rows)
    draft.add("heading", "二、关联方介绍和关联关系")
    draft.add("para", *paragraphs)
    draft.add("heading", "三、定价政策和定价依据")
    draft.add(
        "para",
        draft.pick(
            "公司与关联方之间的交易遵循公开、公平、公正的原则，参照市场价格协商定价，没有市场价格的，按照成本加合理利润的方式确定。",
            "交易价格以同类产品的市场公允价格为基础，由双方协商确定，不存在损害公司和中小股东利益的情形。",
        ),
    )
    draft.add("heading", "四、独立董事意见")
    draft.add(
        "para",
        "独立董事认为：上述关联交易系公司正常生产经营所需，决策程序合法有效，同意将该议案提交股东大会审议。",
    )
    close_announcement(draft, listed, cn(day) if rng.random() < 0.5 else dashed(day))


def reduction(draft: Draft, *, n_holders: int = 1) -> None:
    """Plans of shareholders to sell, or what they sold: one record per holder."""
    rng, mark = draft.rng, draft.mark
    day = draw_date(rng, 2016)
    listed = open_announcement(
        draft,
        draft.pick("关于股东减持股份计划的预披露公告", "关于持股5%以上股东减持股份的公告"),
        day.year,
    )
    rows, lines = [["股东名称", "持股数量（股）", "持股比例", "拟减持数量", "减持方式"]], []
    for _ in range(n_holders):
        held = rng.randrange(3_000_000, 90_000_000)
        selling = f"{held // rng.choice((4, 6, 10)) // 10000}万股"
        record = {
            "减持股东": draft.pick(
                names.draw_person(rng),
                names.draw_company(rng, "invest", form="合伙企业（有限合伙）"),
            ),
            "持股比例": percent(rng, 5, 18),
            "减持数量": selling,
        }
        draft.records.append(record)
        holder, share, count = (mark(key, value) for key, value in record.items())
        rows.append(
            [
                holder,
                f"{held:,}",
                share,
                count,
                draft.pick("集中竞价", "大宗交易", "集中竞价、大宗交易"),
            ]
        )
        lines.append(
            f"持有公司股份{held:,}股（占公司总股本比例{share}）的股东{holder}，计划自本公告披露之日起十五个交易日后的六个月内，减持公司股份不超过{count}。"
        )
    draft.add("heading", "特别提示：")
    draft.add("para", *lines)
    draft.add(
        "para",
        f"公司于{mark('告知日期', cn(later(day, -1)))}收到上述股东出具的《关于股份减持计划的告知函》，现将有关情况公告如下：",
    )
    draft.add("heading", "一、股东的基本情况")
    draft.table(rows)
    draft.add("heading", "二、本次减持计划的主要内容")
    draft.add(
        "para",
        f"1、减持原因：{mark('减持原因', draft.pick('个人资金需求', '自身资金安排', '基金存续期届满', '偿还股票质押融资'))}。",
        f"2、股份来源：{draft.pick('首次公开发行前已发行的股份', '非公开发行取得的股份及资本公积金转增的股份')}。",
        f"3、减持期间：自{cn(later(day, 21))}起至{cn(later(day, 203))}止。",
        f"4、减持价格：{draft.pick('根据减持时的市场价格确定', f'不低于{rng.uniform(6, 58):.2f}元/股')}。",
    )
    draft.add("heading", "三、相关风险提示")
    draft.add(
        "para",
        "本次减持计划的实施具有不确定性，上述股东将根据市场情况、公司股价情况等决定是否实施本次减持计划。本次减持计划的实施不会导致公司控制权发生变更。",
    )
    close_announcement(draft, listed, cn(day), files=False)


def dividend(draft: Draft) -> None:
    """The implementation of a yearly distribution, with its dates."""
    rng, mark = draft.rng, draft.mark
    day = draw_date(rng, 2016)
    year = day.year - 1
    listed = open_announcement(draft, f"{year}年年度权益分派实施公告", day.year)
    per_ten = f"{rng.randrange(5, 80) / 10:.2f}元"
    shares = rng.randrange(80_000_000, 1_900_000_000)
    total = Amount(int(shares * float(per_ten[:-1]) * 10))
    record_day, ex_day = later(day, 6), later(day, 7)
    draft.add(
        "para",
        f"{listed.name}（以下简称“公司”）{year}年年度权益分派方案已获{cn(later(day, -20))}召开的{year}年度股东大会审议通过，现将权益分派事宜公告如下：",
    )
    draft.add("heading", "一、权益分派方案")
    bonus = rng.choice((0, 0, 2, 4))
    extra = (
        f"，同时以资本公积金向全体股东每10股转增{bonus}股"
        if bonus
        else "，不送红股，不以公积金转增股本"
    )
    draft.add(
        "para",
        f"本公司{year}年年度权益分派方案为：以公司现有总股本{mark('总股本', f'{shares:,}股')}为基数，向全体股东每10股派发现金红利{mark('每十股派息', per_ten)}（含税）{extra}。合计派发现金红利{mark('派息总额', total.yi if total.fen > 10_000_000_000 else total.wan)}（含税）。",
    )
    draft.add(
        "para",
        "扣税后，通过深股通持有股份的香港市场投资者、境外机构以及持有首发前限售股的个人和证券投资基金按税后金额派发；持有无限售流通股的个人股息红利税实行差别化税率征收。",
    )
    draft.add("heading", "二、股权登记日与除权除息日")
    if rng.random() < 0.5:
        draft.table(
            [
                ["股权登记日", "除权除息日", "现金红利发放日"],
                [
                    mark("股权登记日", dashed(record_day)),
                    mark("除权除息日", dashed(ex_day)),
                    dashed(ex_day),
                ],
            ]
        )
    else:
        draft.add(
            "para",
            f"本次权益分派股权登记日为：{mark('股权登记日', cn(record_day))}；除权除息日为：{mark('除权除息日', cn(ex_day))}。",
        )
    draft.add("heading", "三、权益分派对象")
    draft.add(
        "para",
        "本次分派对象为：截止股权登记日下午收市后，在中国证券登记结算有限责任公司登记在册的本公司全体股东。",
    )
    draft.add("heading", "四、咨询机构")
    draft.add(
        "para",
        f"咨询地址：{names.draw_address(rng)}　咨询联系人：{mark('联系人', names.draw_person(rng))}　咨询电话：{names.draw_phone(rng)}",
    )
    close_announcement(draft, listed, cn(day), files=False)
