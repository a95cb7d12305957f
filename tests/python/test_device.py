# SPDX-License-Identifier: MIT
"""Pools on a GPU, on the fake driver, and what other libraries are told of their arrays: read from the capsule here,
for neither PyTorch nor CuPy computes without a GPU."""
import ctypes
import gc
import os
import pathlib
import pickle
import subprocess
import sys
import threading
import types
import unittest.mock

import numpy
import pytest

import tidepool
import tidepool.cupy
import tidepool.torch

DRIVER = os.environ.get("TIDEPOOL_CUDA_DRIVER")
if not DRIVER:
    pytest.skip("no fake driver was built", allow_module_level=True)

fake = ctypes.CDLL(DRIVER)
fake.fake_reset(2, int(os.environ.get("SEED", 1)))
fake.fake_stream_create.restype = ctypes.c_void_p
fake.fake_hazard.restype = fake.fake_violation.restype = ctypes.c_char_p
fake.fake_live_bytes.restype = ctypes.c_size_t
LEGACY = 1
CUDA = 2


class Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
                ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
                ("byte_offset", ctypes.c_uint64)]


class Managed(ctypes.Structure):
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("context", ctypes.c_void_p),
                ("deleter", ctypes.CFUNCTYPE(None, ctypes.c_void_p)), ("flags", ctypes.c_uint64), ("tensor", Tensor)]


class Old(ctypes.Structure):
    _fields_ = [("tensor", Tensor), ("context", ctypes.c_void_p), ("deleter", ctypes.CFUNCTYPE(None, ctypes.c_void_p))]


def python_function(name, result, *arguments):
    function = getattr(ctypes.pythonapi, name)
    function.restype, function.argtypes = result, arguments
    return function


pointer_of = python_function("PyCapsule_GetPointer", ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)
rename = python_function("PyCapsule_SetName", ctypes.c_int, ctypes.py_object, ctypes.c_char_p)
USED = ctypes.c_char_p(b"used_dltensor_versioned"), ctypes.c_char_p(b"used_dltensor")


class Consumer:
    """As another library takes an array: its own object on the memory, until it is deleted."""

    def __init__(self, array, stream=None, versioned=True):
        assert array.__dlpack_device__()[0] == CUDA
        keywords = {"max_version": (1, 1)} if versioned else {}
        capsule = array.__dlpack__(stream=stream, **keywords)
        self.address = pointer_of(capsule, b"dltensor_versioned" if versioned else b"dltensor")
        self.managed = (Managed if versioned else Old).from_address(self.address)
        rename(capsule, USED[not versioned])
        tensor = self.managed.tensor
        self.data = tensor.data
        self.shape, self.strides = tuple(tensor.shape[:tensor.ndim]), tuple(tensor.strides[:tensor.ndim])
        self.bytes = tensor.bits // 8
        for extent in self.shape:
            self.bytes *= extent

    def __del__(self):
        self.managed.deleter(self.address)


class Range(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("bytes", ctypes.c_size_t), ("writes", ctypes.c_bool)]


nothing = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda arguments: None)


def launch(stream, tensor):
    """A kernel that writes all of the tensor."""
    fake.fake_launch(ctypes.c_void_p(0 if stream == LEGACY else stream), nothing, None, ctypes.c_size_t(0),
                     ctypes.byref(Range(tensor.data, tensor.bytes, True)), 1)


def calls(entry=None):
    return fake.fake_calls(entry and entry.encode())


@pytest.fixture
def stream():
    made = fake.fake_stream_create(0)
    yield made
    gc.collect()
    fake.fake_synchronise_all()
    fake.fake_stream_destroy(ctypes.c_void_p(made))


@pytest.fixture
def order():
    """Nothing was out of order."""
    yield
    gc.collect()
    fake.fake_synchronise_all()
    assert fake.fake_hazard() is None and fake.fake_violation() is None


# ---- what a consumer sees ----


