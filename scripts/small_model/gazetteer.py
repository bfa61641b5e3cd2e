# ruff: noqa: E501, SIM905, PLR0911 - word lists read best as one line; one return for each kind drawn
"""Names for entity samples: places and organisations by list and pattern, people by pattern.

The lists were written for this project; jieba's dictionary (MIT) adds its places and foreign names
where their shape is beyond doubt.
"""

from __future__ import annotations

from functools import cache
from itertools import accumulate
from typing import TYPE_CHECKING

from small_model import names

if TYPE_CHECKING:
    from random import Random

COUNTRIES = "中国 美国 日本 英国 法国 德国 俄罗斯 意大利 西班牙 葡萄牙 加拿大 澳大利亚 新西兰 印度 巴基斯坦 孟加拉国 尼泊尔 斯里兰卡 缅甸 泰国 老挝 越南 柬埔寨 马来西亚 新加坡 印度尼西亚 印尼 菲律宾 韩国 朝鲜 蒙古 哈萨克斯坦 乌兹别克斯坦 土耳其 伊朗 伊拉克 以色列 巴勒斯坦 约旦 叙利亚 黎巴嫩 沙特阿拉伯 科威特 阿联酋 埃及 利比亚 突尼斯 阿尔及利亚 摩洛哥 苏丹 埃塞俄比亚 肯尼亚 坦桑尼亚 尼日利亚 加纳 刚果 赞比亚 津巴布韦 南非 安哥拉 巴西 阿根廷 智利 秘鲁 墨西哥 古巴 哥伦比亚 委内瑞拉 乌拉圭 荷兰 比利时 卢森堡 瑞士 奥地利 波兰 捷克 匈牙利 罗马尼亚 保加利亚 希腊 丹麦 瑞典 挪威 芬兰 冰岛 爱尔兰 乌克兰 白俄罗斯 南斯拉夫 克罗地亚 阿富汗 苏联".split()
CITIES_ABROAD = "东京 大阪 首尔 汉城 平壤 曼谷 河内 新德里 孟买 伊斯兰堡 德黑兰 巴格达 耶路撒冷 开罗 莫斯科 圣彼得堡 伦敦 巴黎 柏林 汉堡 慕尼黑 罗马 米兰 威尼斯 马德里 巴塞罗那 里斯本 布鲁塞尔 日内瓦 苏黎世 维也纳 华沙 布拉格 布达佩斯 雅典 斯德哥尔摩 哥本哈根 赫尔辛基 奥斯陆 纽约 华盛顿 波士顿 芝加哥 洛杉矶 旧金山 休斯敦 西雅图 费城 底特律 亚特兰大 多伦多 渥太华 温哥华 悉尼 墨尔本 堪培拉 惠灵顿 里约热内卢 圣保罗 布宜诺斯艾利斯 圣地亚哥 利马 哈瓦那 内罗毕 约翰内斯堡 雅加达 吉隆坡 马尼拉 仰光 伊斯坦布尔 夏威夷 硅谷".split()
PROVINCES = "北京 上海 天津 重庆 河北 山西 辽宁 吉林 黑龙江 江苏 浙江 安徽 福建 江西 山东 河南 湖北 湖南 广东 广西 海南 四川 贵州 云南 西藏 陕西 甘肃 青海 宁夏 新疆 内蒙古 香港 澳门 台湾".split()
CITIES = "石家庄 保定 唐山 邯郸 太原 大同 临汾 呼和浩特 包头 沈阳 大连 鞍山 抚顺 锦州 长春 延边 四平 哈尔滨 大庆 齐齐哈尔 牡丹江 南京 苏州 无锡 常州 徐州 扬州 镇江 南通 盐城 连云港 杭州 宁波 温州 绍兴 嘉兴 金华 台州 合肥 芜湖 安庆 蚌埠 黄山 福州 厦门 泉州 漳州 龙岩 南昌 九江 赣州 景德镇 井冈山 济南 青岛 烟台 威海 潍坊 淄博 临沂 日照 曲阜 郑州 洛阳 开封 安阳 南阳 许昌 武汉 宜昌 襄樊 荆州 黄冈 十堰 长沙 株洲 湘潭 岳阳 衡阳 韶山 广州 深圳 珠海 汕头 佛山 东莞 中山 湛江 惠州 南宁 桂林 柳州 北海 海口 三亚 成都 绵阳 宜宾 乐山 攀枝花 贵阳 遵义 昆明 大理 丽江 曲靖 拉萨 日喀则 西安 延安 宝鸡 咸阳 汉中 兰州 天水 敦煌 西宁 银川 乌鲁木齐 喀什 克拉玛依 吐鲁番 石河子 浦东 九龙 台北 高雄".split()
REGIONS = "大陆 内地 两岸 海峡两岸 中华 东亚 南亚 亚太 欧美 江南 中原 亚洲 欧洲 非洲 北美 南美 拉丁美洲 东南亚 中东 西欧 东欧 中亚 长江 黄河 珠江 淮河 松花江 太湖 洞庭湖 鄱阳湖 泰山 华山 长城 天安门 天安门广场 人民大会堂 中南海 钓鱼台 故宫 颐和园 太平洋 大西洋 印度洋 南海 东海 渤海 地中海 波斯湾 海湾地区 华北 华东 东北 西北 西南 华南 珠江三角洲 长江三角洲 大别山 太行山 青藏高原 塔里木盆地 三峡 台湾海峡 北极 南极 香港特别行政区 科索沃 车臣 克什米尔 西伯利亚".split()
SHORT = "中 美 日 英 法 德 俄 京 沪 津 粤 港 台 澳 川 滇 鲁 豫 苏 浙 闽 藏 韩 印 华 欧 亚 非 朝 越 泰 以 巴 加 意 澳".split()
ORGANISATIONS = "国务院 外交部 国防部 教育部 财政部 公安部 卫生部 农业部 司法部 文化部 建设部 铁道部 交通部 民政部 人事部 水利部 国家计委 国家经贸委 国家体委 国家税务总局 国家统计局 国家工商局 中国人民银行 中国证监会 证监会 银监会 保监会 最高人民法院 最高人民检察院 全国人大 全国人大常委会 全国政协 中共中央 党中央 中央军委 中央纪委 中宣部 中组部 中央电视台 新华社 人民日报社 光明日报社 经济日报 中央人民广播电台 中国科学院 中国社会科学院 中国工程院 北京大学 清华大学 复旦大学 南开大学 浙江大学 武汉大学 中山大学 北京师范大学 中国人民大学 上海交通大学 西安交通大学 哈尔滨工业大学 中央音乐学院 中央美术学院 解放军 八路军 新四军 武警部队 中国共产党 共产党 国民党 民进 民盟 九三学社 致公党 共青团中央 全国妇联 全国总工会 中国红十字会 中国足协 中国奥委会 中国作协 中国文联 联合国 安理会 世界银行 国际货币基金组织 世界卫生组织 世界贸易组织 欧盟 北约 东盟 欧佩克 国际奥委会 国际足联 红十字会 美联社 路透社 法新社 共同社 白宫 五角大楼 国会 参议院 众议院 民主党 共和党 工党 保守党 微软公司 英特尔公司 通用汽车公司 摩托罗拉公司 西门子公司 联想集团 海尔集团 长虹集团 中石化 中石油 中国移动 中国工商银行 中国建设银行 中国银行 招商银行 上海证券交易所 深圳证券交易所".split()
ORG_TAILS = "省委 市委 县委 省政府 市政府 县政府 市人民政府 大学 师范大学 医科大学 工业大学 理工大学 农学院 师范学院 日报社 日报 晚报 电视台 中级人民法院 高级人民法院 人民检察院 公安局 公安厅 工商局 地税局 教育局 环保局 水利局 博物馆 图书馆 美术馆 歌舞团 京剧院 交响乐团 人民医院 第一医院 中医院 第一中学 实验小学 钢铁公司 钢铁集团 汽车集团 机械厂 电子有限公司 商业银行 证券公司 海关 队 足球队 女排 军区 警备区 人大 政协 总工会 妇联 团委 红十字会 慈善总会 科协 文联 作协 法院 体育局 旅游局 气象台 铁路局 供电局 邮电局".split()
FOREIGN_ORG_TAILS = "政府 外交部 国防部 议会 众议院 最高法院 中央银行 驻华大使馆 大使馆 国家队 队 共产党 社会党 工人党 奥委会 航空公司 石油公司 电信公司 国立大学 科学院 军队 海军 空军".split()
BODIES = (
    "协会 学会 研究会 基金会 委员会 研究院 研究所 研究中心 联合会 促进会 出版社 报社 杂志社".split()
)
TOPICS = "残疾人 青少年 老年 消费者 集邮 书法家 摄影家 企业家 作家 音乐家 戏剧家 体育 篮球 乒乓球 游泳 扶贫 环境保护 绿化 法学 历史 经济 教育 农业科学 水稻 煤炭 石油 化工 纺织 建筑 航天 航空 电子 医药 食品 汽车 烟草 森林 海洋 地质 国际战略 发展战略 对外友好 科技信息 新闻工作者 少年儿童 人民文学 人民教育".split()
SURNAMES = "王李张刘陈杨黄赵周吴徐孙朱马胡郭林何高梁郑罗宋谢唐韩曹许邓萧冯曾程蔡彭潘袁于董余苏叶吕魏蒋田杜丁沈姜范江傅钟卢汪戴崔任陆廖姚方金邱夏谭韦贾邹石熊孟秦阎薛侯雷白龙段郝孔邵史毛常万顾赖武康贺严尹钱施牛洪龚汤陶黎温莫易樊乔文安殷颜庄章鲁倪庞邢俞翟蓝聂齐向申葛柴伍覃骆关焦柳欧祝纪尚毕耿芦左季管符辛苗詹曲欧靳祁路涂兰甘裴梅童翁霍游阮尤岳柯牟滕谷舒卜成饶宁凌盛查单冉鲍华包屈房喻"
DOUBLE_SURNAMES = "欧阳 司马 上官 诸葛 司徒 皇甫 尉迟 慕容 令狐 端木".split()
GIVEN = "伟芳娜秀英敏静丽强磊军洋勇艳杰娟涛明超兰霞平刚桂文辉玲华建国红玉梅志东海波荣新利民永健世广义兴良山仁宁贵福生龙元全胜学祥才发武利清飞彬富顺信子成康星光天达安岩中茂进林有坚和彪博诚先敬震振壮会思群豪心邦承乐绍功松善厚庆民友裕河哲江超浩亮政谦亨奇固之轮翰朗伯宏言若鸣朋斌梁栋维启克伦翔旭鹏泽晨辰士以家致树炎德行时泰盛雄琛钧冠策腾楠榕风航弘淑惠珠翠雅芝萍娥芬燕彩春菊凤洁琳素云莲真环雪爱妹香月莺媛瑞凡佳嘉琼勤珍贞莉瑶怡婵雁蓓纨仪荷丹蓉眉君琴蕊薇菁梦岚苑婕馨瑗琰韵融园艺咏卿聪澜纯毓悦昭冰爽琬茗羽希宁欣飘育滢馥筠柔竹霭凝晓欢霄枫芸菲寒伊亚宜可姬舒影荔枝思丽忠孝礼义廉根宝柱来喜财金银铁栓锁田"
SOUNDS = "阿 巴 贝 比 伯 博 布 查 达 丹 德 迪 杜 多 尔 法 费 弗 戈 格 哈 海 汉 霍 吉 加 杰 卡 凯 科 克 库 拉 莱 兰 劳 勒 雷 里 利 林 卢 罗 洛 马 麦 曼 梅 米 莫 纳 内 尼 诺 帕 皮 普 奇 乔 萨 塞 桑 沙 施 史 斯 特 苏 索 塔 泰 坦 汤 特 托 瓦 韦 维 沃 伍 西 希 谢 雅 亚 耶 伊 因 尤 约 泽 詹 朱 佐".split()
TAILS = "斯 森 特 尔 夫 斯基 维奇 娃 娜 诺夫 顿 逊 曼 德 克 奇 亚 拉 里 利 托 多 诺 罗 伊 蒂 丝 金 恩 姆".split()
JAPANESE = "田中 山本 桥本 小渊 村山 中村 佐藤 铃木 高桥 渡边 伊藤 小林 加藤 山田 松本 井上 木村 清水 池田 森".split()
JAPANESE_GIVEN = (
    "龙太郎 惠三 富市 一郎 次郎 健一 正雄 洋子 美智子 和夫 义雄 喜朗 大作 俊树 直子 诚".split()
)


