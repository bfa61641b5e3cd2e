"""What news tells of companies' acts: what they bought, which tender they won, and who leads them.

``*X* 以现金 *18.6亿元* 收购 *Y* *65%* 股权``, ``*X* 中标 *某某工程*，工期 *36个月*``,
``财务总监 *庄毓敏* 因 *个人原因* *辞职*``, ``委任 *贺松年* 为 *行政总裁*``, ``由 *邵启航* 代行``.
"""

from __future__ import annotations

from featpipe.extraction.names.name_patterns import HAN, PERSON
from featpipe.extraction.statements.news_words import (
    ABOUT,
    ACTS,
    AMOUNT,
    BEFORE_ACT,
    FIRMS,
    SUBJECT,
    WHEN,
    NewsStatement,
)
from featpipe.extraction.statements.statement_words import LENGTH, PERCENT, POLITE

_BUYS = r"(?:收购|购买|受让|买下|吞下|竞得|竞购|拿下|取得(?=[^,。;\n]{2,30}股[权份]))了?"
_PAYS = "(?:现金|自有资金|人民币|总价|约|合计|不超过|,)*"
_WITH = rf"(?:斥资|耗资|出资|拟?以)(?:[^,。;\n]{{0,16}}?)?{AMOUNT}(?:的价格|的对价|人民币|现金)*"
_HELD = r"(?:间接|合计|直接|所)?(?:持有|所持)的?"

ACQUISITIONS = (
    NewsStatement(
        rf"{_BUYS}(?:[^,。;\n]{{0,40}}?{_HELD})?(?P<name>[^,。;:\n\d%]{{2,30}}?)的?"
        rf"(?:{PERCENT}|全部|控股权|股权|股份|多数股权|业务|资产)"
        r"|全资收购(?P<name_of_all>[^,。;:\n]{2,30}?)(?=[,。;\n])"
        r"|交易标的为(?P<name_of_target>[^,。;:\n\d%]{2,30}?)(?=\d|股权|[,。;\n])",
        "所购公司",
    ),
    NewsStatement(
        rf"(?:{_BUYS}|持有|所持|转让|出售)[^。;\n]{{0,60}}?(?P<share>{PERCENT})的?(?:股权|股份|权益)",
        "收购比例",
    ),
    NewsStatement(
        rf"(?:卖方|转让方|出让方|出售方)(?:为|是|:)(?P<name>[^,。;:\n]{{2,30}}?)(?=[,。;\n])"
        rf"|(?:向|受让|购买|从)(?:[^,。;\n]{{0,8}}?(?:自然人|股东)){{0,2}}(?P<names>[^,。;:\n\d]{{2,40}}?)(?:等\d*[名家位]?[^,。;\n]{{0,6}})?{_HELD}",
        "所购之方",
    ),
    NewsStatement(
        rf"{SUBJECT}{ACTS}(?:{_WITH}|全资){{0,2}}{_BUYS}"
        r"|(?:受让方|买方|收购方)(?:为|是|:)(?P<name_of_buyer>[^,。;:\n]{2,30}?)(?=[,。;\n])",
        "所报买方",
    ),
    NewsStatement(rf"{FIRMS}{BEFORE_ACT}{_BUYS}(?![方人])", "所报买方"),
    NewsStatement(
        rf"(?:斥资|耗资|出资|以){_PAYS}(?P<amount>{AMOUNT})(?=[^,。;\n]{{0,20}}?{_BUYS}|成交|人民币|的价格)"
        rf"|(?:作价|对价|价款|报价|交易价格|交易金额|代价|转让总价款?|总价){ABOUT}(?P<price>{AMOUNT})"
        rf"|(?P<sum>{AMOUNT})(?={_BUYS})",
        "所报价款",
    ),
    NewsStatement(
        r"以(?P<way>现金|自有资金|货币资金|发行股份(?:及支付现金)?|协议转让|非公开协议)"
        r"|通过(?P<by>司法拍卖|公开摘牌|协议转让|网络竞价)|(?:采取|采用)\"?(?P<so>[^,。;\"\n]{2,20}?)\"?方式",
        "所报方式",
    ),
    NewsStatement(
        rf"(?P<day>{WHEN})(?!电)[^。;\n]{{0,50}}?(?:{_BUYS}|签署|签订|签约|完成交割|成交|转让)",
        "所报之时",
    ),
)

_WINS = "(?:预?中标|中选|竞得|夺得|拿下|斩获)"
_WORKS = "(?:项目|工程|采购|标段|招标)"