def test_an_array_is_a_tensor_of_the_gpu(order):
    pool = tidepool.Pool(device="cuda:0")
    with pool.scope() as s:
        a = s.zeros((2, 3), "f4")
        assert a.shape == (2, 3) and a.dtype == "f4" and a.__dlpack_device__() == (CUDA, 0)
        assert (a.ndim, a.size, a.nbytes) == (2, 6, 24)
        assert repr(a) == "<tidepool.DeviceArray (2, 3) float32 on cuda:0>"
        taken = Consumer(a, LEGACY)
        tensor = taken.managed.tensor
        assert (taken.managed.major, taken.managed.flags) == (1, 0)
        assert (tensor.device_type, tensor.device_id, tensor.code, tensor.bits, tensor.lanes) == (CUDA, 0, 2, 32, 1)
        assert taken.shape == (2, 3) and taken.strides == (3, 1) and tensor.byte_offset == 0
        assert a.__cuda_array_interface__ == {
            "shape": (2, 3), "typestr": "<f4", "data": (taken.data, False), "strides": (12, 4), "version": 3, "stream": 1}
        assert Consumer(s.empty((2, 3), "c16", order="F"), versioned=False).strides == (1, 2)
        assert Consumer(s.empty((), "?")).bytes == 1 and Consumer(s.empty((0, 2))).bytes == 0
        del a, taken, tensor
    assert pool.stats()["pinned"] == 0


def test_a_capsule_that_nobody_takes_lets_go(order):
    pool = tidepool.Pool(device="cuda:0")
    with pool.scope() as s:
        for keywords in ({}, {"max_version": (1, 0)}):
            a = s.empty(4)
            before = sys.getrefcount(a)
            capsule = a.__dlpack__(**keywords)
            assert sys.getrefcount(a) == before + 1
            del capsule
            assert sys.getrefcount(a) == before
            del a
    assert pool.stats()["pinned"] == 0


def test_frames_call_no_driver_when_they_are_warm(order, stream):
    """The same memory each time. But for one question an array that is handed out: is the stream captured?"""
    pool = tidepool.Pool(device="cuda:0", stream=stream)
    seen = set()
    fake.fake_use_device(0)  # as consumers do
    for i in range(20):
        if i == 2:
            fake.fake_count_anew()
        with pool.frame(((64, 64), "f4"), 1000) as (a, b):
            x, y = Consumer(a, stream), Consumer(b, stream)
            seen.add((x.data, y.data))
            del a, b, x, y
    fake.fake_use_device(-1)
    assert calls() == calls("cuStreamIsCapturing") == 2 * 18
    assert len(seen) == 1 and pool.stats()["pinned"] == 0


# ---- streams ----


class CuPyStream:
    def __init__(self, handle):
        self.ptr = handle


class TorchStream:
    def __init__(self, handle):
        self.cuda_stream = handle


class ProtocolStream:
    def __init__(self, handle):
        self.handle = handle

    def __cuda_stream__(self):
        return 0, self.handle


@pytest.mark.parametrize("kind", [int, CuPyStream, TorchStream, ProtocolStream])
def test_streams_are_taken_as_they_are(order, stream, kind):
    pool = tidepool.Pool(device="cuda:0", stream=kind(stream))
    with pool.scope() as s:
        assert s.empty(3).__cuda_array_interface__["stream"] == stream
        pool.use_on(kind(stream))  # its own


def test_another_stream_waits_and_is_waited_for(order, stream):
    other = fake.fake_stream_create(0)
    pool = tidepool.Pool(device="cuda:0", stream=stream)
    for _ in range(30):
        with pool.scope() as s:
            a = s.zeros(1000)
            launch(stream, Consumer(a, stream))
            launch(other, Consumer(a, other))
            del a
    with pool.scope() as s:
        pool.use_on(other)
        a = s.empty(1000)
        address = a.__cuda_array_interface__["data"][0]
        launch(other, Range(address, 8000))
        del a
    del pool
    fake.fake_synchronise_all()
    fake.fake_stream_destroy(ctypes.c_void_p(other))


def test_what_is_not_declared_is_found():
    """So the tests above mean something. In a process of its own, for the driver tells its first hazard for good."""
    assert subprocess.run([sys.executable, "-c", UNDECLARED, __file__], check=False, timeout=100).returncode == 3


