"""Frames: the messages on the socket between the parent and one child.

A frame is a fixed header and a body. At most one file descriptor rides with a frame; a stream
socket delivers descriptors in order and never merges two of them into one read, so the n-th frame
that announces a descriptor owns the n-th that arrived.
"""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import struct
import threading
from array import array
from collections import deque

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

if TYPE_CHECKING:
    from collections.abc import Sequence

    #: kind, flags, number, seconds, body, descriptor (-1 when none rides along)
    Frame = tuple[int, int, int, float, bytes, int]

#: kind, descriptors, flags, body bytes, number (task or slab), seconds
HEADER = struct.Struct("<BBHQQd")

# parent -> child
TASK, FREE, STOP, FORK, HAND = 1, 2, 3, 4, 5
# child -> parent
READY, DONE, ERROR, START_ERROR, LOG, LET_GO, FORKED, EXITED = 11, 12, 13, 14, 15, 16, 17, 18
# both ways: a slab is announced with its descriptor, and withdrawn
SLAB, DROP = 21, 22

#: Flags of a body: plain pickle, or a parcel (see parcels).
FLAT, PARCEL = 0, 1
#: Flags of an answer: the role kept a view of the payload; the child ends with this.
HOLDS, FATAL = 2, 4
#: Flag of START_ERROR: starting again would end the same way.
FINAL = 16
#: Flag of FREE: not to be used again.
FOR_GOOD = 8

READ_BYTES = 1 << 16
_ANCILLARY = socket.CMSG_LEN(4 * 4)
_NO_WAIT = socket.MSG_CMSG_CLOEXEC | socket.MSG_DONTWAIT


def header(
    kind: int, number: int = 0, size: int = 0, flags: int = 0, seconds: float = 0.0
) -> bytes:
    """A header for a frame without a descriptor."""
    return HEADER.pack(kind, 0, flags, size, number, seconds)


def frame(
    kind: int, number: int = 0, body: bytes = b"", flags: int = 0, seconds: float = 0.0
) -> bytes:
    """A whole frame without a descriptor."""
    return HEADER.pack(kind, 0, flags, len(body), number, seconds) + body


def frame_with_descriptor(kind: int, number: int, body: bytes = b"") -> bytes:
    """The bytes of a frame whose descriptor the caller sends along with the first of them."""
    return HEADER.pack(kind, 1, 0, len(body), number, 0.0) + body


def send_with_descriptor(sock: socket.socket, data: bytes | memoryview, descriptor: int) -> int:
    """Send some of ``data``; once a single byte is out, so is the descriptor."""
    ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array("i", [descriptor]))]
    return sock.sendmsg([data], ancillary)


def receive(sock: socket.socket, descriptors: deque[int], *, may_wait: bool) -> bytes:
    """One read; descriptors that came along are appended, close-on-exec already set.

    Raises BlockingIOError when there is nothing and it may not wait.
    """
    options = socket.MSG_CMSG_CLOEXEC if may_wait else _NO_WAIT
    data, ancillary, _, _ = sock.recvmsg(READ_BYTES, _ANCILLARY, options)
    for level, kind, payload in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            received = array("i")
            received.frombytes(payload[: len(payload) - len(payload) % received.itemsize])
            descriptors.extend(received)
    return data


class FrameBuffer:
    """Bytes in, whole frames out, however the stream cut them."""

    __slots__ = ("_rest", "_wanted", "descriptors")

    def __init__(self) -> None:
        self._rest = bytearray()
        self._wanted = HEADER.size
        self.descriptors: deque[int] = deque()

    def feed(self, data: bytes) -> Sequence[Frame]:
        """Every frame that is complete with ``data``; the rest waits for more.

        Raises OSError when a frame's descriptor did not arrive, because too many are open.
        """
        source: bytes | bytearray = data
        if self._rest:
            self._rest += data
            if len(self._rest) < self._wanted:
                return ()
            source = self._rest
        frames: list[Frame] = []
        at, end = 0, len(source)
        while end - at >= HEADER.size:
            kind, n_descriptors, flags, size, number, seconds = HEADER.unpack_from(source, at)
            stop = at + HEADER.size + size
            if stop > end:
                break
            body = bytes(source[at + HEADER.size : stop])
            if n_descriptors and not self.descriptors:
                # The kernel drops what it has no room for. The others are closed with us.
                self.descriptors.extend(frame[5] for frame in frames if frame[5] >= 0)
                raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
            descriptor = self.descriptors.popleft() if n_descriptors else -1
            frames.append((kind, flags, number, seconds, body, descriptor))
            at = stop
        if source is data:
            self._rest += data[at:]
        else:
            del self._rest[:at]
        self._note_wanted()
        return frames

    def close(self) -> None:
        """Close descriptors that no frame has claimed."""
        while self.descriptors:
            os.close(self.descriptors.popleft())

    def _note_wanted(self) -> None:
        # A body of many megabytes arrives in many reads: knowing its length spares looking again
        # at each of them.
        self._wanted = HEADER.size
        if len(self._rest) >= HEADER.size:
            self._wanted += HEADER.unpack_from(self._rest)[3]


# The child's end of the socket: blocking, and safe to send on from several threads.


class Link:
    """Frames to and from the parent, which always reads: a blocking send ends."""

    __slots__ = ("_buffer", "_lock", "_sock")

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._buffer = FrameBuffer()
        # Reentrant: a destructor may log while a frame is being sent by the same thread.
        self._lock = threading.RLock()

    def receive(self) -> Sequence[Frame]:
        """At least one frame. Raises EOFError when the parent has closed its end."""
        while True:
            data = receive(self._sock, self._buffer.descriptors, may_wait=True)
            if not data:
                raise EOFError
            frames = self._buffer.feed(data)
            if frames:
                return frames

    def receive_waiting(self) -> list[Frame]:
        """Frames that have already arrived, without waiting for any."""
        frames: list[Frame] = []
        with contextlib.suppress(BlockingIOError):
            while data := receive(self._sock, self._buffer.descriptors, may_wait=False):
                frames.extend(self._buffer.feed(data))
                if len(data) < READ_BYTES:
                    break
        return frames

    def send(self, data: bytes) -> None:
        """Send a whole frame."""
        with self._lock:
            self._sock.sendall(data)

    def send_with_descriptor(self, data: bytes, descriptor: int) -> None:
        """Send a whole frame with a descriptor."""
        with self._lock:
            n_sent = send_with_descriptor(self._sock, data, descriptor)
            self._sock.sendall(data[n_sent:])
