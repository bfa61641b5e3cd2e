"""Patterns of names: what persons and organisations are called in Chinese documents."""

from __future__ import annotations

#: Characters that most names begin with; those of double surnames are among them.
FREQUENT = (
    "王李张刘陈杨黄赵吴周徐孙马朱胡郭何林高罗郑梁谢宋唐许韩邓冯曹彭曾肖田董潘袁蔡蒋余于杜叶"
    "程魏苏吕丁任卢姚沈钟姜崔谭陆范汪廖石金韦贾夏付方邹熊白孟秦邱侯江尹薛闫段雷龙黎史陶贺毛郝顾"
    "龚邵万覃武钱戴严莫孔向常汤康易乔赖文施洪季辛管祝左童翁柯欧舒纪项瞿诸葛司马欧阳上官"
)
#: Further ones of one character.
RARER = (
    "萧傅阎葛蓝樊殷倪庞颜温芦俞章鲁申尤伍聂焦关柳岳齐梅庄兰甘路游牛骆涂宁靳凌耿阮詹裴米邢安冉"
    "车翟霍单麻鞠尚冀闵苗褚娄卓仇宫卞佘候桑谷鲍巩费屈盛巫解应宗宣井栾华饶祁窦戚柴滕牟臧邬匡晏"
    "苟荆鄢冷楚郎简敖隋迟花栗连师封燕郁茅蒲苑桂成卜时明谈占仝雍官"
)
_DOUBLE = (
    "欧阳|司马|诸葛|上官|司徒|东方|皇甫|尉迟|公孙|慕容|令狐|夏侯|端木|南宫|呼延|独孤|闻人"
    "|鲜于|司空|太史|宇文"
)
_ENDINGS = (
    "公司|集团|厂|银行|分行|支行|政府|委员会|大学|学院|学校|中学|小学|幼儿园|医院|卫生院|研究院|检察院|中心|指挥部"
    r"|合伙企业|\(有限合伙\)|\(普通合伙\)|局|厅|法院|事务所|派出所|研究所|交易所|合作社|联社|信用社|旅行社|报社|出版社"
    r"|商店|饭店|酒店|商行|车行|经营部|营业部|门市部|项目部|分部|工作室|协会|商会|学会|基金会|居委会|村委会|管委会|工会|小组"
    r"|大队|支队|总队|管理处|办事处|办公室|图书馆|宾馆|农场|林场|市场|商场|超市|酒楼|餐厅|家具城|加工坊"
)
#: What a clause has and the name of an organisation has not.
_CLAUSE = (
    "原告|被告|上诉人|申请人|第三人|本院|法庭|[未与]|应[当于在]|将于|向[本原被法]|对[此原被]|经[本审传]|因[本此]"
    "|认为|诉称|辩称|提交|提出|支付"
)
#: Words that begin as names of persons do.
_NO_NAMES = "方[称认辩诉]|付款|付清|管理|于[是此次该其]|常年|任何|安排|单独|路过|应当"
#: Blanks of one line.
GAP = r"[^\S\n\t]*"
#: A Chinese character.
HAN = "[\u4e00-\u9fff]"
#: What parts persons who are not named in full: 王某1, 王某甲.
_ANONYMOUS = r"[甲乙丙丁戊己庚辛]|\d{1,2}(?![\d,.:年月日时万千元名个部台%])"
PERSON = (
    rf"(?!{_NO_NAMES})(?:(?:{_DOUBLE}){HAN}{{1,2}}"
    rf"|[{FREQUENT}{RARER}](?:[某x×*]{{1,2}}(?:{_ANONYMOUS})?|{HAN}{{1,2}}|{GAP}{HAN})"
    rf"|{HAN}(?:某{{1,2}}|×{{1,2}})(?:{_ANONYMOUS})?"
    rf"|{HAN}{{1,6}}·{HAN}{{1,8}}(?:·{HAN}{{1,8}})?)"
)
ORGANISATION = (
    rf"(?:(?!{_CLAUSE})[\u4e00-\u9fffa-z0-9&·×.\-]|\({HAN}{{1,8}}\)){{2,50}}?(?:{_ENDINGS})"
    r"(?:\((?:有限|普通|特殊普通)合伙\))?"
)
#: A name of any surname, by what stands behind it.
TOLD_PERSON = (
    rf"{HAN}{{2,4}}(?=,{GAP}(?:男|女|绰号|曾用名|该|系|董事|总经理|经理|执行|行长|局长|院长|厂长|校长|主任"
    rf"|{HAN}{{2,20}}律师事务所))"
)
