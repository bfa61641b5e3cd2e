"""The broker's address, and what to do when it cannot be reached.

Guarantees: an address that can never work is refused before any work begins. Until the broker was
reached once, a host that does not exist and refused credentials are errors, and everything else is
tried again for `FIRST_WITHIN_S` at most; a broker that was reached once is waited for without end.
No password is in any message.
"""

from __future__ import annotations

import socket
from contextlib import suppress
from urllib.parse import urlsplit

from featpipe.errors import BrokerUnreachable, MissingExtra, UsageError

try:
    import kombu
    import kombu.exceptions
    from amqp.exceptions import MessageNacked
except ImportError as error:
    raise MissingExtra("the consumer needs kombu", hint="pip install 'featpipe[amqp]'") from error

#: Seconds in which the first connection must be made; a broker may start later than its consumer.
FIRST_WITHIN_S = 30.0

_FORM = "such as amqp://user:password@host:5672//"
_NO_SUCH_HOST = (socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME))


def connect(url: str) -> kombu.Connection:
    """A connection that is not open yet, with publisher confirms.

    Raises:
        UsageError: the address has no known transport, no host or no valid port.
        MissingExtra: the transport needs a package that is not installed.

    """
    scheme, separator, _ = url.partition("://")
    if not separator:
        raise UsageError("the broker's address has no transport", hint=_FORM)
    try:
        connection = kombu.Connection(
            url, transport_options={"confirm_publish": True}, connect_timeout=5
        )
        _ = connection.connection_errors  # imports the transport
    except KeyError as error:
        raise UsageError(f"the broker's transport {scheme!r} is unknown", hint=_FORM) from error
    except ValueError as error:
        # Not the error's own words: they may quote the address, which holds a password.
        raise UsageError("the broker's address has no valid port", hint=_FORM) from error
    except (ImportError, AttributeError) as error:
        # kombu sets the client of a missing package to None and stumbles over it.
        raise MissingExtra(
            f"the broker's transport {scheme!r} needs a package that is not installed",
            hint=f"pip install 'kombu[{scheme.partition('+')[0]}]'",
        ) from error
    if scheme.startswith(("amqp", "pyamqp")) and not urlsplit(url).hostname:
        raise UsageError("the broker's address names no host", hint=_FORM)
    return connection


def losses_of(connection: kombu.Connection) -> tuple[type[Exception], ...]:
    """What is raised when the broker is lost, or takes no answer now: a full queue of results."""
    return (
        MessageNacked,
        *connection.connection_errors,
        *connection.channel_errors,
        kombu.exceptions.OperationalError,
        OSError,
    )


def name_of(connection: kombu.Connection) -> str:
    """Transport, host and port, without the credentials."""
    port = f":{connection.port}" if connection.port else ""
    return f"{connection.transport_cls}://{connection.hostname}{port}"


def describe(error: BaseException) -> str:
    """Why the broker is lost, in one line."""
    cause = error.__cause__ or error
    words = getattr(cause, "strerror", None) or str(cause) or type(cause).__name__
    return str(words).splitlines()[0]


def raise_if_hopeless(error: Exception, connection: kombu.Connection) -> None:
    """Raise where trying again cannot help: no such host, or the credentials are refused.

    Raises:
        BrokerUnreachable: with the next step.

    """
    cause = error.__cause__ or error
    if isinstance(cause, socket.gaierror) and cause.errno in _NO_SUCH_HOST:
        raise BrokerUnreachable(
            f"the broker's host {connection.hostname!r} does not exist",
            hint=f"check --broker, {_FORM}",
        ) from error
    with suppress(AttributeError):  # of transports that do not tell the two apart
        curable = (
            *connection.recoverable_connection_errors,
            *connection.recoverable_channel_errors,
            OSError,
            kombu.exceptions.OperationalError,
        )
        if not isinstance(cause, curable):
            raise BrokerUnreachable(
                f"{name_of(connection)} refuses the connection: {describe(error)}",
                hint="check the user, the password and the virtual host of --broker",
            ) from error


def unreachable(error: Exception, connection: kombu.Connection) -> BrokerUnreachable:
    """The error for a broker that was never reached."""
    return BrokerUnreachable(
        f"{name_of(connection)} could not be reached within {FIRST_WITHIN_S:.0f} s: "
        f"{describe(error)}",
        hint="start the broker, or name another one with --broker",
    )
