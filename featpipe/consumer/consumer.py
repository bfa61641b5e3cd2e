"""The loop between the broker and the pool."""

from __future__ import annotations

import json
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from logging import getLogger
from time import monotonic, sleep
from typing import TYPE_CHECKING, cast

from featpipe.cache.cache import Cache
from featpipe.consumer import broker
from featpipe.consumer.jobs import Journal, read_job
from featpipe.errors import DictionaryError, MissingExtra, UsageError
from featpipe.extraction.deploy import Publication
from featpipe.extraction.messages import ExtractTask, Stored
from featpipe.on_demand.space import choose_checkpoints
from featpipe.pool import Pool
from featpipe.pool.devices import check_devices, default_devices

try:
    import kombu
    from prometheus_client import CollectorRegistry, Counter
except ImportError as error:
    raise MissingExtra("the consumer needs kombu", hint="pip install 'featpipe[amqp]'") from error

if TYPE_CHECKING:
    from pathlib import Path

    from kombu.transport.virtual import Channel

    from featpipe.consumer.jobs import Job
    from featpipe.documents import LoadLimits
    from featpipe.extraction.messages import Done
    from featpipe.pool import Outcome

logger = getLogger("featpipe.consumer")

#: Seconds between two looks at the broker while workers are busy.
_POLL_S = 0.02
#: Seconds between two looks at the template files.
_WATCH_S = 1.0
#: Seconds until a lost broker is tried again: doubled each time.
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.5, 30.0
#: Of a property of a message, by AMQP.
_MOST_ID_BYTES = 255


@dataclass(frozen=True, slots=True)
class ConsumerSettings:
    """Broker, queues, and the cache, templates and models to extract with."""

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
    limits: LoadLimits | None = None
    """Beyond which a document is refused; ``use_ocr`` reads scans. None: ``LoadLimits()``."""
    devices: tuple[str, ...] = ()
    document_deadline_s: float = 60.0
    prefetch: int = 16
    target: str | None = None
    """Another class for the workers, in tests."""


