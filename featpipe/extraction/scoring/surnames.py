"""Chinese surnames, by how common they are."""

from __future__ import annotations

#: Characters that most names begin with; those of double surnames are among them.
FREQUENT = (
    "王李张刘陈杨黄赵吴周徐孙马朱胡郭何林高罗郑梁谢宋唐许韩邓冯曹彭曾肖田董潘袁蔡蒋余于杜叶"
    "程魏苏吕丁任卢姚沈钟姜崔谭陆范汪廖石金韦贾夏付方邹熊白孟秦邱侯江尹薛闫段雷龙黎史陶贺毛郝顾"
    "龚邵万覃武钱戴严莫孔向常汤康易乔赖文施洪季辛管祝左童翁柯欧舒纪项瞿诸葛司马欧阳上官"
)
#: Further ones of one character.
RARER = (
    "萧傅阎葛蓝樊殷倪庞颜温芦俞章鲁申尤伍聂焦关柳岳齐梅庄兰甘路游牛骆涂宁靳凌耿阮詹裴米邢安冉车翟霍单麻鞠尚冀闵苗"
    "褚娄卓仇宫卞佘候桑谷鲍巩费屈盛巫解应宗宣井栾华饶祁窦戚柴滕牟臧邬匡晏苟荆鄢冷楚郎简敖隋迟花栗连师封燕郁茅蒲苑桂"
    "成卜时明谈占仝雍官"
)
DOUBLE = (
    "欧阳", "司马", "诸葛", "上官", "司徒", "东方", "皇甫", "尉迟", "公孙", "慕容", "令狐", "夏侯", "端木", "南宫",
    "呼延", "独孤",
)  # fmt: skip
