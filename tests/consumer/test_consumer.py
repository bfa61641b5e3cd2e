"""The queue consumer: memory transport for its logic, a real RabbitMQ for its promises."""

from __future__ import annotations

import base64
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import kombu
import pytest
from amqp.exceptions import MessageNacked
from tiny_checkpoints import save_encoder
from waiting import HANG_S

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))

from private_rabbitmq import private_rabbitmq, server_program

from featpipe import Pipeline
from featpipe.consumer import Consumer, ConsumerSettings
from featpipe.consumer.jobs import Journal, read_job
from featpipe.errors import BrokerUnreachable, UsageError, WriteFailed

HERE = Path(__file__).parent
TEXT = "租赁合同。甲方：广州山川有限公司。每月租金为人民币6,300元。"
LEASE = """name = "lease"
[[fields]]
name = "甲方"
[[samples]]
text = "租赁合同。甲方：北京天地有限公司。乙方：张三。每月租金为人民币5,000元。"
fields = { "甲方" = "北京天地有限公司" }
"""


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("consumer")
    model = save_encoder(folder / "tiny")
    (folder / "docs").mkdir()
    (folder / "docs" / "a.txt").write_text(TEXT, "utf-8")
    with Pipeline(folder / "c.h5", model, "none", devices=["cpu"]) as pipeline:
        assert pipeline.build(folder / "docs").is_complete
    (folder / "lease.toml").write_text(LEASE, "utf-8")
    return folder


