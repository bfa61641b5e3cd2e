"""Names and sentences that `freeze_documents.py` puts announcements together from.

In sentences ``{holder}``, ``{shares}``, ``{party}``, ``{start}``, ``{end}``, ``{total}`` and
``{ratio}`` are values of a record, marked as they are written; everything else in braces belongs to
no record. A sentence is used for those records that have its dates, all of them and no others.
"""

from __future__ import annotations

from typing import Literal

Template = Literal["股权冻结", "股权质押"]

#: What records are made of -> names of fields, by template.
FIELDS: dict[Template, dict[str, str]] = {
    "股权冻结": {
        "holder": "股东名称", "shares": "冻结股数", "party": "司法机关", "total": "持股总数",
        "ratio": "持股比例", "start": "起始日期", "end": "解冻日期",
    },
    "股权质押": {
        "holder": "股东名称", "shares": "质押股数", "party": "质权人", "total": "持股总数",
        "ratio": "持股比例", "start": "起始日期", "end": "解除日期",
    },
}  # fmt: skip

_PLACES = (
    "北京 北京市，上海 上海市，深圳 广东省，广州 广东省，杭州 浙江省，宁波 浙江省，"
    "南京 江苏省，苏州 江苏省，无锡 江苏省，合肥 安徽省，福州 福建省，厦门 福建省，"
    "济南 山东省，青岛 山东省，烟台 山东省，郑州 河南省，武汉 湖北省，长沙 湖南省，"
    "成都 四川省，重庆 重庆市，西安 陕西省，沈阳 辽宁省，大连 辽宁省，"
    "哈尔滨 黑龙江省，南昌 江西省，昆明 云南省，贵阳 贵州省，石家庄 河北省"
)
#: Cities with their provinces.
PLACES = tuple(tuple(pair.split()) for pair in _PLACES.split("，"))
_DISTRICTS = "东湖 西城 东城 新城 江北 高新 城南 新华 长安 中山 和平 鼓楼 滨江 平安"
DISTRICTS = tuple(_DISTRICTS.split())
FIRST = "宏恒瑞盛华泰鼎安嘉佳凯锦启远博卓新汇融通德信立康永金正隆中天海"
SECOND = "图达丰源祥成泰业诚利辉腾宇昌茂邦晟翔和润科联拓创铭基石川岳澜"
_TRADES = "科技 电子 医药 化工 材料 能源 传媒 环保 机械 置业 食品 信息 重工 纺织 光电"
TRADES = tuple(_TRADES.split())
_HOLDING_TRADES = "投资 控股 实业 资产管理 创业投资 贸易 产业发展 资本管理"
HOLDING_TRADES = tuple(_HOLDING_TRADES.split())
SURNAMES = "王李张刘陈杨黄赵吴周徐孙马朱胡林郭何高罗郑梁谢宋唐许邓韩冯曹"
GIVEN = "伟强磊军洋勇杰涛明超霞平刚桂芳敏静丽华建国文斌志辉海燕春梅玉兰晓东振宁"

#: Of a holder of a twentieth or more.
LARGE = "持股5%以上股东"
PERSON_ROLES = ("董事长", "董事、总经理", "副董事长", "监事会主席")
COMPANY_ROLES = ("控股股东的一致行动人", "员工持股平台")
USES = ("融资", "补充流动资金", "偿还债务", "个人融资", "项目投资", "担保", "置换前次质押")
DISPUTES = (
    "借款合同",
    "金融借款合同",
    "民间借贷",
    "股权转让",
    "保证合同",
    "质押式证券回购",
    "买卖合同",
)
KINDS = ("无限售流通股", "无限售条件流通股", "有限售条件股份", "首发后限售股", "高管锁定股")

