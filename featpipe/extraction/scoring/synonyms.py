"""Synonyms: other names that business documents use for the things a field may be named after.

General vocabulary of contracts, announcements, judgments and invoices, Chinese and English, written
down by hand: nothing here is counted on a labelled set. A field's own name and aliases count more.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from featpipe.extraction.scoring.english_names import NAMES, PARTIES
from featpipe.extraction.values.text import fold, fold_width

if TYPE_CHECKING:
    from collections.abc import Iterable

#: Names of one thing between semicolons. A name may be in several groups. First those of parties.
_PARTIES = """
甲方, 发包人, 发包方, 招标人, 招标单位, 招标方, 业主, 业主单位, 建设单位, 采购人, 采购方,
    采购单位, 买方, 买受人, 需方, 委托方, 委托人, 定作人, 客户, 购买方, 订货方, 交易对方,
    合同对方, 出租方, 出租人, first party, party a;
乙方, 承包人, 承包方, 中标人, 中标单位, 中标方, 卖方, 出卖人, 供方, 供应商, 供货方, 受托方,
    受托人, 施工单位, 承建方, 承揽人, 服务方, 承租方, 承租人, second party, party b;
买方, 买受人, 采购方, 采购人, 购买方, 购货方, 需方, 受让方, buyer, purchaser, customer,
    bill to, sold to, invoice to, billed to;
卖方, 出卖人, 销售方, 销货方, 供应商, 供货方, 供方, 转让方, 出让方, seller, vendor, supplier;
出租方, 出租人, 房东, lessor, landlord;
承租方, 承租人, 租户, lessee, tenant, renter;
委托方, 委托人, 委托单位, 客户, client, customer;
受托方, 受托人, 受委托人, 受托单位, 服务方;
用人单位, 用工单位, 雇主, employer;
劳动者, 员工, 职工, 雇员, employee;
中标人, 中标单位, 中标供应商, 成交供应商, 成交人, 成交单位, 中标企业, 中选人, 中选单位, 供应商;
转让方, 出让方, 出让人, 转让人, 卖方, transferor, assignor;
受让方, 受让人, 买方, transferee, assignee;
贷款人, 出借人, 债权人, 贷款银行, 贷款方, 贷款机构, 贷款单位, 放款人, 放款机构, 出借方, 授信人,
    lender, creditor;
借款人, 债务人, 借款方, 借款单位, 借款企业, 借款申请人, 贷款申请人, 授信申请人, borrower, debtor;
保证人, 担保人, 担保方, guarantor;
被担保人, 被担保方, 债务人, 担保对象, guaranteed party;
出质人, 质押人, 质押股东, pledgor, pledger;
质权人, 质押权人, pledgee;
抵押人, mortgagor;
抵押权人, mortgagee;
保险人, 承保公司, 承保人, insurer;
原告, 申请人, 起诉方, 原审原告, 反诉原告, plaintiff, claimant, applicant;
被告, 被申请人, 被告人, 原审被告, 反诉被告, defendant, respondent;
上诉人, 再审申请人, appellant;
被上诉人, appellee;
第三人, 原审第三人, third party;
申请执行人, 执行申请人;
被执行人;
公诉机关, 抗诉机关;
收购方, 收购人, 购买方, acquirer;
投资方, 投资人, 投资者, 出资方, 出资人, investor;
投保人, policyholder;
被保险人, 受益人, insured, beneficiary;
收货人, 收件人, consignee;
采购代理机构, 招标代理机构, 代理机构, 招标代理, 采购代理, 招标代理单位, 代理单位;
竞得人, 竞得单位, 受让人, 受让单位;
被处罚人, 被处罚单位, 被处罚当事人, 当事人, 行政相对人;
发货人, 寄件人, 托运人, consignor, shipper;
"""
_NAMES = """
受托方, 受托人, 服务方, 代理人, agent;
股东, 股东名称, 股东姓名, 持有人, 持股人, shareholder, stockholder;
标的公司, 目标公司, 标的企业, 被投资公司, 被收购方, target, target company;
法院, 审理法院, 受理法院, court;
管辖法院, 诉讼法院;
仲裁机构, 仲裁委员会;
冻结机关, 执行机关, 司法机关, 执行法院, 冻结法院, 人民法院;
审计机构, 会计师事务所, 审计机关, auditor;
保荐机构, 主承销商, 保荐人, 承销商, sponsor, underwriter;
法定代表人, 法人代表, 负责人, legal representative;
联系人, 经办人, 收件人, contact, contact person;
律师, 代理律师, 代理人, 诉讼代理人, 委托诉讼代理人, 委托代理人, lawyer, attorney, counsel;
签发人, 批准人, 审批人, approved by, authorized by, authorised by;
发行人, 发行主体, issuer;
公司名称, 企业名称, 单位名称, 名称, company, company name;
增持方, 增持人, 增持股东, 增持主体;
减持方, 减持人, 减持股东, 减持主体;
项目名称, 工程名称, 标段名称, 标的名称, 招标项目, 采购项目, 中标项目, 项目, 工程, project,
    project name;