UNDECLARED = """
import importlib.util, sys
spec = importlib.util.spec_from_file_location("told", sys.argv[1])
told = importlib.util.module_from_spec(spec)
spec.loader.exec_module(told)
one, other = (told.fake.fake_stream_create(0) for _ in range(2))
pool = told.tidepool.Pool(device="cuda:0", stream=one)
for _ in range(30):
    with pool.scope() as s:
        a = s.empty(1000)
        told.launch(one, told.Consumer(a, one))
        told.launch(other, told.Consumer(a, -1))  # which says that it sees to the order
        del a
told.fake.fake_synchronise_all()
sys.exit(3 if told.fake.fake_hazard() else 0)
"""


# ---- CuPy's allocator ----


@pytest.mark.parametrize("own_stream", [False, True])
def test_a_pair_of_cupys_runs_no_python_of_ours(monkeypatch, stream, own_stream):
    """CuPy's part is made up: what allocates for a stream, and its word on the current one, in C. The driver is asked
    whether the stream is captured as memory is freed there; it is not asked of the default stream."""
    used = stream if own_stream else 0
    named = ctypes.create_string_buffer(b"intptr_t (void)")
    capsule = python_function("PyCapsule_New", ctypes.py_object, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
    current = ctypes.CFUNCTYPE(ctypes.c_ssize_t)(lambda: used)
    made = []

    class Allocator:
        def __init__(self, stream, malloc, free, owner):
            allocate = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)(malloc)
            self.free = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int)(free)
            self.malloc = lambda size: allocate(stream, size, 0)
            made.append(self)

    offered = {"get_current_stream_ptr": capsule(ctypes.cast(current, ctypes.c_void_p), ctypes.addressof(named), None)}
    cuda = types.SimpleNamespace(get_current_stream=lambda: None, stream=types.SimpleNamespace(__pyx_capi__=offered),
                                 memory=types.SimpleNamespace(CFunctionAllocator=Allocator))
    monkeypatch.setitem(sys.modules, "cupy", types.SimpleNamespace(cuda=cuda))
    allocate, ours = tidepool.cupy.allocator(), []
    fake.fake_use_device(0)  # as CuPy does

    def watch(frame, event, argument):
        ours.extend([frame.f_code.co_name] if event == "call" and "tidepool" in frame.f_code.co_filename else [])

    first = allocate(4096)
    made[0].free(used, first, 0)
    fake.fake_count_anew()
    sys.setprofile(watch)
    for _ in range(20):
        assert allocate(4096) == first
        made[0].free(used, first, 0)
    sys.setprofile(None)
    fake.fake_use_device(-1)
    assert len(made) == 1 and ours == []
    asked = 20 if own_stream else 0
    assert calls() == calls("cuStreamIsCapturing") == asked


# ---- PyTorch's allocator ----


def in_library(name, result=None):
    function = ctypes.CDLL(str(pathlib.Path(tidepool.__file__).with_name("libtidepool.so.0")))[name]
    function.restype = result
    return function


def test_a_pair_of_pytorchs_asks_the_driver_nothing(monkeypatch):
    """For the library knows that PyTorch tells of its captures once there is an allocator: this one is made up."""
    monkeypatch.setitem(sys.modules, "torch", unittest.mock.MagicMock())
    tidepool.torch.allocator()
    allocate, free = in_library("tide_torch_malloc", ctypes.c_void_p), in_library("tide_torch_free")
    on = ctypes.c_ssize_t(4096), 0, ctypes.c_void_p(fake.fake_stream_create(0))  # for good, for memory of it is cached
    fake.fake_use_device(0)  # as PyTorch does
    free(ctypes.c_void_p(allocate(*on)), *on)
    fake.fake_count_anew()
    free(ctypes.c_void_p(allocate(*on)), *on)
    fake.fake_use_device(-1)
    assert calls() == 0


def test_a_fraction_is_the_limit_of_all_that_is_held():
    """As torch.cuda.set_per_process_memory_fraction has it. What was held at most is told."""
    limit = in_library("tide_torch_memory_fraction")
    with tidepool.Pool(device="cuda:0") as pool, pool.scope() as s:
        limit(ctypes.c_double(1e-9), 0)
        with pytest.raises(MemoryError, match="limit"):
            s.empty(64 << 20, "u1")
        limit(ctypes.c_double(1), 0)
        s.empty(64 << 20, "u1")
    now = tidepool.torch.stats()
    assert now["bytes_peak"] >= 64 << 20 > now["bytes_live"] + now["bytes_cached"]