STATEMENTS = (
    "本公司及董事会全体成员保证信息披露的内容真实、准确、完整，没有虚假记载、误导性陈述或重大遗漏。",
    (
        "本公司董事会及全体董事保证本公告内容不存在任何虚假记载、误导性陈述或者重大遗漏，并对其内容的真实性、"
        "准确性和完整性承担个别及连带责任。"
    ),
    (
        "本公司及其董事、监事、高级管理人员保证公告内容真实、准确和完整，并对公告中的虚假记载、误导性陈述或者"
        "重大遗漏承担责任。"
    ),
)

INTROS: dict[Template, tuple[str, ...]] = {
    "股权质押": (
        (
            "{issuer}（以下简称“公司”或“本公司”）近日接到{named}的通知，获悉其所持有本公司的股份{what}，"
            "现将有关情况公告如下："
        ),
        "{issuer}（以下简称“公司”）于{notice}收到{named}函告，获悉其持有的公司部分股份{what}，具体事项如下：",
        (
            "近日，{issuer}（以下简称“本公司”或“公司”）接{named}通知，其持有的公司股份{what}，并在中国证券登记"
            "结算有限责任公司{branch}分公司办理了相关手续。具体情况如下："
        ),
        "{issuer}（以下简称“公司”）董事会于{notice}接到{named}关于股份{noun}的告知函，现将具体情况公告如下：",
    ),
    "股权冻结": (
        (
            "{issuer}（以下简称“公司”）于{notice}收到中国证券登记结算有限责任公司{branch}分公司《股权司法冻结"
            "及司法划转通知》，获悉{named}所持公司股份{what}，现将有关情况公告如下："
        ),
        (
            "{issuer}（以下简称“公司”或“本公司”）近日通过中国证券登记结算有限责任公司{branch}分公司系统查询，"
            "获悉{named}所持有本公司的股份{what}，具体情况如下："
        ),
        "{issuer}（以下简称“公司”）于{notice}接到{named}通知，其所持公司股份{what}，现将相关事项说明如下：",
        (
            "近日，{issuer}（以下简称“公司”、“上市公司”）从{named}处获悉，其持有的公司股份{what}。公司立即进行"
            "了核实，现将具体情况披露如下："
        ),
    ),
}