合同名称, 协议名称, 合同, 协议书, contract name, agreement name, document name;
标的, 标的物, 货物名称, 产品名称, 商品名称, 设备名称, 物资名称, 材料名称, 品名, 采购内容, subject,
    product;
合同编号, 协议编号, 合同号, contract number, contract no;
发票号码, 发票号, 票据号, invoice number, invoice no, invoice no., invoice id, invoice #;
订单号, 订单编号, 采购单号, order number, order no, order no., po number,
    po no, po no., po, po #, purchase order number, purchase order no, purchase order no., your po;
证券代码, 股票代码, 公司代码, stock code, ticker;
证券简称, 股票简称, 公司简称, stock name;
公告编号, 编号, 文号, announcement number;
项目编号, 招标编号, 采购编号, 采购项目编号, 招标项目编号, 项目代码, project number, project no,
    tender number, tender no;
保险单号, 保单号, 保险单号码, 保单号码, 保险合同号, policy number, policy no, policy no.;
宗地编号, 地块编号, 宗地号, 地块号;
处罚决定书文号, 行政处罚决定书文号, 决定书文号, 处罚文号;
单据编号, 收据编号, 凭证编号, 票据编号, 单据号, 收据号;
案号, 裁决书编号, 裁决书号, 裁定书文号, 判决书文号, 裁判文书号, 文书号, 案件编号,
    案件号, case number, case no;
原审案号, 一审案号, 原判案号;
原审法院, 一审法院;
案由, 纠纷类型, cause of action;
罪名, 案由, charge;
文书类型, 文书名称, 文书种类;
案件受理费, 受理费, 诉讼费, 诉讼费用, 案件申请费;
财产保全费, 保全费, 诉讼保全费, 保全申请费;
统一社会信用代码, 社会信用代码, 纳税人识别号, 税号, tax id, vat number, vat no, vat no.,
    vat reg no, vat reg no., vat registration number, vat registration no, vat id;
身份证号, 身份证号码, 公民身份号码, 证件号码, id number;
账号, 银行账号, 账户, 银行账户, 收款账号, account number, account;
开户行, 开户银行, bank;
合同金额, 合同总金额, 合同总价, 合同价, 合同价款, 合同总额, 合同总价款, 中标金额, 中标价,
    中标价格, 中标总价, 投标报价, 签约合同价, 总价, 总金额, 总额, contract amount,
    contract value, contract price, contract sum, total contract value, total fee, total price;
中标金额, 中标价, 中标价格, 中标总价, 成交金额, 成交价, 投标报价, winning bid;
交易金额, 交易价格, 交易对价, 转让价格, 转让价款, 成交金额, 股权转让款, transaction amount,
    consideration;