def draw_person(rng: Random) -> str:
    """Seven in ten Chinese, some of them of the dictionary; others sound Western or Japanese."""
    kind = rng.random()
    if kind < 0.22:
        names, weights = dictionary_people()
        return rng.choices(names, cum_weights=weights)[0]
    if kind < 0.72:
        surname = rng.choice(SURNAMES) if rng.random() < 0.97 else rng.choice(DOUBLE_SURNAMES)
        return surname + "".join(rng.choice(GIVEN) for _ in range(1 if rng.random() < 0.22 else 2))
    if kind < 0.75:
        return rng.choice(JAPANESE) + rng.choice(JAPANESE_GIVEN)
    if kind < 0.82 and foreign_names():
        return rng.choice(foreign_names())
    name = _draw_sound(rng)
    if rng.random() < 0.35:
        return name + "·" + _draw_sound(rng)
    return name


def _draw_sound(rng: Random) -> str:
    n_sounds = rng.choice((1, 1, 2, 2, 3))
    return "".join(rng.choice(SOUNDS) for _ in range(n_sounds)) + rng.choice(TAILS)


def draw_place(rng: Random) -> str:
    """Countries, provinces, cities, rivers, regions, places of the dictionary, compounds."""
    kind = rng.random()
    if kind < 0.26:
        return rng.choice(COUNTRIES)
    if kind < 0.38:
        return rng.choice(CITIES_ABROAD)
    if kind < 0.5:
        return rng.choice(PROVINCES) + (rng.choice(("省", "", "")) if rng.random() < 0.5 else "")
    if kind < 0.66:
        return rng.choice(CITIES) + rng.choice(("市", "", ""))
    if kind < 0.74:
        return rng.choice(REGIONS)
    if kind < 0.86 and dictionary_places():
        return rng.choice(dictionary_places())
    if kind < 0.92:
        return rng.choice(PROVINCES) + "省" + rng.choice(CITIES) + "市"
    stem = rng.choice(GIVEN) + rng.choice("山河林湖泉沟坪坝岭桥江湾塘庄阳安平宁")
    return stem + rng.choice(
        ("县", "镇", "乡", "村", "区", "街道", "路", "县", "水库", "机场", "火车站")
    )


