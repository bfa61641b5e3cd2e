# ruff: noqa: E501 - lists of names
"""Invented companies and where they are: plausible, and none of them meant to exist."""

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


def draw_place(rng: Random) -> tuple[str, str, str]:
    """Province, city and district that belong together."""
    return rng.choice(PLACES)


def short_city(city: str) -> str:
    """The city as company names say it: 南通市 -> 南通."""
    return city.removesuffix("市")


def draw_brand(rng: Random) -> str:
    """Two characters that sound like a company."""
    return rng.choice(BRAND_FIRST) + rng.choice(BRAND_SECOND)


def draw_company(rng: Random, trade: str) -> str:
    """A company such as 南通恒岳电缆有限公司; `trade` is a key of TRADES or a word."""
    city, brand = short_city(draw_place(rng)[1]), draw_brand(rng)
    line = rng.choice(TRADES.get(trade, (trade,)))
    ending = rng.choice(("有限公司", "有限公司", "有限责任公司", "股份有限公司", "集团有限公司"))
    if rng.random() < 0.2:
        return f"{brand}（{city}）{line}{ending}"
    return f"{city}{brand}{line}{ending}"