投资金额, 投资总额, 出资额, 认缴出资额, 出资金额, 总投资, investment amount;
担保金额, 担保额度, 保证金额, 担保总额, guarantee amount;
借款金额, 贷款金额, 贷款本金, 借款本金, 借款总额, 贷款总额, 贷款币种及金额, 借款币种及金额, 融资金额, 授信额度, loan amount,
    principal amount, principal, principal sum, facility amount;
涉案金额, 诉讼金额, 诉讼标的, 标的额, 诉讼请求金额, amount in dispute;
质押金额, 融资金额, 质押融资金额;
金额, 总额, 总金额, 价款, 款项, amount, money, sum;
合计, 总计, 总金额, 价税合计, 应付金额, 实付金额, total, grand total, total amount,
    amount due, net total, total due, total payable, balance due,
    invoice total, total amount due, invoice amount, order total;
税额, 增值税, 税金, tax, vat, gst, tax amount;
单价, unit price, price;
租金, 月租金, 年租金, rent;
保险金额, 保额, 总保险金额, 总保额, 保险金额合计, sum insured;
保险费, 保费, 总保险费, 总保费, 保险费合计, premium;
罚款金额, 罚款数额, 罚款;
违约金, 滞纳金, penalty;
违约金比例, 违约金率, 违约金标准, 逾期违约金比例, 滞纳金比例, 逾期利率;
判决金额, 判决支付金额, 判令金额, 判决给付金额;
保证金, 履约保证金, 押金, 定金, deposit;
押金, 租赁保证金, 房屋押金;
注册资本, 注册资金, registered capital;
净利润, 归属于上市公司股东的净利润, net profit;
营业收入, 营业总收入, revenue;
质押股数, 质押数量, 质押股份数量, 质押股份, 质押股份数, pledged shares;
冻结股数, 冻结数量, 冻结股份数量, 冻结股份, 冻结股份数, frozen shares;
增持股数, 增持数量, 增持股份数量;
减持股数, 减持数量, 减持股份数量;
回购股数, 回购数量, 回购股份数量, repurchased shares;
持股数量, 持有股数, 持股数, 持股总数, 持有股份, 持有公司股份;
累计质押数量, 累计质押股数, 累计质押股份数量, 累计质押股份数;
占所持股份比例, 占其所持股份比例, 占其所持股份的比例, 占其持有股份比例, 占所持股份的比例;
持股比例, 占总股本比例, 占公司总股本, 占公司股份总数, 占总股本的比例, proportion;
数量, 股数, 份数, number, quantity, qty;
比例, 占比, 百分比, ratio, percentage, proportion;
利率, 年利率, 贷款利率, 票面利率, interest rate, rate of interest, annual interest rate;
税率, tax rate, vat rate, gst rate;
每股价格, 发行价格, 回购价格, 成交均价, 均价, 交易均价, 转让价格, 增持均价, 减持均价,
    average price;
签订日期, 签署日期, 签约日期, 签署日, 签订日, 签约日, 订立日期,
    合同签订日期, 合同签署日期, 签订时间, 签署时间, 订立时间,
    agreement date, signing date, contract date, date of agreement,
    date of contract, execution date;
公告日期, 公告日, 发布日期, 披露日期, 公示日期, 公告时间, 发布时间, 公告发布日期, 公示发布日期,
    announcement date;
处罚决定日期, 处罚日期, 决定日期, 作出日期;
签单日期, 出单日期, 签发日期;
开始日期, 起始日期, 起始日, 质押开始日期, 质押起始日, 冻结起始日, 冻结日期, 起租日, 起始时间,
    租赁起始日, 租期起始日, 租赁开始日期,
    start date, commencement date, date of commencement, lease start date, term start date;
结束日期, 到期日, 到期日期, 截止日期, 终止日期, 届满日, 租期届满日, 租赁到期日, 租赁终止日, 质押到期日, 冻结终止日, 冻结到期日,
    end date, expiration date, expiry date, lease end date, term end date;
