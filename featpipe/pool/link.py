"""The child's end of the socket: blocking, and safe to send on from several threads."""

from __future__ import annotations

import contextlib
import threading

from featpipe.pool.frames import READ_BYTES, FrameBuffer, receive, send_with_descriptor

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from collections.abc import Sequence

    from featpipe.pool.frames import Frame


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
