# SPDX-License-Identifier: MIT
"""Arrays of other libraries by DLPack, and ours in theirs."""
import ctypes
import gc
import importlib.util
import os
import subprocess
import sys
import textwrap
import threading

import numpy
import pytest

import tidepool

# ---- a producer that offers what a test wants ----

DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device", ctypes.c_int32), ("device_id", ctypes.c_int32),
                ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
                ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64)]


class Versioned(ctypes.Structure):
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("context", ctypes.c_void_p),
                ("deleter", DELETER), ("flags", ctypes.c_uint64), ("tensor", Tensor)]


class Unversioned(ctypes.Structure):
    _fields_ = [("tensor", Tensor), ("context", ctypes.c_void_p), ("deleter", DELETER)]


new_capsule = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(
    ("PyCapsule_New", ctypes.pythonapi))
NAMES = {True: b"dltensor_versioned", False: b"dltensor"}


class Producer:
    """Offers one tensor on 64 bytes, which are 0, 1, 2, … It lives on: arrays know its deleter."""

    all = []

    def __init__(self, shape=(4,), strides=None, code=1, bits=8, lanes=1, offset=0, device=1, flags=0,
                 major=1, versioned=True, knows=("max_version", "copy"), data=True):
        self.memory = (ctypes.c_uint8 * 64)(*range(64))
        self.deleted, self.asked, self.knows, self.told = 0, [], knows, device
        self.shape = (ctypes.c_int64 * max(len(shape), 1))(*shape)
        self.strides = (ctypes.c_int64 * max(len(strides), 1))(*strides) if strides is not None else None
        tensor = Tensor(ctypes.addressof(self.memory) if data else None, device, 0, len(shape), code, bits, lanes,
                        self.shape, self.strides, offset)
        deleter = DELETER(self.delete)
        self.managed = (Versioned(major, 1, None, deleter, flags, tensor) if versioned
                        else Unversioned(tensor, None, deleter))
        self.name = NAMES[versioned]
        self.all.append(self)

    def delete(self, address):
        assert address == ctypes.addressof(self.managed)
        self.deleted += 1

    def __dlpack_device__(self):
        return self.told, 0

    def __dlpack__(self, **arguments):
        self.asked.append(arguments)
        if not set(arguments) <= set(self.knows):
            raise TypeError("unexpected keyword")
        return new_capsule(ctypes.addressof(self.managed), self.name, None)


@pytest.mark.parametrize("versioned", [True, False])
def test_the_memory_is_shared_and_given_back_once(versioned):
    p = Producer((4,), versioned=versioned)
    a = tidepool.from_dlpack(p)
    assert type(a) is numpy.ndarray and a.dtype == "u1" and a.tolist() == [0, 1, 2, 3]
    p.memory[2] = 77
    assert a[2] == 77 and a.ctypes.data == ctypes.addressof(p.memory)
    b = a[1:]
    del a
    gc.collect()
    assert p.deleted == 0 and b[1] == 77
    del b
    assert p.deleted == 1


@pytest.mark.parametrize("versioned, flags, writeable", [(True, 0, True), (True, 1, False), (False, 0, False)])
def test_who_may_write(versioned, flags, writeable):
    p = Producer(versioned=versioned, flags=flags)
    a = tidepool.from_dlpack(p)
    assert a.flags.writeable is writeable
    if writeable:
        a[0] = 9
        assert p.memory[0] == 9
    else:
        with pytest.raises(ValueError):
            a.flags.writeable = True


@pytest.mark.parametrize("knows, asked", [
    (("max_version", "copy"), [{"max_version", "copy"}]), (("max_version",), [{"max_version", "copy"}, {"max_version"}]),
    ((), [{"max_version", "copy"}, {"max_version"}, set()])])