解除日期, 解除质押日期, 解押日期, 解冻日期, 解除冻结日期, release date;
开工日期, 计划开工日期, 开工时间;
竣工日期, 计划竣工日期, 完工日期, 竣工时间;
生效日期, 生效日, effective date;
开票日期, 发票日期, invoice date, date of invoice, date of issue, issue date;
交货日期, 交付日期, 交货期, 交货期限, 交货时间, 交付期限, 供货期, delivery date, date of delivery;
付款日期, 支付日期, 付款期限, due date, payment date, payment due date,
    payment due, pay by;
判决日期, 裁判日期, 裁定日期, 裁决日期, 调解日期, judgment date;
立案日期, 受理日期, filing date;
开庭日期, 审理日期, 开庭时间, hearing date;
落款日期, 授权日期, 委托日期, 出具日期, 发函日期, 签发日期, 通知日期, 函件日期, 申请日期, 填表日期,
    报告日期, 制表日期;
日期, 时间, date;
投标截止时间, 投标截止日期, 投标文件截止时间, 投标文件递交截止时间, 递交投标文件截止时间,
    投标文件提交截止时间, 文件递交截止时间, 文件提交截止时间, 响应文件截止时间;
土地面积, 出让面积, 宗地面积, 用地面积, 地块面积;
面积, 建筑面积, 租赁面积, 房屋面积, 出租面积, 房屋建筑面积, area;
工期, 合同工期, 履行期限, 合同期限, 中标工期, 履约期限, 合同履行期限, 合同履行期, 服务期, 建设工期, 服务期限, 计划工期, 期限, duration, term;
租赁期限, 租期, 租赁期, 租赁期间, lease term;
借款期限, 贷款期限, 借款期间, 贷款期间, 借款期, 贷款期, 授信期限, 借款起止时间, 起止时间, loan term,
    loan period;
保险期间, 保险期限, 承保期间, 保险责任期间, policy period, period of insurance;
质保期, 质量保证期, 保修期, 质保期限, 保修期限, 质保期间, warranty period, warranty;
出让年限, 使用年限, 土地使用年限, 出让年期;
公示期, 公示时间, 公示期限, 公示期间;
保证期间, 担保期限, 担保期间;
质押期限, 质押期间;
地址, 住所, 住址, 住所地, 户籍地, 户籍所在地, 户籍地址, 现住址, 经常居住地, 注册地址, 联系地址,
    办公地址, 通讯地址, address;
地块位置, 宗地位置, 土地位置, 宗地坐落, 土地坐落;
土地用途, 用地性质, 规划用途, 规划用地性质;
坐落, 房屋坐落, 房屋地址, 房屋位置, 租赁房屋, 坐落地址, 租赁地址;
交货地点, 交付地点, 到货地点, 送货地点, 供货地点, place of delivery, delivery place;
施工地点, 项目地点, 工程地点, 建设地点, 履行地点, place of performance;
联系电话, 电话, 手机, 电话号码, telephone, phone, tel;
传真, fax;
邮箱, 电子邮箱, 电子邮件, email, e-mail;
担保方式, 保证方式, 担保类型;
付款方式, 支付方式, 结算方式, payment terms, terms of payment;
用途, 借款用途, 贷款用途, 资金用途;
争议解决, 争议解决方式, dispute resolution;
适用法律, 管辖法律, governing law, applicable law;
违约责任, liability for breach;
评审专家, 评审专家名单, 评标专家, 评委, 评委名单, 专家名单, 评标委员会, 评标委员会成员,
    评审委员会, 评审委员会成员, 评审小组, 评审小组成员, 磋商小组, 磋商小组成员, 谈判小组,
    谈判小组成员, 评审成员, 评审人员;
