"""The consumer's loop: one thread, between a broker and a pool."""

from __future__ import annotations

import base64
import binascii
import json
import socket
import sqlite3
from dataclasses import dataclass, field
from hashlib import blake2b
from logging import getLogger
from pathlib import Path  # noqa: TC003  # what a field is
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any, Self, cast

from featpipe.cache.cache import Cache
from featpipe.documents import LoadLimits
from featpipe.errors import MissingExtra, TemplateError, UsageError, WriteFailed
from featpipe.extraction.deploy import Publication
from featpipe.extraction.warm_worker import warm_role
from featpipe.extraction.worker import AUTO, ExtractTask, Given, Inline, Stored, Upload
from featpipe.metrics import Counter
from featpipe.on_demand.checkpoints import choose_checkpoints
from featpipe.pool import Pool
from featpipe.pool.devices import check_devices, default_devices

if TYPE_CHECKING:
    from collections.abc import Mapping

    from featpipe.extraction.worker import Done
    from featpipe.pool import Outcome

# The journal: answers by content key, so that what comes again is not computed again.


class Journal:
    """Content key -> answer. Durable when `put` returns; one process at a time writes.

    Args:
        path: a file of its own; None keeps answers in memory, until the end of the program.
        most: answers kept; the oldest go first.

    Raises:
        WriteFailed: the file cannot be opened or written.

    """

    def __init__(self, path: Path | None, most: int = 100_000) -> None:
        self._most = most
        self._name = str(path) if path is not None else ":memory:"
        try:
            self._file = sqlite3.connect(self._name, isolation_level=None, check_same_thread=False)
            self._file.execute("PRAGMA journal_mode = WAL")
            self._file.execute("PRAGMA synchronous = FULL")
            self._file.execute(
                "CREATE TABLE IF NOT EXISTS answers"
                " (number INTEGER PRIMARY KEY, key TEXT UNIQUE, answer TEXT)"
            )
        except sqlite3.Error as error:
            raise WriteFailed(f"the journal {self._name} cannot be opened: {error}") from error

    def get(self, key: str) -> str | None:
        """The answer that was put under this key, or None."""
        row = self._file.execute("SELECT answer FROM answers WHERE key = ?", (key,)).fetchone()
        return None if row is None else str(row[0])

    def put(self, key: str, answer: str) -> None:
        """Keep an answer; the first one under a key stays.

        Raises:
            WriteFailed: it could not be made durable.

        """
        try:
            self._file.execute(
                "INSERT OR IGNORE INTO answers (key, answer) VALUES (?, ?)", (key, answer)
            )
            self._file.execute(
                "DELETE FROM answers WHERE number <= (SELECT max(number) FROM answers) - ?",
                (self._most,),
            )
        except sqlite3.Error as error:
            raise WriteFailed(f"the journal {self._name} cannot be written: {error}") from error

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


# A job: one message, read and checked, and the key under which its answer is the same.


_KEYS = frozenset({"id", "text", "document", "data", "name", "template"})
_FORM = '{"id": ..., "text" or "document" or "data" (base64): ..., "template": ...}'


@dataclass(frozen=True, slots=True)
class Job:
    """What a message asks for."""

    id: str
    given: Given
    template: str

    def key(self, state: str) -> str:
        """Content key: equal for equal content under the same ``state`` of templates and cache."""
        kind = type(self.given).__name__
        content = self.given.data if isinstance(self.given, Upload) else b""
        words = self.given.text if isinstance(self.given, Inline) else ""
        stored = self.given.name if isinstance(self.given, Stored | Upload | Inline) else ""
        digest = blake2b(digest_size=16, person=b"featpipe-orders1")
        for part in (kind, words, stored, self.template, state):
            data = part.encode("utf-8", "surrogatepass")
            digest.update(len(data).to_bytes(8, "little") + data)
        digest.update(content)
        return digest.hexdigest()


def read_job(body: object, templates: Mapping[str, object]) -> Job:
    """A message's body, as text, bytes or parsed JSON.

    Raises:
        UsageError: it is no job; says why.

    """
    content = _parse(body)
    unknown = sorted(set(content) - _KEYS)
    if unknown:
        raise UsageError(f"the message has unknown keys: {', '.join(unknown)}", hint=_FORM)
    given = _given_of(content)
    template = content.get("template")
    if template is None:
        template = next(iter(templates)) if len(templates) == 1 else AUTO
    if not isinstance(template, str):
        raise UsageError("the message's template is no name", hint=_FORM)
    return Job(str(content.get("id", "")), given, template)


def _parse(body: object) -> dict[str, Any]:
    try:
        content = json.loads(body) if isinstance(body, str | bytes | bytearray) else body
    except ValueError as error:
        raise UsageError(f"the message is no JSON: {error}", hint=_FORM) from error
    if not isinstance(content, dict):
        raise UsageError("the message is no JSON object", hint=_FORM)
    return content