class Broker:
    """Sends messages, and takes the answers."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.connection = kombu.Connection(url)
        self.results: list[tuple[dict[str, Any], dict[str, Any]]] = []
        self.dead: list[tuple[bytes, dict[str, Any]]] = []
        self.queues = {
            name: kombu.Queue(f"featpipe.{name}", durable=True, channel=self.connection)
            for name in ("documents", "results", "dead")
        }
        for queue in self.queues.values():
            queue(self.connection).declare()

    def send(self, body: object, **properties: object) -> None:
        raw = body if isinstance(body, str | bytes) else json.dumps(body)
        with self.connection.Producer() as producer:
            producer.publish(
                raw, routing_key="featpipe.documents", content_type="application/json",
                content_encoding="utf-8", **properties,
            )  # fmt: skip

    def take(self) -> None:
        for name in ("results", "dead"):
            queue = self.queues[name](self.connection)
            while (message := queue.get(no_ack=True)) is not None:
                if name == "results":
                    self.results.append((json.loads(message.body), message.properties))
                else:
                    self.dead.append((message.body, message.headers))

    def waits_for(self, holds: Callable[[], bool]) -> None:
        until = time.monotonic() + HANG_S
        while not holds():
            assert time.monotonic() < until, (len(self.results), len(self.dead))
            self.take()
            time.sleep(0.02)

    def close(self) -> None:
        self.connection.release()


@contextmanager
def consuming(broker: Broker, home: Path, **settings: Any) -> Iterator[Consumer]:
    given = {"cache": home / "c.h5", "templates": home / "lease.toml", **settings}
    consumer = Consumer(
        ConsumerSettings(
            broker=broker.url, model=str(home / "tiny"), devices=("cpu",), **given,
        )
    )  # fmt: skip
    thread = threading.Thread(target=consumer.run)
    thread.start()
    try:
        yield consumer
    finally:
        consumer.stop()
        thread.join(HANG_S)
        assert not thread.is_alive()


@pytest.fixture
def broker() -> Iterator[Broker]:
    from kombu.transport.memory import Channel

    Channel.queues.clear()
    found = Broker("memory://")
    yield found
    found.close()


def test_orders_of_every_kind_are_answered(broker: Broker, home: Path) -> None:
    data = base64.b64encode(f"<p>{TEXT}</p>".encode()).decode()
    broker.send({"id": "1", "text": TEXT, "template": "lease"})
    broker.send({"id": "2", "document": "a.txt"})
    broker.send({"id": "3", "data": data, "name": "a.html"}, correlation_id="c-3")
    broker.send({"id": 4, "text": TEXT})
    broker.send({"id": None, "text": TEXT})
    with consuming(broker, home):
        broker.waits_for(lambda: len(broker.results) == 5)
    answers = {answer["id"]: answer for answer, _ in broker.results}
    assert set(answers) == {"1", "2", "3", 4, ""}
    for answer in answers.values():
        values = answer["extractions"][0]["fields"]["甲方"]
        assert values[0]["text"] == "广州山川有限公司"
    correlated = {p.get("correlation_id") for _, p in broker.results}
    assert correlated == {"1", "2", "c-3", "4", None}
    assert not broker.dead


def test_an_id_that_is_too_long_for_a_property_comes_back_in_the_answer(
    broker: Broker, home: Path
) -> None:
    ids = ["合" * 85, "合" * 86, "\ud800"]  # AMQP's properties have 255 bytes
    for name in ids:
        broker.send({"id": name, "text": TEXT})
    with consuming(broker, home):
        broker.waits_for(lambda: len(broker.results) == 3)
    assert {answer["id"]: sent.get("correlation_id") for answer, sent in broker.results} == {
        ids[0]: ids[0], ids[1]: None, ids[2]: None,
    }  # fmt: skip


def test_half_of_a_surrogate_pair_costs_no_message(broker: Broker, home: Path) -> None:
    broker.send({"id": 1, "text": TEXT.replace("山川", "山\ud83d川")})
    broker.send({"id": 2, "document": "\ud83d"})
    broker.send({"id": 3, "text": TEXT})
    with consuming(broker, home):
        broker.waits_for(lambda: len(broker.results) == 2 and len(broker.dead) == 1)
    answers = {answer["id"]: answer["extractions"] for answer, _ in broker.results}
    [value] = answers[1][0]["fields"]["甲方"]
    assert value["text"] == "广州山\ud83d川有限公司"
    [(_, headers)] = broker.dead
    assert headers["x-reason"].startswith("?: ")


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ("no json", "invalid_message"),
        ('["a"]', "invalid_message"),
        ('{"text": "a", "document": "b"}', "invalid_message"),
        ('{"text": "a", "path": "/etc/passwd"}', "invalid_message"),
        ('{"data": "***"}', "invalid_message"),
        ('{"id": {"a": 1}, "text": "a"}', "invalid_message"),
        ('{"document": "/etc/passwd"}', "UnreadableDocument"),
        ('{"text": "a", "template": "nope"}', "UsageError"),
        ('{"data": "iVBORw0KGgoAAAAA"}', "UnsupportedDocument"),
    ],
)
def test_what_cannot_be_answered_is_buried_with_its_reason(
    broker: Broker, home: Path, body: str, error: str
) -> None:
    broker.send(body)
    broker.send({"id": "good", "text": TEXT})
    with consuming(broker, home):
        broker.waits_for(lambda: len(broker.results) == 1 and len(broker.dead) == 1)
    ((found, headers),) = broker.dead
    assert (found if isinstance(found, str) else found.decode()) == body
    assert headers["x-error"] == error
    assert headers["x-reason"]


def test_the_same_content_is_computed_once_and_answered_each_time(
    broker: Broker, home: Path, tmp_path: Path
) -> None:
    journal = tmp_path / "journal.sqlite"
    broker.send({"id": "first", "text": TEXT})
    with consuming(broker, home, journal=journal):
        broker.waits_for(lambda: len(broker.results) == 1)
    # A worker that cannot extract anything shows that nothing is extracted again.
    broker.send({"id": "again", "text": TEXT})
    with consuming(broker, home, journal=journal, target="consumer_poison:Useless"):
        broker.waits_for(lambda: len(broker.results) == 2)
    (first, one), (again, two) = broker.results
    assert first["extractions"] == again["extractions"]
    assert first["key"] == again["key"] == one["message_id"] == two["message_id"]


def test_an_answer_is_confirmed_before_the_next_is_sent(
    broker: Broker, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """RabbitMQ's client delivers messages while it waits for a confirmation; here it does, too."""
    publish = kombu.Producer.publish
    n_waiting = 0
    most: list[int] = []

    def publish_and_wait(self: kombu.Producer, *given: Any, **named: Any) -> None:
        nonlocal n_waiting
        publish(self, *given, **named)
        n_waiting += 1
        most.append(n_waiting)
        with suppress(OSError):  # no message
            self.channel.connection.client.drain_events(timeout=0.01)
        n_waiting -= 1

    for number in range(4):
        broker.send(f"no order {number}")
    broker.send({"id": 1, "text": TEXT})
    monkeypatch.setattr(kombu.Producer, "publish", publish_and_wait)
    with consuming(broker, home):
        broker.waits_for(lambda: (len(broker.results), len(broker.dead)) == (1, 4))
    assert set(most) == {1}