# ---- PyTorch's memory viewer ----


def test_a_snapshot_has_what_is_live_and_cached(tmp_path):
    """In the form that the viewer reads: blocks that fill their segments, and a trace that ends with them."""
    allocate, free = in_library("tide_torch_malloc", ctypes.c_void_p), in_library("tide_torch_free")
    live, cached = (allocate(ctypes.c_ssize_t(size), 0, None) for size in (1 << 20, 3 << 20))
    free(ctypes.c_void_p(cached), ctypes.c_ssize_t(3 << 20), 0, None)
    tidepool.torch.snapshot(tmp_path / "snapshot.pickle")
    free(ctypes.c_void_p(live), ctypes.c_ssize_t(1 << 20), 0, None)
    with open(tmp_path / "snapshot.pickle", "rb") as file:
        shot = pickle.load(file)
    found = {segment["address"]: segment for segment in shot["segments"]}
    for address, size, used, state in ((live, 1 << 20, 1 << 20, "active_allocated"), (cached, 3 << 20, 0, "inactive")):
        segment = found[address]
        assert segment["total_size"] == size
        assert segment["allocated_size"] == segment["active_size"] == segment["requested_size"] == used
        assert segment["blocks"] == [{"address": address, "size": size, "requested_size": used, "state": state, "frames": []}]
    for segment in shot["segments"]:
        assert sum(block["size"] for block in segment["blocks"]) == segment["total_size"]
        assert (segment["device"], segment["stream"], segment["segment_pool_id"]) == (0, 0, (0, 0))
    actions = [(event["action"], event["addr"]) for event in shot["device_traces"][0]]
    assert ("alloc", live) in actions and ("alloc", cached) not in actions and ("segment_alloc", cached) in actions
    stats = tidepool.torch.stats()
    assert sum(segment["total_size"] for segment in shot["segments"]) == stats["bytes_live"] + stats["bytes_cached"]


# ---- lifetimes ----


@pytest.mark.filterwarnings("ignore::tidepool.EscapeWarning")
def test_what_outlives_its_scope_stays_good_and_goes_back_behind_its_work(order, stream):
    other = fake.fake_stream_create(0)
    pool = tidepool.Pool(device="cuda:0", stream=stream)
    for i in range(30):
        with pool.scope() as s:
            kept = Consumer(s.zeros(1000), other)
        launch(other, kept)
        with pool.scope() as s:
            fresh = Consumer(s.zeros(1000), stream)
            assert fresh.data != kept.data
            launch(stream, fresh)
            del fresh
        del kept
        with tidepool.Pool(device="cuda:0", stream=other) as second, second.scope() as s:
            launch(other, Consumer(s.empty(1000), other))
    assert pool.stats()["pinned"] == 30
    array = None
    with pool.scope() as s:
        array = s.zeros(1000)
    launch(other, Consumer(array, other))  # it is handed out after the end, too
    pool.close()
    launch(other, Consumer(array, other))
    del array, pool
    fake.fake_synchronise_all()
    fake.fake_stream_destroy(ctypes.c_void_p(other))


def test_another_thread_may_let_go(order, stream):
    pool = tidepool.Pool(device="cuda:0", stream=stream)
    with pool.scope() as s:
        kept = [Consumer(s.zeros(1000), stream)]
    launch(stream, kept[0])
    thread = threading.Thread(target=kept.clear)
    thread.start()
    thread.join()
    assert not kept


def test_memory_comes_back(order):
    before = fake.fake_live_bytes()
    pool = tidepool.Pool(device="cuda:0")
    for _ in range(5):
        with pool.scope() as s:
            s.empty(1 << 20, "u1")
            kept = s.empty(1 << 20, "u1")
        assert pool.stats()["bytes_exported"] == 1 << 20
        del kept
    assert fake.fake_live_bytes() - before < (2 << 20) + 4096  # the loop took no more than its first round
    assert pool.stats()["pinned"] == 5
    pool.close()
    fake.fake_synchronise_all()
    assert fake.fake_live_bytes() <= before  # what waited from before may have gone, too


# ---- refusals ----