def _given_of(content: Mapping[str, Any]) -> Given:
    named = [key for key in ("text", "document", "data") if isinstance(content.get(key), str)]
    if len(named) != 1 or not content[named[0]]:
        raise UsageError("the message has not one of text, document and data", hint=_FORM)
    name = str(content.get("name") or "message")
    value: str = content[named[0]]
    if named[0] == "text":
        return Inline(value, name)
    if named[0] == "document":
        return Stored(value)
    try:
        return Upload(base64.b64decode(value, validate=True), name)
    except (binascii.Error, ValueError) as error:
        raise UsageError(f"the message's data is no base64: {error}", hint=_FORM) from error


logger = getLogger("featpipe.consumer")

#: Seconds between two looks at the broker while workers are busy.
_LOOK_S = 0.02
#: Seconds between two looks at the template files.
_WATCH_S = 1.0
#: Seconds until a lost broker is asked again: doubled each time.
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.5, 30.0


@dataclass(frozen=True, slots=True)
class ConsumerSettings:
    """Where messages come from and go to, and what they are extracted with."""

    broker: str = field(repr=False)
    """Such as ``amqp://user:password@host//``; never logged."""
    cache: Path
    templates: Path
    queue: str = "featpipe.documents"
    results: str = "featpipe.results"
    dead: str = "featpipe.dead"
    journal: Path | None = None
    model: str | None = None
    ner: str | None = None
    devices: tuple[str, ...] = ()
    document_deadline_s: float = 60.0
    prefetch: int = 16
    target: str | None = None
    """Another class for the workers, in tests."""


