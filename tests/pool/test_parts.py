"""The engine's parts, each by itself."""

from __future__ import annotations

import gc
import os
import resource
import socket

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from pool_watch import open_descriptors

from featpipe.errors import UnknownDevice, UsageError
from featpipe.pool import Role, frames
from featpipe.pool.devices import threads_of, usable_cores, visible_cards
from featpipe.pool.event_loop import EventLoop
from featpipe.pool.payloads import pack, unpack
from featpipe.pool.shared_memory import (
    AddressMap,
    Segment,
    SegmentStore,
    create_segment,
    tracked_view,
)
from featpipe.pool.task import Cause, cause_of


@given(
    bodies=st.lists(st.binary(max_size=300), max_size=20),
    cuts=st.lists(st.integers(1, 400), max_size=60),
)
def test_frames_come_out_whole_however_the_stream_is_cut(
    bodies: list[bytes], cuts: list[int]
) -> None:
    stream = b"".join(
        frames.frame(frames.TASK, number, body, 3, 0.5) for number, body in enumerate(bodies)
    )
    buffer, found, at = frames.FrameBuffer(), [], 0
    for size in [*cuts, len(stream)]:
        if stream[at : at + size]:
            found += buffer.feed(stream[at : at + size])
        at += size
    assert found == [(frames.TASK, 3, number, 0.5, body, -1) for number, body in enumerate(bodies)]


def header(kind: int, size: int = 0, n_descriptors: int = 0) -> bytes:
    mark = frames.frame(frames.STOP)[:4]
    return frames.HEADER.pack(mark, kind, n_descriptors, 0, size, 1, 0.0)


@pytest.mark.parametrize(
    ("junk", "says"),
    [
        (b"Epoch 3/10, loss 0.25, accuracy 0.9\n", "is no frame"),
        (header(frames.DONE, 1 << 60), "with 1152921504606846976 bytes"),
        (header(frames.READY, 1), "kind 11 with 1 bytes"),
        (header(99), "kind 99"),
        (header(frames.SEGMENT, 8, 1) + b"x" * 8, "sent none"),
        (header(frames.SEGMENT, 8, 3) + b"x" * 8, "announced 3 descriptors"),
        (header(frames.DONE, 0, 1), "announced 1 descriptors"),
    ],
)
def test_what_is_no_frame_ends_the_stream_behind_the_frames_before_it(
    junk: bytes, says: str
) -> None:
    buffer = frames.FrameBuffer()
    (found,) = buffer.feed(frames.frame(frames.DONE, 7, b"value") + junk)
    assert found.body == b"value"
    assert says in buffer.fault
    assert buffer.feed(frames.frame(frames.DONE, 8)) == ()


def test_a_descriptor_the_kernel_dropped_leaves_the_others_to_their_frames() -> None:
    """As with ``ulimit -n``: the receiver has no number left for it."""
    ours, theirs = socket.socketpair()
    lower, upper = os.pipe()
    with ours, theirs:
        for number in range(2):
            data = frames.frame_with_descriptor(frames.SEGMENT, number)
            frames.send_with_descriptor(ours, data, lower)
        before = resource.getrlimit(resource.RLIMIT_NOFILE)
        buffer = frames.FrameBuffer()
        resource.setrlimit(resource.RLIMIT_NOFILE, (3, before[1]))
        try:
            data = buffer.receive(theirs, may_wait=True)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, before)
        (first,) = buffer.feed(data)
        (second,) = buffer.feed(buffer.receive(theirs, may_wait=True))
    assert (first.number, first.descriptor) == (0, -1)
    assert os.fstat(second.descriptor).st_ino == os.fstat(lower).st_ino
    assert not buffer.fault
    with pytest.raises(OSError, match="Too many open files"):
        Segment(1, 4096, first.descriptor, is_mine=False)
    for descriptor in (second.descriptor, lower, upper):
        os.close(descriptor)


def test_each_descriptor_arrives_with_its_own_frame() -> None:
    ours, theirs = socket.socketpair()
    pipes = [os.pipe() for _ in range(5)]
    with ours, theirs:
        for number, (read_end, _) in enumerate(pipes):
            data = frames.frame_with_descriptor(frames.SEGMENT, number, b"x" * number)
            ours.sendall(data[frames.send_with_descriptor(ours, data, read_end) :])
            ours.sendall(frames.frame(frames.TASK, number))
        buffer = frames.FrameBuffer()
        found: list[frames.Frame] = []
        while len(found) < 10:
            data = buffer.receive(theirs, may_wait=True)
            found += buffer.feed(data)
        with pytest.raises(BlockingIOError):
            buffer.receive(theirs, may_wait=False)
    for kind, _, number, _, _, descriptor in found:
        assert (descriptor >= 0) == (kind == frames.SEGMENT)
        if descriptor >= 0:
            os.write(pipes[number][1], b"%d" % number)
            assert os.read(descriptor, 10) == b"%d" % number
            os.close(descriptor)
    for pair in pipes:
        os.close(pair[0])
        os.close(pair[1])


