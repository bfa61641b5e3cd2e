"""A folder with a few cached leases and a template over them, to be reviewed."""

from __future__ import annotations

from pathlib import Path

from featpipe import Pipeline

TEMPLATE = """name = "lease"
[[fields]]
name = "租金"
type = "money"
cardinality = "one"
[[fields]]
name = "乙方"
[[samples]]
document = "sample_0.txt"
fields = { "租金" = "人民币5,000元", "乙方" = "张三" }
[[samples]]
document = "sample_1.txt"
fields = { "租金" = "人民币7,200元", "乙方" = "李四" }
"""
#: In the cache as well, so that nothing is encoded to fit the fields.
SAMPLES = (
    "租赁合同。甲方：北京天地有限公司。乙方：张三。每月租金为人民币5,000元。",
    "租赁合同。甲方：上海江河有限公司。乙方：李四。每月租金为人民币7,200元。",
)
SCRIPT = "<img src=x onerror='window.hacked = 1'>"


def text_of(number: int) -> str:
    """A lease whose deposit is written as its rent is in the samples, and its rent otherwise."""
    return (
        f"房屋租赁合同{number}𠮷\n甲方：南京{number}号置业有限公司。{SCRIPT}\n乙方：王{number}。\n"
        f"每月租金押金为人民币{number + 1},000元。\n按月给付{number + 3},500元。\n"
    )


def make_home(home: Path, model: Path, n_documents: int = 6) -> Path:
    """The folder, as `service_watch.running` takes it."""
    documents = home / "documents"
    documents.mkdir(parents=True)
    for number in range(n_documents):
        (documents / f"lease_{number}.txt").write_text(text_of(number), "utf-8")
    for number, text in enumerate(SAMPLES):
        (documents / f"sample_{number}.txt").write_text(text, "utf-8")
    (home / "templates").mkdir()
    (home / "templates" / "lease.toml").write_text(TEMPLATE, "utf-8")
    with Pipeline(home / "c.h5", model, "none", devices=["cpu"]) as pipeline:
        assert pipeline.build(documents).is_complete
    return home