处罚机关, 处罚机构, 处罚决定机关, 作出机关;
处罚依据, 法律依据;
主持人, 会议主持人, 主持, 召集人;
会议时间, 开会时间, 召开时间, 会议日期, 召开日期, 时间, 日期;
会议地点, 开会地点, 召开地点, 地点, venue;
会议主题, 会议名称, 会议议题, 主题, 议题;
参会人员, 与会人员, 出席人员, 到会人员, 参加人员, 参会人, 与会人, 出席人, 出席, attendees;
缺席人员, 未出席人员, 未到会人员, 请假人员, 缺席人, 缺席, absentees;
会议届次, 届次;
召开方式, 会议召开方式, 会议方式, 会议形式;
应到人数, 应到董事人数, 应到董事, 应出席人数, 应出席董事人数, 应参会人数, 应到监事人数;
实到人数, 实到董事人数, 实到董事, 实际出席人数, 出席人数, 实际出席董事人数, 实到监事人数;
表决结果, 表决情况;
同意票数, 赞成票数, 同意票;
反对票数, 反对票;
弃权票数, 弃权票;
议案名称, 审议议案, 议案;
现金红利, 现金分红, 派息金额, 每10股派息;
记录人, 会议记录人, 记录员, 记录;
上市公司, 公告公司, 公司全称, 公司名称;
职务, 职位, 岗位, title, position, job title;
"""


def _groups(names: str) -> tuple[tuple[str, ...], ...]:
    groups = (group for group in names.split(";") if group.strip())
    return tuple(tuple(name.strip() for name in group.split(",")) for group in groups)


_GROUPS = _groups(_PARTIES + PARTIES + _NAMES + NAMES)
_PARTY_NAMES = frozenset(name for group in _groups(_PARTIES + PARTIES) for name in group)
_JOINED_NAMES = frozenset(name.replace(" ", "") for name in _PARTY_NAMES)
_ALL_NAMES = frozenset(name.replace(" ", "") for group in _GROUPS for name in group)
_side = re.compile(r"(?:[甲乙丙丁戊买卖供需]|[\u4e00-\u9fff]{2,5}(?<![双各多三地平立]))方")
#: Characters of a label that a field's name may end with.
_LEAST_HEAD = 3
#: English ones that head anything: whose name and title it is, only the rest tells.
_VAGUE_HEADS = frozenset(["name", "title", "number"])
#: Chinese ones: as a synonym of a field's name each has to be all of a label.
VAGUE = frozenset(
    "名称 全称 编号 号码 编码 文号 日期 时间 单位 公司".split()
)
#: What a date is of that a document calls its date.
_dated = re.compile(r"(?:invoice|order|po|receipt|bill|document|letter|issue|quote|report|note)")
#: Numbers of parties that are called alike.
ORDINALS = (*"一二三四五六七八九十", *map(str, range(1, 21)))
_ordinal = re.compile(r"(?:\d{1,2}|之?[一二三四五六七八九十])$")
_first = re.compile(r"^第[一二三四五六七八九十](?=..)")
#: Of a word such as 付款方式, whose 方 ends no party's name.
_word = re.compile(r"[式案面向针位程]|法(?![定人])")
#: What is asked of a party where its name is meant.
OWN_NAMES = frozenset((
    "名称", "姓名", "全称", "单位", "公司", "单位名称", "公司名称", "企业名称", "name",
))  # fmt: skip
#: Names that say what another thing is of, unless they end the name: 项目经理 is no 项目.
_CARRIERS = frozenset(["项目", "工程", "合同", "标的"])
#: Ends of names of other things than those that they are of: 合同价格形式 is no 合同价格.
_other = re.compile(
    r"(?:方式|形式|方法|条件|条款|依据|范围|内容|经理|主管|负责人|联系人|事务所|地点|地址|类型|性质|种类|来源|编号|号码)\Z"
)
#: Behind a name in a label, of something about it: 供应商地址 is no 供应商, 采购代理编号 no 采购代理.
_about = re.compile(
    r"(?:方式|形式|地点|地址|住所|类型|性质|种类|来源|编号|号码|代码|电话|传真|邮编|邮箱|账号|账户|日期|时间|金额|比例|数量"
    r"|联系人|联系方式|负责人|经理|代表|代表人|意见)\Z"
)
#: Before a name, of another thing: 解除质押股数 and 累计质押股数 are no 质押股数.
_OTHERS = ("累计", "解除", "剩余", "未", "原", "前次", "上次")
#: Of a label, what says of which kind something is that has several.
_kind_of = re.compile(r"(?P<kind>[^\W\d_a-z]{2,12})(?P<head>保证金|违约金|利率|期限)\Z")
#: That say nothing of the kind.
_any_kind = re.compile(r"(?:合同|协议|租赁|租房|房屋|应[付缴交收]|[缴交支]付|[缴交]纳|[本该此])+")
in_brackets = re.compile(r"\([^()]*\)")
#: Behind an English name, whose last word says what it is: a supplier address is no supplier.
_english_rest = re.compile(
    r"(?:\.|e?s|numbers?|nos?\.?|#|name|names|amount|value|payable|due|inclusive|of(?:this|the|our|your).*|\(.*\)?)*"
)
#: Before it, of another thing: a late fee is no fee, a subtotal no total.
_ENGLISH_OTHERS = (
    "late",
    "default",
    "overdue",
    "sub",
    "sub-",
    "pre",
    "termination",
    "cancellation",
)
#: Behind a sum of money, words that say what it is.
_twice = re.compile(r"(?<=[金费款租价税息])(?:金额|数额|总额)\Z")
_camel = re.compile(r"(?<=[a-z])(?=[A-Z])|[_-]")


@lru_cache(maxsize=1024)
def synonyms_of(names: tuple[str, ...]) -> tuple[str, ...]:
    """Other names of the thing that a field is named after, none of them given.

    A name that no group has counts as the longest name of a group that it contains, the last of
    those that are as long: 合同金额上限 as 合同金额, 合同登记编号 as 编号.
    """
    found = [other for name in names for group in _groups_of(name) for other in group]
    return tuple(other for other in dict.fromkeys(found) if other not in names)


def with_stems(names: tuple[str, ...]) -> tuple[str, ...]:
    """Names, folded, and what those of sums of money are that say so twice: 押金 for 押金金额."""
    stems = (_twice.sub("", name) for name in names if name not in _ALL_NAMES)
    return tuple(dict.fromkeys((*names, *(stem for stem in stems if stem in _ALL_NAMES))))


def heads_of(names: Iterable[str], labels: Iterable[str]) -> list[str]:
    """Those of some labels, folded, that names end with: 开工日期 of 计划开工日期."""
    folded = [fold(name) for name in names]
    return sorted(
        label
        for label in labels
        if len(label) >= _LEAST_HEAD
        and label not in {*_VAGUE_HEADS, "amount"}
        and any(
            (label != "date" or _dated.match(name))
            and name.endswith(label)
            and name != label
            and names_same(name, label)
            for name in folded
        )
    )


def names_same(label: str, name: str) -> bool:
    """Whether a label has a name, and no word right before it that makes it another thing.

    Words in brackets are left out where that makes the name: 中标(成交)金额 is 中标金额. An English
    name is the end of a label, but for words such as "number".
    """
    if name.isascii() and label.isascii():
        return _names_english(label, name)
    at = label.find(name)
    if at < 0 and "(" in label:
        label = in_brackets.sub("", label)
        at = label.find(name)
    if at < 0 or label[:at].endswith(_OTHERS):
        return False
    rest = in_brackets.sub("", label[at + len(name) :])
    return not _about.search(rest)


def _names_english(label: str, name: str) -> bool:
    """So of names in English, folded and without blanks: they end with what they mean."""
    at = label.rfind(name)
    if label.endswith("terms") and name.endswith("term"):
        return False  # terms of payment
    if name in _VAGUE_HEADS or (name == "date" and not _dated.match(label)):
        at = min(at, 0)
    return (
        at >= 0
        and not label[:at].endswith(_ENGLISH_OTHERS)
        and _english_rest.fullmatch(label, at + len(name)) is not None
    )


def is_other_kind(label: str, names: Iterable[str]) -> bool:
    """Whether a label is of another kind of what names are of: 投标保证金 for 履约保证金.

    A synonym of theirs may be all that the two have in common; a name that is the word itself,
    保证金, is of any kind. All are folded.
    """
    found = _kind_of.search(in_brackets.sub("", label))
    if found is None or _any_kind.fullmatch(found["kind"]):
        return False
    of_kinds = [name for name in names if name.endswith(found["head"])]
    if not of_kinds:  # 押金 is no 质量保证金
        return found["head"] == "保证金" and label not in _ALL_NAMES
    return not any(
        name == found["head"] or found["kind"] in name or name.removesuffix(found["head"]) in label
        for name in of_kinds
    )


def is_party(label: str) -> bool:
    """Whether a label, folded and without blanks, is what a party of a document is called."""
    name = without_ordinal(label)
    return name in _JOINED_NAMES or bool(_side.fullmatch(name))


def without_ordinal(label: str) -> str:
    """What several parties are called that are numbered: 被告 for 被告二 and 第二被告."""
    return _first.sub("", _ordinal.sub("", label))


def is_known(label: str) -> bool:
    """Whether a label, folded and without blanks, is a group's name or what a party is called."""
    return label in _ALL_NAMES or is_party(label)


