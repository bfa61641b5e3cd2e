"""The settings of a service: one frozen value with checked ranges."""

from __future__ import annotations

import re
import ssl
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import TYPE_CHECKING

from featpipe.errors import UsageError
from featpipe.service.keys import KEY_VARIABLE

if TYPE_CHECKING:
    from pathlib import Path

    from featpipe.documents import LoadLimits
    from featpipe.encoders.query_backend import QueryBackend
    from featpipe.service.keys import ApiKey

MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class ServiceSettings:
    """Address, models, limits and deadlines of a service, in seconds and bytes."""

    cache: Path
    templates: Path | None = None
    """File or folder; None: embeddings and search only."""
    model: str | None = None
    """Checkpoint of the embeddings; None: the built-in one."""
    ner: str | None = None
    """Tagger for documents that are not in the cache; None: the built-in one, "none" without."""
    space: str | None = None
    analyser: str | None = None
    query_prompt: str | None = None
    """Put before queries; None: what the model expects before them."""
    query_backend: QueryBackend = "torch"
    """What computes queries; `featpipe.encoders.query_backend`."""
    token_ids: str | None = None
    """Name of the model by whose tokenizer clients make token ids; None: ids are refused. Ids of
    another tokenizer, such as tiktoken's, would be read as other words, and no error show it."""
    limits: LoadLimits | None = None
    """Beyond which a document is refused; ``use_ocr`` reads scans. None: ``LoadLimits()``."""
    devices: tuple[str, ...] = ()
    """One extracting worker each; empty: all devices of the machine."""
    host: str = "127.0.0.1"
    port: int = 8080
    keys: tuple[ApiKey, ...] = field(default=(), repr=False)
    """Who may call, and what for; empty: anyone who can connect."""
    tls_cert: Path | None = None
    """PEM with the certificate and its chain; with ``tls_key``, connections are HTTPS."""
    tls_key: Path | None = None
    """PEM with the certificate's private key, without a password."""
    cors_origins: tuple[str, ...] = ()
    """Origins (``https://app.example``) whose pages may call from a browser; ``*``: all."""
    allowed_hosts: tuple[str, ...] = ()
    """Further names under which a service without a key may be called."""
    is_insecure: bool = False
    """Listen beyond this machine without a key."""
    deadline_s: float = 30.0
    """Of a request, from its whole body to its answer; a client may ask for less. Also the longest
    pause within a body."""
    quiet_s: float = 60.0
    """Of a connection without a whole head of a request, before it is closed."""
    unread_s: float = 600.0
    """Of a connection whose client takes nothing of an answer, before it is closed."""
    document_deadline_s: float = 10.0
    """Of a task in a worker; bisection finds the document of a batch that exceeds it."""
    drain_s: float = 30.0
    """After SIGTERM: the longest wait for requests in flight."""
    notice_s: float = 0.0
    """After SIGTERM: how long readiness is denied before connections are refused."""
    max_body_bytes: int = 32 * MIB
    max_batch_bytes: int = 256 * MIB
    """Body of ``/extract/batch``."""
    max_waiting: int = 256
    """Requests (or lines of a batch) in the queue and with workers, per kind of work."""
    max_waiting_bytes: int = 256 * MIB
    max_batch: int = 8
    """Documents that go to a worker together."""
    max_texts: int = 2048
    """Inputs of one embeddings request."""
    linger_s: float = 0.003
    """How long a batch may wait for more items while all workers are busy."""
    is_traced: bool = False
    is_review: bool = False
    """Offer the review of the templates' values, which writes beside the templates."""

    def __post_init__(self) -> None:
        for name in ("deadline_s", "document_deadline_s", "quiet_s", "unread_s", "max_waiting",
                     "max_batch", "max_texts", "max_body_bytes", "max_batch_bytes",
                     "max_waiting_bytes"):  # fmt: skip
            if getattr(self, name) <= 0:
                raise UsageError(f"{name} must be above 0, not {getattr(self, name)}")
        if not 0 <= self.port <= 65535:
            raise UsageError(f"port {self.port} is not between 0 and 65535")
        if self.is_review and self.templates is None:
            raise UsageError("a review needs templates", hint="name them with --templates PATH")
        _check_origins(self.cors_origins, is_open=not self.keys and not self.is_insecure)
        if (self.tls_cert is None) != (self.tls_key is None):
            raise UsageError("a certificate needs its key", hint="name both --tls-cert, --tls-key")
        if self.tls_cert is not None and self.tls_key is not None:
            _check_certificate(self.tls_cert, self.tls_key)
        if not self.is_local and not self.keys and not self.is_insecure:
            raise UsageError(
                f"{self.host} can be reached from other machines, and there is no key",
                hint=f"set {KEY_VARIABLE}, name a file with --api-key-file, or say --insecure",
            )

    @property
    def is_local(self) -> bool:
        """Whether only programs on this machine can connect."""
        return is_loopback(self.host)


def is_loopback(host: str) -> bool:
    """Whether a name or address is this machine only."""
    if host.lower().rstrip(".") == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _check_origins(origins: tuple[str, ...], *, is_open: bool) -> None:
    for origin in origins:
        if origin != "*" and not re.fullmatch(r"https?://[^/\s?#]+", origin):
            raise UsageError(f"{origin!r} is not an origin", hint="such as https://app.example")
        if origin == "*" and is_open:
            raise UsageError(
                "pages of every origin could read what this service holds, without a key",
                hint=f"set {KEY_VARIABLE}, name a file with --api-key-file, or say --insecure",
            )


def _check_certificate(certificate: Path, key: Path) -> None:
    """Fail before anything is started, and never ask a terminal for a password."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(certificate, key, password=lambda: "")
    except (OSError, ValueError) as error:  # SSLError is an OSError
        raise UsageError(
            f"TLS cannot use the certificate {certificate} with the key {key}: {error}",
            hint="both are PEM files; the key is that of the first certificate, without a password",
        ) from error
