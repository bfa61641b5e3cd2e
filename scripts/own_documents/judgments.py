# ruff: noqa: E501 - the sentences of the documents stand unbroken
"""First-instance civil judgments about contracts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from own_documents import names
from own_documents.figures import Amount, cn, cn_numerals, draw_amount, draw_date, later

if TYPE_CHECKING:
    from own_documents.draft import Draft

CAUSES = {
    "买卖合同纠纷": ("原告依约交付货物，被告拖欠货款", "货款", "第六百二十六条"),
    "建设工程施工合同纠纷": (
        "工程竣工验收合格并交付使用，被告未按结算金额支付工程款",
        "工程款",
        "第八百零七条",
    ),
    "金融借款合同纠纷": ("原告依约发放贷款，被告未按期归还本息", "借款本金", "第六百七十五条"),
    "房屋租赁合同纠纷": ("被告长期拖欠租金且拒不腾退房屋", "租金", "第七百二十二条"),
}


def civil_judgment(draft: Draft, cause: str) -> None:
    """Parties, claims, findings, reasons, decision."""
    rng, mark = draft.rng, draft.mark
    day = draw_date(rng)
    story, money_kind, law = CAUSES[cause]
    province, city, district = names.draw_place(rng)
    court = f"{province}{city}{district}人民法院"
    plaintiff = names.draw_company(rng, rng.choice(("goods", "building", "service")))
    defendants = [names.draw_company(rng, "estate")]
    if rng.random() < 0.6:
        defendants.append(names.draw_person(rng))
    claim, interest = draw_amount(rng, 12, 1800), draw_amount(rng, 1, 40)
    judge = names.draw_person(rng)
    draft.add("title", f"{court}民事判决书")
    draft.add(
        "centre",
        mark(
            "案号",
            f"（{day.year}）{province[:1]}{rng.randrange(1001, 1999)}民初{rng.randrange(100, 9800)}号",
        ),
    )
    draft.add(
        "para",
        f"原告：{mark('原告', plaintiff)}，住所地{names.address_of(rng, plaintiff)}。",
        f"法定代表人：{names.draw_person(rng)}，该公司{draft.pick('执行董事', '总经理', '董事长')}。",
        f"委托诉讼代理人：{names.draw_person(rng)}，{draft.pick('江海', '正衡', '明理')}律师事务所律师。",
    )
    for number, name in enumerate(defendants):
        tail = (
            f"住所地{names.address_of(rng, name)}。"
            if number == 0
            else f"{draft.pick('男', '女')}，汉族，住{names.draw_address(rng)}。"
        )
        draft.add("para", f"被告：{mark('被告', name)}，{tail}")
    draft.add(
        "para",
        f"原告{plaintiff}与被告{'、'.join(defendants)}{mark('案由', cause)}一案，本院于{mark('立案日期', cn(later(day, -rng.randrange(60, 170))))}立案后，依法适用{draft.pick('简易', '普通')}程序，公开开庭进行了审理。{draft.pick('被告经传票传唤，无正当理由拒不到庭参加诉讼。', '双方的委托诉讼代理人均到庭参加诉讼。')}本案现已审理终结。",
    )
    draft.add(
        "para",
        f"{plaintiff}向本院提出诉讼请求：1.判令被告支付{money_kind}{claim.yuan}；2.判令被告支付逾期利息{interest.yuan}；3.本案诉讼费用由被告承担。事实和理由：{cn(later(day, -rng.randrange(400, 1200)))}，双方签订合同。{story}，经多次催要未果，故诉至法院。",
    )
    draft.add(
        "para",
        draft.pick(
            "被告辩称，对欠款事实无异议，但原告主张的利息过高，请求法院依法调整。",
            "被告未作答辩，亦未提交证据。",
            "被告辩称，原告交付的标的存在质量问题，应当扣减相应款项。",
        ),
    )
    draft.add(
        "para",
        f"经审理查明，双方于{cn(later(day, -rng.randrange(400, 1200)))}签订书面合同，合同价款为{Amount(claim.fen * 3 // 2).wan}。被告已支付部分款项，双方于{cn(later(day, -rng.randrange(200, 390)))}对账确认尚欠{money_kind}{mark('判决金额', claim.yuan)}。以上事实有合同、送货单、对账单、银行流水及当事人陈述等证据予以证实。",
    )
    draft.add(
        "para",
        f"本院认为，双方签订的合同系当事人真实意思表示，内容不违反法律、行政法规的强制性规定，合法有效。{story}，其行为已构成违约，应承担继续履行并赔偿损失的责任。依照《中华人民共和国民法典》第五百七十七条、{law}，《中华人民共和国民事诉讼法》第一百四十七条之规定，判决如下：",
    )
    if len(defendants) > 1:
        draft.add(
            "para",
            f"一、被告{defendants[0]}于本判决生效之日起十日内支付原告{money_kind}{mark('判决金额', claim.yuan)}及逾期利息{interest.yuan}；",
            f"二、被告{defendants[1]}对上述债务承担连带清偿责任；",
            "三、驳回原告的其他诉讼请求。",
        )
    else:
        draft.add(
            "para",
            f"一、被告于本判决生效之日起十日内支付原告{money_kind}{mark('判决金额', claim.yuan)}；",
            f"二、被告于本判决生效之日起十日内支付原告逾期利息{interest.yuan}。",
        )
    draft.add(
        "para",
        f"如果未按本判决指定的期间履行给付金钱义务，应当加倍支付迟延履行期间的债务利息。案件受理费{claim.share(1).plain}，由被告负担。",
        f"如不服本判决，可以在判决书送达之日起十五日内，向本院递交上诉状，并按对方当事人的人数提出副本，上诉于{province}{city}中级人民法院。",
    )
    draft.add(
        "sign",
        f"审判长　{mark('审判长', judge)}",
        f"人民陪审员　{names.draw_person(rng)}",
        mark("判决日期", cn_numerals(day)),
        f"书记员　{names.draw_person(rng)}",
    )
