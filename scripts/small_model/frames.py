# ruff: noqa: E501, SIM905 - word lists read best as one line of words
"""Sentences in the manner of news and notices, with places for names. Written for this project.

{PER} {LOC} {ORG} {DATE} {MONEY} {PERCENT} {LAW} take names of that kind; {n} {v} {a} take a common
word of the dictionary; {t} a title such as 主席.
"""

TITLES = "主席 总统 总理 部长 副部长 外长 省长 市长 县长 书记 副书记 局长 厅长 校长 教授 院士 研究员 记者 编辑 导演 作家 诗人 画家 教练 队长 队员 经理 总经理 董事长 主任 副主任 秘书长 大使 发言人 将军 上校 司令员 政委 战士 医生 护士 教师 同志 先生 女士 小姐 博士 厂长 村长 农民 工人 司机 法官 律师 检察长 会长 理事长 议长 首相 国王 议员".split()

SURNAME_TITLES = "主席 总统 总理 部长 书记 先生 女士 小姐 老师 教授 医生 大夫 局长 厂长 校长 经理 司令 师傅 某 老".split()

#: Around a place of one character, and after two or three of them.
AROUND_SHORT = "访-期间 访-之行 驻-大使 驻-部队 对-贸易 对-政策 对-关系 在-投资 在-访问 抵-访问 来-访问 来-投资 赴-访问 赴-留学 旅-同胞 旅-侨胞 留-学生 入- 离- 援- -方 -方代表 -方表示 -军 -商 -籍 -资企业 -国人 -共两党 -企 -城 -语 由-飞往 返- 侵-战争 抗-战争 反-势力 -股 -币 全-各地 北-地区 南-地区 涉-案件".split()
AFTER_SHORT = "关系 两国 双方 双边关系 贸易 联合公报 友好 合作 友谊 建交 边境 友好协会 首脑会晤 关系史 三国 经贸 谈判 战争 同胞 两地 高速公路 铁路 交流".split()