class Consumer:
    """Answers messages until told to stop.

    Args:
        settings: checked when the cache and the templates are opened here.

    Raises:
        MissingExtra: kombu is not installed.
        FeatpipeError: the cache, a model or a template cannot be used.

    """

    def __init__(self, settings: ConsumerSettings) -> None:
        self._settings = settings
        self.counts = Counter("featpipe_messages_total", "Messages by outcome.", ("outcome",))
        self._kombu = _import_kombu()
        with Cache.open(settings.cache) as cache:
            chosen = choose_checkpoints(cache, settings.model, settings.ner)
        devices = check_devices(settings.devices) or default_devices()
        self._publication = Publication(settings.templates, settings.cache, chosen, devices)
        role = warm_role(self._publication, LoadLimits(), settings.document_deadline_s)
        if settings.target is not None:
            from dataclasses import replace

            role = replace(role, target=settings.target)
        self._role = role
        known = self._connect()
        self._broker_errors = (
            *known.connection_errors,
            *known.channel_errors,
            self._kombu.exceptions.OperationalError,
            OSError,
        )
        self._journal = Journal(settings.journal)
        self._is_stopping = False
        self._open: dict[int, tuple[Any, Job, str]] = {}
        self._n_tasks = 0
        self._looked_at = 0.0

    def stop(self) -> None:
        """Take nothing new, finish what is held, return. Safe in a signal handler."""
        self._is_stopping = True

    def run(self) -> None:
        """Answer messages until `stop`; a broker that is lost is looked for again.

        Templates that were never fitted are fitted before the first message is taken.

        Raises:
            TemplateError: they cannot be.
            PoolBroken: the workers cannot be started; what was held comes again.

        """
        pause_s = _FIRST_PAUSE_S
        try:
            self._publication.publish()
            with Pool([self._role]) as pool:
                while not self._is_stopping:
                    try:
                        with self._connect() as connection:
                            connection.ensure_connection(max_retries=1)
                            pause_s = _FIRST_PAUSE_S
                            self._serve(connection, pool)
                    except self._broker_errors as error:
                        logger.warning("the broker is lost: %s", type(error).__name__)
                        self._open.clear()  # its messages come again
                        self._pause(pause_s)
                        pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
        finally:
            self._journal.close()
            self._publication.close()

    # ---- one connection

    def _connect(self) -> Any:  # noqa: ANN401  # kombu is untyped
        """Not yet open. The broker confirms what it is sent; then a message is acknowledged."""
        return self._kombu.Connection(
            self._settings.broker, transport_options={"confirm_publish": True}, connect_timeout=5
        )

    def _serve(self, connection: Any, pool: Pool) -> None:  # noqa: ANN401  # kombu is untyped
        channel = connection.channel()
        queues = {
            name: self._kombu.Queue(name, channel=channel, durable=True)
            for name in (self._settings.queue, self._settings.results, self._settings.dead)
        }
        for queue in queues.values():
            queue.declare()
        confirming = connection.channel()
        producer = self._kombu.Producer(confirming)
        consumer = self._kombu.Consumer(
            channel,
            [queues[self._settings.queue]],
            on_message=lambda message: self._take(message, pool, producer),
            prefetch_count=self._settings.prefetch,
        )
        with consumer:
            while not self._is_stopping:
                self._keep_up(pool, producer)
                self._look(connection, 0.5 if not self._open else 0.001)
                self._collect(pool, producer)
        # The consumer is cancelled: nothing new comes, and what is open is still answered.
        while self._open:
            self._collect(pool, producer)
        channel.close()  # what was fetched and not begun goes back to the queue
        confirming.close()

    def _keep_up(self, pool: Pool, producer: Any) -> None:  # noqa: ANN401  # kombu is untyped
        """Bring changed templates to work, between documents and not during one.

        What is open is answered first: an answer is kept under the state that it was asked in.
        """
        if monotonic() < self._looked_at + _WATCH_S:
            return
        self._looked_at = monotonic()
        if not self._publication.is_behind:
            return
        while self._open:
            self._collect(pool, producer)
        problem = self._publication.problem
        try:
            change = self._publication.publish()
        except TemplateError as error:
            if error.message != problem:
                logger.warning("the templates are as they were: %s", error.message)
        else:
            logger.info("templates changed: %s", ", ".join(change.changed + change.removed))

    def _look(self, connection: Any, timeout: float) -> None:  # noqa: ANN401  # kombu is untyped
        try:
            connection.drain_events(timeout=timeout)
        except (TimeoutError, socket.timeout):  # noqa: UP041  # kombu's transports raise either
            return

    def _take(self, message: Any, pool: Pool, producer: Any) -> None:  # noqa: ANN401  # kombu is untyped
        try:
            job = read_job(message.body, self._publication.templates)
        except UsageError as error:
            self._bury(message, producer, "invalid_message", error.message)
            return
        key = job.key(self._state())
        answer = self._journal.get(key)
        if answer is not None:
            self._answer(message, producer, job, key, answer)
            return
        self._n_tasks += 1
        self._open[self._n_tasks] = (message, job, key)
        pool.submit("extract", ExtractTask((job.given,), job.template), tag=self._n_tasks)

    def _collect(self, pool: Pool, producer: Any) -> None:  # noqa: ANN401  # kombu is untyped
        if not self._open:
            return
        for outcome in pool.completed(timeout=_LOOK_S):
            number = cast("int", outcome.tag)  # we gave it
            held = self._open.get(number)
            if held is not None:  # else of a connection that was lost
                self._end(outcome, held, producer)
                del self._open[number]

    def _end(self, outcome: Outcome, held: tuple[Any, Job, str], producer: Any) -> None:  # noqa: ANN401  # kombu is untyped
        message, job, key = held
        if outcome.error is not None:
            error: BaseException = outcome.error.__cause__ or outcome.error
            words = str(getattr(error, "message", error)).splitlines()[0]
            self._bury(message, producer, type(error).__name__, words)
            return
        done: Done = outcome.value[0]  # type: ignore[index]  # one document was sent
        if done.quarantined is not None:
            self._bury(message, producer, done.quarantined.error, done.quarantined.reason)
            return
        content = [extraction.as_dict() for extraction in done.extractions]
        answer = json.dumps(content, ensure_ascii=False)
        self._journal.put(key, answer)
        self._answer(message, producer, job, key, answer)

    def _answer(self, message: Any, producer: Any, job: Job, key: str, answer: str) -> None:  # noqa: ANN401  # kombu is untyped
        body = f'{{"id": {json.dumps(job.id)}, "key": "{key}", "extractions": {answer}}}'
        properties = message.properties or {}
        self._publish(
            producer,
            body,
            properties.get("reply_to") or self._settings.results,
            message_id=key,
            correlation_id=properties.get("correlation_id") or job.id or None,
        )
        # In this order: dying in between, the answer is sent twice rather than never.
        message.ack()
        self.counts.add("answered")

    def _bury(self, message: Any, producer: Any, error: str, reason: str) -> None:  # noqa: ANN401  # kombu is untyped
        logger.warning("a message goes to %s: %s: %s", self._settings.dead, error, reason)
        headers = {**(message.headers or {}), "x-error": error, "x-reason": reason[:1000]}
        self._publish(producer, message.body, self._settings.dead, headers=headers)
        message.ack()
        self.counts.add("dead")

    def _publish(self, producer: Any, body: Any, queue: str, **properties: Any) -> None:  # noqa: ANN401  # kombu is untyped
        producer.publish(
            body,
            routing_key=queue,
            delivery_mode=2,
            content_type="application/json",
            content_encoding="utf-8",
            timeout=30,
            confirm_timeout=30,
            **properties,
        )

    # ---- small things

    def _state(self) -> str:
        """Of everything but the document that an answer depends on."""
        fitted = self._publication.templates
        parts = [f"{name}={one.fingerprint}" for name, one in sorted(fitted.items())]
        parts += sorted({one.space for one in fitted.values()})
        return blake2b("\0".join(parts).encode(), digest_size=16).hexdigest()

    def _pause(self, seconds: float) -> None:
        until = monotonic() + seconds
        while not self._is_stopping and monotonic() < until:
            sleep(0.05)


def _import_kombu() -> Any:  # noqa: ANN401  # kombu is untyped
    try:
        import kombu
        import kombu.exceptions
    except ImportError as error:
        raise MissingExtra(
            "the consumer needs kombu", hint="pip install 'featpipe[amqp]'"
        ) from error
    return kombu
