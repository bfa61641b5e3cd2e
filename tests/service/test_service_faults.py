"""What goes wrong costs no more than it must: workers killed, poison, floods, the end."""

from __future__ import annotations

import asyncio
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import psutil
import pytest
from service_poison import HANG, KILL, WAIT
from service_watch import running, wait_for
from waiting import HANG_S, has_ended

if TYPE_CHECKING:
    from service_watch import Service

TEXT = "租赁合同。甲方：广州山川有限公司。乙方：王五。每月租金为人民币6,300元。"


def worker_pids(service: Service) -> set[int]:
    return {child.pid for child in psutil.Process(service.pid).children(recursive=True)}


def test_a_document_that_kills_its_worker_costs_only_its_own_request(service: Service) -> None:
    texts = [TEXT, KILL, *[TEXT] * 14]
    with ThreadPoolExecutor(16) as threads:
        answers = list(
            threads.map(lambda text: service.extract(text=text, template="lease"), texts)
        )
    assert [answer.status_code for answer in answers] == [200, 500, *[200] * 14]
    error = answers[1].json()["error"]
    assert error["code"] == "worker_died"
    assert "SIGSEGV" in error["message"]
    assert "Traceback" not in answers[1].text
    logged = [one for one in service.records() if one.get("request_id") == error["request_id"]]
    assert [one["level"] for one in logged[:1]] == ["error"]
    assert "worker_died: " in str(logged[0]["message"])
    assert len({str(a.json()["extractions"][0]["fields"]) for a in answers if a.is_success}) == 1


def test_a_document_that_does_not_end_costs_only_its_own_request(
    built: Path, encoder_folder: Path
) -> None:
    texts = [TEXT, HANG, TEXT, TEXT]
    settings = {"model": str(encoder_folder), "document_deadline_s": 5.0}
    with running(built, **settings) as (service, _), ThreadPoolExecutor(4) as threads:
        answers = list(
            threads.map(lambda text: service.extract(text=text, template="lease"), texts)
        )
    assert [answer.status_code for answer in answers] == [200, 422, 200, 200]
    assert answers[1].json()["error"]["code"] == "document_deadline"


def test_workers_killed_under_load_lose_nothing(service: Service) -> None:
    expected = service.extract(text=TEXT, template="lease").json()["extractions"]
    is_over = threading.Event()
    answers: list[httpx.Response] = []

    def ask(_: int) -> None:
        answers.append(service.extract(text=TEXT, template="lease"))

    def kill() -> None:
        n_before = 0
        while not is_over.wait(0.2):
            # Not by the clock alone: on a busy machine no start would be outlived.
            if len(answers) < n_before + 10:
                continue
            n_before = len(answers)
            for child in psutil.Process(service.pid).children(recursive=True)[:1]:
                with suppress(psutil.NoSuchProcess):  # it ended since
                    child.kill()

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        with ThreadPoolExecutor(4) as threads:
            list(threads.map(ask, range(150)))
            vectors = [
                service.client.post("/v1/embeddings", json={"model": "tiny", "input": "合同金额"})
                for _ in range(10)
            ]
    finally:
        is_over.set()
        killer.join()
    assert {answer.status_code for answer in answers} == {200}
    assert all(answer.json()["extractions"] == expected for answer in answers)
    assert {one.status_code for one in vectors} == {200}
    assert len({one.text for one in vectors}) == 1


def test_a_client_may_ask_for_less_time(service: Service, tmp_path: Path) -> None:
    word = tmp_path / "word"
    response = service.extract(text=f"{WAIT}{word}", template="lease", deadline_s=0.2)
    word.touch()
    assert (response.status_code, response.json()["error"]["code"]) == (504, "deadline_exceeded")
    assert service.extract(text=TEXT, template="lease").status_code == 200