def test_a_broker_that_refuses_an_answer_is_tried_again(
    broker: Broker, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As RabbitMQ does where a queue of results is full and rejects what is published.

    There the message comes again; the transport of these tests forgets it.
    """
    publish = kombu.Producer.publish
    refusals = iter([MessageNacked])

    def refuse_once(self: kombu.Producer, *given: Any, **named: Any) -> None:
        for refusal in refusals:
            raise refusal
        publish(self, *given, **named)

    for number in range(2):
        broker.send({"id": number, "text": f"{TEXT}{number}"})
    monkeypatch.setattr(kombu.Producer, "publish", refuse_once)
    with consuming(broker, home, prefetch=1):
        broker.waits_for(lambda: bool(broker.results))
    assert [answer["id"] for answer, _ in broker.results] == [1]


def test_changed_templates_come_to_work_and_answers_are_kept_apart(
    broker: Broker, home: Path, tmp_path: Path
) -> None:
    file = tmp_path / "lease.toml"
    file.write_text(LEASE, "utf-8")
    with consuming(broker, home, templates=file):
        broker.send({"id": "before", "text": TEXT})
        broker.waits_for(lambda: len(broker.results) == 1)
        more = '[[fields]]\nname = "租金"\ntype = "money"\n[[samples]]'
        file.write_text(LEASE.replace("[[samples]]", more), "utf-8")

        def is_in_use() -> bool:
            n = len(broker.results)
            broker.send({"id": "after", "text": TEXT})
            broker.waits_for(lambda: len(broker.results) > n)
            return "租金" in broker.results[-1][0]["extractions"][0]["fields"]

        broker.waits_for(is_in_use)
    keys: dict[str, set[bool]] = {}
    for answer, _ in broker.results:
        has_rent = "租金" in answer["extractions"][0]["fields"]
        keys.setdefault(answer["key"], set()).add(has_rent)
    assert list(keys.values()) == [{False}, {True}]


def test_a_document_of_the_cache_is_answered_as_it_is_there_now(
    broker: Broker, home: Path, tmp_path: Path
) -> None:
    documents, cache = tmp_path / "docs", tmp_path / "c.h5"
    documents.mkdir()

    def build(text: str) -> None:
        (documents / "b.txt").write_text(text, "utf-8")
        with Pipeline(cache, home / "tiny", "none", devices=["cpu"]) as pipeline:
            assert pipeline.build(documents).is_complete

    build(TEXT)
    with consuming(broker, home, cache=cache):
        broker.send({"id": "old", "document": "b.txt"})
        broker.waits_for(lambda: len(broker.results) == 1)
        build(TEXT.replace("广州山川", "深圳海风"))
        for name in ("new", "again"):
            broker.send({"id": name, "document": "b.txt"})
        broker.waits_for(lambda: len(broker.results) == 3)
    found = {answer["id"]: answer for answer, _ in broker.results}
    values = {
        name: one["extractions"][0]["fields"]["甲方"][0]["text"] for name, one in found.items()
    }
    assert values == {
        "old": "广州山川有限公司", "new": "深圳海风有限公司", "again": "深圳海风有限公司"
    }  # fmt: skip
    assert found["old"]["key"] != found["new"]["key"] == found["again"]["key"]


def test_known_templates_are_used_without_a_fit(
    broker: Broker, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker.send({"id": "first", "text": TEXT})
    with consuming(broker, home):
        broker.waits_for(lambda: len(broker.results) == 1)

    def no_pool(_: object) -> None:
        raise AssertionError("a pool was opened to fit")

    monkeypatch.setattr("featpipe.extraction.deploy.Pool", no_pool)
    broker.send({"id": "second", "text": f"甲。{TEXT}"})
    with consuming(broker, home):
        broker.waits_for(lambda: len(broker.results) == 2)
    assert not broker.dead


def test_a_document_that_kills_its_workers_is_buried(broker: Broker, home: Path) -> None:
    broker.send({"id": "bad", "text": "kill"})
    broker.send({"id": "good", "text": TEXT})
    with consuming(broker, home, target="consumer_poison:Poisoned"):
        broker.waits_for(lambda: len(broker.results) == 1 and len(broker.dead) == 1)
    assert broker.dead[0][1]["x-error"] == "WorkerDied"


def test_a_journal_keeps_the_first_answer_and_the_newest_keys(tmp_path: Path) -> None:
    with Journal(tmp_path / "j", most=2) as journal:
        for key in ("a", "b", "b", "c"):
            journal.put(key, f"{key}-{key}")
        journal.put("c", "another")
    with Journal(tmp_path / "j", most=2) as journal:
        assert [journal.get(key) for key in "abc"] == [None, "b-b", "c-c"]
    with pytest.raises(WriteFailed, match="journal"):
        Journal(tmp_path / "nowhere" / "j")


def test_a_damaged_journal_is_named_when_it_is_read(tmp_path: Path) -> None:
    file = tmp_path / "j"
    with Journal(file) as journal:
        for number in range(500):
            journal.put(f"{number:032x}", "x" * 1000)
    whole = file.read_bytes()
    page = 4096  # the first holds the schema
    file.write_bytes(whole[:page] + b"\xff" * (len(whole) - page))
    found = r"read: .* malformed"
    with Journal(file) as journal, pytest.raises(WriteFailed, match=found) as caught:
        journal.get(f"{7:032x}")
    assert str(file) in caught.value.message
    assert "move a damaged one away" in str(caught.value.hint)


def test_keys_differ_with_content_template_and_state() -> None:
    def key(state: str = "s", **body: str) -> str:
        return read_job(json.dumps(body), {"t": 1}).key(state)

    keys = [
        key(text="a"), key(text="b"), key(text="a", template="u"), key("other", text="a"),
        key(document="a"), key(data="YQ=="), key(text="a", name="n"),
    ]  # fmt: skip
    assert len(set(keys)) == len(keys)
    assert key(text="a") == key(text="a")
    with pytest.raises(UsageError, match="unknown keys"):
        read_job('{"text": "a", "path": "b"}', {})


# ---- a broker that is not there


def consume(home: Path, url: str, folder: Path, **environment: str) -> tuple[int, str]:
    """Exit code and standard error of the command."""
    done = subprocess.run(
        command(home, url, folder), capture_output=True, text=True, check=False, timeout=HANG_S,
        env={**os.environ, **environment},
    )  # fmt: skip
    assert "Traceback" not in done.stderr
    assert "s3cret" not in done.stderr
    return done.returncode, done.stderr


@pytest.mark.parametrize(
    ("url", "code", "why"),
    [
        ("nonsense", 2, "the broker's address has no transport"),
        ("nonsense://u:s3cret@host//", 2, "the broker's transport 'nonsense' is unknown"),
        ("amqp://u:s3cret@host:abc//", 2, "the broker's address has no valid port"),
        ("amqp://u:s3cret@:5672//", 2, "the broker's address names no host"),
        ("amqp://u:s3cret@no-such-host.invalid//", 3, "'no-such-host.invalid' does not exist"),
    ],
)
def test_a_broker_that_can_never_be_reached_is_an_error(
    home: Path, tmp_path: Path, url: str, code: int, why: str
) -> None:
    found, errors = consume(home, url, tmp_path)
    assert found == code
    assert errors.splitlines()[-2].startswith("error: ")
    assert why in errors
    assert "amqp://user:password@host:5672//" in errors.splitlines()[-1]


def test_a_broker_that_never_answers_is_waited_for_and_then_an_error(
    home: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("featpipe.consumer.broker.FIRST_WITHIN_S", 3.0)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listening: refused
        url = f"amqp://u:s3cret@127.0.0.1:{taken.getsockname()[1]}//"
        consumer = Consumer(
            ConsumerSettings(
                broker=url, cache=home / "c.h5", templates=home / "lease.toml",
                model=str(home / "tiny"), devices=("cpu",),
            )
        )  # fmt: skip
        with pytest.raises(BrokerUnreachable, match="within 3 s: Connection refused") as caught:
            consumer.run()
    assert "start the broker" in str(caught.value.hint)
    assert "Connection refused; tried again in 0.5 s" in caplog.text
    assert "s3cret" not in caplog.text + str(caught.value)


# ---- a real broker


@pytest.fixture(scope="module")
def rabbitmq(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    if server_program() is None:
        pytest.skip("rabbitmq-server is not installed")
    with private_rabbitmq(tmp_path_factory.mktemp("rabbitmq")) as url:
        yield url


def command(home: Path, url: str, folder: Path) -> list[str]:
    return [
        sys.executable, "-m", "featpipe", "consume", "--cache", str(home / "c.h5"),
        "--templates", str(home / "lease.toml"), "--model", str(home / "tiny"), "--broker", url,
        "--journal", str(folder / "journal"), "--device", "cpu", "--prefetch", "8",
    ]  # fmt: skip


@pytest.mark.rabbitmq
def test_a_broker_that_refuses_the_password_is_an_error(
    home: Path, rabbitmq: str, tmp_path: Path
) -> None:
    code, errors = consume(home, rabbitmq.replace("guest:guest", "guest:s3cret"), tmp_path)
    assert code == 3
    assert "refuses the connection" in errors
    assert "check the user, the password and the virtual host of --broker" in errors


@pytest.mark.rabbitmq
def test_a_consumer_killed_again_and_again_loses_no_message(
    rabbitmq: str, home: Path, tmp_path: Path
) -> None:
    broker = Broker(rabbitmq)
    wanted = {str(number) for number in range(60)}
    for number in sorted(wanted):
        broker.send({"id": number, "text": f"第{number}号{TEXT}"})
    log = (tmp_path / "log").open("wb")
    environment = {**os.environ, "PYTHONPATH": str(HERE.parents[1])}

    def start() -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            command(home, rabbitmq, tmp_path), stdout=log, stderr=log, env=environment
        )

    def answered() -> set[str]:
        return {answer["id"] for answer, _ in broker.results}

    process = start()
    try:
        for goal in (1, 20):
            broker.waits_for(lambda goal=goal: len(answered()) >= goal)  # type: ignore[misc]
            process.kill()
            process.wait()
            process = start()
        broker.waits_for(lambda: answered() >= wanted)
        process.send_signal(signal.SIGTERM)
        assert process.wait(HANG_S) == 0
    finally:
        process.kill()
        process.wait()
        log.close()
        broker.close()
    assert answered() == wanted
    assert not broker.dead
    by_id: dict[str, set[str]] = {}
    for answer, _ in broker.results:
        by_id.setdefault(answer["id"], set()).add(json.dumps(answer["extractions"]))
    assert all(len(answers) == 1 for answers in by_id.values())
