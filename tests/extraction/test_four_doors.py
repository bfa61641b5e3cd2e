"""One document has one result: library, command, service and consumer give the same values.

Spans and probabilities are compared exactly, for documents of the cache and for new ones, whose
sentences and paragraphs are encoded by the models that filled the cache.
"""

from __future__ import annotations

import base64
import json
import logging
import re
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tiny_checkpoints import save_encoder, save_tagger
from waiting import HANG_S, wait_for

from featpipe import Extractor, Pipeline
from featpipe.cache.cache import Cache
from featpipe.cli.main import featpipe
from featpipe.errors import CheckpointError, DocumentError, UnknownSpace, UsageError
from featpipe.extraction.messages import Stored

DATA = Path(__file__).parents[2] / "data"
CACHED_ID, CACHED_FILE = "contracts/lease_shop.txt", "announcements/reduction_one.html"
INLINE = (
    "房屋租赁合同\n出租方：汉口置业有限公司\n承租方：株洲恒峰商贸有限公司\n"
    "第一条 租赁期限自2021年3月1日起至2024年2月29日止。\n第二条 每月租金为人民币9,500元。\n"
)
#: Samples that the cache does not hold: one text, one file beside the template.
OUTSIDE = """name = "outside"
[[fields]]
name = "出租方"
type = "organisation"
[[fields]]
name = "月租金"
type = "money"
[[samples]]
text = "租赁合同\\n出租方：长沙实业有限公司\\n承租方：张三\\n每月租金为人民币8,000元。\\n"
fields = { "出租方" = "长沙实业有限公司", "月租金" = "人民币8,000元" }
[[samples]]
document = "beside.txt"
fields = { "出租方" = "柳州景信有限公司", "月租金" = "7,200元" }
"""
BESIDE = "厂房租赁合同\n柳州景信有限公司（出租方）与李四（承租方）约定：月租金7,200元，按季支付。\n"

