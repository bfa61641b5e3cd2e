"""What news tells of offices and courts: who was summoned, fined, sued or insolvent, and by whom.

``*某市交通局*、*公安局* 就 *违规派单* 问题约谈 *某平台*，要求其 *限期整改*，*提交报告*``,
``*X* 因 *虚假宣传* 被 *某局* 处以 *80万元* 罚款``,
``*X* 因 *买卖合同纠纷* 将 *Y* 诉至 *某区人民法院*，请求支付货款 *1847.62万元*``,
``*某市中级人民法院* 裁定受理 *某某科技有限公司* 破产清算申请``, ``根据 *某银行* 的申请``,
``指定 *某律师事务所* 担任管理人``, ``负债总额约 *37.2亿元*``, ``主要债权人包括 *X* 和 *Y*``.
"""

from __future__ import annotations

from featpipe.extraction.names.name_patterns import HAN, ORGANISATION
from featpipe.extraction.statements.news_words import (
    ABOUT,
    ACTS,
    AMOUNT,
    BEFORE_ACT,
    EDGE,
    FIRMS,
    IN_NAME,
    SUBJECT,
    WHEN,
    NewsStatement,
)

_OFFICE = (
    rf"(?:{HAN}{{2,24}}?(?:分局|总局|局(?!限)|委员会|发改?委|监委|卫健?委|城管委|网信办|食安办|安委办"
    "|办公室|协会|消保委|检察院|管理处|大队|支队|办事处|人民政府|管理中心|厅|总队|署(?!名))"
    rf"(?:{HAN}{{2,10}}?(?:局|中心|司|科|部))?|人民银行|工信部|央行)"
)
_COURT = rf"{HAN}{{2,16}}?(?:中级|高级|知识产权)?(?:人民)?法院"
_NAME = rf"{IN_NAME}{{2,34}}?"
_SUMMONED = r"(?=[,。;\n\s]|主要|负责人|相关|董事|高管|法定|总经理|区域|谈话|的通报|的情况)"
_WHOM = r"(?:其|平台|企业|公司|该公司|该所|该企业|[^,。;:\n]{2,8}?(?:公司|平台))?"

SUMMONS = (
    NewsStatement(
        r"(?:(?<![^\s,。;:!?*、被由经从])|会同|联合|(?<=[局委厅办部会院处所])[和与及])"
        rf"(?P<office>(?!该|会同){_OFFICE})(?=[^。;\n]{{0,80}}?约[谈见])",
        "约谈之方",
    ),
    NewsStatement(
        rf"(?:约谈|约见)了?(?P<name>{_NAME}){_SUMMONED}"
        r"|对(?P<name_of>[^\s,。;:!?]{2,30}?)(?:进行|实施|开展|负责人)[^,。;\n]{0,12}?约谈",
        "所报公司",
    ),
    NewsStatement(rf"{SUBJECT}再?被[^,。;\n]{{0,24}}?约谈", "所报公司"),
    NewsStatement(
        rf"(?P<day>{WHEN})[^。;\n]{{0,40}}?(?:约谈|约见)|约谈发生在(?P<at>{WHEN})",
        "约谈时间",
    ),
    NewsStatement(
        r"(?:就|针对)(?:其|消费者[^,。;\n]{0,8}的|近期)?(?P<reason>[^,。;\n]{4,40}?)等?"
        r"(?:问题|一事|情况|事项|现象)[^。;\n]{0,40}?约[谈见]"
        r"|(?:原因|事由)(?:为|是|:)(?P<said>[^,。;\n]{4,40})"
        r"|(?:存在|涉嫌)(?P<has>[^,。;\n]{4,40}?)等?的?(?:问题|情形|行为|情况)"
        r"|(?<![\u4e00-\u9fff])因(?:其|旗下)?(?P<because>[^,。;\n]{4,40}?),[^。;\n]{0,30}?约[谈见]"
        r"|经查[,:](?:该?(?:平台|公司|企业|机构))?(?P<found>[^,。;\n]{4,40})",
        "约谈之因",
    ),
    NewsStatement(
        rf"(?:要求|责令|敦促|督促|责成){_WHOM}:?(?P<clauses>[^。\n]{{4,160}})",
        "所提要求",
    ),
)

_FINER = (
    rf"(?:(?:中国)?(?:证监会|银保监会)(?:{HAN}{{2,6}}(?:局|分局))?|{HAN}{{2,6}}证监局"
    rf"|(?:人行|中国人民银行){HAN}{{2,8}}支行|{_OFFICE})"
)
_FINES = "(?:处罚|罚款|处以|警告|罚没|没收|责令)"
_AS = (
    r"(?:直接负责的主管人员|实际控制人|法定代表人"
    r"|时任[^,。;\n]{0,12}?(?:总监|经理|长|秘书|董事|行长))?"
)