def test_what_a_producer_is_asked(knows, asked):
    p = Producer(knows=knows)
    assert tidepool.from_dlpack(p)[3] == 3
    assert [set(one) for one in p.asked] == asked
    assert p.asked[0] == {"max_version": (1, 1), "copy": False}


@pytest.mark.parametrize("shape, strides, offset, wanted", [
    ((2, 3), None, 0, [[0, 1, 2], [3, 4, 5]]), ((2, 3), None, 5, [[5, 6, 7], [8, 9, 10]]),
    ((2, 3), (1, 2), 0, [[0, 2, 4], [1, 3, 5]]), ((3,), (-2,), 10, [10, 8, 6]), ((3,), (0,), 4, [4, 4, 4]),
    ((), None, 3, 3), ((), (), 3, 3), ((0,), None, 0, []), ((2, 0, 3), None, 0, [[], []]),
    ((1,) * 64, None, 0, None)])
def test_shapes_strides_and_offsets(shape, strides, offset, wanted):
    p = Producer(shape, strides, offset=offset)
    a = tidepool.from_dlpack(p)
    assert a.shape == shape and (wanted is None or a.tolist() == wanted)
    if strides is not None and a.size:
        assert a.strides == strides
    if a.size:
        assert a.ctypes.data == ctypes.addressof(p.memory) + offset
    del a
    assert p.deleted == 1


def test_an_array_without_elements_needs_no_memory():
    p = Producer((3, 0), data=False)
    a = tidepool.from_dlpack(p)
    assert a.shape == (3, 0)
    del a
    assert p.deleted == 1
    with pytest.raises(BufferError, match="no memory"):
        tidepool.from_dlpack(Producer((3,), data=False))


@pytest.mark.parametrize("code, bits, dtype", [
    (0, 8, "i1"), (0, 16, "i2"), (0, 32, "i4"), (0, 64, "i8"), (1, 8, "u1"), (1, 16, "u2"), (1, 32, "u4"),
    (1, 64, "u8"), (2, 16, "f2"), (2, 32, "f4"), (2, 64, "f8"), (5, 64, "c8"), (5, 128, "c16"), (6, 8, "?")])