def make_store() -> tuple[SegmentStore, list[int]]:
    withdrawn: list[int] = []
    return SegmentStore(7, lambda _: None, withdrawn.append, idle_bytes=1 << 20), withdrawn


def test_a_segment_is_used_again_only_after_it_was_given_back() -> None:
    store, _ = make_store()
    first = store.take(1000)
    second = store.take(1000)
    assert first is not second
    store.give_back(first.uid)
    store.give_back(first.uid)
    assert store.take(1000) is first
    assert store.take(1000) is not first
    store.close()


def test_a_discarded_segment_is_never_used_again() -> None:
    store, withdrawn = make_store()
    first = store.take(1000)
    store.discard(first.uid)
    assert withdrawn == [first.uid]
    assert store.take(1000).uid != first.uid
    store.close()


def test_idle_segments_are_kept_up_to_a_limit() -> None:
    store, withdrawn = make_store()
    segments = [store.take(400_000) for _ in range(4)]
    for segment in segments:
        store.give_back(segment.uid)
    assert withdrawn == [segment.uid for segment in segments[:2]]
    store.close()


def test_a_segment_is_released_with_its_last_view() -> None:
    segment = create_segment(1, 1 << 20)
    ended: list[bool] = []
    view = tracked_view(segment, lambda: ended.append(True))
    array = np.frombuffer(view[64:128], np.uint8)
    part = array[3:9]
    del view, array
    gc.collect()
    assert not ended
    del part
    gc.collect()
    assert ended == [True]
    segment.close()


@given(
    sizes=st.lists(st.integers(0, 40_000), max_size=6),
    text=st.text(max_size=50),
    order=st.sampled_from("CF"),
    is_copied=st.booleans(),
)
def test_payloads_give_back_what_was_packed(
    sizes: list[int], text: str, order: str, is_copied: bool
) -> None:
    store = SegmentStore(0, lambda _: None, lambda _: None)
    thing = {
        "text": text,
        "arrays": [np.arange(size, dtype=np.int32) for size in sizes],
        "matrix": np.asarray(np.arange(12_000.0).reshape(100, 120), order=order),  # type: ignore[call-overload]
    }
    packed = pack(thing, store.take)
    segments = {segment.uid: segment for segment in packed.segments}
    view_of = None if is_copied else lambda segment: memoryview(segment.map)
    back = unpack(packed.body, packed.flags, segments.__getitem__, view_of)
    assert isinstance(back, dict)
    assert back["text"] == text
    np.testing.assert_array_equal(back["matrix"], thing["matrix"])
    for mine, its in zip(thing["arrays"], back["arrays"], strict=True):
        np.testing.assert_array_equal(mine, its)
    store.close()


@pytest.mark.parametrize(
    "array",
    [
        np.arange(12.0).reshape(3, 4),
        np.asfortranarray(np.arange(12.0).reshape(3, 4)),
        np.arange(24, dtype=np.int16)[::2],
        np.arange(5, dtype=">i4"),
        np.array(3.5, np.float16),
        np.empty((0, 7), np.float32),
        np.array([True, False]),
        np.array([1 + 2j]),
        np.array(["a", "bc"]),
        np.array([b"a", b"bc"]),
        np.array(["2026-01-02"], "datetime64[D]"),
        np.array([(1, 2.5)], [("n", np.int8), ("x", np.float64)]),
        np.array([None, "x", 3], object),
        np.arange(6).reshape(2, 3).view(np.recarray),
        np.ma.masked_array([1, 2], [True, False]),
    ],
    ids=lambda array: f"{type(array).__name__}-{array.dtype.str}-{array.shape}-{array.strides}",
)
@pytest.mark.parametrize("n_copies", [1, 4000])
def test_an_array_arrives_as_it_was_and_read_only(
    array: np.ndarray[tuple[int, ...], np.dtype[np.generic]], n_copies: int
) -> None:
    """Read-only and aligned, as before it was sent, in the frame and in a segment."""
    store = SegmentStore(0, lambda _: None, lambda _: None)
    packed = pack([array, b"x" * n_copies, array[:1] if array.ndim else array] * 4, store.take)
    segments = {segment.uid: segment for segment in packed.segments}
    found = unpack(
        packed.body,
        packed.flags,
        segments.__getitem__,
        lambda segment: memoryview(segment.map).toreadonly(),
    )
    assert isinstance(found, list)
    back = found[0]
    assert type(back) is type(array)
    assert (back.dtype, back.shape) == (array.dtype, array.shape)
    assert back.tolist() == array.tolist()
    assert back.flags.aligned
    assert back.flags.c_contiguous or not array.flags.c_contiguous
    is_plain = type(array) is np.ndarray and array.dtype.kind in "biufc" and array.dtype.isnative
    assert not (is_plain and back.size and array.flags.c_contiguous and back.flags.writeable)
    store.close()