FRAMES = """
{LOC}{t}{PER}{DATE}在{LOC}会见了{LOC}{t}{PER}。
{t}{PER}今天下午在{LOC}会见了由{PER}率领的{LOC}代表团。
{ORG}{t}{PER}出席了会议并讲话。
出席会议的还有{PER}、{PER}、{PER}、{PER}等同志。
{LOC}、{LOC}和{LOC}等国的代表参加了会议。
本报{LOC}{DATE}电　记者{PER}报道：{n}{v}取得{a}进展。
新华社{LOC}{DATE}电（记者{PER}、{PER}）{ORG}今天宣布，将{v}{n}。
据{ORG}报道，{LOC}{n}已经{v}。
{PER}说，{n}是{a}的，必须{v}{n}。
{PER}指出，要{v}{n}，{v}{n}，努力{v}{a}的{n}。
{PER}强调，{LOC}和{LOC}的关系是{a}的。
{ORG}发言人{PER}{DATE}在记者招待会上说，{LOC}愿意{v}{n}。
{PER}，男，{DATE}出生，{LOC}人，曾任{ORG}{t}。
{PER}同志因病医治无效，于{DATE}在{LOC}逝世，享年八十岁。
{ORG}{t}{PER}向{PER}表示感谢。
在{LOC}举行的{n}比赛中，{LOC}选手{PER}战胜{LOC}选手{PER}，获得冠军。
{LOC}队以3比1战胜{LOC}队，{PER}攻入两球。
{PER}从{LOC}来到{LOC}，在{ORG}{v}了十年。
{PER}是{ORG}的{t}，她{v}了许多{n}。
（作者{PER}，单位：{ORG}）
《{n}》作者：{PER}　{LOC}出版
图为{PER}在{LOC}{v}{n}。{PER}摄
{LOC}的{n}{a}，{n}{a}，是{v}{n}的好地方。
{DATE}，{PER}和{PER}来到{LOC}，{v}{n}。
从{LOC}到{LOC}，从{n}到{n}，处处{v}着{n}。
{ORG}最近在{LOC}召开座谈会，{PER}、{PER}等{v}了{n}。
{ORG}、{ORG}、{ORG}联合{v}的{n}在{LOC}开幕。
{LOC}政府决定，从{DATE}起{v}{n}。
经{ORG}批准，{LOC}{n}正式{v}。
{ORG}{DATE}发布公告，{ORG}将以{MONEY}收购{ORG}{PERCENT}的股权。
{ORG}今年{n}比去年增长{PERCENT}，{n}达到{MONEY}。
{ORG}与{ORG}签订{n}合同，合同金额为{MONEY}。
{LOC}去年{n}总额达{MONEY}，比上年增长{PERCENT}。
根据{LAW}的规定，{n}应当{v}{n}。
依照{LAW}第十条，{ORG}对{PER}处以{MONEY}罚款。
原告{PER}与被告{ORG}{n}纠纷一案，{ORG}于{DATE}作出判决。
{ORG}董事会聘任{PER}为{t}，任期自{DATE}起。
{ORG}股东{PER}计划减持不超过{PERCENT}的股份。
{LOC}是{LOC}的一个{a}的{n}。
{PER}的{n}{v}了{n}，使{n}{v}了{n}。
我在{LOC}见到了{PER}，他正在{v}{n}。
老{n}{PER}今年已经六十多岁了，仍然{v}{n}。
“{n}是{a}的！”{PER}激动地说。
{PER}笑着{v}道：“{v}{n}，{v}{n}。”
{PER}和妻子{PER}在{LOC}{v}{n}。
{n}{PER}、{n}{PER}、{n}{PER}分别{v}了{n}。
美国{t}{PER}对{LOC}进行了为期三天的访问。
{LOC}外交部{t}{PER}{DATE}抵达{LOC}。
{LOC}和{LOC}两国{t}签署了{n}协定。
中{LOC}两国{n}{v}。
{LOC}军队{DATE}{v}了{LOC}。
{LOC}驻{LOC}大使{PER}{v}了{n}。
应{LOC}{t}{PER}的邀请，{LOC}{t}{PER}将于{DATE}访问{LOC}。
{ORG}执行{t}{PER}说，{n}{v}是{a}的。
{ORG}的{n}们{v}在{LOC}的{n}上。
{ORG}日前{v}了一批{n}，{n}{v}{n}。
{ORG}组织{n}到{LOC}{v}。
毕业于{ORG}的{PER}，{v}了{n}。
受{ORG}委托，{PER}向{LOC}灾区{v}了{n}。
{LOC}地区发生{n}，{ORG}立即派{n}前往{v}。
{LOC}的{PER}来信说：{n}{v}{n}，应该{v}。
编辑同志：我是{LOC}的一名{n}，{v}{n}。
{PER}在《{n}》一文中{v}了{n}。
{PER}主编的《{n}》由{ORG}出版。
由{PER}导演、{PER}主演的电影《{n}》在{LOC}上映。
{n}家{PER}、{PER}应邀在{LOC}{v}{n}。
{DATE}至{DATE}，{LOC}将举办{n}。
截至{DATE}，{ORG}共{v}{n}{MONEY}，占{PERCENT}。
{ORG}（以下简称“公司”）于{DATE}收到{ORG}的通知。
甲方：{ORG}　乙方：{ORG}　签订日期：{DATE}
法定代表人：{PER}　住所：{LOC}
{ORG}：{n}{v}{n}
{PER}：{n}{v}{n}
{LOC}：{v}{a}{n}
{n}{v}{n}，{n}{v}，{a}的{n}也{v}了。
{n}是{n}的{n}，{v}{n}必须{v}{n}。
在{n}的{n}下，{a}{n}{v}了{n}的{v}。
我们要{v}{n}，{d}{v}{n}，{i}。
{i}，{n}{d}{v}；{n}的{n}{d}{a}。
这{n}{d}{v}，那{n}{v}{n}，真是{i}。
一个{a}的{n}，一位{a}的{n}，{v}在{n}里。
他{v}了{n}，又{v}{n}，{d}{v}到{n}。
他们{d}{v}，{n}也{d}{v}了。
如果{n}{v}{n}，就{d}{v}{n}。
首先要{v}{n}，其次要{v}{n}，最后{v}{n}。
有的{n}{v}{n}，有的{n}{v}{n}。
随着{n}的{v}，{n}的{n}{d}{v}。
为了{v}{n}，{n}采取了{a}的{n}。
第一，{v}{n}；第二，{v}{n}；第三，{v}{n}。
{n}、{n}、{n}等{n}{v}了{n}。
""".strip().split("\n")
