"""The settings of a service: one frozen value with checked ranges."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import TYPE_CHECKING

from featpipe.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from featpipe.documents import LoadLimits

#: Environment variable with the key, used when no file is named.
KEY_VARIABLE = "FEATPIPE_API_KEY"
#: A key shorter than this can be guessed.
_SHORTEST_KEY = 16
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
    token_ids: str | None = None
    """Name of the model by whose tokenizer clients make token ids; None: ids are refused. Ids of
    another tokenizer, such as tiktoken's, would be read as other words, and no error show it."""
    limits: LoadLimits | None = None
    """Beyond which a document is refused; ``use_ocr`` reads scans. None: ``LoadLimits()``."""
    devices: tuple[str, ...] = ()
    """One extracting worker each; empty: all devices of the machine."""
    host: str = "127.0.0.1"
    port: int = 8080
    api_key: str | None = field(default=None, repr=False)
    allowed_hosts: tuple[str, ...] = ()
    """Further names under which a service without a key may be called."""
    is_insecure: bool = False
    """Listen beyond this machine without a key."""
    deadline_s: float = 30.0
    """Of a request, from its first byte to its answer; a client may ask for less."""
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
        for name in ("deadline_s", "document_deadline_s", "max_waiting", "max_batch", "max_texts",
                     "max_body_bytes", "max_batch_bytes", "max_waiting_bytes"):  # fmt: skip
            if getattr(self, name) <= 0:
                raise UsageError(f"{name} must be above 0, not {getattr(self, name)}")
        if not 0 <= self.port <= 65535:
            raise UsageError(f"port {self.port} is not between 0 and 65535")
        if self.is_review and self.templates is None:
            raise UsageError("a review needs templates", hint="name them with --templates PATH")
        if not self.is_local and self.api_key is None and not self.is_insecure:
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


def find_key(file: Path | None) -> str | None:
    """The key from a file, else from the environment; None without either.

    Raises:
        UsageError: a file that cannot be read, or a key that can be guessed.

    """
    where = KEY_VARIABLE if file is None else str(file)
    key = os.environ.get(KEY_VARIABLE, "").strip() if file is None else _read_key(file)
    if file is None and not key:
        return None
    if len(key) < _SHORTEST_KEY or not key.isascii() or not key.isprintable():
        # The message never contains the key.
        raise UsageError(
            f"the key in {where} must be {_SHORTEST_KEY} printable ASCII characters or more",
            hint="python -c 'import secrets; print(secrets.token_urlsafe(32))'",
        )
    return key


def _read_key(file: Path) -> str:
    try:
        return file.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"the key file {file} cannot be read: {error}") from error
