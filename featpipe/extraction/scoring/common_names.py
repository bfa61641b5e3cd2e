"""Names of one thing between semicolons, of which a name may be in several groups.

Those of ``synonyms``, Chinese with their English ones; ``english_names`` has English ones alone.
"""

from __future__ import annotations

#: What parties are called.
PARTIES = """
甲方, 发包人, 发包方, 招标人, 招标单位, 招标方, 业主, 业主单位, 建设单位, 采购人, 采购方,
    采购单位, 买方, 买受人, 需方, 委托方, 委托人, 定作人, 客户, 购买方, 订货方, 交易对方,
    合同对方, 出租方, 出租人, first party, party a;
乙方, 承包人, 承包方, 中标人, 中标单位, 中标方, 卖方, 出卖人, 供方, 供应商, 供货方, 受托方,
    受托人, 施工单位, 承建方, 承揽人, 服务方, 承租方, 承租人, 设计人, 监理人, 勘察人, 分包人,
    分包方, 分包单位, second party, party b;
买方, 买受人, 采购方, 采购人, 购买方, 购货方, 需方, 受让方, buyer, purchaser, customer,
    bill to, sold to, invoice to, billed to;
卖方, 出卖人, 销售方, 销货方, 供应商, 供货方, 供方, 转让方, 出让方, seller, vendor, supplier;
出租方, 出租人, 房东, lessor, landlord;
承租方, 承租人, 租户, lessee, tenant, renter;
委托方, 委托人, 委托单位, 客户, client, customer;
受托方, 受托人, 受委托人, 受托单位, 服务方;
用人单位, 用工单位, 雇主, 聘用单位, 聘用方, 聘用人, employer;
劳动者, 员工, 职工, 雇员, 受聘人, 受聘方, 受聘人员, employee;
中标人, 中标单位, 中标供应商, 成交供应商, 成交人, 成交单位, 中标企业, 中选人, 中选单位, 供应商;
转让方, 出让方, 出让人, 转让人, 卖方, transferor, assignor;
受让方, 受让人, 买方, transferee, assignee;
贷款人, 出借人, 债权人, 贷款银行, 贷款方, 贷款机构, 贷款单位, 放款人, 放款机构, 出借方, 授信人,
    lender, creditor;
借款人, 债务人, 借款方, 借款单位, 借款企业, 借款申请人, 贷款申请人, 授信申请人, borrower, debtor;
保证人, 担保人, 担保方, guarantor;
被担保人, 被担保方, 债务人, 担保对象, guaranteed party;
出质人, 质押人, 质押股东, 出质股东, pledgor, pledger;
质权人, 质押权人, 资金融出方, 融出方, pledgee;
抵押人, mortgagor;
抵押权人, mortgagee;
保险人, 承保公司, 承保人, insurer;
原告, 申请人, 起诉方, 起诉人, 原审原告, 反诉原告, plaintiff, claimant, applicant;
被告, 被申请人, 被告人, 应诉方, 被起诉方, 原审被告, 反诉被告, defendant, respondent;
上诉人, 再审申请人, appellant;
被上诉人, appellee;
第三人, 原审第三人, third party;
申请执行人, 执行申请人;
被执行人;
公诉机关, 抗诉机关;
犯罪嫌疑人, 嫌疑人, 被告人, 作案人, 作案人员;
被害人, 受害人, 受害者, 失主, 事主, 被害单位, 被害方;
收购方, 收购人, 购买方, 收购主体, 受让方, 买方, acquirer;
交易对方, 交易对手, 交易对手方, 转让方, 出让方, 卖方;
投资方, 投资人, 投资者, 出资方, 出资人, investor;
投保人, policyholder;
被保险人, 受益人, insured, beneficiary;
收货人, 收件人, consignee;
采购代理机构, 招标代理机构, 代理机构, 招标代理, 采购代理, 招标代理单位, 代理单位,
    受托机构, 委托代理机构, 委托代理, 招标代理公司, 采购代理单位;
竞得人, 竞得单位, 受让人, 受让单位;
被处罚人, 被处罚单位, 被处罚当事人, 当事人, 行政相对人;
发货人, 寄件人, 托运人, consignor, shipper;
"""
NAMES = """
涉案价值, 物品价值, 财物价值, 被盗物品价值, 被盗财物价值, 涉案金额, 盗窃金额, 盗窃数额, 鉴定价值;
销赃所得, 盗窃获利, 获利金额, 非法获利, 违法所得, 非法所得, 销赃金额;
被盗现金, 被盗货币, 被盗金额, 盗窃现金;
被盗物品, 被盗财物, 盗窃物品, 涉案物品, 涉案财物, 赃物;
作案工具, 犯罪工具;
作案时间, 案发时间, 犯罪时间, 发案时间, 时间;
作案地点, 案发地点, 犯罪地点, 发案地点, 地点;
受托方, 受托人, 服务方, 代理人, agent;
股东, 股东名称, 股东姓名, 持有人, 持有人名称, 持股人, 被冻结人, 出质人, 出质股东, 质押股东,
    shareholder, stockholder;
标的公司, 目标公司, 标的企业, 目标企业, 被投资公司, 被收购方, target, target company;
法院, 审理法院, 受理法院, 受理机构, court;
受理机构, 受理法院, 仲裁机构, 受理机关, 审理机构, 审理法院, 管辖法院, 仲裁委员会;
管辖法院, 诉讼法院;
仲裁机构, 仲裁委员会;
冻结机关, 执行机关, 司法机关, 执行法院, 冻结法院, 人民法院;
审计机构, 会计师事务所, 审计机关, auditor;
保荐机构, 主承销商, 保荐人, 承销商, 联席主承销商, 牵头主承销商, sponsor, underwriter;
发行对象, 认购对象, 获配对象, 认购人, 认购方, 认购者, 配售对象;
发行数量, 发行股数, 发行股份数量, 发行股票数量, 发行张数;
募集资金总额, 募资总额, 募集资金, 发行总额, 实际发行总额, 发行规模, 实际发行规模, 募集总额;
募集资金净额, 募资净额, 实际募集资金净额, 净募集资金;
上市日期, 上市日, 上市时间, 上市流通日, 上市流通日期, 起息日, 起息日期, 上市交易日;
法定代表人, 法人代表, 负责人, legal representative;
联系人, 经办人, 收件人, contact, contact person;
律师, 代理律师, 代理人, 诉讼代理人, 委托诉讼代理人, 委托代理人, lawyer, attorney, counsel;
签发人, 批准人, 审批人, approved by, authorized by, authorised by;
发行人, 发行主体, issuer;
公司名称, 企业名称, 单位名称, 名称, company, company name;
增持方, 增持人, 增持股东, 增持主体;
减持方, 减持人, 减持股东, 减持主体;
项目名称, 工程名称, 标段名称, 标的名称, 招标项目, 采购项目, 采购标的, 中标项目, 项目, 工程, project,
    project name;
合同名称, 协议名称, 合同, 协议书, contract name, agreement name, document name;
标的, 标的物, 货物名称, 产品名称, 商品名称, 设备名称, 物资名称, 材料名称, 品名, 采购内容, subject,
    product;
合同编号, 协议编号, 合同号, contract number, contract no;
发票号码, 发票号, 票据号, invoice number, invoice no, invoice no., invoice id, invoice #;
订单号, 订单编号, 采购单号, order id, order ref, order reference, our order ref, order number,
    order no, order no., po number, po no, po no., po, po #, purchase order number,
    purchase order no, purchase order no., your po;
证券代码, 股票代码, 股份代号, 公司代码, 债券代码, 转债代码, 代码, stock code, ticker;
证券简称, 股票简称, 公司简称, stock name;
公告编号, 公告文号, 公告号, 编号, 文号, 文件号, 文件编号, announcement number;
项目编号, 招标编号, 采购编号, 采购项目编号, 招标项目编号, 标段编号, 招标文件编号, 采购文件编号,
    标书编号, 招标号, 标号, 项目代码, project number, project no,
    tender number, tender no;
保险单号, 保单号, 保险单号码, 保单号码, 保险合同号, policy number, policy no, policy no.;
宗地编号, 地块编号, 宗地号, 地块号;
处罚决定书文号, 行政处罚决定书文号, 决定书文号, 处罚文号;
单据编号, 收据编号, 凭证编号, 票据编号, 单据号, 收据号;
案号, 受理案号, 仲裁案号, 裁决书编号, 裁决书号, 裁定书文号, 判决书文号, 裁判文书号, 文书号,
    案件编号, 案件号, case number, case no;
原审案号, 一审案号, 原判案号;
原审法院, 一审法院;
案由, 纠纷类型, 争议类型, 案件性质, 案件类型, cause of action;
罪名, 案由, charge;
文书类型, 文书名称, 文书种类;
案件受理费, 受理费, 诉讼费, 诉讼费用, 案件申请费;
财产保全费, 保全费, 诉讼保全费, 保全申请费;
统一社会信用代码, 社会信用代码, 纳税人识别号, 税号, tax id, vat number, vat no, vat no.,
    vat reg no, vat reg no., vat registration number, vat registration no, vat id;
身份证号, 身份证号码, 公民身份号码, 居民身份证号码, 居民身份证号, 证件号码, 证件号, id number;
账号, 银行账号, 账户, 银行账户, 收款账号, account number, account;
开户行, 开户银行, bank;
合同金额, 合同总金额, 合同总价, 合同价, 合同价款, 合同总额, 合同总价款, 中标金额, 中标价,
    中标价格, 中标总价, 投标报价, 签约合同价, 设计费, 监理费, 监理酬金, 签约酬金, 勘察费, 总价,
    总金额, 总额, contract amount,
    contract value, contract price, contract sum, total contract value, total fee, total price;
中标金额, 中标价, 中标价格, 中标总价, 成交金额, 成交价, 投标报价, winning bid;
交易金额, 交易价格, 交易对价, 转让价格, 转让价款, 成交金额, 股权转让款, 股权转让价款, 转让总价,
    交易总价, 交易作价, 转让对价, 收购价格, 收购价款, 收购对价, 代价, 对价, transaction amount,
    consideration;
评估值, 评估价值, 评估结果, 评估结论, 估值, 评估金额, 评估价, appraised value, valuation;
评估基准日, 基准日, 估值日期, 估值基准日, 评估基准日期, valuation date;
收购股权比例, 收购比例, 受让比例, 转让比例, 股权比例, 转让股权比例, 标的股权比例;
月工资, 月薪, 税前月薪, 税前月工资, 固定月薪, 月基本工资, 基本月薪, 工资标准, 月薪酬, 基本工资,
    月收入, monthly salary;
投资金额, 投资总额, 出资额, 认缴出资额, 出资金额, 总投资, investment amount;
担保金额, 担保额度, 保证金额, 担保总额, guarantee amount;
借款金额, 贷款金额, 贷款本金, 借款本金, 借款总额, 贷款总额, 贷款币种及金额, 借款币种及金额,
    融资金额, 授信额度, loan amount,
    principal amount, principal, principal sum, facility amount;
涉案金额, 诉讼金额, 诉讼标的, 标的额, 诉讼标的额, 标的金额, 涉案标的额, 涉诉金额, 争议金额,
    诉讼请求金额, 仲裁金额, 仲裁标的额, 仲裁请求金额, amount in dispute;
预算金额, 预算, 采购预算, 项目预算, 采购预算金额, 项目预算金额, 预算总金额, 预算总额, 预算价,
    最高限价, 最高投标限价, 投标最高限价, 招标控制价, 控制价, 拦标价, 招标限价, budget;
质押金额, 融资金额, 质押融资金额;
金额, 总额, 总金额, 价款, 款项, amount, money, sum;
合计, 总计, 总金额, 价税合计, 应付金额, 实付金额, total, grand total, total amount,
    amount due, net total, total due, total payable, balance due,
    invoice total, total amount due, invoice amount, order total;
税额, 增值税, 税金, tax, vat, gst, tax amount;
单价, unit price, price;
产权证号, 不动产权证号, 不动产权证书号, 房产证号, 房地产权证号, 不动产权证, 产权证书号,
    房屋产权证号;
交房日期, 交房时间, 交房, 房屋交付日期, 交房期限, 交付日期, 交付时间, 交楼日期;
总价, 成交总价, 房屋总价, 总房款, 房款总额, 房屋总价款, 总价款, 成交价格, 总成交价, 转让价款;
租金, 月租金, 年租金, rent;
保险金额, 保额, 总保险金额, 总保额, 保险金额合计, sum insured;
保险费, 保费, 总保险费, 总保费, 保险费合计, premium;
罚款金额, 罚款数额, 罚款;
违约金, 滞纳金, penalty;
违约金比例, 违约金率, 违约金标准, 逾期违约金比例, 滞纳金比例, 逾期利率;
判决金额, 判决支付金额, 判令金额, 判决给付金额;
投标保证金, 投标担保, 投标担保金额, 投标保证金金额, 投标保证金额, bid security, bid bond;
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
累计冻结数量, 累计冻结股数, 累计冻结股份数量, 累计冻结股份数, 累计被冻结数量;
最高成交价, 最高成交价格, 最高价, 最高回购价格, 最高价格, 最高交易价格, highest price;
最低成交价, 最低成交价格, 最低价, 最低回购价格, 最低价格, 最低交易价格, lowest price;
回购金额, 回购总金额, 回购资金总额, 已使用资金总额, 成交总金额, 支付总金额, repurchase amount;
变动后持股数量, 变动后持股数, 变动后持股总数, 减持后持股数量, 增持后持股数量;
占所持股份比例, 占其所持股份比例, 占其所持股份的比例, 占其持有股份比例, 占所持股份的比例;
持股比例, 占总股本比例, 占公司总股本, 占公司股份总数, 占总股本的比例, proportion;
数量, 股数, 份数, number, quantity, qty;
比例, 占比, 百分比, ratio, percentage, proportion;
利率, 年利率, 贷款利率, 票面利率, interest rate, rate of interest, annual interest rate;
税率, tax rate, vat rate, gst rate;
每股价格, 发行价格, 回购价格, 成交均价, 均价, 交易均价, 转让价格, 增持均价, 减持均价,
    average price;
签订日期, 签署日期, 签约日期, 签署日, 签订日, 签约日, 订立日期, 协议签署日期, 协议签订日期,
    协议签署日, 协议签订日,
    合同签订日期, 合同签署日期, 签订时间, 签署时间, 订立时间,
    agreement date, signing date, contract date, date of agreement,
    date of contract, execution date;
公告日期, 公告日, 发布日期, 披露日期, 披露日, 公示日期, 公告时间, 发布时间, 公告发布日期,
    公示发布日期, announcement date;
处罚决定日期, 处罚日期, 决定日期, 作出日期;
签单日期, 出单日期, 签发日期;
开始日期, 起始日期, 起始日, 质押开始日期, 质押起始日, 冻结起始日, 冻结日期,
    司法冻结日期, 冻结开始日期, 质押登记日, 质押日期, 初始交易日, 起租日, 起始时间,
    租赁起始日, 租期起始日, 租赁开始日期, 合同开始日期, 合同起始日期, 合同起始日, 入职日期,
    入职时间,
    start date, commencement date, date of commencement, lease start date, term start date;
结束日期, 到期日, 到期日期, 截止日期, 终止日期, 届满日, 租期届满日, 租赁到期日, 租赁终止日,
    合同到期日期, 合同到期日, 合同终止日期, 合同终止日, 合同结束日期, 合同届满日,
    质押到期日, 质押终止日期, 质押终止日, 质押到期日期, 购回交易日, 冻结终止日, 冻结到期日,
    冻结终止日期, 冻结截止日期,
    end date, expiration date, expiry date, lease end date, term end date;
解除日期, 解除质押日期, 质押解除日, 质押解除日期, 解押日期, 解质时间, 解质日期, 解冻日期,
    解除冻结日期, release date;
开工日期, 计划开工日期, 开工时间;
竣工日期, 计划竣工日期, 完工日期, 竣工时间;
生效日期, 生效日, effective date;
开票日期, 发票日期, invoice date, date of invoice, date of issue, issue date;
交货日期, 交付日期, 交货期, 交货期限, 交货时间, 交付期限, 供货期, delivery date, date of delivery,
    required by, required date, date required, deliver by, delivery by, delivery due,
    delivery due date, requested delivery date, expected delivery, expected delivery date, eta;
付款日期, 支付日期, 付款期限, due date, payment date, payment due date,
    payment due, pay by;
判决日期, 裁判日期, 裁定日期, 裁决日期, 调解日期, judgment date;
立案日期, 受理日期, 立案时间, 受理时间, 立案日, 受理日, 登记立案日, 登记立案日期, 立案受理日期,
    filing date;
开庭日期, 审理日期, 开庭时间, hearing date;
落款日期, 授权日期, 委托日期, 出具日期, 发函日期, 签发日期, 通知日期, 函件日期, 申请日期, 填表日期,
    报告日期, 制表日期;
日期, 时间, date;
投标截止时间, 投标截止日期, 投标截止, 截标时间, 截标, 投标文件截止时间, 投标文件递交截止时间,
    递交投标文件截止时间, 投标文件提交截止时间, 文件递交截止时间, 文件提交截止时间,
    响应文件截止时间;
土地面积, 出让面积, 宗地面积, 用地面积, 地块面积;
面积, 建筑面积, 产证面积, 租赁面积, 房屋面积, 出租面积, 房屋建筑面积, area;
工期, 合同工期, 履行期限, 合同期限, 中标工期, 履约期限, 合同履行期限, 合同履行期, 服务期,
    建设工期, 服务期限, 计划工期, 期限, duration, term;
租赁期限, 租期, 租赁期, 租赁期间, lease term;
借款期限, 贷款期限, 借款期间, 贷款期间, 借款期, 贷款期, 授信期限, 借款起止时间, 起止时间, loan term,
    loan period;
保险期间, 保险期限, 承保期间, 保险责任期间, policy period, period of insurance;
质保期, 质量保证期, 保修期, 缺陷责任期, 质保期限, 保修期限, 质保期间, warranty period, warranty;
出让年限, 使用年限, 土地使用年限, 出让年期;
公示期, 公示时间, 公示期限, 公示期间;
保证期间, 担保期限, 担保期间;
质押期限, 质押期间;
地址, 住所, 住址, 住所地, 户籍地, 户籍所在地, 户籍地址, 现住址, 经常居住地, 注册地址, 联系地址,
    办公地址, 通讯地址, address;
地块位置, 宗地位置, 土地位置, 宗地坐落, 土地坐落;
土地用途, 用地性质, 规划用途, 规划用地性质;
坐落, 房屋坐落, 房屋地址, 物业地址, 房产地址, 房产坐落, 房屋位置, 租赁房屋, 坐落地址, 租赁地址;
开标地点, 开标地址, 开标场所;
交货地点, 交付地点, 到货地点, 送货地点, 供货地点, place of delivery, delivery place;
施工地点, 项目地点, 工程地点, 建设地点, 工程地址, 项目地址, 建设地址, 履行地点,
    place of performance;
联系电话, 电话, 手机, 电话号码, telephone, phone, tel;
传真, fax;
邮箱, 电子邮箱, 电子邮件, email, e-mail;
担保方式, 保证方式, 担保类型;
付款方式, 支付方式, 结算方式, payment terms, terms of payment;
用途, 借款用途, 贷款用途, 资金用途;
争议解决, 争议解决方式, dispute resolution;
适用法律, 管辖法律, governing law, applicable law;
违约责任, liability for breach;
项目负责人, 项目经理, 总监理工程师, 项目总监, 设计负责人, 设计总负责人, 项目总负责人,
    project manager;
员工姓名, 劳动者姓名, 雇员姓名, 姓名, 劳动者, 员工, 受聘人;
离任人员, 离任人, 辞职人员, 离职人员, 辞任人员, 辞职人, 离任高管, 辞任人;
离任职务, 辞去职务, 原任职务, 原职务, 辞任职务, 所任职务, 辞职职务, 免去职务;
离任原因, 辞职原因, 离职原因, 辞任原因, 变动原因, 离任理由;
新任人员, 提名人员, 聘任人员, 任命人员, 继任者, 接任者, 新任人选, 拟任人员, 候选人;
新任职务, 拟任职务, 聘任职务, 任命职务, 拟聘职务, 提名职务;
欠款金额, 欠款, 尚欠金额, 欠款总额, 拖欠金额, 期末欠款, 期末余额, 欠款余额, 债务金额, 所欠款项;
对账截止日, 对账截止日期, 截止日期, 截止日, 对账日期, 对账基准日;
函件编号, 函号, 函件号, 函件文号, 单据号, 文号, 编号;
付款期限, 付款截止日, 付款截止日期, 最迟付款日, 最晚付款日, 还款期限, 付款日期;
试用期, 试用期限, 试用期间;
工作地点, 工作地, 主要工作地点, 地点;
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
会议届次, 届次, 会议名称;
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
职务, 职位, 岗位, 工作岗位, 岗位名称, 聘用岗位, title, position, job title;
"""