#: One sentence a record: new ones.
NEW: dict[Template, tuple[str, ...]] = {
    "股权质押": (
        (
            "{start}，{holder}将其持有的本公司{kind}{shares}质押给{party}，用于{use}，质押期限自{start}起至"
            "{end}止。本次质押的股份占其所持本公司股份的{own}，占公司总股本的{cap}。"
        ),
        (
            "{holder}与{party}签订了《股票质押式回购交易业务协议》，将其所持公司{shares}（占其持股总数的{own}）"
            "办理了股票质押式回购交易，初始交易日为{start}，购回交易日为{end}。"
        ),
        (
            "{holder}于{start}将{shares}{kind}质押给{party}，为其人民币{money}万元借款提供担保，到期日为{end}，"
            "上述股份占公司股份总数的{cap}。质押期间该股份予以冻结不能转让。"
        ),
        (
            "{holder}因前次质押的股份触及预警线，于{start}将其持有的公司股份{shares}补充质押给{party}，质押到期日"
            "与主合同一致，为{end}，本次补充质押占其所持公司股份的{own}。"
        ),
        (
            "{holder}将其持有的公司{kind}{shares}（占公司总股本的{cap}）质押给{party}，质押登记日为{start}，质押"
            "期限至办理解除质押登记手续之日止。"
        ),
        (
            "{holder}于{start}将所持公司股份{shares}质押给{party}，期限自该日起至质权人向中国证券登记结算有限责任"
            "公司{branch}分公司申请解除质押登记为止。所质押股份占其所持股份的{own}。"
        ),
        (
            "为{use}，{holder}以其持有的{shares}公司股份向{party}提供质押担保，质押期限从{start}开始，至{holder}"
            "清偿全部主债务时终止，本次质押股份占公司总股本的{cap}。"
        ),
        (
            "{holder}已将其持有的公司股份{shares}质押给{party}，占其所持股份的{own}，占公司总股本的{cap}，相关"
            "登记手续已办理完毕。"
        ),
        "{holder}以持有的公司{kind}{shares}作为质物，向{party}申请融资人民币{money}万元，该等股份已办理质押登记。",
    ),
    "股权冻结": (
        (
            "根据{party}《协助执行通知书》（{case}），{holder}持有的公司{kind}{shares}及孳息被司法冻结，冻结期限自"
            "{start}起至{end}止。"
        ),
        (
            "{party}因{plaintiff}申请财产保全，于{start}对{holder}所持公司股份{shares}予以司法冻结，冻结终止日为"
            "{end}，被冻结股份占其所持公司股份的{own}，占公司总股本的{cap}。"
        ),
        (
            "{holder}持有的{shares}公司股份于{start}被{party}冻结，解冻日期为{end}，本次冻结系其与{plaintiff}"
            "{dispute}纠纷所致。"
        ),
        (
            "因与{plaintiff}{dispute}纠纷一案，{holder}所持公司{kind}{shares}（占公司总股本{cap}）被{party}依法"
            "冻结，冻结起始日{start}，到期日{end}。该案涉案金额为人民币{money}万元。"
        ),
        (
            "{holder}持有的公司股份{shares}被{party}轮候冻结，委托日期为{start}，轮候期限{months}个月，自转为正式"
            "冻结之日起计算。"
        ),
        (
            "{party}于{start}轮候冻结{holder}持有的公司{kind}{shares}，占其所持股份的{own}，占公司总股本的{cap}，"
            "冻结期限为{months}个月，自转为正式冻结之日起计算。"
        ),
        (
            "{holder}持有的公司股份{shares}被{party}司法冻结，冻结日期为{start}，冻结期限{months}个月，占其所持公司"
            "股份的{own}。"
        ),
        (
            "{party}受理了{plaintiff}诉{holder}{dispute}纠纷一案，并于{start}冻结了{holder}持有的公司{shares}，"
            "截至目前公司未收到与冻结期限有关的文件。"
        ),
        "经公司查询，{holder}所持公司股份{shares}已被{party}司法冻结，公司尚未收到相关法律文书。",
        "{holder}所持公司股份{shares}被{party}司法轮候冻结，占其所持公司股份的{own}，期限为{months}个月。",
    ),
}
#: One sentence a record: pledges and freezes that have ended.
RELEASED: dict[Template, tuple[str, ...]] = {
    "股权质押": (
        (
            "{holder}于{start}质押给{party}的{shares}公司股份，已于{end}办理完毕解除质押登记手续，占其所持股份的"
            "{own}。"
        ),
        (
            "{end}，{holder}将原质押给{party}的公司股份{shares}解除质押，该笔质押的起始日为{start}，占公司总股本的"
            "{cap}。"
        ),
        (
            "{holder}前期将其持有的公司{kind}{shares}质押给{party}（质押登记日为{start}），上述质押已于{end}购回"
            "并解除。"
        ),
        (
            "{holder}质押给{party}的公司{kind}{shares}已于{end}解除质押，占其所持公司股份的{own}，占公司总股本的"
            "{cap}。"
        ),
        (
            "公司收到{holder}通知，其质押予{party}的{shares}股份因债务已结清，于{end}在中国证券登记结算有限责任公司"
            "{branch}分公司办理了解除质押登记。"
        ),
    ),
    "股权冻结": (
        "{party}于{start}冻结的{holder}持有的公司股份{shares}，已于{end}解除司法冻结。",
        (
            "根据{party}出具的《民事裁定书》（{case}），{holder}被冻结的{shares}公司股份于{end}解除冻结，该部分股份"
            "原冻结起始日为{start}，占公司总股本的{cap}。"
        ),
        "{holder}所持公司{kind}{shares}已被{party}解除冻结，解除冻结日期为{end}，占其所持公司股份的{own}。",
        "因{holder}与{plaintiff}达成和解，{party}于{end}解除了对{holder}所持公司股份{shares}的司法冻结。",
    ),
}
#: Parts of one sentence, for one holder: what comes first, one part a record, and its start.
FLOWING: dict[Template, tuple[tuple[str, str, str], ...]] = {
    "股权质押": (
        (
            "{holder}将所持公司部分股份办理了以下质押：",
            "{since}将{shares}质押给{party}{until}",
            "于{start}",
        ),
        (
            "{holder}近日办理股份质押业务{n}笔，具体为：",
            "{shares}质押给{party}{since}{until}",
            "，质押起始日{start}",
        ),
        (
            "{holder}所持股份的质押情况为：",
            "质权人{party}，质押数量{shares}{since}{until}",
            "，质押登记日{start}",
        ),
    ),
    "股权冻结": (
        (
            "{holder}所持公司股份被冻结的情况如下：",
            "{party}{since}冻结{shares}{until}",
            "于{start}",
        ),
        (
            "{holder}所持公司股份存在{n}笔司法冻结，具体为：",
            "{shares}被{party}冻结{since}{until}",
            "，起始日{start}",
        ),
        (
            "经查询，{holder}持有的公司股份的冻结情况为：",
            "冻结机关{party}，冻结数量{shares}{since}{until}",
            "，冻结起始日{start}",
        ),
    ),
}
UNTIL: dict[Template, tuple[str, ...]] = {
    "股权质押": ("，到期日{end}", "，至{end}止"),
    "股权冻结": ("，到期日为{end}", "，至{end}止"),
}
ENDED: dict[Template, str] = {"股权质押": "，已于{end}解除质押", "股权冻结": "，已于{end}解冻"}