def test_a_stream_that_is_gone_is_told_with_checks(stream):
    gone = fake.fake_stream_create(0)
    pool = tidepool.Pool(device="cuda:0", stream=gone, check=1)
    with pool.scope() as s:
        s.empty(10)
    fake.fake_synchronise_all()
    fake.fake_stream_destroy(ctypes.c_void_p(gone))
    assert fake.fake_stream_create(0) == gone  # the handle is another stream's
    with pytest.raises(RuntimeError, match="stream"), pool.scope() as s:
        s.empty(100000)


@pytest.mark.parametrize("own", [False, True])
def test_a_captured_stream_gets_no_array(order, stream, own):
    """Neither of a pool beside the capture nor of its own: the graph would write to what is a later scope's."""
    graph, pool = ctypes.c_void_p(), tidepool.Pool(device="cuda:0", stream=stream)
    captured = stream if own else fake.fake_stream_create(0)
    with pool.scope() as s:
        a = s.empty(1000)
        fake.fake_capture_begin(ctypes.c_void_p(captured))
        with pytest.raises(RuntimeError, match="a graph is captured on"):
            a.__dlpack__(stream=captured)
        if own:
            with pytest.raises(RuntimeError, match="let PyTorch or CuPy make"):
                a.__cuda_array_interface__
        assert fake.fake_capture_end(ctypes.c_void_p(captured), ctypes.byref(graph)) == 0
        assert Consumer(a, captured).data == a.__cuda_array_interface__["data"][0]
        del a
    fake.fake_graph_destroy(graph)
    if not own:
        fake.fake_stream_destroy(ctypes.c_void_p(captured))


def test_arguments_of_consumers_are_checked(order, stream):
    pool = tidepool.Pool(device="cuda:0", stream=stream)
    with pool.scope() as s:
        a = s.empty(10)
        for keywords, error in (({"stream": 0}, ValueError), ({"stream": -2}, ValueError), ({"stream": "x"}, TypeError),
                                ({"copy": True}, BufferError), ({"dl_device": (1, 0)}, BufferError)):
            with pytest.raises(error):
                a.__dlpack__(**keywords)
        assert a.__dlpack__(dl_device=(CUDA, 0), copy=False, stream=-1)
        with pool.scope():
            with pytest.raises(BufferError, match="inside of the array's"):
                a.__dlpack__(stream=LEGACY)
            assert a.__dlpack__(stream=stream)
        del a
    with pytest.raises(RuntimeError, match="no open scope"):
        pool.use_on(5)


def test_values_are_not_written_here(order):
    pool = tidepool.Pool(device="cuda:0")
    with pool.scope() as s:
        for make in (lambda: s.ones(3), lambda: s.full(3, 1), lambda: s.arange(3), lambda: s.copy([1])):
            with pytest.raises(TypeError, match="empty, zeros"):
                make()
        for dtype in ("O", "S3", ">f4", "g", "M8[s]"):
            with pytest.raises(TypeError, match="dtype" if dtype == "O" else "bfloat16 is 'u2'"):
                s.empty(3, dtype)
        assert s.zeros_like([[1, 2]]).shape == (1, 2)


def test_numpy_takes_the_form_of_an_array_and_not_its_memory(order):
    with tidepool.Pool(device="cuda:0").scope() as s, tidepool.Pool().scope() as host:
        a = s.empty((2, 3), "f4", order="F")
        assert Consumer(s.empty_like(a)).strides == (1, 2) and s.zeros_like(a, "i8").dtype == "i8"
        assert host.ones_like(a).flags.f_contiguous and s.empty_like(s.empty(())).shape == ()
        for read in (numpy.asarray, numpy.negative, host.copy):
            with pytest.raises(TypeError, match=r"torch.from_dlpack\(array\).cpu"):
                read(a)


@pytest.mark.parametrize("keywords, error, words", [
    ({"device": "cuda:9"}, RuntimeError, "cuda:9"), ({"device": "tpu:0"}, ValueError, "tpu:0"),
    ({"stream": 5}, ValueError, "no stream"), ({"device": "cuda:0", "stream": "x"}, TypeError, "int")])
def test_pools_that_cannot_be(keywords, error, words):
    with pytest.raises(error, match=words):
        tidepool.Pool(**keywords)