Values = dict[str, Any]
#: (given, template) -> fields, records and the fingerprint of the template.
Door = Callable[[str, str], Values]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache by the built-in models, templates, and two documents that the cache does not hold."""
    home = tmp_path_factory.mktemp("doors")
    for name in (CACHED_ID, CACHED_FILE, "contracts/lease_office.md", "contracts/lease_factory.txt",
                 "announcements/reduction_four.html"):  # fmt: skip
        copy(DATA / "documents" / name, home / "documents" / name)
    with Pipeline(home / "c.h5", devices=["cpu"]) as pipeline:
        assert pipeline.build(home / "documents").is_complete
    copy(DATA / "documents/announcements/reduction_two.html", home / "new.html")
    (home / "new.txt").write_text(INLINE.replace("汉口", "岳阳") + "第三条 由法院管辖。\n", "utf-8")
    templates = home / "templates"
    for name in ("lease", "reduction"):
        text = (DATA / "templates" / f"{name}.toml").read_text("utf-8")
        samples = text.replace("../documents/", f"{DATA / 'documents'}/")
        copy_text(samples, templates / f"{name}.toml")
    copy_text(OUTSIDE, templates / "outside.toml")
    copy_text(BESIDE, templates / "beside.txt")
    return home


def copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(source, target)


def copy_text(text: str, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text, "utf-8")


CASES = [
    (CACHED_ID, "租赁合同"),
    (f"documents/{CACHED_ID}", "租赁合同"),
    (f"documents/{CACHED_FILE}", "减持公告"),
    ("new.txt", "租赁合同"),
    ("new.txt", "outside"),
    ("new.html", "减持公告"),
    (INLINE, "outside"),
]


def plain(extraction: dict[str, Any]) -> Values:
    """All but the name of the document and the place of the cache."""
    whole = json.loads(json.dumps(extraction))
    print_ = whole["provenance"]["fingerprint"]
    return {"fields": whole["fields"], "records": whole["records"], "fingerprint": print_}


def by_library(home: Path, workers: int = 0) -> dict[tuple[str, str], Values]:
    # Nothing that another door fitted is used.
    with Extractor(home / "templates", home / "c.h5", models={} if not workers else None) as opened:
        assert opened.notes == ()
        found = {}
        for name, template in CASES:
            given = home / name if name != INLINE and (home / name).is_file() else name
            if workers:
                [one] = opened.extract_many([given], template, workers=workers)
            else:
                one = opened.extract(given, template)
            found[name, template] = plain(one.as_dict())  # type: ignore[union-attr]
    return found


def by_command(home: Path, workers: int) -> dict[tuple[str, str], Values]:
    found = {}
    for name, template in CASES:
        if name == INLINE:
            continue
        given = str(home / name) if (home / name).is_file() else name
        result = CliRunner().invoke(
            featpipe,
            ["extract", given, "--cache", str(home / "c.h5"), "--template", template,
             "--templates", str(home / "templates"), "--workers", str(workers)],
        )  # fmt: skip
        assert result.exit_code == 0, result.output
        found[name, template] = plain(json.loads(result.stdout))
    return found


def by_service(home: Path) -> dict[tuple[str, str], Values]:
    testclient = pytest.importorskip("fastapi.testclient")
    from featpipe.service.app import create_app
    from featpipe.service.engine import Engine
    from featpipe.service.settings import ServiceSettings

    settings = ServiceSettings(
        cache=home / "c.h5", templates=home / "templates", devices=("cpu",), deadline_s=HANG_S,
        document_deadline_s=HANG_S,
    )  # fmt: skip
    found = {}
    app = create_app(Engine(settings))
    with testclient.TestClient(app, base_url="http://127.0.0.1:8080") as client:
        assert wait_for(lambda: client.get("/readyz").status_code == 200)
        for name, template in CASES:
            if name == INLINE:
                answer = client.post("/extract", json={"text": name, "template": template})
            elif (home / name).is_file():
                file = (Path(name).name, (home / name).read_bytes())
                answer = client.post("/extract", files={"file": file}, data={"template": template})
            else:
                answer = client.post("/extract", json={"document": name, "template": template})
            assert answer.status_code == 200, answer.text
            [extraction] = answer.json()["extractions"]
            found[name, template] = plain(extraction)
    return found


def by_consumer(home: Path) -> dict[tuple[str, str], Values]:
    kombu = pytest.importorskip("kombu")
    from featpipe.consumer import Consumer, ConsumerSettings

    answers: dict[str, Any] = {}
    with kombu.Connection("memory://") as connection:
        queues = {
            name: kombu.Queue(f"doors.{name}", durable=True)(connection)
            for name in ("documents", "results", "dead")
        }
        for queue in queues.values():
            queue.declare()
        with connection.Producer() as producer:
            for number, (name, template) in enumerate(CASES):
                body = json.dumps({"id": str(number), "template": template, **order(home, name)})
                producer.publish(
                    body, routing_key="doors.documents", content_encoding="utf-8",
                    content_type="application/json",
                )  # fmt: skip
        consumer = Consumer(
            ConsumerSettings(
                broker="memory://", cache=home / "c.h5", templates=home / "templates",
                queue="doors.documents", results="doors.results", dead="doors.dead",
                devices=("cpu",),
            )
        )  # fmt: skip
        thread = threading.Thread(target=consumer.run)
        thread.start()

        def all_came() -> bool:
            assert queues["dead"].get(no_ack=True) is None
            while (message := queues["results"].get(no_ack=True)) is not None:
                answer = json.loads(message.body)
                [answers[answer["id"]]] = answer["extractions"]
            return len(answers) == len(CASES)

        try:
            assert wait_for(all_came)
        finally:
            consumer.stop()
            thread.join(HANG_S)
    return {case: plain(answers[str(number)]) for number, case in enumerate(CASES)}


def order(home: Path, name: str) -> dict[str, str]:
    if name == INLINE:
        return {"text": name}
    if (home / name).is_file():
        data = base64.b64encode((home / name).read_bytes()).decode()
        return {"data": data, "name": Path(name).name}
    return {"document": name}


@pytest.fixture(scope="module")
def expected(home: Path) -> dict[tuple[str, str], Values]:
    return by_library(home)


@pytest.fixture(autouse=True)
def brokers_are_empty() -> Iterator[None]:
    yield
    memory = pytest.importorskip("kombu.transport.memory")
    memory.Channel.queues.clear()


def test_there_is_something_to_compare(expected: dict[tuple[str, str], Values]) -> None:
    for case, values in expected.items():
        found = [value for field in values["fields"].values() for value in field]
        assert len(found) >= 2, case
    fields = [field for values in expected.values() for field in values["fields"].values()]
    parts = {part for field in fields for value in field for part in value["parts"]}
    assert "vector" in parts
    assert expected[CASES[0]] == expected[CASES[1]]


def test_workers_of_the_library_give_the_same(
    home: Path, expected: dict[tuple[str, str], Values]
) -> None:
    assert by_library(home, workers=1) == expected


@pytest.mark.parametrize("workers", [0, 1])
def test_the_command_gives_the_same(
    home: Path, expected: dict[tuple[str, str], Values], workers: int
) -> None:
    found = by_command(home, workers)
    assert found == {case: expected[case] for case in found}
    assert len(found) == len(CASES) - 1


def test_the_service_gives_the_same(home: Path, expected: dict[tuple[str, str], Values]) -> None:
    assert by_service(home) == expected


def test_the_consumer_gives_the_same(home: Path, expected: dict[tuple[str, str], Values]) -> None:
    assert by_consumer(home) == expected


def test_a_new_document_has_the_values_that_it_has_once_it_is_cached(
    home: Path, expected: dict[tuple[str, str], Values], tmp_path: Path
) -> None:
    cache = shutil.copy(home / "c.h5", tmp_path / "c.h5")
    with Pipeline(cache, devices=["cpu"]) as pipeline:
        assert pipeline.build([home / "new.txt", home / "new.html"]).is_complete
    with Extractor(home / "templates", cache) as extractor:
        for name, template in (("new.txt", "租赁合同"), ("new.html", "减持公告")):
            found = plain(extractor.extract(home / name, template).as_dict())
            assert found == expected[name, template]
        assert extractor.engine.pages.n_encoded == 0


def test_without_models_a_new_document_has_others_and_a_cached_one_the_same(
    home: Path, expected: dict[tuple[str, str], Values]
) -> None:
    """The opt-out, which was the behaviour of library and command."""
    with Extractor(home / "templates", home / "c.h5", checkpoints="none") as extractor:
        new = plain(extractor.extract(home / "new.txt", "租赁合同").as_dict())
        assert extractor.engine.pages.n_encoded == 0
    assert new["fields"] != expected["new.txt", "租赁合同"]["fields"]


@pytest.fixture(scope="module")
def foreign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache by models that are not the built-in ones, which lie beside it."""
    folder = tmp_path_factory.mktemp("foreign")
    (folder / "a.txt").write_text(INLINE, "utf-8")
    save_encoder(folder / "tiny")
    save_tagger(folder / "tagger")
    with Pipeline(folder / "c.h5", folder / "tiny", folder / "tagger", devices=["cpu"]) as pipeline:
        assert pipeline.build(folder / "a.txt").is_complete
    copy_text(OUTSIDE, folder / "outside.toml")
    copy_text(BESIDE, folder / "beside.txt")
    return folder