#: What one holder has; some tell the number of shares alone, all tell sums besides.
HOLDINGS: tuple[str, ...] = (
    (
        "截至本公告披露日，{holder}共持有公司股份{total}，占公司总股本的{ratio}；累计{did}的公司股份为{all}，占其"
        "所持公司股份的{all_own}，占公司总股本的{all_cap}。"
    ),
    (
        "截至目前，{holder}持有本公司股份{total}，持股比例为{ratio}，其中处于{did}状态的股份数为{all}，占公司总股本"
        "的{all_cap}。"
    ),
    (
        "{holder}持有公司股份{total}，占公司股份总数的{ratio}。本次变动后，其累计{did}股份{all}，占其持股总数的"
        "{all_own}。"
    ),
    (
        "截至公告日，{holder}累计{did}公司股份{all}，占其持有公司股份总数{total}的{all_own}，占公司总股本的"
        "{all_cap}。"
    ),
    "截至{day}，{holder}直接持有公司{total}，占公司目前总股本{capital}的{ratio}，累计{did}{all}。",
)

BEFORE: dict[Template, tuple[str, ...]] = {
    "股权质押": (
        (
            "此前，{holder}曾于{old_start}将其持有的公司股份{old_shares}质押给{old_party}，该笔质押已于{old_end}解除，"
            "详见公司于{old_day}在指定信息披露媒体刊登的《关于股东股份质押的公告》（公告编号：{old_number}）。"
        ),
        (
            "公司于{old_day}披露了{holder}将{old_shares}公司股份质押给{old_party}的事项（公告编号：{old_number}），"
            "该事项不在本次公告范围内，目前仍在正常履行。"
        ),
    ),
    "股权冻结": (
        (
            "公司曾于{old_day}披露《关于股东股份被冻结的公告》（公告编号：{old_number}），{holder}所持公司{old_shares}"
            "于{old_start}被{old_party}冻结，该次冻结已于{old_end}解除。"
        ),
        (
            "前期，{holder}所持有的公司股份{old_shares}被{old_party}司法冻结（冻结日期{old_start}），具体内容详见公司"
            "{old_day}披露的公告（公告编号：{old_number}）。"
        ),
    ),
}