def test_types(code, bits, dtype):
    p = Producer((2,), (2,), code, bits)
    a = tidepool.from_dlpack(p)
    assert a.dtype == dtype and a.strides == (bits // 4,)
    assert a.tobytes() == numpy.frombuffer(p.memory, dtype)[[0, 2]].tobytes()


def test_an_unaligned_array_says_so():
    a = tidepool.from_dlpack(Producer((2,), None, 1, 32, offset=1))
    assert not a.flags.aligned and a[0] == int.from_bytes(bytes((1, 2, 3, 4)), sys.byteorder)


@pytest.mark.parametrize("arguments, told", [
    ({"device": 2}, "type 2"), ({"major": 2}, "DLPack 2"), ({"lanes": 2}, "2 lanes"), ({"code": 4, "bits": 16}, "code 4"),
    ({"code": 2, "bits": 8}, "8 bits"), ({"shape": (-1,)}, "extent of -1"), ({"shape": (1,) * 65}, "65 dimensions"),
    ({"shape": (2,), "strides": (1 << 62,), "bits": 64}, "too large"), ({"shape": (1 << 40,) * 3}, "too large")])
def test_what_cannot_be_shown_stays_the_producers(arguments, told):
    p = Producer(**arguments)
    with pytest.raises(BufferError, match=told):
        tidepool.from_dlpack(p)
    assert p.deleted == 0
    assert len(p.asked) == ("device" not in arguments)  # no device memory is even asked for
    p.told = 1
    with pytest.raises(BufferError, match=told):
        tidepool.from_dlpack(p)  # what the tensor says counts


def test_an_array_that_numpy_refuses_stays_the_producers():
    p = Producer((1 << 62, 4), (0, 0))
    capsule = p.__dlpack__()
    for _ in range(2):
        with pytest.raises(ValueError):
            tidepool.from_dlpack(capsule)
    assert p.deleted == 0 and "dltensor_versioned" in repr(capsule) and "used" not in repr(capsule)


def test_a_capsule_is_taken_once():
    p = Producer()
    capsule = p.__dlpack__()
    a = tidepool.from_dlpack(capsule)
    with pytest.raises(BufferError, match="taken before"):
        tidepool.from_dlpack(capsule)
    del capsule, a
    assert p.deleted == 1


def test_what_is_no_array():
    class Half:
        def __dlpack__(self):
            raise AssertionError

    class Odd(Half):
        def __dlpack_device__(self):
            return self.device

        def __dlpack__(self, **_):
            return 7

    for x in (None, 3, [1.0], Half(), new_capsule(1, b"other", None)):
        with pytest.raises(TypeError):
            tidepool.from_dlpack(x)
    for Odd.device, error in (((1, 0), TypeError), (("cpu", 0), TypeError), ((), IndexError), (None, TypeError),
                              ((1 << 80, 0), OverflowError), ((9, 0), BufferError)):
        with pytest.raises(error):
            tidepool.from_dlpack(Odd())


def test_a_producers_own_error_is_told():
    class Broken(Producer):
        def __dlpack__(self, **_):
            raise BufferError("none today")

    with pytest.raises(BufferError, match="none today"):
        tidepool.from_dlpack(Broken())


def test_any_thread_lets_go():
    p = Producer()
    box = [tidepool.from_dlpack(p)]
    thread = threading.Thread(target=box.clear)
    thread.start()
    thread.join(300)
    assert p.deleted == 1


# ---- ours in others ----


def test_a_buffer_for_consumers_that_know_no_version():
    """As they ask: no max_version, or an old one."""
    class Old:
        def __init__(self, buffer, **arguments):
            self.offer = lambda **_: buffer.__dlpack__(**arguments)

        def __dlpack__(self, **arguments):
            return self.offer()

        def __dlpack_device__(self):
            return 1, 0

    b = tidepool.Buffers().acquire(100, zeroed=True)
    for arguments in ({}, {"max_version": None}, {"max_version": (0, 8)}):
        for take in (numpy.from_dlpack, tidepool.from_dlpack):
            capsule = b.__dlpack__(**arguments)
            assert '"dltensor"' in repr(capsule)
            with pytest.raises(BufferError, match="1 arrays"):
                b.release()
            del capsule
            a = take(Old(b, **arguments))
            memoryview(b)[5] += 1
            assert a[5] == memoryview(b)[5] and a.shape == (100,)
            with pytest.raises(BufferError, match="1 arrays"):
                b.release()
            del a
    b.release()


def test_round_trips():
    pool = tidepool.Pool()
    b = tidepool.Buffers().acquire(64, zeroed=True)
    with pool.scope() as s:
        a = s.arange(12, dtype="f4").reshape(3, 4)[::2, ::-1]
        for there in (numpy.from_dlpack, tidepool.from_dlpack):
            for back in (numpy.from_dlpack, tidepool.from_dlpack):
                c = back(there(a))
                assert c.ctypes.data == a.ctypes.data and c.strides == a.strides and c.flags.writeable
                d = back(there(b))
                assert d.ctypes.data == numpy.frombuffer(b, "u1").ctypes.data and d.flags.writeable
        del a
    with pool.scope() as s:
        s.zeros(12, "f4")
    assert c.tolist() == [[3, 2, 1, 0], [11, 10, 9, 8]] and pool.stats()["pinned"] == 1
    del c, d
    b.release()
    with pool.scope() as s:
        s.zeros(1)
    assert pool.stats()["bytes_exported"] == 0


def test_arrays_that_may_not_be_written_stay_so():
    a = numpy.arange(3)
    a.flags.writeable = False
    b = tidepool.from_dlpack(a)
    assert not b.flags.writeable and b.ctypes.data == a.ctypes.data


def test_a_consumer_that_never_lets_go():
    """It renames the capsule, as one must, and forgets the tensor."""
    done = subprocess.run([sys.executable, "-X", "dev", "-c", textwrap.dedent("""
        import ctypes, gc, numpy, tidepool
        rename = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(
            ("PyCapsule_SetName", ctypes.pythonapi))
        buffers = tidepool.Buffers()
        kept = []
        for name, arguments in ((b"used_dltensor_versioned", {"max_version": (1, 1)}), (b"used_dltensor", {})):
            b = buffers.acquire(1000)
            view = numpy.frombuffer(b, "u1")
            view[:] = 9
            capsule = b.__dlpack__(**arguments)
            rename(capsule, name)
            kept.append(name)
            del capsule
            try:
                b.release()
            except BufferError as error:
                assert "2 arrays" in str(error), error
            else:
                raise AssertionError
            address = view.ctypes.data
            del b, view
            gc.collect()
            assert buffers.stats()["live"] == len(kept)
            assert (numpy.ctypeslib.as_array((ctypes.c_uint8 * 1000).from_address(address)) == 9).all()
        with tidepool.Pool().scope() as s:
            a = s.ones(100)
            capsule = a.__dlpack__(max_version=(1, 0))
            rename(capsule, b"used_dltensor_versioned")
            kept_address = a.ctypes.data
            pool = s.pool
            del a, capsule
        with pool.scope() as s:
            assert s.zeros(100).ctypes.data != kept_address
        print("done")
    """)], capture_output=True, text=True, timeout=300, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")


def test_jax():
    """Both ways, without a copy where JAX makes none. In a process of its own, for JAX has threads and others fork."""
    if importlib.util.find_spec("jax") is None:
        pytest.skip("no jax")
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(JAX)], capture_output=True, text=True, timeout=300,
                          env={**os.environ, "JAX_PLATFORMS": "cpu"}, check=False)
    assert done.returncode == 0 and done.stdout == "done\n", done.stdout + done.stderr