@pytest.fixture
def orphaned(foreign: Path) -> Iterator[Path]:
    """The same, while its models are elsewhere."""
    names = ("tiny", "tagger")
    for name in names:
        (foreign / name).rename(foreign / f"{name}-elsewhere")
    yield foreign
    for name in names:
        (foreign / f"{name}-elsewhere").rename(foreign / name)


def test_models_that_cannot_be_found_are_missed_once_and_only_by_new_documents(
    orphaned: Path, caplog: pytest.LogCaptureFixture
) -> None:
    foreign = orphaned
    with Extractor(foreign / "outside.toml", foreign / "c.h5") as extractor:
        assert "get no vectors" in extractor.notes[0]
        assert "get no entities" in extractor.notes[1]
        extractor.extract("a.txt")
        assert not messages(caplog)
        list(extractor.extract_many([INLINE + "再一条。"], workers=1))
        extractor.extract(INLINE + "又一条。")
    assert messages(caplog) == list(extractor.notes)


def messages(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING]


def test_models_are_named_as_for_the_service(
    foreign: Path, caplog: pytest.LogCaptureFixture
) -> None:
    given = {"model": foreign / "tiny", "ner": str(foreign / "tagger")}
    with Extractor(foreign / "outside.toml", foreign / "c.h5", **given) as extractor:  # type: ignore[arg-type]
        assert extractor.notes == ()
        features, _ = extractor.engine.page_of(INLINE + "再一条。")
        assert extractor.engine.pages.n_encoded == 1
        assert features.page.vectors is not None
        assert features.page.vectors.any(axis=1).all()
    assert not messages(caplog)
    words = ["extract", str(foreign / "a.txt"), "--cache", str(foreign / "c.h5"),
             "--templates", str(foreign / "outside.toml")]  # fmt: skip
    models = ["--model", str(foreign / "tiny"), "--ner", str(foreign / "tagger")]
    assert CliRunner().invoke(featpipe, [*words, *models]).exit_code == 0
    other = CliRunner().invoke(featpipe, [*words, "--ner", str(foreign / "tiny")])
    assert isinstance(other.exception, UsageError | CheckpointError)


