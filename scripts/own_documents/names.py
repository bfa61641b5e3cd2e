# ruff: noqa: E501 - lists of names
"""Invented people, companies, places and projects: plausible, and none of them meant to exist."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from random import Random

PLACES = (
    ("江苏省", "南通市", "崇川区"), ("浙江省", "嘉兴市", "秀洲区"), ("广东省", "佛山市", "南海区"),
    ("山东省", "潍坊市", "奎文区"), ("四川省", "绵阳市", "涪城区"), ("湖北省", "宜昌市", "西陵区"),
    ("湖南省", "株洲市", "天元区"), ("河南省", "洛阳市", "涧西区"), ("安徽省", "芜湖市", "鸠江区"),
    ("福建省", "泉州市", "丰泽区"), ("陕西省", "宝鸡市", "渭滨区"), ("辽宁省", "大连市", "甘井子区"),
    ("河北省", "唐山市", "路北区"), ("江西省", "赣州市", "章贡区"), ("云南省", "曲靖市", "麒麟区"),
    ("贵州省", "遵义市", "汇川区"), ("吉林省", "吉林市", "昌邑区"), ("甘肃省", "天水市", "秦州区"),
    ("广西壮族自治区", "柳州市", "鱼峰区"), ("新疆维吾尔自治区", "克拉玛依市", "独山子区"),
    ("内蒙古自治区", "包头市", "青山区"), ("海南省", "三亚市", "吉阳区"),
)  # fmt: skip
BRAND_FIRST = "华瑞恒鼎嘉泽远盛启明润沃澜航钧屹岚泓禾翎隆毓铭朗景昊骏晟博宏"
BRAND_SECOND = "源达腾峰科信宁川穗泰衡岳辰汐禹昱坤淼诚驰图宇桥维"
TRADES = {
    "goods": ("机械设备", "电气", "钢结构", "阀门制造", "电缆", "仪器仪表", "包装材料", "食品",
              "纺织", "化工", "汽车零部件", "医疗器械"),
    "building": ("建设工程", "建筑安装", "市政工程", "路桥工程", "水利水电工程", "装饰工程"),
    "service": ("信息技术", "物业服务", "企业管理咨询", "检测技术", "数据服务", "环保科技", "物流"),
    "estate": ("置业", "商业管理", "产业园运营", "资产管理"),
    "listed": ("新材料", "重工", "环境科技", "智能装备", "生物医药", "轨道交通", "能源科技",
               "光电", "农业发展"),
    "invest": ("投资", "创业投资", "控股", "股权投资管理"),
}  # fmt: skip
SURNAMES = ("王", "李", "张", "刘", "陈", "杨", "赵", "黄", "周", "吴", "徐", "孙", "胡", "朱", "高",
            "林", "何", "郭", "马", "罗", "梁", "宋", "郑", "谢", "韩", "唐", "冯", "董", "程", "曹",
            "袁", "邓", "许", "傅", "沈", "曾", "彭", "吕", "欧阳", "司徒", "诸葛", "温", "殷")  # fmt: skip
GIVEN = "建国志强文博雅琴思远海燕立新桂芳子轩雨桐明辉丽娟永康德胜晓岚春梅振华淑敏嘉怡景行克勤若水"
ROADS = (
    "望江",
    "锦绣",
    "创业",
    "振兴",
    "学府",
    "临港",
    "青年",
    "梧桐",
    "科技三",
    "环城东",
    "石桥",
    "云帆",
)
PROJECTS = (
    "{c}污水处理厂提标改造工程", "{c}高新技术产业园二期厂房工程", "{c}城东快速路第{n}标段",
    "{c}人民医院门诊综合楼机电安装工程", "{c}智慧城管平台建设项目", "{c}轨道交通2号线供电系统采购项目",
    "{c}农村饮水安全巩固提升工程", "{c}老旧小区改造配套管网工程", "{c}生活垃圾焚烧发电项目",
    "{c}综合客运枢纽站房钢结构工程", "{c}水库除险加固工程第{n}标段", "{c}数据中心机房节能改造项目",
)  # fmt: skip


def draw_place(rng: Random) -> tuple[str, str, str]:
    """Province, city and district that belong together."""
    return rng.choice(PLACES)


def short_city(city: str) -> str:
    """The city as company names say it: 南通市 -> 南通."""
    return city.removesuffix("市")


def draw_brand(rng: Random) -> str:
    """Two characters that sound like a company."""
    return rng.choice(BRAND_FIRST) + rng.choice(BRAND_SECOND)


def draw_company(rng: Random, trade: str, *, form: str | None = None) -> str:
    """A company such as 南通恒岳电缆有限公司; `trade` is a key of TRADES or a word."""
    city, brand = short_city(draw_place(rng)[1]), draw_brand(rng)
    line = rng.choice(TRADES.get(trade, (trade,)))
    ending = form or rng.choice(
        ("有限公司", "有限公司", "有限责任公司", "股份有限公司", "集团有限公司")
    )
    if rng.random() < 0.2:
        return f"{brand}（{city}）{line}{ending}"
    return f"{city}{brand}{line}{ending}"


def draw_person(rng: Random) -> str:
    """A surname and one or two given characters."""
    length = 1 if rng.random() < 0.3 else 2
    return rng.choice(SURNAMES) + "".join(rng.sample(GIVEN, length))


def draw_address(rng: Random) -> str:
    """A street address with an invented road."""
    province, city, district = draw_place(rng)
    return f"{province}{city}{district}{rng.choice(ROADS)}路{rng.randrange(1, 899)}号"


def address_of(rng: Random, company: str) -> str:
    """An address in the city that the company's name tells, if it tells one."""
    for province, city, district in PLACES:
        if short_city(city) in company:
            return f"{province}{city}{district}{rng.choice(ROADS)}路{rng.randrange(1, 899)}号"
    return draw_address(rng)


def draw_project(rng: Random, city: str) -> str:
    """The kind of works a city puts out to tender."""
    return rng.choice(PROJECTS).format(c=city, n=rng.choice("一二三四五"))


def draw_credit_code(rng: Random) -> str:
    """Looks like a unified social credit code; the check digit is deliberately not computed."""
    return (
        "91"
        + "".join(rng.choice("0123456789") for _ in range(6))
        + "".join(rng.choice("0123456789ABCDEFGHJKLMNPQRTUWXY") for _ in range(10))
    )


def draw_phone(rng: Random) -> str:
    """A land line in a range where few are given out."""
    return f"0{rng.randrange(310, 999)}-{rng.randrange(2000000, 8999999)}"