@lru_cache(maxsize=1024)
def party_and_rest(name: str) -> tuple[str, str] | None:
    """A field's name as a party and what is asked of it, such as 甲方 and 电话; None for others."""
    party, rest = _parted(_folded(name))
    return (party, rest) if party and rest not in {"", *OWN_NAMES} else None


@lru_cache(maxsize=1024)
def party_named(name: str) -> str:
    """The party that a field's name asks for, as 甲方 and 甲方名称 do; "" for others."""
    party, rest = _parted(_folded(name))
    return party if rest in {"", *OWN_NAMES} else ""


def _parted(folded: str) -> tuple[str, str]:
    """The party that a name begins with, and the rest; "" for none."""
    listed = [own for own in _PARTY_NAMES if folded.startswith(f"{own} " if own.isascii() else own)]
    side = _side.match(folded)
    party = max([*listed, side[0] if side else ""], key=len)
    if party.endswith("方") and _word.match(folded, len(party)):
        return "", folded
    return party, folded[len(party) :].lstrip(" 的之")


def _groups_of(name: str) -> list[tuple[str, ...]]:
    folded = _folded(name)
    party, rest = _parted(folded)
    if party and rest:
        folded = party if rest in OWN_NAMES else rest
    ends = {known: end for group in _GROUPS for known in group if (end := _end_in(folded, known))}
    # 法院名称 is of 法院, 设备名称 a 名称 of something.
    wanted = max(ends, key=lambda name: (name not in OWN_NAMES, len(name), ends[name]), default="")
    is_same = names_same(folded, wanted)
    return [group for group in _GROUPS if is_same and wanted in group]


def _end_in(name: str, known: str) -> int:
    """Where a known name ends, at last, in a name that means the same or more; 0 for nowhere."""
    end = name.rfind(known) + len(known)
    if known.isascii() or end < len(known):
        return end * (name == known)
    is_of_another = known in _CARRIERS or _other.search(name, end)
    if end < len(name) and (is_of_another or (known.endswith("方") and _word.match(name, end))):
        return 0
    return end


def _folded(name: str) -> str:
    return fold_width(_camel.sub(" ", name)).strip().lower()