def draw_organisation(rng: Random) -> str:
    """Offices, schools, media, teams, bodies and companies."""
    kind = rng.random()
    if kind < 0.28:
        return rng.choice(ORGANISATIONS)
    if kind < 0.48:
        return rng.choice(PROVINCES + CITIES + CITIES) + rng.choice(ORG_TAILS)
    if kind < 0.6:
        return rng.choice(COUNTRIES + CITIES_ABROAD) + rng.choice(FOREIGN_ORG_TAILS)
    if kind < 0.76:
        head = rng.choice(
            ("中国", "全国", "国家", "国际", rng.choice(PROVINCES), rng.choice(CITIES) + "市")
        )
        return head + rng.choice(TOPICS) + rng.choice(BODIES)
    return draw_company(rng)


def draw_company(rng: Random) -> str:
    """南通恒岳电缆有限公司, 恒岳集团, 恒岳股份 and the like."""
    full = names.draw_company(rng, rng.choice(list(names.TRADES)))
    kind = rng.random()
    if kind < 0.55:
        return full
    brand = names.draw_brand(rng)
    line = rng.choice(
        (
            "科技",
            "股份",
            "集团",
            "药业",
            "控股",
            "电子",
            "银行",
            "证券",
            "传媒",
            "能源",
            "公司",
            "地产",
            "重工",
            "生物",
        )
    )
    return brand + line if kind < 0.85 else full.replace("有限公司", f"{rng.choice(CITIES)}分公司")