PENALTIES = (
    NewsStatement(
        rf"{EDGE}(?P<name_of_office>{_FINER})(?=[^。;\n]{{0,60}}?{_FINES})|被(?P<name_of_by>{_FINER})|收到(?P<name_of_sender>{_FINER})",
        "处罚之方",
    ),
    NewsStatement(
        rf"(?:罚款|处以|并处|被罚|罚没|处罚金额)(?:款|合计|共计)?{ABOUT}(?P<fine>{AMOUNT})|(?P<sum>{AMOUNT})的?罚款",
        "所罚金额",
    ),
    NewsStatement(
        rf"对{_AS}(?P<name>{_NAME})(?:给予|处以|责令|采取|作出|罚款|操纵)"
        rf"|(?<![^,。;:!?\n])(?P<names_of_fined>[^,。;:!?\n]{{2,60}}?)(?:分别|均)?被(?:罚|处以|给予|处罚)",
        "所罚之方",
    ),
    NewsStatement(rf"{SUBJECT}因[^,。;\n]{{2,40}}?(?:,|被|受到|挨)", "所罚之方"),
    NewsStatement(rf"{FIRMS}[^。;\n]{{0,60}}?(?:{_FINES}|被罚)", "所罚之方"),
    NewsStatement(
        r"因(?P<reason>[^,。;\n]{4,40}?)等?(?:,|被|挨罚|受到)"
        r"|(?:违法行为类型为|涉嫌?|存在)(?P<kind>[^,。;\n]{4,40}?)等?[一二三四五六七八九两\d]*[项种]?(?:违规|违法|行为|,|。)",
        "所罚之由",
    ),
    NewsStatement(r"(?P<number>[\u4e00-\u9fff]{0,12}[〔\[(]\d{4}[〕\])]第?\d+号)", "处罚文号"),
    NewsStatement(
        rf"(?P<day>{WHEN})(?!电)[^。;\n]{{0,50}}?(?:{_FINES}|罚|决定)",
        "所报之时",
    ),
)

_CAUSE = r"(?:因|以)[^,。;\n]{2,24}?(?:纠纷|为由|,)"
_HEARS = "(?:判|裁定|开庭|受理|审理|驳回|送达|宣判)"

LAWSUITS = (
    NewsStatement(
        rf"{SUBJECT}{ACTS}(?:{_CAUSE})?,?(?:(?<![胜败上撤反申])诉(?!讼|请|求)|起诉(?![讼状书权期材])|将{_NAME}(?:诉至|告上|起诉|诉诸)|向{_COURT}(?:提起|起诉))"
        rf"|原告(?:为|:|是)?(?P<name_of_suer>(?!方|与|诉|提|因|要|未|索|请){_NAME})(?=[,。;\n(]|诉|因|向|与|以)",
        "起诉之方",
    ),
    NewsStatement(
        rf"{FIRMS}{BEFORE_ACT}(?:(?<![胜败上撤反申起])诉(?!讼|请|求|至)|起诉(?![讼状书权期材])|提起[^,。;\n]{{0,8}}诉讼)",
        "起诉之方",
    ),
    NewsStatement(
        rf"(?:(?<![胜败上撤反申起])诉(?!讼|请|求|至)|起诉(?![讼状书权期材]))(?:被告)?(?P<name>(?!至|称|公司){_NAME})(?=侵|[^,。;\n]{{0,14}}?纠纷|一案|不正当|专利|,|。)"
        rf"|将(?:业主方|被告)?(?P<name_of_sued>{_NAME})(?:及[^,。;\n]{{2,40}})?(?:诉至|告上|起诉|诉诸)"
        rf"|对(?P<name_of_other>{_NAME})(?:及[^,。;\n]{{2,20}})?(?:提起诉讼|提出的?(?:索赔|诉讼))",
        "应诉之方",
    ),
    NewsStatement(
        rf"{EDGE}(?P<name_of_court>{_COURT})(?=[^。;\n]{{0,40}}?{_HEARS})"
        rf"|(?:诉至|由|在|向|收到|获)(?P<at>{_COURT})",
        "受案法院",
    ),
    NewsStatement(
        r"(?:索赔|赔偿|支付|偿还|归还|返还|涉案|拖欠|清偿|追讨)"
        rf"(?:[^,。;\n\d]{{0,20}}?)?{ABOUT}(?P<amount>{AMOUNT})",
        "涉诉金额",
    ),
    NewsStatement(
        r"(?:因|以|就|案由为?:?|诉[^,。;\n]{2,20}?)(?P<cause>[\u4e00-\u9fff]{2,20}?纠纷)"
        r"|(?P<of>[\u4e00-\u9fff]{4,20}?纠纷)一案",
        "案由",
    ),
    NewsStatement(
        r"驳回上诉,维持原判|准许[^,。;\n]{0,10}?撤回起诉|驳回[^,。;\n]{0,20}?(?:诉讼请求|索赔请求|全部请求|起诉)"
        r"|(?:一审|二审|终审)?(?:胜诉|败诉)",
        "审理结果",
    ),
    NewsStatement(
        rf"(?P<day>{WHEN})(?!电)[^。;\n]{{0,40}}?(?:判|裁定|开庭|起诉|收到|诉|宣布)",
        "所报之时",
    ),
)

