"""Frames: the messages on the socket between the parent and one child.

A frame is a fixed header and a body. At most one file descriptor is sent with a frame. A stream
socket delivers descriptors in order and never merges two of them into one read, so the n-th frame
that announces a descriptor owns the n-th that arrived.

A role may write to its worker's socket by mistake, or fork and answer twice. So a receiver checks
every header, and what it keeps of a stream is bounded by what that kind of frame may hold.
"""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import threading
from array import array
from collections import deque
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

#: mark, kind, descriptors, flags, body bytes, number, seconds
HEADER = struct.Struct("<4sBBHQQd")
#: Every frame begins with it; text and other pickles do not.
_MARK = b"\xfeFP\x1a"

# parent -> child
TASK, FREE, STOP, FORK, HAND = 1, 2, 3, 4, 5
# child -> parent
READY, DONE, ERROR, START_ERROR, LOG, RELEASED, FORKED, EXITED = 11, 12, 13, 14, 15, 16, 17, 18
# both ways: a shared-memory segment is announced with its descriptor, and withdrawn
SEGMENT, DROP = 21, 22

#: Flags of a body: a plain pickle, one whose buffers are outside of it, or one whose buffers follow
#: it in the frame (see `payloads`).
PLAIN, OUT_OF_BAND, FOLLOWED = 0, 1, 64
#: Flags of an answer: the role kept a view of the payload; the child exits after this frame.
HOLDS, FATAL = 2, 4
#: Flag of FREE: the segment must not be written to again.
FOR_GOOD = 8
#: Flag of START_ERROR: another start would fail in the same way.
FINAL = 16

#: Flag of TASK: the payload is to be cut, not run. Answered by the pickled pieces, or None.
CUT = 32

_UNBOUNDED = 1 << 36
#: The longest body of each kind.
_LONGEST_BODY = {
    **dict.fromkeys((TASK, FORK, DONE), _UNBOUNDED),
    **dict.fromkeys((FREE, STOP, HAND, READY, RELEASED, DROP), 0),
    **dict.fromkeys((FORKED, EXITED, SEGMENT), 8),
    **dict.fromkeys((ERROR, START_ERROR), 16 << 20),
    LOG: 1 << 20,
}
_WITH_DESCRIPTOR = frozenset({HAND, FORKED, SEGMENT})

#: One read takes any frame whose buffers follow its pickle, and a few more.
READ_BYTES = 1 << 17
#: More descriptors than that never wait for their frames.
_MOST_DESCRIPTORS = 16
_ANCILLARY = socket.CMSG_LEN(4 * 4)
_TRUNCATED = int(socket.MSG_CTRUNC)
_NO_WAIT = socket.MSG_CMSG_CLOEXEC | socket.MSG_DONTWAIT


class ProtocolError(Exception):
    """The other end sent what neither `child` nor the hub ever sends; it cannot be understood."""


class Frame(NamedTuple):
    """One message as it arrived."""

    kind: int
    flags: int
    number: int
    """Of a task, a segment or a worker, as its kind requires."""
    seconds: float
    body: bytes
    descriptor: int
    """The receiver's to close; -1 when none came with the frame, or it was lost because this
    process had too many open."""


def frame(
    kind: int, number: int = 0, body: bytes = b"", flags: int = 0, seconds: float = 0.0
) -> bytes:
    """The bytes of a frame without a descriptor."""
    return HEADER.pack(_MARK, kind, 0, flags, len(body), number, seconds) + body


def header(kind: int, number: int, body: bytes, flags: int, seconds: float = 0.0) -> bytes:
    """What precedes the body on the socket: for a sender that does not join the two."""
    return HEADER.pack(_MARK, kind, 0, flags, len(body), number, seconds)


def frame_with_descriptor(kind: int, number: int, body: bytes = b"") -> bytes:
    """The bytes of a frame whose descriptor the caller sends along with the first of them."""
    return HEADER.pack(_MARK, kind, 1, 0, len(body), number, 0.0) + body


def send_with_descriptor(sock: socket.socket, data: bytes | memoryview, descriptor: int) -> int:
    """Send some of ``data``; the descriptor goes with its first byte."""
    ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array("i", [descriptor]))]
    return sock.sendmsg([data], ancillary)


