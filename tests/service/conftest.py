"""A small cache, two templates, and a service over them in a process of its own."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from service_watch import QUERY_PROMPT, Service, environment, program
from waiting import HANG_S, free_port, wait_for

from featpipe import Pipeline
from featpipe.cache.cache import Cache
from featpipe.extraction.extractor import Extractor
from featpipe.on_demand.space import choose_checkpoints

LEASE = """name = "lease"
[[fields]]
name = "甲方"
[[fields]]
name = "租金"
type = "money"
[[samples]]
text = "租赁合同。甲方：北京天地有限公司。乙方：张三。每月租金为人民币5,000元。"
fields = { "甲方" = "北京天地有限公司", "租金" = "人民币5,000元" }
[[samples]]
text = "房屋租赁合同。甲方：上海江河有限公司。乙方：李四。每月租金为人民币7,200元。"
fields = { "甲方" = "上海江河有限公司", "租金" = "人民币7,200元" }
"""
NOTICE = """name = "notice"
[[fields]]
name = "公告编号"
type = "id"
[[samples]]
document = "notice_0.txt"
fields = { "公告编号" = "2020-010" }
[[samples]]
document = "notice_1.txt"
fields = { "公告编号" = "2020-011" }
"""


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory, encoder_folder: Path) -> Path:
    """A folder with a cache and templates; copy it before writing."""
    home = tmp_path_factory.mktemp("service")
    documents = home / "documents"
    documents.mkdir()
    for number in range(4):
        (documents / f"notice_{number}.txt").write_text(
            f"证券代码：60000{number}\n公告编号：2020-01{number}\n本公司保证公告内容真实、准确。\n"
            f"第{number}号合同的违约责任由双方承担。\n",
            "utf-8",
        )
    with Pipeline(home / "c.h5", encoder_folder, "none", devices=["cpu"]) as pipeline:
        assert pipeline.build(documents).is_complete
    templates = home / "templates"
    templates.mkdir()
    (templates / "lease.toml").write_text(LEASE, "utf-8")
    (templates / "notice.toml").write_text(NOTICE, "utf-8")
    fit_here(home, encoder_folder)
    return home


def fit_here(home: Path, encoder_folder: Path) -> None:
    """In this process, which has torch: the services of these tests then start without a fit."""
    with Cache.open(home / "c.h5") as cache:
        chosen = choose_checkpoints(cache, str(encoder_folder))
        with Extractor(
            home / "templates", cache, space=chosen.space, checkpoints=chosen.checkpoints
        ) as extractor:
            for fitted in extractor.engine.templates.values():
                for field in fitted.unfitted():
                    fitted.model(field)


@pytest.fixture(scope="session")
def service(
    built: Path, tmp_path_factory: pytest.TempPathFactory, encoder_folder: Path
) -> Iterator[Service]:
    """One for most tests. Not a child of ours, so that its workers may come and go."""
    home = tmp_path_factory.mktemp("shared") / "home"
    shutil.copytree(built, home)
    port = free_port()
    log = home / "service.log"
    launch = (
        "import subprocess, sys, json\n"
        "arguments, log = json.loads(sys.argv[1])\n"
        "output = open(log, 'wb')\n"
        "print(subprocess.Popen(arguments, stdin=0, stdout=output, stderr=output).pid)\n"
    )
    arguments = json.dumps(
        [program(home, port, model=str(encoder_folder), query_prompt=QUERY_PROMPT), str(log)]
    )
    reading, writing = os.pipe()  # it ends when we do, however we end
    launched = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", launch, arguments],
        env=environment(),
        stdin=reading,
        stdout=subprocess.PIPE,
        check=True,
    )
    os.close(reading)
    process = psutil.Process(int(launched.stdout))
    found = Service(port, process.pid, log, home)
    assert wait_for(lambda: not process.is_running() or found.is_ready())
    assert process.is_running(), log.read_text()
    yield found
    found.client.close()
    children = process.children(recursive=True)
    process.send_signal(signal.SIGTERM)
    _, alive = psutil.wait_procs([process, *children], timeout=HANG_S)
    os.close(writing)
    assert not alive
