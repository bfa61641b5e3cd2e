"""What news tells of who leads companies: who came or went, as what, why, and who follows.

``财务总监 *庄毓敏* 因 *个人原因* *辞职*``, ``委任 *贺松年* 为 *行政总裁*``, ``由 *邵启航* 代行``.
"""

from __future__ import annotations

from featpipe.extraction.names.name_patterns import HAN, PERSON
from featpipe.extraction.statements.news_words import ACTS, SUBJECT, WHEN, Told

_POST = (
    r"(?:(?:副|执行|独立|名誉|首席|联席|常务|财务|合规|技术|营销|投资|运营|信息|风险|董事会|监事会|职工|非"
    r"|行政|高级|中国区|集团|大|分管|原|党委){0,4}"
    r"(?:董事长|主席|总裁|总经理|经理|董事|监事|行长|总监|秘书|工程师|书记|首席[\u4e00-\u9fff]{2,6}官"
    r"|主任委员|会计师|ceo|cfo|创始人)(?:兼|及|、|和)?){1,4}"
)
_COMES = "(?:聘任|委任|任命|选举|增选|推选|聘请|增聘|提名|推举)"
_GOES = "(?:辞职|离职|辞任|辞去|离任|退休|逝世|去世|病逝|辞呈|被查)"
_POLITE = "(?:先生|女士|同志)?"

APPOINTMENTS = (
    Told(
        rf"{_COMES}(?:公司|本行)?(?:[^,。;\n]{{0,16}}?{_POST})?(?P<person>{PERSON}){_POLITE}(?:为|担任|出任|任)"
        rf"|(?:免去|解聘|罢免|撤销)了?(?P<gone>{PERSON}){_POLITE}"
        rf"|{_POST}(?P<leaves>{PERSON}){_POLITE}(?=[^。;\n]{{0,30}}?{_GOES})"
        rf"|(?P<rises>{PERSON})(?:升任|当选|出任|获任|接任){HAN}"
        rf"|核准(?P<able>{PERSON})",
        "所报高管",
    ),
    Told(
        rf"{_COMES}[^,。;\n]{{2,20}}?(?:为|担任|出任)(?:公司|本行|集团)?(?:第{HAN}届董事会)?(?P<post>{_POST})"
        rf"|辞去(?:公司|集团|本行|所任|担任的){{0,3}}(?P<left>[^,。;\n]{{2,40}}?)(?:等)?职务"
        rf"|(?:免去|解聘)[^,。;\n]{{2,20}}?(?P<lost>{_POST})(?:等)?职?务?"
        rf"|(?P<of>{_POST}){PERSON}{_POLITE}(?=[^。;\n]{{0,30}}?{_GOES})"
        rf"|不再担任(?:公司|集团)?(?P<was>[^,。;\n]{{2,30}}?)(?=[,。;\n])",
        "所报职位",
    ),
    Told(
        rf"{PERSON}{_POLITE}[^。;\n]{{0,24}}?(?P<goes>辞职|离职|辞任|离任|退休|逝世|去世|病逝|当选|升任|出任)"
        rf"|(?P<comes>聘任|委任|任命|选举|免去|解聘|增聘|核准|罢免)(?=[^,。;\n]{{0,10}}?{PERSON})",
        "所报变动",
    ),
    Told(
        r"因(?P<reason>[^,。;\n]{2,16}?(?:原因)?)(?=,|辞|提出|申请|离|正式|不再|于|在)"
        rf"(?=[^。;\n]{{0,30}}?{_GOES})",
        "变动之因",
    ),
    Told(
        rf"(?:由|接替[^,。;\n]{{0,6}}?的是)(?:公司|原)?(?:{_POST})?(?P<person>{PERSON}){_POLITE}"
        "(?:代行|代理|暂代|兼管|主持|接任|接替|履行|出任|担任|兼任)"
        rf"|接替[^,。;\n]{{0,8}}?的是(?:原)?(?:{_POST})?(?P<next>{PERSON})",
        "继任者",
    ),
    Told(rf"{SUBJECT}{ACTS}(?:公告|宣布|发布|{_COMES}|免去)", "所报公司"),
    Told(
        rf"(?P<day>{WHEN})(?!电)[^。;\n]{{0,40}}?(?:{_COMES}|{_GOES}|生效|召开|免去|批复)"
        rf"|自(?P<since>{WHEN})起",
        "所报之时",
    ),
)
