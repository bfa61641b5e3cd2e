"""The review over HTTP: what is answered is kept, what is seen is accepted, and nothing else is."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path
from typing import Any

import httpx
import pytest
from review_home import make_home, text_of
from service_watch import Service, running, wait_for

from featpipe import Cache
from featpipe.extraction.corrections_log import CorrectionsLog
from featpipe.extraction.results_table import ResultsReader

KEY = "a key that no one can guess"


def get(service: Service, path: str, **query: object) -> Any:  # noqa: ANN401  # JSON
    answer = service.client.get(f"/review/{path}", params={"template": "lease", **query})
    assert answer.status_code == 200, answer.text
    return answer.json()


def say(service: Service, **body: object) -> httpx.Response:
    return service.client.post("/review/corrections", json={"template": "lease", **body})


def whole_queue(service: Service) -> dict[str, Any]:
    wait_for(lambda: get(service, "queue")["n_done"] == 8, "the survey")
    return dict(get(service, "queue"))


def whole_changes(service: Service) -> dict[str, Any]:
    wait_for(lambda: get(service, "changes")["is_complete"], "the changes")
    return dict(get(service, "changes"))


def rent_of(item: dict[str, Any]) -> list[int]:
    """Place of the true rent."""
    number = int(item["document"][-5])
    start = text_of(number).index(rent := f"{number + 3},500元")
    return [start, start + len(rent)]


def correction(item: dict[str, Any], **more: object) -> dict[str, object]:
    shown = [[value["start"], value["end"]] for value in item["values"]]
    return {
        "verdict": "correct", "document": item["document"], "key": item["key"],
        "field": item["field"], "spans": [rent_of(item)], "shown": shown,
        "about": shown[0] if shown else None, **more,
    }  # fmt: skip


def stored_rents(home: Path) -> dict[str, str | None]:
    with Cache.open(home / "c.h5") as cache:
        results = ResultsReader(cache.reader)
        return {
            str(row["document"]): found.value
            for row in results.last_rows().values()
            if (found := results.field(bytes.fromhex(row["fields"]["租金"]))) is not None
        }


def check_refusals(service: Service, item: dict[str, Any]) -> None:
    good = correction(item)
    plain = httpx.Client(base_url=service.url, trust_env=False)
    with plain:
        assert plain.get("/review/queue", params={"template": "lease"}).status_code == 401
        assert (
            plain.post("/review/corrections", json=good | {"template": "lease"}).status_code == 401
        )
    form = service.client.post(
        "/review/corrections", content="{}", headers={"Content-Type": "text/plain"}
    )
    assert form.status_code == 415
    foreign = service.client.post(
        "/review/accept", json={"template": "lease", "through": "x"},
        headers={"Origin": "http://elsewhere.example"},
    )  # fmt: skip
    assert foreign.status_code == 403
    for change, words in [
        ({"spans": [[0, 10**6]]}, "is beyond the text"),
        ({"field": "旧"}, "has no field '旧'"),
        ({"key": "f" * 32}, "another version of"),
        ({"spans": []}, "needs the places of values"),
        ({"verdict": "none"}, "has no places of values"),
        ({"template": "other"}, "there is no template 'other'"),
        ({"document": ""}, "document, key and field are needed"),
    ]:
        refused = service.client.post(
            "/review/corrections", json={"template": "lease", **good, **change}
        )
        assert refused.status_code in {404, 422}
        assert words in refused.json()["error"]["message"]
    assert say(service, verdict="undo", of="nothing").status_code == 404
    assert not CorrectionsLog(service.home / "templates" / "lease.toml").path.exists()


def check_changes(service: Service, items: list[dict[str, Any]]) -> dict[str, Any]:
    """They are seen before anything has changed."""
    for item in items:
        assert say(service, **correction(item, who="Anna")).json()["values"]
    changes = whole_changes(service)
    assert (changes["is_pending"], changes["n_encoded"], changes["version"]) == (True, 0, "1")
    summary = changes["summary"]
    assert summary["n_values"] == len(changes["changes"]) >= len(items)
    assert sum(summary[k] for k in ("up", "down", "new", "other", "gone")) == summary["n_values"]
    said = {one["document"] for one in changes["changes"] if one["is_said"]}
    assert said == {item["document"] for item in items}
    assert service.client.get("/templates/lease").json()["version"] == ""
    return changes


def accept(service: Service, through: str) -> httpx.Response:
    body = {"template": "lease", "through": through, "who": "Anna"}
    return service.client.post("/review/accept", json=body)


def check_accepting(service: Service, items: list[dict[str, Any]]) -> None:
    """What was seen comes to work; what was said later is kept, and not accepted with it."""
    changes = check_changes(service, items[:4])
    assert accept(service, "x").status_code == 409
    late = say(service, **correction(items[4], verdict="none", spans=[])).json()["id"]
    done = accept(service, changes["through"])
    assert done.json() == {"template": "lease", "version": "1"}
    described = service.client.get("/templates/lease").json()
    assert (described["version"], described["n_samples"]) == ("1", 6)
    expected = {
        i["document"]: text_of(int(i["document"][-5]))[slice(*rent_of(i))] for i in items[:4]
    }
    wait_for(lambda: expected.items() <= stored_rents(service.home).items(), "the results")
    answer = service.extract(document=items[0]["document"], template="lease").json()
    [value] = answer["extractions"][0]["fields"]["租金"]
    assert value["text"] == expected[items[0]["document"]]
    queue = whole_queue(service)
    assert queue["is_pending"]
    left = {(item["document"], item["field"]) for item in queue["items"]}
    assert not {(document, "租金") for document in expected} & left
    assert [one["id"] for one in queue["said"] if not one["is_accepted"]] == [late]


def check_undo(service: Service, before: dict[str, str]) -> None:
    """An acceptance that is taken back leaves everything as it was before."""
    [accepted] = [one for one in whole_queue(service)["said"] if one["verdict"] == "accept"]
    assert say(service, verdict="undo", of=accepted["id"]).status_code == 200
    wait_for(lambda: before.items() <= stored_rents(service.home).items(), "the results before")
    assert service.client.get("/templates/lease").json()["version"] == ""


def check_kill(service: Service, item: dict[str, Any]) -> None:
    """Two reviewers speak while the service is killed: what was answered is there."""
    log = CorrectionsLog(service.home / "templates" / "lease.toml")
    answered: list[str] = []

    def speak(name: str) -> None:
        headers = {"X-API-Key": KEY}
        with httpx.Client(base_url=service.url, trust_env=False, headers=headers) as client:
            for number in range(10_000):
                body = {"template": "lease", **correction(item, who=name, id=f"{name}-{number}")}
                try:
                    answer = client.post("/review/corrections", json=body)
                except httpx.TransportError:
                    return
                if answer.status_code == 200:
                    answered.append(answer.json()["id"])

    speakers = [threading.Thread(target=speak, args=(name,)) for name in ("anna", "bert")]
    for one in speakers:
        one.start()
    wait_for(lambda: len(answered) > 30, "answers")
    os.kill(service.pid, signal.SIGKILL)
    for one in speakers:
        one.join()
    found = log.read()
    assert {record.id for record in found.records} >= set(answered)
    assert {id_.split("-")[0] for id_ in answered} == {"anna", "bert"}
    assert found.bad == ()


def test_a_review_from_the_queue_to_the_results_and_a_kill(
    tmp_path: Path, encoder_folder: Path
) -> None:
    home = make_home(tmp_path / "home", encoder_folder)
    settings = {"model": str(encoder_folder), "ner": "none", "api_key": KEY, "is_review": True}
    with running(home, document_deadline_s=60.0, **settings) as (service, _):
        service.client.headers["X-API-Key"] = KEY
        queue = whole_queue(service)
        assert queue["n_left"] == len(queue["items"]) == 12
        for key in {item["key"] for item in queue["items"]}:  # document by document
            own = [(at, item) for at, item in enumerate(queue["items"]) if item["key"] == key]
            assert own[-1][0] - own[0][0] == len(own) - 1
            doubts = [item["doubt"] for _, item in own]
            assert doubts == sorted(doubts, reverse=True)
        items = [item for item in queue["items"] if item["field"] == "租金" and item["values"]]
        assert len(items) == 6
        text = get(service, "document", key=items[0]["key"])["text"]
        value = items[0]["values"][0]
        assert text[value["start"] : value["end"]] == value["text"]
        found = get(service, "candidates", key=items[0]["key"], field="租金")
        assert not found["is_many"]
        assert rent_of(items[0]) in [[v["start"], v["end"]] for v in found["values"]]
        schema = service.client.get("/openapi.json").json()["paths"]
        assert sum(path.startswith("/review/") for path in schema) == 6
        check_refusals(service, items[0])
        before = {item["document"]: item["values"][0]["text"] for item in items}
        check_accepting(service, items)
        check_undo(service, before)
        check_kill(service, items[5])


MANY = """name = "lease"
[[fields]]
name = "金额"
type = "money"
cardinality = "many"
"""


def test_several_values_of_a_field_are_decided_one_by_one(
    tmp_path: Path, encoder_folder: Path
) -> None:
    home = make_home(tmp_path / "home", encoder_folder)
    samples = [
        f'[[samples]]\ndocument = "lease_{n}.txt"\n'
        f'fields = {{ "金额" = ["人民币{n + 1},000元", "{n + 3},500元"] }}\n'
        for n in range(2)
    ]
    (home / "templates" / "lease.toml").write_text(MANY + "".join(samples), "utf-8")
    settings = {"model": str(encoder_folder), "ner": "none", "is_review": True}
    with running(home, document_deadline_s=60.0, **settings) as (service, _):
        item = next(one for one in whole_queue(service)["items"] if len(one["values"]) == 2)
        places = [[value["start"], value["end"]] for value in item["values"]]
        subject = {name: item[name] for name in ("document", "key", "field")} | {"shown": places}

        def left() -> list[dict[str, Any]]:
            items = whole_queue(service)["items"]
            return [one for one in items if one["document"] == item["document"]]

        confirmed = {**subject, "verdict": "confirm", "spans": places[:1], "about": places[0]}
        assert say(service, **confirmed).status_code == 200
        assert [[v["is_right"] for v in one["values"]] for one in left()] == [[True, None]]
        # Of one value nothing is known yet: the field is no sample, and nothing changes.
        assert whole_changes(service)["summary"]["n_values"] == 0
        rejected = say(service, **subject, verdict="reject", about=places[1]).json()["id"]
        assert left() == []
        assert whole_changes(service)["summary"]["n_values"] > 0
        assert say(service, verdict="undo", of=rejected).status_code == 200
        assert len(left()) == 1


@pytest.mark.parametrize("method", ["get", "post"])
def test_without_leave_there_is_no_review(service: Service, method: str) -> None:
    for path in ("queue", "corrections", "accept"):
        answer = getattr(service.client, method)(f"/review/{path}?template=lease")
        assert answer.status_code == 404