@cache
def dictionary_places() -> list[str]:
    """Places of jieba's dictionary whose last character says what they are."""
    return [word for word, _, tag in dictionary()
            if tag == "ns" and 3 <= len(word) <= 5 and word[-1] in "省市县州镇江河湖岛洲"]  # fmt: skip


@cache
def dictionary_people() -> tuple[list[str], list[float]]:
    """Chinese names of jieba's dictionary, of three characters, with running weights."""
    found = [(word, count) for word, count, tag in dictionary()
             if tag == "nr" and len(word) == 3 and word[0] in SURNAMES and word[1] != "家"
             and word[-1] not in "氏哥姐叔伯婶妹爷府家村庄"]  # fmt: skip
    return [word for word, _ in found], list(accumulate(count**0.6 for _, count in found))


@cache
def foreign_names() -> list[str]:
    """Transliterated names of jieba's dictionary that are no place of our lists."""
    sounds = set("".join(SOUNDS + TAILS)) | set(
        "艾奥埃爱鲍宾波策恩甘冈根哥古赫亨华惠基捷金肯莉琳龙露默穆娜尼涅欧佩彭齐琼丘热日茹瑟圣舒斯廷图威魏温文乌辛休逊叶英赞芝"
    )
    places = "".join(COUNTRIES + CITIES_ABROAD + REGIONS)
    return [word for word, _, tag in dictionary()
            if tag == "nrt" and 3 <= len(word) <= 5 and set(word) <= sounds
            and word not in places and word[-1] not in "亚堡岛人语州"]  # fmt: skip


@cache
def common_words() -> dict[str, tuple[list[str], list[float]]]:
    """Words of the dictionary that are surely no names, by part of speech, with running weights."""
    found: dict[str, tuple[list[str], list[float]]] = {}
    names = set("".join(COUNTRIES + PROVINCES))
    for word, count, tag in dictionary():
        if (
            tag in {"n", "v", "a", "vn", "d", "i", "l", "b", "nz"}
            and 2 <= len(word) <= 4
            and count >= 3
        ):
            if tag == "nz" and set(word) & names:
                continue
            words, weights = found.setdefault(tag, ([], []))
            words.append(word)
            weights.append((weights[-1] if weights else 0.0) + count**0.8)
    return found


def draw_word(rng: Random, tag: str) -> str:
    """A dictionary word of this part of speech; frequent ones come oftener."""
    words, weights = common_words()[tag]
    return rng.choices(words, cum_weights=weights)[0]


@cache
def dictionary() -> list[tuple[str, int, str]]:
    """Word, count and part of speech of each line of jieba's dictionary."""
    import jieba

    with jieba.get_module_res("dict.txt") as lines:
        parts = (line.decode().split() for line in lines)
        return [(word, int(count), tag) for word, count, tag in parts]