#: Paragraphs that no value is taken from.
OTHERS: dict[Template, tuple[str, ...]] = {
    "股权质押": (
        (
            "{holder}资信状况良好，具备资金偿还能力，由此产生的质押风险在可控范围之内，不存在平仓风险。若后续出现平仓"
            "风险，将采取包括但不限于补充质押、提前还款等措施应对。"
        ),
        (
            "本次股份质押融资不用于上市公司生产经营相关需求，不涉及重大资产重组等业绩补偿义务。未来半年内到期的质押"
            "股份对应融资余额{money}万元，一年内到期的对应融资余额{money2}万元。"
        ),
        (
            "公司控股股东及其一致行动人合计持有公司股份{sum}，占公司总股本的{sum_cap}，质押股份总数占其所持股份的"
            "{sum_own}。"
        ),
        (
            "本次质押的预警线为{warn}%，平仓线为{close}%。上述质押行为不会导致公司实际控制权发生变更，实际控制人仍为"
            "{controller}。"
        ),
        "中国证券登记结算有限责任公司{branch}分公司已受理上述质押登记，并出具了《证券质押登记证明》。",
    ),
    "股权冻结": (
        (
            "{plaintiff}与{holder}{dispute}纠纷一案，原告请求判令被告偿还本金人民币{money}万元及利息{money2}万元，"
            "{person}承担连带保证责任。该案将于{next_day}开庭审理。"
        ),
        (
            "公司与控股股东在资产、业务、财务等方面保持独立，上述股份被冻结事项未对公司正常生产经营产生重大影响，亦不"
            "会导致公司控制权发生变更。"
        ),
        (
            "若上述冻结股份被司法处置，公司控制权可能发生变更。公司控股股东及其一致行动人合计持有公司股份{sum}，占公司"
            "总股本的{sum_cap}，累计被冻结股份占其所持股份的{sum_own}。"
        ),
        "{holder}正积极与{plaintiff}协商，争取尽快解除股份冻结。公司全资子公司{subsidiary}不是上述案件的当事人。",
        (
            "冻结股份包含派生的红股、配股，冻结期间产生的孳息一并冻结。中国证券登记结算有限责任公司{branch}分公司已"
            "协助执行。"
        ),
    ),
}
#: The same where all that the announcement is about has ended.
AFTER: dict[Template, tuple[str, ...]] = {
    "股权质押": (
        "{holder}剩余被质押股份不存在平仓或被强制过户的风险，后续如有变动将按规定及时告知公司并披露。",
        "公司控股股东及其一致行动人合计持有公司股份{sum}，占公司总股本的{sum_cap}，质押股份总数占其所持股份的{sum_own}。",
        "经与{holder}确认，本次解除质押的股份存在后续质押计划，融资额预计不超过{money}万元，未来如有变动将另行公告。",
        "本次解除质押已在中国证券登记结算有限责任公司{branch}分公司办理完毕，公司实际控制人仍为{controller}。",
    ),
    "股权冻结": (
        "公司与控股股东在资产、业务、财务等方面保持独立，上述事项未对公司正常生产经营产生重大影响。",
        "本次解除冻结后，公司控股股东及其一致行动人合计持有公司股份{sum}，占公司总股本的{sum_cap}，累计被冻结股份占其所持股份的{sum_own}。",
        "{plaintiff}与{holder}{dispute}纠纷一案涉及本金人民币{money}万元，双方已就还款安排签署和解协议。",
        "中国证券登记结算有限责任公司{branch}分公司已协助办理上述股份的解除冻结手续。",
    ),
}
NOTICES = (
    "公司将持续关注该事项的进展情况，并按照有关规定及时履行信息披露义务，敬请广大投资者注意投资风险。",
    "公司指定的信息披露媒体为《中国证券报》、《证券时报》和巨潮资讯网，有关信息均以在上述媒体披露的公告为准。",
    "公司将密切关注上述股份变动的后续情况，严格遵守《上市公司收购管理办法》等相关规定。",
)
ENCLOSED: dict[Template, tuple[str, ...]] = {
    "股权质押": (
        "股份质押登记证明", "持股5%以上股东每日持股变化明细", "股票质押式回购交易协议书",
        "中国证券登记结算有限责任公司股份冻结明细", "{holder}出具的告知函",
    ),
    "股权冻结": (
        "《协助执行通知书》", "《民事裁定书》{case}",
        "中国证券登记结算有限责任公司证券轮候冻结数据表",
        "《股权司法冻结及司法划转通知》", "{holder}的书面回复",
    ),
}  # fmt: skip