def test_a_client_that_leaves_harms_nobody(service: Service, tmp_path: Path) -> None:
    word = tmp_path / "word"
    with pytest.raises(httpx.ReadTimeout):
        httpx.post(
            f"{service.url}/extract",
            json={"text": f"{WAIT}{word}", "template": "lease"},
            timeout=httpx.Timeout(HANG_S, read=0.2),
            trust_env=False,
        )
    word.touch()
    assert service.extract(text=TEXT, template="lease").status_code == 200


@pytest.mark.parametrize("is_chunked", [False, True])
def test_a_body_beyond_the_limit_is_refused_while_it_arrives(
    service: Service, *, is_chunked: bool
) -> None:
    sent = 0

    def pieces() -> object:
        nonlocal sent
        for _ in range(64):
            sent += 1
            yield b" " * (1 << 20)

    content = pieces() if is_chunked else b" " * (2 << 20)
    try:
        response = service.client.post("/extract", content=content)  # type: ignore[arg-type]
    except httpx.WriteError:  # it answered and hung up while we were still sending
        assert is_chunked
        assert sent < 64
    else:
        assert response.status_code == 413
        assert response.json()["error"]["code"] == "body_too_large"
    assert service.extract(text=TEXT, template="lease").status_code == 200


def test_a_full_queue_says_when_to_come_again(built: Path, tmp_path: Path) -> None:
    word = tmp_path / "word"
    with running(built, max_waiting=4, max_batch=1) as (service, _):

        async def flood() -> list[httpx.Response]:
            limits = httpx.Limits(max_connections=32)
            async with httpx.AsyncClient(
                base_url=service.url, timeout=HANG_S, limits=limits, trust_env=False
            ) as client:
                body = {"text": f"{WAIT}{word}", "template": "lease"}
                asked = {asyncio.create_task(client.post("/extract", json=body)) for _ in range(16)}
                while len(asked) > 4:  # nobody is done before the word, and 12 are turned away
                    done, asked = await asyncio.wait(asked, return_when=asyncio.FIRST_COMPLETED)
                    refused.extend(one.result() for one in done)
                word.touch()
                return await asyncio.gather(*asked)

        refused: list[httpx.Response] = []
        answers = asyncio.run(flood())
        assert [answer.status_code for answer in answers] == [200] * 4
        assert [answer.status_code for answer in refused] == [429] * 12
        assert int(refused[0].headers["retry-after"]) >= 1
        assert refused[0].json()["error"]["code"] == "busy"


def test_sigterm_denies_readiness_finishes_what_is_in_flight_and_exits_with_zero(
    built: Path, tmp_path: Path
) -> None:
    word = tmp_path / "word"
    settings = {"notice_s": 10.0}
    with running(built, **settings) as (service, process), ThreadPoolExecutor(4) as threads:
        children = psutil.Process(process.pid).children(recursive=True)
        asked = [
            threads.submit(lambda: service.extract(text=f"{WAIT}{word}", template="lease"))
            for _ in range(3)
        ]
        wait_for(lambda: "featpipe_in_flight 4" in service.client.get("/metrics").text, "flight")
        process.send_signal(signal.SIGTERM)
        wait_for(lambda: service.client.get("/readyz").status_code == 503, "denial")
        assert service.client.get("/readyz").json()["is_draining"]
        word.touch()
        assert service.extract(text=TEXT, template="lease").status_code == 200
        answers = [future.result() for future in asked]
        assert [one.status_code for one in answers] == [200] * 3
        # No client sends its next request on a connection that is about to be closed.
        assert {one.headers.get("connection") for one in answers} == {"close"}
        assert process.wait(HANG_S) == 0
        wait_for(lambda: all(map(has_ended, children)), "the end of all workers")
        messages = [str(record["message"]) for record in service.records()]
        assert any("ending in order" in message for message in messages)
        assert not any("Traceback" in str(record) for record in service.records())


def test_no_worker_outlives_a_service_that_is_killed(built: Path) -> None:
    with running(built) as (service, process):
        children = psutil.Process(process.pid).children(recursive=True)
        assert children
        assert service.is_ready()
        process.kill()
        wait_for(lambda: all(map(has_ended, children)), "the end of all workers")