class FrameBuffer:
    """Bytes in, whole frames out, however the stream cut them."""

    __slots__ = ("_read", "_rest", "_wanted", "descriptors", "fault")

    def __init__(self) -> None:
        # Pages of it that no read has reached take no memory.
        self._read = memoryview(bytearray(READ_BYTES))
        self._rest = bytearray()
        self._wanted = HEADER.size
        self.descriptors: deque[int] = deque()
        self.fault = ""
        """What was wrong with the stream; nothing is taken from it any more."""

    def receive(self, sock: socket.socket, *, may_wait: bool) -> memoryview:
        """One read, to be fed before the next; empty at the end of the stream.

        Descriptors that came along are appended, close-on-exec already set. One that the kernel
        dropped, because this process has too many open, is appended as -1. Raises BlockingIOError
        when nothing has arrived and it may not wait.
        """
        options = socket.MSG_CMSG_CLOEXEC if may_wait else _NO_WAIT
        n_bytes, ancillary, found, _ = sock.recvmsg_into((self._read,), _ANCILLARY, options)
        if found & _TRUNCATED and not ancillary:
            self.descriptors.append(-1)
        for level, kind, payload in ancillary:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                received = array("i")
                received.frombytes(payload[: len(payload) - len(payload) % received.itemsize])
                self.descriptors.extend(received)
        return self._read[:n_bytes]

    def feed(self, data: bytes | memoryview) -> Sequence[Frame]:
        """Every frame that is complete with ``data``; the rest waits for more.

        At the first wrong header, `fault` is set: what came before it is given out.
        """
        if self.fault:
            return ()
        if not self._rest:
            frames, at = self._cut(data)
            if at == len(data):
                return frames
            self._rest += data[at:]
        else:
            self._rest += data
            if len(self._rest) < self._wanted:
                return ()
            with memoryview(self._rest) as source:
                frames, at = self._cut(source)
            del self._rest[:at]
        if self._rest:
            self._note_wanted()
        return frames

    def _cut(self, source: bytes | memoryview) -> tuple[list[Frame], int]:
        """(whole frames, where the rest begins)."""
        frames: list[Frame] = []
        at, end = 0, len(source)
        while end - at >= HEADER.size:
            mark, kind, n_descriptors, flags, size, number, seconds = HEADER.unpack_from(source, at)
            if mark != _MARK or size > _LONGEST_BODY.get(kind, -1):
                self.fault = _fault_of(mark, kind, size)
                break
            stop = at + HEADER.size + size
            if stop > end:
                break
            descriptor = self._claim_descriptor(kind, n_descriptors) if n_descriptors else -1
            if descriptor < 0 and n_descriptors and self.fault:
                break
            body = bytes(source[at + HEADER.size : stop]) if size else b""
            # Without the call of Python code that a NamedTuple's constructor is.
            values = (kind, flags, number, seconds, body, descriptor)
            frames.append(tuple.__new__(Frame, values))
            at = stop
        if len(self.descriptors) > _MOST_DESCRIPTORS:
            self.fault = "it sent descriptors that belong to no frame"
        return frames, end if self.fault else at

    def close(self) -> None:
        """Close descriptors that no frame has claimed."""
        while self.descriptors:
            descriptor = self.descriptors.popleft()
            if descriptor >= 0:
                os.close(descriptor)

    def _claim_descriptor(self, kind: int, n: int) -> int:
        if n != 1 or kind not in _WITH_DESCRIPTOR:
            self.fault = f"it announced {n} descriptors with a frame of kind {kind}"
        elif not self.descriptors:
            self.fault = "it announced a descriptor and sent none"
        else:
            return self.descriptors.popleft()
        return -1

    def _note_wanted(self) -> None:
        # A body of many megabytes arrives in many reads; its length, once known, saves parsing
        # the header again at each of them.
        self._wanted = HEADER.size
        if len(self._rest) >= HEADER.size:
            self._wanted += HEADER.unpack_from(self._rest)[4]


def _fault_of(mark: bytes, kind: int, size: int) -> str:
    if mark != _MARK:
        return f"it wrote what is no frame to the pool's socket: {mark!r}..."
    return f"it announced a frame of kind {kind} with {size} bytes"


class Connection:
    """The child's end of the socket: blocking, and safe to send on from several threads.

    A blocking send always ends, because the parent never stops reading.
    """

    __slots__ = ("_buffer", "_lock", "_sock")

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._buffer = FrameBuffer()
        # Reentrant: a destructor may log while the same thread sends a frame.
        self._lock = threading.RLock()

    def receive(self) -> Sequence[Frame]:
        """At least one frame. Raises EOFError when the parent has closed its end."""
        while True:
            data = self._buffer.receive(self._sock, may_wait=True)
            if not data:
                raise EOFError
            frames = self._buffer.feed(data)
            if self._buffer.fault:
                raise ProtocolError(self._buffer.fault)
            if frames:
                return frames

    def receive_waiting(self) -> list[Frame]:
        """Frames that have already arrived."""
        frames: list[Frame] = []
        with contextlib.suppress(BlockingIOError):
            while data := self._buffer.receive(self._sock, may_wait=False):
                frames.extend(self._buffer.feed(data))
                if len(data) < READ_BYTES:
                    break
        return frames

    def send(self, data: bytes, body: bytes = b"") -> None:
        """Send a whole frame; a long body is given apart, and not copied behind its header."""
        with self._lock:
            if body:
                n_sent = self._sock.sendmsg((data, body))
                if n_sent == len(data) + len(body):
                    return
                data = (data + body)[n_sent:]
            self._sock.sendall(data)

    def send_with_descriptor(self, data: bytes, descriptor: int) -> None:
        """Send a whole frame with a descriptor."""
        with self._lock:
            n_sent = send_with_descriptor(self._sock, data, descriptor)
            self._sock.sendall(data[n_sent:])