def test_another_model_than_that_of_the_cache_is_refused_when_it_is_named(
    foreign: Path, tmp_path: Path
) -> None:
    other = save_encoder(tmp_path / "other", seed=9)
    with pytest.raises(UnknownSpace, match="holds no vectors by"):
        Extractor(foreign / "outside.toml", foreign / "c.h5", model=other)
    with pytest.raises(UsageError, match="neither checkpoints nor encode"):
        Extractor(foreign / "outside.toml", foreign / "c.h5", model=other, checkpoints="none")


def test_the_callers_process_imports_no_torch_and_needs_no_guard(home: Path) -> None:
    import subprocess
    import sys

    code = (
        "import sys; from featpipe import Extractor\n"
        f"extractor = Extractor({str(home / 'templates')!r}, {str(home / 'c.h5')!r})\n"
        f"extractor.extract({INLINE!r}, 'outside')\n"
        "loaded = [m for m in ('torch', 'transformers') if m in sys.modules]\n"
        "print(extractor.engine.pages.n_encoded, loaded)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=HANG_S
    )
    n_encoded, loaded = done.stdout.split(" ", 1)
    assert int(n_encoded) > 0
    assert loaded.strip() == "[]"


def test_the_worker_ends_with_the_extractor(home: Path) -> None:
    import psutil

    children = psutil.Process().children
    before = len(children(recursive=True))
    with Cache.open(home / "c.h5") as cache:
        extractor = Extractor(home / "templates", cache)
        assert len(children(recursive=True)) == before, "models are loaded only for new texts"
        extractor.extract(INLINE, "outside")
        assert len(children(recursive=True)) > before
        extractor.close()
        assert len(children(recursive=True)) == before


def test_the_end_of_two_ids_is_named_as_such_by_every_door(home: Path, tmp_path: Path) -> None:
    cache, templates = tmp_path / "c.h5", home / "templates" / "lease.toml"
    for folder in ("x", "y"):
        copy_text(f"{INLINE}{folder}", tmp_path / "docs" / folder / "a.txt")
    with Pipeline(cache, ner="none", devices=["cpu"]) as pipeline:
        assert pipeline.build(tmp_path / "docs").is_complete
    told = r"'a.txt' is the end of 2 ids.*docs/x/a.txt, docs/y/a.txt"
    with Extractor(templates, cache) as extractor:
        with pytest.raises(UsageError, match=re.compile(told, re.DOTALL)):
            extractor.extract("a.txt")
        with pytest.raises(DocumentError, match=told):  # of a service or consumer
            extractor.engine.pages.find(Stored("a.txt"))
    words = ["extract", "a.txt", "--cache", str(cache), "--templates", str(templates)]
    failure = CliRunner().invoke(featpipe, words).exception
    assert re.search(told, str(failure), re.DOTALL)