AWARDS_IN_NEWS = (
    NewsStatement(
        rf"{SUBJECT}{ACTS}(?:联合体)?(?:以{AMOUNT}(?:的报价|的价格)?)?(?:连)?{_WINS}"
        rf"|由(?P<names>[^,。;:\n]{{2,50}}?)(?:组成的?联合体)?(?:以[^,。;\n]{{2,20}})?{_WINS}"
        r"|(?:联合体|与)(?P<name_of_other>[^,。;:\n]{2,30}?)组成的?联合体",
        "所报中标方",
    ),
    NewsStatement(rf"{FIRMS}{BEFORE_ACT}{_WINS}(?!通知|[方人公])", "所报中标方"),
    NewsStatement(
        rf"{_WINS}了?[^,。;\n]{{0,20}}?[\"《](?P<project>[^\"》\n]{{4,60}})[\"》]"
        rf"|\"(?P<named>[^\"\n]{{4,60}}?{_WORKS}[^\"\n]{{0,16}})\""
        rf"|{_WINS}了?(?P<won>[^,。;\"《\n]{{4,50}}?{_WORKS})(?=[,。;\n])",
        "所报项目",
    ),
    NewsStatement(
        rf"中标(?:金额|总?价)(?:合计)?{ABOUT}(?P<amount>{AMOUNT})"
        rf"|以(?P<bid>{AMOUNT})(?:的报价|的价格)?(?:中标|中选)",
        "中标金额",
    ),
    NewsStatement(
        rf"(?:合同总价|预计金额|合同金额|,金额){ABOUT}(?P<price>{AMOUNT})",
        "所报标价",
    ),
    NewsStatement(
        r"(?:招标人|采购人|业主)(?:分别为|为|是|:)(?P<names>[^,。;:\n]{2,60}?)(?=[,。;\n])"
        r"|收到(?:招标人|业主|采购人)?(?P<name>[^,。;:\n]{4,40}?)(?:\(招标人\))?(?:发出|发来|送达|出具|的中标)"
        r"|(?P<name_of_client>[^\s,。;:\n]{4,30}?)(?:公布|发布|组织)[^,。;\n]{0,30}?(?:中标|招标|采购)",
        "招标之方",
    ),
    NewsStatement(
        rf"(?:工期|服务期限?|建设期|交货期|为期)(?:均?为|约|:)*(?P<period>(?:\d{{1,4}}|{LENGTH})(?:个月|年|日历天|天))",
        "工期",
    ),
    NewsStatement(
        rf"(?P<day>{WHEN})(?!电)[^。;\n]{{0,50}}?(?:中标|招标|通知书|中选)",
        "所报之时",
    ),
)

_POST = (
    r"(?:(?:副|执行|独立|名誉|首席|联席|常务|财务|合规|技术|营销|投资|运营|信息|风险|董事会|监事会|职工|非"
    r"|行政|高级|中国区|集团|大|分管|原|党委){0,4}"
    r"(?:董事长|主席|总裁|总经理|经理|董事|监事|行长|总监|秘书|工程师|书记|首席[\u4e00-\u9fff]{2,6}官"
    r"|主任委员|会计师|ceo|cfo|创始人)(?:兼|及|、|和)?){1,4}"
)
_COMES = "(?:聘任|委任|任命|选举|增选|推选|聘请|增聘|提名|推举)"
_GOES = "(?:辞职|离职|辞任|辞去|离任|退休|逝世|去世|病逝|辞呈|被查)"

APPOINTMENTS = (
    NewsStatement(
        rf"{_COMES}(?:公司|本行)?(?:[^,。;\n]{{0,16}}?{_POST})?(?P<person>{PERSON}){POLITE}(?:为|担任|出任|任)"
        rf"|(?:免去|解聘|罢免|撤销)了?(?P<gone>{PERSON}){POLITE}"
        rf"|{_POST}(?P<leaves>{PERSON}){POLITE}(?=[^。;\n]{{0,30}}?{_GOES})"
        rf"|(?P<rises>{PERSON})(?:升任|当选|出任|获任|接任){HAN}"
        rf"|核准(?P<able>{PERSON})",
        "所报高管",
    ),
    NewsStatement(
        rf"{_COMES}[^,。;\n]{{2,20}}?(?:为|担任|出任)(?:公司|本行|集团)?(?:第{HAN}届董事会)?(?P<post>{_POST})"
        rf"|辞去(?:公司|集团|本行|所任|担任的){{0,3}}(?P<left>[^,。;\n]{{2,40}}?)(?:等)?职务"
        rf"|(?:免去|解聘)[^,。;\n]{{2,20}}?(?P<lost>{_POST})(?:等)?职?务?"
        rf"|(?P<of>{_POST}){PERSON}{POLITE}(?=[^。;\n]{{0,30}}?{_GOES})"
        rf"|不再担任(?:公司|集团)?(?P<was>[^,。;\n]{{2,30}}?)(?=[,。;\n])",
        "所报职位",
    ),
    NewsStatement(
        rf"{PERSON}{POLITE}[^。;\n]{{0,24}}?(?P<goes>辞职|离职|辞任|离任|退休|逝世|去世|病逝|当选|升任|出任)"
        rf"|(?P<comes>聘任|委任|任命|选举|免去|解聘|增聘|核准|罢免)(?=[^,。;\n]{{0,10}}?{PERSON})",
        "所报变动",
    ),
    NewsStatement(
        r"因(?P<reason>[^,。;\n]{2,16}?(?:原因)?)(?=,|辞|提出|申请|离|正式|不再|于|在)"
        rf"(?=[^。;\n]{{0,30}}?{_GOES})",
        "变动之因",
    ),
    NewsStatement(
        rf"(?:由|接替[^,。;\n]{{0,6}}?的是)(?:公司|原)?(?:{_POST})?(?P<person>{PERSON}){POLITE}"
        "(?:代行|代理|暂代|兼管|主持|接任|接替|履行|出任|担任|兼任)"
        rf"|接替[^,。;\n]{{0,8}}?的是(?:原)?(?:{_POST})?(?P<next>{PERSON})",
        "继任者",
    ),
    NewsStatement(rf"{SUBJECT}{ACTS}(?:公告|宣布|发布|{_COMES}|免去)", "所报公司"),
    NewsStatement(rf"{FIRMS}{BEFORE_ACT}(?:{_COMES}|{_GOES}|免去|{_POST})", "所报公司"),
    NewsStatement(
        rf"(?P<day>{WHEN})(?!电)[^。;\n]{{0,40}}?(?:{_COMES}|{_GOES}|生效|召开|免去|批复)"
        rf"|自(?P<since>{WHEN})起",
        "所报之时",
    ),
)
