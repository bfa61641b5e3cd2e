// The words of reasons: types of values, and the parts of a score.

const KIND_WORDS = {
  en: {
    text: "", organisation: "organisation", person: "person", money: "amount", number: "number", percent: "percentage",
    date: "date", period: "period", id: "code", phone: "telephone number", email: "e-mail address", enum: "one of the choices",
    clause: "clause", pattern: "of the given pattern",
  },
  zh: {
    text: "", organisation: "机构名称", person: "人名", money: "金额", number: "数字", percent: "百分比", date: "日期",
    period: "期限", id: "编号", phone: "电话号码", email: "电子邮箱", enum: "选项之一", clause: "条款", pattern: "符合给定格式",
  },
};

const PART_WORDS = {
  en: {
    words: "the words in it and around it", value: "all its places together", bias: "before any evidence",
    unbalanced: "half of a pair of brackets", "behind colon": "stands behind a colon", "behind opener": "stands behind a bracket or mark",
    "before stop": "ends before a stop", "line start": "begins a line", "line end": "ends a line", organisation: "ends like a name of an organisation", "n words": "how many words", "whole line": "fills its line", "marks inside": "marks inside it",
    "log length": "its length", "cuts a word": "cuts a word", position: "where in the document", early: "early in the document",
    "function words": "has little words", person: "begins like a person's name", "all digits": "digits only",
    "clean start": "begins cleanly", "clean end": "ends cleanly", repeats: "said several times", vector: "its sentence means the like",
    "words of sentence": "words of its sentence", "behind alias": "stands behind the field's name", "alias near": "the field's name is near",
    "from shape": "looks like such a value", "from boundaries": "between likely ends", "from unit": "has the unit",
    "from entity": "is a known kind of name", "from known value": "is a value of a sample", "from cell": "fills a table cell",
    "from clause": "is a clause", "from label": "has the field's label", "left like": "the words before, as in the samples",
    "right like": "the words behind, as in the samples", "first words like": "begins as in the samples", "last words like": "ends as in the samples",
    "both sides like": "stands between the same words", "label like": "its label, as in the samples", "heading like": "under the same heading",
    "entity like": "the same kind of name", "words before like": "the sentence before it", "words behind like": "the sentence behind it",
    "length like": "as long as in the samples", "letters like": "the same kind of characters", "place like": "at the same place in the document",
    "lines above like": "as many lines above", "lines below like": "as many lines below",
  },
  zh: {
    words: "本身及前后的字词", value: "各处合计", bias: "先验", unbalanced: "括号不成对", "behind colon": "在冒号之后", "behind opener": "在括号或标点之后",
    "before stop": "在句读之前结束", "line start": "在行首", "line end": "在行末", organisation: "像机构名称", "n words": "词数", "whole line": "独占一行", "marks inside": "中间有标点", "log length": "长度",
    "cuts a word": "截断了词语", position: "在文中的位置", early: "靠近文首", "function words": "含虚词", person: "像人名", "all digits": "全是数字",
    "clean start": "开头完整", "clean end": "结尾完整", repeats: "多次出现", vector: "所在句子的意思相近", "words of sentence": "所在句子的用词",
    "behind alias": "紧跟字段名", "alias near": "字段名在附近", "from shape": "形式符合这类值", "from boundaries": "边界合适", "from unit": "带有单位",
    "from entity": "是已识别的名称", "from known value": "是样本中的值", "from cell": "独占一个单元格", "from clause": "是一个条款", "from label": "带有字段标签",
    "left like": "前面的字词与样本相似", "right like": "后面的字词与样本相似", "first words like": "开头与样本相似", "last words like": "结尾与样本相似",
    "both sides like": "前后与样本相同", "label like": "标签与样本相似", "heading like": "标题与样本相同", "entity like": "名称类型与样本相同",
    "words before like": "前文与样本相似", "words behind like": "后文与样本相似", "length like": "长度与样本相近", "letters like": "字符构成与样本相近",
    "place like": "在文中的位置与样本相近", "lines above like": "上方行数与样本相近", "lines below like": "下方行数与样本相近",
  },
};
