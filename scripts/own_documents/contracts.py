# ruff: noqa: E501 - the sentences of the documents stand unbroken
"""Purchase, lease and construction contracts."""

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
from own_documents.figures import Amount, cn, cn_numerals, draw_amount, draw_date, later

if TYPE_CHECKING:
    from random import Random

    from own_documents.draft import Draft

GOODS = {
    "电缆": (("铠装电力电缆", "YJV22-8.7/15kV 3×240", "米", 320, 980), ("控制电缆", "KVVP 10×1.5", "米", 18, 42),
           ("架空绝缘导线", "JKLYJ-10kV 1×185", "米", 21, 36), ("电缆中间接头", "冷缩 10kV", "套", 460, 890)),
    "流体设备": (("电磁流量计", "DN300 PN1.6", "台", 8600, 21000), ("卧式离心泵", "Q=1200m³/h H=32m", "台", 68000, 190000),
             ("不锈钢球阀", "Q41F-16P DN150", "只", 1800, 5200), ("叠螺式污泥脱水机", "500kgDS/h", "台", 310000, 560000),
             ("罗茨鼓风机", "45kW 68kPa", "台", 36000, 72000)),
    "医疗器械": (("监护仪", "十二导联 15英寸", "台", 23000, 58000), ("输液泵", "单通道", "台", 3800, 7600),
             ("彩色多普勒超声诊断仪", "三探头", "台", 480000, 960000), ("医用制氧机", "5L 连续供氧", "台", 2600, 5200)),
    "纺织": (("校服冬装", "摇粒绒内胆 三件套", "套", 186, 320), ("劳保工作服", "涤棉65/35 阻燃", "套", 96, 210),
           ("防静电服", "分体式 洁净室用", "套", 68, 150), ("棉被", "8斤 1.5m", "床", 120, 260)),
    "电气": (("低压开关柜", "GCK 抽出式", "面", 42000, 96000), ("变频调速装置", "315kW 690V", "套", 88000, 160000),
           ("干式变压器", "SCB13-1000/10", "台", 98000, 168000), ("工业交换机", "24口千兆 宽温", "台", 4200, 13800),
           ("光伏组件", "单晶 550Wp", "块", 720, 1150), ("锂离子电池模组", "51.2V 100Ah", "组", 4700, 8900)),
    "办公用品": (("办公桌椅", "1400×700 含文件柜", "套", 980, 2300), ("多功能复印机", "A3 35页/分", "台", 9800, 23000),
             ("激光打印机", "A4 双面", "台", 1100, 2900)),
}  # fmt: skip


def goods_rows(rng: Random, trade: str, n_rows: int) -> tuple[list[list[str]], Amount]:
    """A price schedule and its total; the total is the sum of its lines."""
    rows = [["序号", "货物名称", "规格型号", "单位", "数量", "单价（元）", "金额（元）"]]
    total = 0
    for number in range(1, n_rows + 1):
        name, model, unit, low, high = rng.choice(GOODS[trade])
        price, count = (
            rng.randrange(low * 100, high * 100, 50),
            rng.choice((2, 5, 12, 30, 48, 100, 260)),
        )
        total += price * count
        rows.append([str(number), name, model, unit, str(count),
                     f"{price / 100:,.2f}", f"{price * count / 100:,.2f}"])  # fmt: skip
    rows.append(["", "合计", "", "", "", "", f"{total / 100:,.2f}"])
    return rows, Amount(total)