class Consumer:
    """Answers messages until `stop`.

    Args:
        settings: checked here, with the broker's address, the cache and the templates.

    Attributes:
        metrics: registry of ``prometheus_client``, of this consumer alone.

    Raises:
        FeatpipeError: the cache, a model or a template cannot be used.

    """

    def __init__(self, settings: ConsumerSettings) -> None:
        self._settings = settings
        self.metrics = CollectorRegistry()
        self._messages = Counter(
            "featpipe_messages_total", "Messages by outcome.", ("outcome",), registry=self.metrics
        )
        self._publication = _open_publication(settings)
        role = self._publication.role(settings.document_deadline_s)
        self._role = role if settings.target is None else replace(role, target=settings.target)
        self._broker_errors = broker.losses_of(self._connect())
        self._journal = Journal(settings.journal)
        self._is_stopping = False
        self._pause_s = _FIRST_PAUSE_S
        self._open: dict[int, tuple[kombu.Message, Job, str]] = {}
        """Task number -> message, its job and its content key."""
        self._fetched: deque[kombu.Message] = deque()
        """Delivered, and not begun."""
        self._n_tasks = 0
        self._watched_at = 0.0

    def stop(self) -> None:
        """Take no further message, finish those in hand, return. Safe in a signal handler."""
        self._is_stopping = True

    def run(self) -> None:
        """Answer messages until `stop`; a lost broker is tried again until it is back.

        The broker must be reached once, within `broker.FIRST_WITHIN_S`. Templates that were never
        fitted are fitted before the first message is taken.

        Raises:
            BrokerUnreachable: it could not be reached even once, or refuses the credentials.
            TemplateError: they cannot be fitted.
            PoolBroken: the workers cannot be started; messages in hand come again.

        """
        try:
            self._reach_broker()
            self._publication.publish()
            with Cache.open(self._settings.cache) as self._cache, Pool([self._role]) as pool:
                while not self._is_stopping:
                    self._serve_until_lost(pool)
        finally:
            self._journal.close()
            self._publication.close()

    def _reach_broker(self) -> None:
        """Connect once, before the templates are fitted."""
        until = monotonic() + broker.FIRST_WITHIN_S
        while not self._is_stopping:
            with self._connect() as connection:
                try:
                    connection.ensure_connection(max_retries=1, interval_start=0)
                except self._broker_errors as error:
                    broker.raise_if_hopeless(error, connection)
                    if monotonic() >= until:
                        raise broker.unreachable(error, connection) from error
                    self._log_lost(error)
                else:
                    self._pause_s = _FIRST_PAUSE_S
                    return
            self._wait()

    def _serve_until_lost(self, pool: Pool) -> None:
        try:
            with self._connect() as connection:
                connection.ensure_connection(max_retries=1, interval_start=0)
                self._pause_s = _FIRST_PAUSE_S
                self._serve(connection, pool)
        except self._broker_errors as error:
            self._log_lost(error)
            self._open.clear()  # its messages come again
            self._fetched.clear()
            self._wait()

    def _log_lost(self, error: Exception) -> None:
        logger.warning(
            "%s is lost: %s; tried again in %.1f s",
            broker.name_of(self._connect()),
            broker.describe(error),
            self._pause_s,
        )

    # ---- one connection

    def _connect(self) -> kombu.Connection:
        return broker.connect(self._settings.broker)

    def _serve(self, connection: kombu.Connection, pool: Pool) -> None:
        channel = connection.channel()
        queue = self._declare_queues(channel)
        confirming = connection.channel()
        producer = kombu.Producer(confirming)
        # Only noted: an answer that is waiting for its confirmation has messages delivered, and one
        # that is sent in between would take that confirmation for its own.
        with kombu.Consumer(
            channel,
            [queue],
            on_message=self._fetched.append,
            prefetch_count=self._settings.prefetch,
        ):
            self._answer_until_stopped(connection, pool, producer)
        # The consumer is cancelled, so no message comes; those in hand are still answered.
        while self._open:
            self._collect(pool, producer)
        channel.close()  # fetched messages that were not begun go back to the queue
        confirming.close()

    def _declare_queues(self, channel: Channel) -> kombu.Queue:
        """Make the three queues where they are missing; return the one to take from."""
        names = (self._settings.queue, self._settings.results, self._settings.dead)
        queues = [kombu.Queue(name, channel=channel, durable=True) for name in names]
        for queue in queues:
            queue.declare()
        return queues[0]

    def _answer_until_stopped(
        self, connection: kombu.Connection, pool: Pool, producer: kombu.Producer
    ) -> None:
        while not self._is_stopping:
            self._update_templates(pool, producer)
            self._drain(connection, 0.001 if self._open or self._fetched else 0.5)
            while self._fetched and not self._is_stopping:
                self._take(self._fetched.popleft(), pool, producer)
            self._collect(pool, producer)

    def _update_templates(self, pool: Pool, producer: kombu.Producer) -> None:
        """Use changed templates, between documents and not during one.

        Messages in hand are answered first: an answer is kept under the state it was asked in.
        """
        if monotonic() < self._watched_at + _WATCH_S:
            return
        self._watched_at = monotonic()
        if not self._publication.is_behind:
            return
        while self._open:
            self._collect(pool, producer)
        self._publication.publish_or_log(logger)

    def _drain(self, connection: kombu.Connection, timeout: float) -> None:
        with suppress(TimeoutError):
            connection.drain_events(timeout=timeout)

    def _take(self, message: kombu.Message, pool: Pool, producer: kombu.Producer) -> None:
        try:
            job = read_job(message.body, self._publication.templates)
        except UsageError as error:
            self._reject(message, producer, "invalid_message", error.message)
            return
        key = job.key(self._state(job))
        answer = self._journal.get(key)
        if answer is not None:
            self._answer(message, producer, job, key, answer)
            return
        self._n_tasks += 1
        self._open[self._n_tasks] = (message, job, key)
        pool.submit("extract", ExtractTask((job.given,), job.template), tag=self._n_tasks)

    def _collect(self, pool: Pool, producer: kombu.Producer) -> None:
        if not self._open:
            return
        for outcome in pool.completed(timeout=_POLL_S):
            number = cast("int", outcome.tag)
            held = self._open.get(number)
            if held is not None:  # else its connection was lost
                self._finish(outcome, held, producer)
                del self._open[number]

    def _finish(
        self, outcome: Outcome, held: tuple[kombu.Message, Job, str], producer: kombu.Producer
    ) -> None:
        message, job, key = held
        if outcome.error is not None:
            error: BaseException = outcome.error.__cause__ or outcome.error
            reason = str(getattr(error, "message", error)).splitlines()[0]
            self._reject(message, producer, type(error).__name__, reason)
            return
        (done,) = cast("tuple[Done]", outcome.value)
        if done.quarantined is not None:
            self._reject(message, producer, done.quarantined.error, done.quarantined.reason)
            return
        answer = f"[{', '.join(extraction.as_json() for extraction in done.extractions)}]"
        if key == job.key(self._state(job)):  # else a build replaced the document meanwhile
            self._journal.put(key, answer)
        self._answer(message, producer, job, key, answer)

    def _answer(
        self, message: kombu.Message, producer: kombu.Producer, job: Job, key: str, answer: str
    ) -> None:
        body = f'{{"id": {json.dumps(job.id)}, "key": "{key}", "extractions": {answer}}}'
        properties = message.properties or {}
        self._publish(
            producer,
            body,
            properties.get("reply_to") or self._settings.results,
            message_id=key,
            correlation_id=properties.get("correlation_id") or _as_correlation_id(job.id),
        )
        # Acknowledged second: after a crash in between, the answer is sent twice and not never.
        message.ack()
        self._messages.labels("answered").inc()

    def _reject(
        self, message: kombu.Message, producer: kombu.Producer, error: str, reason: str
    ) -> None:
        # A name may hold half of a surrogate pair, which neither a log nor a header can.
        told = reason.encode("utf-8", "replace").decode()
        logger.warning("a message goes to %s: %s: %s", self._settings.dead, error, told)
        headers = {**(message.headers or {}), "x-error": error, "x-reason": told[:1000]}
        self._publish(producer, message.body, self._settings.dead, headers=headers)
        message.ack()
        self._messages.labels("dead").inc()

    def _publish(
        self, producer: kombu.Producer, body: str | bytes, queue: str, **properties: object
    ) -> None:
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

    def _state(self, job: Job) -> str:
        """Digest of what an answer depends on beside the message.

        That is the templates, the spaces and, of a document of the cache, its version there.
        """
        fitted = self._publication.templates
        parts = [f"{name}={one.fingerprint}" for name, one in sorted(fitted.items())]
        parts += sorted({one.space for one in fitted.values()})
        if isinstance(job.given, Stored):
            parts += self._version_of(job.given.name)
        return blake2b("\0".join(parts).encode(), digest_size=16).hexdigest()

    def _version_of(self, name: str) -> list[str]:
        """Id and content of a document of the cache; none where it cannot be found."""
        with suppress(DictionaryError):  # a worker will say so
            known = self._cache.find_document(name)
            return [] if known is None else [known.id, known.key.hex()]
        return []

    def _wait(self) -> None:
        """Pause before the next attempt; each pause is twice as long as the one before."""
        until = monotonic() + self._pause_s
        self._pause_s = min(2 * self._pause_s, _LONGEST_PAUSE_S)
        while not self._is_stopping and monotonic() < until:
            sleep(0.05)


def _as_correlation_id(name: str | int) -> str | None:
    """The id of a message where AMQP can carry it: up to 255 bytes of UTF-8."""
    try:
        fits = 0 < len(str(name).encode()) <= _MOST_ID_BYTES
    except UnicodeEncodeError:  # half of a surrogate pair, which only JSON can hold
        fits = False
    return str(name) if fits else None


def _open_publication(settings: ConsumerSettings) -> Publication:
    with Cache.open(settings.cache) as cache:
        chosen = choose_checkpoints(cache, settings.model, settings.ner)
    for note in chosen.notes:
        logger.warning("%s", note)
    devices = check_devices(settings.devices) or default_devices()
    return Publication(settings.templates, settings.cache, chosen, devices, limits=settings.limits)
