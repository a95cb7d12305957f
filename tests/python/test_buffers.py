# SPDX-License-Identifier: MIT
"""Buffers: the buffer protocol, DLPack, and what is refused."""
import gc

import numpy
import pytest

import tidepool


@pytest.fixture
def buffers():
    made = tidepool.Buffers("tested")
    yield made
    gc.collect()
    assert made.stats()["live"] == 0


def test_a_buffer_is_used_again(buffers):
    b = buffers.acquire(100_000)
    address = numpy.frombuffer(b, "u1").ctypes.data
    b.release()
    with buffers.acquire(100_000) as b:
        assert numpy.frombuffer(b, "u1").ctypes.data == address
        assert b.nbytes == len(b) == 100_000 and b.capacity >= 100_000
    assert buffers.stats()["hits"] == 1


def test_the_buffer_protocol_shares_the_memory(buffers):
    b = buffers.acquire(64, zeroed=True)
    assert bytes(b) == bytes(64)
    memoryview(b)[3] = 7
    numpy.frombuffer(b, "u4")[4] = 9
    assert bytes(b)[3] == 7 and bytes(b)[16] == 9


def test_release_twice_is_stale(buffers):
    b = buffers.acquire(10)
    b.release()
    assert b.released
    with pytest.raises(tidepool.StaleError):
        b.release()
    with pytest.raises(tidepool.StaleError):
        memoryview(b)
    with pytest.raises(tidepool.StaleError):
        numpy.from_dlpack(b)


@pytest.mark.parametrize("view", [memoryview, numpy.from_dlpack, lambda b: numpy.frombuffer(b, "u1")])
def test_a_buffer_in_use_is_not_released(buffers, view):
    b = buffers.acquire(1000, zeroed=True)
    used = view(b)
    with pytest.raises(BufferError, match="1 arrays or views"):
        b.release()
    assert not bytes(used).strip(b"\0")
    del used
    b.release()


def test_a_view_keeps_the_buffer(buffers):
    a = numpy.from_dlpack(buffers.acquire(1000, zeroed=True))
    c = numpy.frombuffer(buffers.acquire(1000, zeroed=True), "f8")
    other = buffers.acquire(1000)
    numpy.frombuffer(other, "u1")[:] = 255
    assert not a.any() and not c.any() and a.dtype == "u1" and a.flags.writeable


def test_dlpack_says_no_where_it_cannot(buffers):
    b = buffers.acquire(100)
    for arguments in ({"copy": True}, {"max_version": (1, 0), "copy": True}, {"dl_device": (2, 0)},
                      {"max_version": (1, 0), "dl_device": (2, 0)}):
        with pytest.raises(BufferError):
            b.__dlpack__(**arguments)
    with pytest.raises(ValueError):
        b.__dlpack__(max_version=(1, 0), stream=1)
    assert b.__dlpack_device__() == (1, 0)


def test_dlpack_of_a_buffer_that_its_arguments_release(buffers):
    class Version(tuple):
        def __getitem__(self, at):
            b.release()
            return super().__getitem__(at)

    b = buffers.acquire(100)
    with pytest.raises(tidepool.StaleError):
        b.__dlpack__(max_version=Version((1, 0)))
    b = buffers.acquire(100)
    for arguments in ({"max_version": ("1", 0)}, {"max_version": 1}, {"max_version": (1, 0), "dl_device": ("cpu", 0)}):
        with pytest.raises(TypeError):
            b.__dlpack__(**arguments)
    with pytest.raises(OverflowError):
        b.__dlpack__(max_version=(1 << 80, 0))
    b.release()


def test_a_capsule_that_nobody_takes_lets_go(buffers):
    b = buffers.acquire(100)
    capsule = b.__dlpack__(max_version=(1, 0))
    with pytest.raises(BufferError):
        b.release()
    del capsule
    b.release()


def test_bad_sizes(buffers):
    with pytest.raises(ValueError):
        buffers.acquire(-1)
    with pytest.raises(MemoryError, match="^(?!tide_)"):  # named by Python's function, which the traceback has
        buffers.acquire(1 << 60)
    assert buffers.acquire(0).nbytes == 0


def test_buffers_outlive_their_instance():
    b = tidepool.Buffers().acquire(1000, zeroed=True)
    gc.collect()
    assert not any(bytes(b))
    b.release()


def test_pool_arrays_are_offered_by_dlpack():
    pool = tidepool.Pool()
    with pool.scope() as s:
        a = s.arange(6, dtype="f4")
        b = numpy.from_dlpack(a)
        assert b.ctypes.data == a.ctypes.data
        del a
    with pool.scope() as s:
        s.zeros(6, "f4")
    assert (b == numpy.arange(6)).all()