def purchase(draft: Draft, *, trade: str, n_rows: int = 4, n_general: int = 5) -> None:
    """Sale of goods: schedule, delivery, acceptance, payment by stages."""
    rng, mark = draft.rng, draft.mark
    day = draw_date(rng)
    buyer = Party("甲方", names.draw_company(rng, rng.choice(("building", "estate", "listed"))))
    seller = Party("乙方", names.draw_company(rng, trade))
    city = names.draw_place(rng)[1]
    rows, total = goods_rows(rng, trade, n_rows)
    title = draft.pick("设备采购合同", "货物买卖合同", "物资采购框架合同", "产品购销合同")
    draft.add("title", title)
    draft.add("line", f"合同编号：{mark('合同编号', draw_number(rng, 'CG', day.year))}")
    draft.add("line", f"签订地点：{city}")
    write_parties(draft, [buyer, seller])
    draft.add(
        "para",
        f"根据《中华人民共和国民法典》及有关法律规定，甲乙双方在平等、自愿、公平的基础上，就{draft.pick('甲方向乙方采购货物', '乙方向甲方供应下列产品')}事宜协商一致，订立本合同。",
    )
    prepaid = rng.choice((10, 20, 30))
    retained = rng.choice((3, 5))
    wait = mark("交货期限", f"{rng.choice((15, 30, 45, 60, 90))}日")
    place = mark("交货地点", f"{names.draw_address(rng)}")
    price = draft.pick(
        f"本合同总价为人民币{mark('合同金额', total.yuan)}（大写：{total.capitals}），含{rng.choice((13, 9))}%增值税。",
        f"合同含税总价：{mark('合同金额', total.yuan)}，大写{total.capitals}。该价格已包括包装、运输、装卸、保险、税费等乙方履行本合同的全部费用。",
    )
    articles: list[Article] = [
        (draft.pick("标的物及价款", "货物名称、规格、数量及价格"), ["货物明细见本合同所附价格表。", price]),
        ("交货", [f"乙方应于合同生效后{wait}内将货物运至{place}，运输方式由乙方自行选择，运费由乙方承担。",
                 "货物毁损、灭失的风险自甲方签收之日起由乙方转移至甲方。"]),
        ("质量标准与验收", [draft.pick("货物应符合国家标准、行业标准以及双方确认的技术协议，三者不一致的以要求较高者为准。",
                                 "乙方保证货物全新、未经使用，且符合合同约定的规格、型号和性能。"),
                        f"甲方应在到货后{rng.choice((3, 7, 10))}个工作日内完成验收；对质量有异议的，应以书面形式提出，乙方应在接到通知后48小时内予以答复。"]),
        ("付款方式", [f"合同签订后10日内，甲方向乙方支付合同总价的{prepaid}%作为预付款，即{total.share(prepaid).yuan}。",
                  f"全部货物验收合格并收到全额发票后30日内，支付至合同总价的{100 - retained}%。",
                  f"其余{retained}%作为质量保证金，质保期满且无质量问题后无息付清。"]),
        ("质量保证", [f"货物质量保证期为{mark('质保期', rng.choice(('十二个月', '二十四个月', '三年')))}，自验收合格之日起计算。质保期内出现故障的，乙方应免费修理或更换。"]),
        *clauses.closing(rng, "甲方", "乙方", city, n_general),
    ]  # fmt: skip
    write_articles(draft, articles)
    write_signatures(draft, [buyer, seller], cn(day))
    draft.add("heading", "附件：价格表")
    draft.table(rows)


def lease(draft: Draft, *, kind: str, n_general: int = 3) -> None:
    """Lease of a factory, shop, office or machine, with rent that rises by years."""
    rng, mark = draft.rng, draft.mark
    day = draw_date(rng)
    owner = Party("出租方", names.draw_company(rng, "estate"))
    tenant = Party("承租方", draft.pick(names.draw_company(rng, "goods"), names.draw_company(rng, "service"),
                                     names.draw_person(rng)))  # fmt: skip
    city = names.draw_place(rng)[1]
    area = f"{rng.randrange(80, 9600)}.{rng.randrange(10, 99)}平方米"
    years = rng.choice((1, 2, 3, 5))
    start = later(day, rng.randrange(5, 40))
    end = later(start.replace(year=start.year + years, day=min(start.day, 28)), -1)
    rent = draw_amount(rng, 1, 60)
    deposit = Amount(rent.fen * rng.choice((1, 2, 3)))
    draft.add("title", f"{kind}租赁合同")
    write_parties(draft, [owner, tenant])
    if rng.random() < 0.6:
        draft.add("para", f"出租方、承租方经协商一致，就{kind}租赁事宜达成如下协议，以资共同遵守。")
    steps = []
    if years > 2:
        steps = [f"自第二个租赁年度起，月租金在上一年度基础上递增{rng.choice((3, 5, 8))}%。"]
    articles: list[Article] = [
        ("租赁标的", [f"出租方将位于{mark('租赁地址', names.draw_address(rng) + kind)}、建筑面积{mark('租赁面积', area)}的{kind}出租给承租方使用。",
                  f"承租方承诺将租赁物用于{draft.pick('生产加工', '办公', '零售经营', '货物储存')}，未经出租方书面同意不得改变用途。"]),
        ("租赁期限", [f"租赁期限为{mark('租赁期限', '壹贰叁肆伍'[years - 1] + '年')}，自{mark('起租日', cn(start))}起至{mark('到期日', cn(end))}止。",
                  "租赁期满，承租方在同等条件下享有优先承租权，但应在期满前两个月提出书面申请。"]),
        ("租金及支付", [f"租金为每月{mark('月租金', rent.yuan)}（{rent.capitals}），{draft.pick('按季支付，先付后用', '每半年支付一次', '每月五日前支付')}。", *steps,
                   f"承租方应于本合同签订之日起{rng.choice((3, 5, 7))}日内支付履约保证金{mark('保证金', deposit.yuan)}。租赁期满无违约情形的，出租方应无息退还。"]),
        ("水电及其他费用", ["租赁期间发生的水费、电费、燃气费、通讯费及物业管理费由承租方承担，按表计量，逐月结清。"]),
        ("租赁物的维护与装修", ["承租方应合理使用并爱护租赁物及其附属设施，因使用不当造成损坏的，应负责修复或者赔偿。",
                        "承租方需要装修的，应将方案报出租方审核。租赁关系终止时，不可移动的装修无偿归出租方所有。"]),
        ("转租", [draft.pick("未经出租方书面同意，承租方不得将租赁物全部或部分转租给第三人。", "承租方可以将不超过租赁面积三分之一的部分转租给其关联企业，但应提前书面告知出租方。")]),
        *clauses.closing(rng, "承租方", "出租方", city, n_general, is_delivery=False),
    ]  # fmt: skip
    write_articles(draft, articles)
    write_signatures(draft, [owner, tenant], cn(day))