def test_an_array_in_a_known_segment_travels_on_by_reference() -> None:
    store, addresses = SegmentStore(0, lambda _: None, lambda _: None), AddressMap()
    segment = create_segment(99, 1 << 20)
    view = tracked_view(segment, lambda: None)
    addresses.add(segment)
    array = np.frombuffer(view, np.float64)[16:100_000]
    packed = pack({"mine": array, "new": np.ones(50_000)}, store.take, addresses.locate)
    assert {used.uid for used in packed.segments} == {99, packed.own.uid if packed.own else 0}
    assert packed.own is not None
    assert packed.own.size < array.nbytes, "only the new one was copied"
    addresses.remove(segment)
    assert pack({"mine": array}, store.take, addresses.locate).own is not None
    segment.close()
    store.close()


@pytest.mark.parametrize(
    ("device", "mask", "seen"),
    [
        ("cpu", "0,1", ""),
        ("cuda", None, "0"),
        ("cuda:2", None, "2"),
        ("cuda:1", "4,7", "7"),
        ("cuda:0", "GPU-abc", "GPU-abc"),
        ("mps", None, None),
    ],
)
def test_a_child_sees_its_card_and_no_other(
    device: str, mask: str | None, seen: str | None
) -> None:
    assert visible_cards(device, mask) == seen


@pytest.mark.parametrize(("device", "mask"), [("cuda:2", "4,7"), ("cuda:0", ""), ("cuda:x", None)])
def test_a_card_that_is_not_there_is_refused(device: str, mask: str | None) -> None:
    with pytest.raises(UnknownDevice):
        visible_cards(device, mask)


def test_a_wake_up_that_comes_while_the_loop_closes_goes_nowhere() -> None:
    # A thread saw the loop asleep, and is interrupted before it writes to the eventfd: the loop's
    # own thread closes the loop, and other files get the numbers that are free.
    before = open_descriptors()
    loop = EventLoop()
    opened: list[int] = []

    def interrupted() -> None:
        loop.close()
        opened.extend(os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC) for _ in range(8))

    loop._asleep.append(True)
    loop._calls_that_wake = (interrupted, *loop._calls_that_wake)
    try:
        loop.wake()
        assert len(opened) == 8
        for descriptor in opened:
            with pytest.raises(BlockingIOError):  # nobody wrote to it
                os.eventfd_read(descriptor)
    finally:
        for descriptor in opened:
            os.close(descriptor)
    assert open_descriptors() == before


def test_workers_times_threads_do_not_exceed_the_cores() -> None:
    for n_workers in range(1, 9):
        threads = threads_of(Role("r", "m:A", devices=("cpu",) * n_workers))
        assert threads >= 1
        assert n_workers * threads <= max(usable_cores(), n_workers)


@pytest.mark.parametrize(
    "options",
    [
        {"name": ""},
        {"target": "module.without.attribute"},
        {"target": "__main__:Thing"},
        {"devices": ()},
        {"prefetch": 0},
        {"threads": 0},
        {"bisect": "no-module:"},
    ],
)
def test_a_role_that_cannot_work_is_refused(options: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        Role(**{"name": "r", "target": "module:Thing", **options})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("code", "starved", "cause", "says"),
    [
        (0, False, Cause.EXITED, "code 0"),
        (-11, False, Cause.SIGNALLED, "SIGSEGV"),
        (-9, False, Cause.KILLED, "SIGKILL"),
        (-9, True, Cause.OUT_OF_MEMORY, "out of memory"),
        (-64, False, Cause.SIGNALLED, "SIG"),
        (None, False, Cause.UNSEEN, "after its fork server"),
    ],
)
def test_an_end_is_put_into_words(code: int | None, starved: bool, cause: Cause, says: str) -> None:
    found, words = cause_of(code, is_out_of_memory=starved)
    assert found is cause
    assert says in words
