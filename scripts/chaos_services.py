"""Rounds of chaos.py with a service and with a consumer."""

from __future__ import annotations

import json
import os
import subprocess
import time
from contextlib import suppress
from http.client import HTTPConnection, HTTPException
from typing import TYPE_CHECKING, Any

import kombu
import psutil
from chaos_faults import end_politely, hit
from chaos_home import TEMPLATES, Home, Tally, featpipe
from ports import free_port
from private_rabbitmq import private_rabbitmq, server_program

if TYPE_CHECKING:
    import random
    from collections.abc import Callable
    from pathlib import Path

_TEMPLATE = "采购合同"
_START_S = 120.0
_ANSWER_S = 60.0
_N_REQUESTS = 60
#: Statuses that say that there is no answer now; the client asks again.
_BUSY = {429, 500, 502, 503, 504}


def texts_of(home: Home, dice: random.Random, count: int) -> list[str]:
    """Texts of documents to extract from, repeated."""
    files = sorted((home.documents / "own" / "contracts").glob("purchase_*.txt"))
    texts = [file.read_text("utf-8", errors="replace") for file in files]
    return [dice.choice(texts) for _ in range(count)]


# ---- the service


def serve(home: Home, dice: random.Random) -> Tally:
    """Answers under blows are those before them, or refusals that say so."""
    tally = Tally()
    port = free_port()
    cache = home.fresh("serve") / "c.h5"
    cache.write_bytes(home.cache.read_bytes())
    command = featpipe("serve", "--cache", cache, "--templates", TEMPLATES, "--port", port)
    with (home.folder / "serve.log").open("wb") as log:
        service = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        if not _answers(lambda: _post(port, "甲方：北京某公司。")[0] == 200, _START_S):
            tally.add("hung", "the service does not start")
            return tally
        quiet: dict[str, Any] = {}
        for text in texts_of(home, dice, _N_REQUESTS):
            if text not in quiet:
                quiet[text] = _ask(port, text, tally)
                continue
            tally.kills += _hit_child(service.pid, dice)
            found = _ask(port, text, tally)
            if found is None:
                tally.add("lost", "a request without an answer")
            elif found != quiet[text]:
                tally.add("wrong", "an answer differs")
    finally:
        if not end_politely(service, 90):
            tally.add("hung", "the service does not end")
    return tally


def _ask(port: int, text: str, tally: Tally) -> object:
    """The extractions, asked for again while the service is busy; None when it never answers."""
    until = time.monotonic() + _ANSWER_S
    while time.monotonic() < until:
        status, body = _post(port, text)
        if status == 200:
            return body["extractions"]
        if status not in _BUSY:
            tally.add("wrong", f"status {status}: {body}")
            return None
        time.sleep(0.2)
    tally.add("hung", "a request")
    return None


def _post(port: int, text: str) -> tuple[int, Any]:
    """(status, body); 503 where the connection is refused or cut."""
    connection = HTTPConnection("127.0.0.1", port, timeout=_ANSWER_S)
    try:
        body = json.dumps({"text": text, "template": _TEMPLATE})
        headers = {"content-type": "application/json"}
        connection.request("POST", "/extract", body.encode(), headers)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    except (OSError, HTTPException):
        return 503, None
    finally:
        connection.close()


def _hit_child(pid: int, dice: random.Random) -> int:
    """Kill or stop one descendant, now and then."""
    if dice.random() < 0.6:
        return 0
    with suppress(psutil.NoSuchProcess):
        return hit(psutil.Process(pid).children(recursive=True), dice, p_stop=0.3)
    return 0


def _answers(holds: Callable[[], bool], limit_s: float) -> bool:
    until = time.monotonic() + limit_s
    while time.monotonic() < until:
        if holds():
            return True
        time.sleep(0.2)
    return False


# ---- the consumer


def consume(home: Home, dice: random.Random) -> Tally:
    """Every message is answered, with one and the same answer, however often it is killed."""
    tally = Tally()
    if server_program() is None:
        tally.words.append("not possible here")
        return tally
    folder = home.fresh("consume")
    broker_folder = home.folder / "broker"
    broker_folder.mkdir(exist_ok=True)
    with private_rabbitmq(broker_folder) as url:
        wanted = {str(n): text for n, text in enumerate(texts_of(home, dice, _N_REQUESTS))}
        answers = _consume_all(home, folder, url, wanted, dice, tally)
    by_text: dict[str, set[str]] = {}
    for number, found in answers.items():
        by_text.setdefault(wanted[number], set()).update(found)
    n_differing = sum(len(found) > 1 for found in by_text.values())
    if n_differing:
        tally.add("wrong", f"{n_differing} texts with several answers", n_differing)
    n_lost = len(wanted.keys() - answers.keys())
    if n_lost:
        tally.add("lost", f"{n_lost} messages", n_lost)
    return tally


def _consume_all(
    home: Home,
    folder: Path,
    url: str,
    wanted: dict[str, str],
    dice: random.Random,
    tally: Tally,
) -> dict[str, set[str]]:
    answers: dict[str, set[str]] = {}
    command = featpipe(
        "consume", "--cache", home.cache, "--templates", TEMPLATES, "--journal", folder / "journal"
    )
    environment = os.environ | {"FEATPIPE_BROKER": url}
    with kombu.Connection(url) as connection, (home.folder / "consume.log").open("ab") as log:
        results = _declare(connection)
        _send(connection, wanted)
        until = time.monotonic() + home.limit_s
        process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
        dies_at = time.monotonic() + dice.uniform(1, 12)
        while answers.keys() != wanted.keys() and time.monotonic() < until:
            _take(results, answers)
            tally.kills += _hit_child(process.pid, dice) if dice.random() < 0.1 else 0
            if time.monotonic() > dies_at:
                process.kill()
                process.wait()
                tally.kills += 1
                process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
                dies_at = time.monotonic() + dice.uniform(5, 40)
            time.sleep(0.1)
        if not end_politely(process, 90):
            tally.add("hung", "the consumer does not end")
        _take(results, answers)
    return answers


def _declare(connection: kombu.Connection) -> kombu.Queue:
    for name in ("documents", "dead", "results"):
        queue = kombu.Queue(f"featpipe.{name}", durable=True)(connection)
        queue.declare()
        queue.purge()
    return queue


def _send(connection: kombu.Connection, wanted: dict[str, str]) -> None:
    with connection.Producer() as producer:
        for number, text in wanted.items():
            body = {"id": number, "text": text, "template": _TEMPLATE}
            producer.publish(
                json.dumps(body),
                routing_key="featpipe.documents",
                content_type="application/json",
                content_encoding="utf-8",
                delivery_mode=2,
            )


def _take(results: kombu.Queue, answers: dict[str, set[str]]) -> None:
    while (message := results.get(no_ack=True)) is not None:
        answer = json.loads(message.body)
        fields = json.dumps(answer["extractions"], sort_keys=True)
        answers.setdefault(answer["id"], set()).add(fields)