_ANY_COURT = rf"(?:{_COURT}|本院|该院)"
_DECIDES = r"(?:作出[^,。;\n]{0,10}?裁定|裁定|决定|受理|已裁定|宣告|尚未裁定)"
_BANKRUPT = (
    r"(?:提出的|的)?(?:被?(?:申请)?(?:进行)?(?:破产|(?:预|(?<!公)司)?重整)|进入破产|合并重整"
    "|实质合并)"
)
_ADMINISTRATOR = (
    rf"(?:[^\s,。;:的、和与]{{4,40}}?(?:事务所有限公司|事务所(?:{HAN}{{2,4}}分所)?|清算组))"
)
_ALONE = rf"(?:(?!对|的|其|该|此){IN_NAME}){{2,34}}?"
INSOLVENCIES = (
    NewsStatement(
        rf"(?P<court>{_ANY_COURT})(?=[^。;\n]{{0,60}}?{_DECIDES})|(?:从|向|移送|到)(?P<at>{_ANY_COURT})",
        "破产法院",
    ),
    NewsStatement(
        rf"(?:受理|裁定|决定|申请)(?:[^,。;\n]{{2,40}}?)?对(?P<name>{_ALONE}){_BANKRUPT}",
        "破产之方",
    ),
    NewsStatement(rf"(?:受理|宣告|批准|终结|认可)(?P<name>{_ALONE}){_BANKRUPT}", "破产之方"),
    NewsStatement(
        rf"{SUBJECT}(?:被债权人[^,。;\n]{{2,40}}?)?{ACTS}(?:自行)?(?:向(?:{_ANY_COURT}|法院))?(?:提出|提交)?"
        rf"(?:申请|进入|被[^,。\n]{{0,6}}?)?{_BANKRUPT}",
        "破产之方",
    ),
    NewsStatement(
        rf"(?:根据|经|依)(?:债权人|申请人|申请执行人)?(?P<name>{_NAME})的?申请", "破产申请人"
    ),
    NewsStatement(
        rf"申请人(?:为|是|:)(?:[^,。;\n]{{0,8}}?供应商|债权人|债务人)?(?P<name>{_NAME})(?=[,。;\n])",
        "破产申请人",
    ),
    NewsStatement(rf"[,。;:\n](?P<name>{_NAME})(?:为|系)申请人", "破产申请人"),
    NewsStatement(
        rf"受理(?:债权人|申请人)?(?P<name>{_NAME})对[^,。;\n]{{2,40}}?(?:的|提出)", "破产申请人"
    ),
    NewsStatement(rf"被债权人(?P<name>{_NAME})申请", "破产申请人"),
    NewsStatement(
        rf"{SUBJECT}以[^,。;\n]{{2,60}}?(?:为由|欠付|不能清偿|无法清偿)",
        "破产申请人",
    ),
    NewsStatement(rf"裁定(?:日期|时间)(?:为|:)(?P<day>{WHEN})", "裁定时间"),
    NewsStatement(rf"(?P<day>{WHEN})[^。;\n]{{0,40}}?(?:裁定|受理|宣告|批准)", "裁定时间"),
    NewsStatement(
        r"(?:负债|债务|债权|欠款|欠付[^,。;\n]{0,14}?|拖欠[^,。;\n]{0,12}?|欠[^,。;\n]{2,12}?)"
        rf"(?:总额|总计|规模|合计|余额|共计)?{ABOUT}(?P<debt>{AMOUNT})(?!的?借款)",
        "债务规模",
    ),
    NewsStatement(rf"(?P<debt>{AMOUNT})的?(?:债务|负债)", "债务规模"),
    NewsStatement(
        r"债权人(?:[^。;\n]{0,16}?包括|分别为|为|有|是|:)(?P<names>[^。;:\n]{2,80}?)(?=[。;\n,]|等)",
        "所欠之方",
    ),
    NewsStatement(
        rf"(?:[欠对](?:了|付|负)?)(?P<name>{_ALONE})(?:的(?:借款|贷款|欠款|货款|债务)|{AMOUNT})",
        "所欠之方",
    ),
    NewsStatement(r"[大要]债权人(?P<names>[^,。;\n包为]{2,50}?)(?:同意|表示|,|等)", "所欠之方"),
    NewsStatement(rf"债权人(?P<name>{ORGANISATION})", "所欠之方"),
    NewsStatement(
        r"指定了?(?P<names>[^,。;\n]{2,50}?)(?:担任|为|作为)[^,。;\n]{0,12}?管理人",
        "破产管理人",
    ),
    NewsStatement(
        rf"管理人(?:为|是|由|:|——)?(?P<names>{_ADMINISTRATOR}(?:[、和与]{_ADMINISTRATOR})*)",
        "破产管理人",
    ),
    NewsStatement(
        rf"(?P<name>{ORGANISATION})(?:获指定|被指定|担任|受指定)(?:为|担任)?[^,。;\n]{{0,8}}?管理人",
        "破产管理人",
    ),
)