#: Heads of columns and labels of lines, by what stands under them.
LABELS: dict[Template, dict[str, tuple[str, ...]]] = {
    "股权质押": {
        "holder": ("股东名称", "出质人", "股东姓名", "出质股东"),
        "first": ("是否为第一大股东及一致行动人", "是否为控股股东"),
        "shares": ("质押股数", "本次质押数量", "本次质押股份数量", "质押股份数"),
        "start": ("质押开始日期", "质押起始日", "初始交易日", "质押登记日"),
        "end": ("质押到期日", "到期日", "购回交易日", "质押终止日期"),
        "party": ("质权人", "质权人名称", "资金融出方"),
        "own": ("本次质押占其所持股份比例", "占其所持股份比例", "占持有人持股比例"),
        "cap": ("占公司总股本比例", "占总股本比例"),
        "total": ("持股数量", "持股总数", "持有公司股份总数"),
        "ratio": ("持股比例", "持股占公司总股本比例"),
        "use": ("用途", "质押融资资金用途", "质押原因"),
    },
    "股权冻结": {
        "holder": ("股东名称", "被冻结人", "股东姓名", "持有人名称"),
        "first": ("是否为第一大股东及一致行动人", "是否为控股股东"),
        "shares": ("冻结股数", "本次冻结股份数量", "司法冻结数量", "冻结数量"),
        "start": ("冻结开始日期", "冻结起始日", "司法冻结日期", "委托日期"),
        "end": ("冻结到期日", "解冻日期", "冻结终止日", "冻结期限届满日"),
        "party": ("冻结机关", "冻结执行人名称", "司法冻结执行人", "执行法院"),
        "own": ("本次冻结占其所持股份比例", "占其所持股份比例"),
        "cap": ("占公司总股本比例", "占总股本比例"),
        "total": ("持股数量", "持股总数", "持有公司股份总数"),
        "ratio": ("持股比例", "持股占公司总股本比例"),
        "use": ("冻结类型", "冻结原因"),
    },
}
#: The same of records that have ended, where they differ.
RELEASED_LABELS: dict[Template, dict[str, tuple[str, ...]]] = {
    "股权质押": {
        "shares": ("本次解除质押股数", "解除质押股份数量", "本次解质股份"),
        "end": ("解除质押日期", "解质时间", "质押解除日"),
        "own": ("解除质押占其所持股份比例", "占其所持股份比例"),
    },
    "股权冻结": {
        "shares": ("本次解除冻结股数", "本次解冻股份", "解除冻结数量"),
        "end": ("解除冻结日期", "解冻时间", "解除日期"),
        "own": ("解除冻结占其所持股份比例", "占其所持股份比例"),
    },
}
OPEN_ENDS: dict[Template, tuple[str, ...]] = {
    "股权质押": (
        "至办理解除质押登记手续之日止",
        "办理解除质押登记为止",
        "质权人申请解除质押登记之日",
        "-",
    ),
    "股权冻结": ("-", "{months}个月", "自正式冻结之日起{months}个月", "未知"),
}

#: How a title and a first sentence call what happened, by whether deals are new, ended, or both.
HAPPENED: dict[Template, dict[str, tuple[str, str]]] = {
    "股权质押": {
        "new": ("质押", "办理了质押"),
        "ended": ("解除质押", "办理了解除质押"),
        "both": ("解除质押及再质押", "办理了解除质押及再质押业务"),
    },
    "股权冻结": {
        "new": ("被司法冻结", "被司法冻结"),
        "ended": ("解除司法冻结", "被解除司法冻结"),
        "both": ("解除冻结及新增冻结", "发生解除司法冻结及新增司法冻结"),
    },
}