JAX = """
    import gc, jax, jax.numpy as jnp, numpy, tidepool

    def refused(function, told):
        try:
            function()
        except BufferError as error:
            assert told in str(error), error
        else:
            raise AssertionError(told)

    # theirs, here
    theirs = jnp.arange(24, dtype="float32").reshape(4, 6)
    a = tidepool.from_dlpack(theirs)
    assert a.ctypes.data == theirs.unsafe_buffer_pointer() and (a == numpy.arange(24).reshape(4, 6)).all()
    assert not a.flags.writeable
    del theirs
    gc.collect()
    assert a[3, 5] == 23
    for dtype in ("int8", "uint16", "int32", "bool", "complex64", "float16"):
        assert tidepool.from_dlpack(jnp.ones(3, dtype)).dtype == dtype
    refused(lambda: tidepool.from_dlpack(jnp.ones(3, "bfloat16")), "code 4")

    # a buffer, there and back
    b = tidepool.Buffers().acquire(4096, zeroed=True)
    address = numpy.frombuffer(b, "u1").ctypes.data
    there = jax.dlpack.from_dlpack(b)
    assert there.shape == (4096,) and there.unsafe_buffer_pointer() == address
    refused(b.release, "1 arrays")
    assert int((there + 1).sum()) == 4096
    back = tidepool.from_dlpack(there)
    del there
    gc.collect()
    assert back.ctypes.data == address
    refused(b.release, "1 arrays")
    del back
    gc.collect()
    b.release()

    # an array of a scope, which JAX holds after its end
    pool = tidepool.Pool()
    with pool.scope() as s:
        mine = s.full(1024, 3.0, "f4")
        there = jax.dlpack.from_dlpack(mine)
        del mine
    with pool.scope() as s:
        s.full(1024, 4.0, "f4")
    assert (numpy.asarray(there) == 3).all()
    print("done")
"""