WORKS = (
    "土石方开挖及回填", "C30混凝土基础", "HRB400钢筋制作安装", "M7.5水泥砂浆砌体", "DN800钢筋混凝土管敷设",
    "沥青混凝土面层AC-13", "外墙真石漆", "铝合金断桥窗", "桥架及电缆敷设", "消防喷淋支管", "雨水检查井砌筑",
    "高压旋喷桩", "钢结构檩条安装", "屋面SBS防水卷材", "室外绿化乔木栽植", "配电箱安装及接线",
)  # fmt: skip


def construction(draft: Draft, *, works: str, n_rows: int = 6, n_general: int = 8) -> None:
    """Building works: scope, period, price, progress payments, bill of quantities."""
    rng, mark = draft.rng, draft.mark
    day = draw_date(rng)
    city = names.draw_place(rng)[1]
    project = works.format(c=names.short_city(city), n=rng.choice("一二三四五"))
    owner = Party("发包人", draft.pick(f"{city}城市建设发展集团有限公司", names.draw_company(rng, "estate"),
                                    f"{city}水务局"))  # fmt: skip
    builder = Party("承包人", names.draw_company(rng, "building"))
    price = draw_amount(rng, 260, 48000)
    start = later(day, rng.randrange(10, 60))
    days = rng.choice((90, 120, 180, 240, 365, 540))
    draft.add("title", draft.pick("建设工程施工合同", "工程施工承包合同", "专业工程分包合同"))
    draft.add("line", f"合同编号：{mark('合同编号', draw_number(rng, 'SG', day.year))}")
    write_parties(draft, [owner, builder])
    draft.add(
        "para",
        f"发包人、承包人根据《中华人民共和国建筑法》《中华人民共和国民法典》，就{mark('工程名称', project)}的施工及有关事项协商一致，共同达成如下协议。",
    )
    shown = mark("合同金额", price.wan if rng.random() < 0.5 else price.yuan)
    advance = rng.choice((10, 15, 20))
    articles: list[Article] = [
        ("工程概况", [f"工程名称：{mark('工程名称', project)}。", f"工程地点：{mark('工程地点', names.draw_address(rng))}。",
                  f"工程内容：{'、'.join(rng.sample(WORKS, 4))}等，具体以施工图纸和工程量清单为准。", f"资金来源：{draft.pick('财政资金', '自筹', '专项债券资金与自筹资金')}。"]),
        ("合同工期", [f"计划开工日期：{mark('开工日期', cn(start))}；计划竣工日期：{mark('竣工日期', cn(later(start, days - 1)))}。工期总日历天数为{mark('工期', str(days) + '天')}。",
                  "实际开工日期以监理人发出的开工通知中载明的日期为准。"]),
        ("质量标准", [f"工程质量应达到{draft.pick('合格', '国家施工质量验收规范合格', '市优质工程')}标准。"]),
        ("签约合同价", [f"签约合同价为{shown}（{price.capitals}），其中安全文明施工费{price.share(2).yuan}，暂列金额{price.share(5).yuan}。",
                   f"合同价格形式：{draft.pick('固定单价', '固定总价', '可调价格')}合同。"]),
        ("项目经理", [f"承包人项目经理：{mark('项目经理', names.draw_person(rng))}，未经发包人书面同意不得更换。"]),
        ("工程款支付", [f"预付款为签约合同价的{advance}%，即{price.share(advance).yuan}，于开工前七日内支付。",
                   "进度款按月支付，每月支付经监理人和发包人确认的当月完成工程量的80%。",
                   "竣工结算经审计后付至结算价款的97%，剩余3%作为工程质量保证金，缺陷责任期满后十四日内返还。"]),
        ("缺陷责任与保修", [f"缺陷责任期为{rng.choice(('12', '24'))}个月，自工程通过竣工验收之日起计算。屋面防水工程保修期为五年，装修工程保修期为两年。"]),
        *clauses.closing(rng, "发包人", "承包人", city, n_general),
    ]  # fmt: skip
    write_articles(draft, articles)
    write_signatures(draft, [owner, builder], cn_numerals(day) if rng.random() < 0.4 else cn(day))
    draft.add("heading", "附件一：已标价工程量清单（摘录）")
    rows = [["编码", "项目名称", "计量单位", "工程量", "综合单价（元）", "合价（元）"]]
    for number in range(n_rows):
        unit_price, count = rng.randrange(1500, 98000), rng.randrange(12, 4800)
        rows.append([f"0401{number + 1:05d}", rng.choice(WORKS), draft.pick("m³", "m", "㎡", "t", "座"),
                     str(count), f"{unit_price / 100:.2f}", f"{unit_price * count / 100:.2f}"])  # fmt: skip
    draft.table(rows)
