# SPDX-License-Identifier: MIT
"""PyTorch and CuPy: tensors of the host on our memory and ours on theirs, and the allocators for a GPU.

Neither is installed by `run`. What they call is tested without them, too: how it fails. What it does on
a GPU, tests/device tests."""
import ctypes
import gc
import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys
import textwrap
import types

import numpy
import pytest

import tidepool
import tidepool.cupy
import tidepool.torch
from tidepool import _core

with_torch = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="PyTorch is not installed")
with_cupy = pytest.mark.skipif(importlib.util.find_spec("cupy") is None, reason="CuPy is not installed")
COMPILER = os.environ.get("CXX") or shutil.which("c++")
NO_SUCH_DEVICE = 64  # there are 0 to 63


def python(script):
    """In a process of its own, which sees no GPU."""
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, timeout=300,
                          env={**os.environ, "CUDA_VISIBLE_DEVICES": ""}, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


# ---- tensors of PyTorch ----


@pytest.fixture(scope="module")
def torch():
    return pytest.importorskip("torch")


def next_array(pool):
    """The address of the array that the pool gives out next."""
    with pool.scope() as s:
        return s.full(1000, -1.0, "f4").ctypes.data


@pytest.mark.parametrize("take", [lambda torch, a: torch.from_dlpack(a), lambda torch, a: torch.from_numpy(a),
                                  lambda torch, a: torch.as_tensor(a), lambda torch, a: torch.from_dlpack(a)[3:].view(-1),
                                  lambda torch, a: torch.frombuffer(a, dtype=torch.float32)])
def test_a_tensor_on_an_array_of_a_scope_outlives_it(torch, take):
    pool = tidepool.Pool()
    with pool.scope() as s:
        a = s.arange(1000, dtype="f4")
        address, t = a.ctypes.data, take(torch, a)
        first = float(t[0])
        del a
    assert pool.stats()["pinned"] == 1 and t.data_ptr() - address == 4 * int(first)
    assert next_array(pool) != address
    assert t.tolist() == list(range(int(first), 1000))
    t += 1
    assert float(t[-1]) == 1000
    del t
    gc.collect()
    pool.check()
    assert pool.stats()["pinned"] == 1


def test_a_tensor_of_the_array_that_died_in_its_scope_pins_nothing(torch):
    pool = tidepool.Pool()
    for _ in range(10):
        with pool.scope() as s:
            t = torch.from_dlpack(s.ones((4, 5), "f4"))
            assert float(t.sum()) == 20
            del t
    assert pool.stats()["pinned"] == 0


def test_a_buffer_as_a_tensor(torch):
    b = tidepool.Buffers().acquire(64, zeroed=True)
    address = numpy.frombuffer(b, "u1").ctypes.data
    offers = [b, b.__dlpack__(), b.__dlpack__(max_version=(1, 0))]
    for offer in offers:
        t = torch.from_dlpack(offer)
        assert t.data_ptr() == address and t.dtype == torch.uint8 and tuple(t.shape) == (64,)
        t[3] += 1
        u = t.view(torch.float32)
        del t
        with pytest.raises(BufferError, match="arrays or views"):
            b.release()
        del u
    assert bytes(b)[3] == 3
    del offer, offers
    gc.collect()
    b.release()


def test_a_tensor_as_an_array(torch):
    t = torch.arange(12, dtype=torch.float32).reshape(3, 4).t()[:, ::2]
    a = tidepool.from_dlpack(t)
    assert a.ctypes.data == t.data_ptr() and a.shape == (4, 2) and a.strides == (4, 32) and a.flags.writeable
    a[0, 1] = 99
    assert float(t[0, 1]) == 99
    del t
    gc.collect()
    assert a[:, 0].tolist() == [0, 1, 2, 3]
    for name in ("int8", "int16", "int32", "int64", "uint8", "float16", "float32", "float64", "bool", "complex64",
                 "complex128"):
        assert tidepool.from_dlpack(torch.ones(3, dtype=getattr(torch, name))).dtype == name


def test_tensors_that_cannot_be_shown(torch):
    for make, word in ((lambda: torch.zeros(3, dtype=torch.bfloat16), "code 4"),
                       (lambda: torch.zeros(3, requires_grad=True), "gradient"),
                       (lambda: torch.zeros(3, dtype=torch.complex64).conj(), "conjugate"),
                       (lambda: torch.zeros(3).to_sparse(), "layout")):
        with pytest.raises(BufferError, match=word):
            tidepool.from_dlpack(make())


def test_there_and_back(torch):
    pool = tidepool.Pool()
    with pool.scope() as s:
        a = s.arange(6, dtype="i8").reshape(2, 3)
        b = tidepool.from_dlpack(torch.from_dlpack(a).t())
        assert b.ctypes.data == a.ctypes.data and (b == a.T).all() and b.flags.writeable
        del a
    with pool.scope() as s:
        s.zeros(6, "i8")
    assert b.tolist() == [[0, 3], [1, 4], [2, 5]] and pool.stats()["pinned"] == 1


# ---- PyTorch's allocator ----

CALLER = r"""
#include <cstring>
#include <exception>
#include <sys/types.h>
extern "C" long caught(void *(*function)(ssize_t, int, void *), long bytes, int device, char *words)
{
    try {
        return reinterpret_cast<long>(function(bytes, device, nullptr));
    } catch (const std::exception &error) {
        strncpy(words, error.what(), 199);
        return -1;
    }
}
"""


@pytest.mark.skipif(COMPILER is None, reason="no compiler for C++")
def test_what_pytorch_calls_throws(tmp_path):
    """NULL would be a tensor at address 0."""
    made = tmp_path / "caller.so"
    subprocess.run([COMPILER, "-shared", "-fPIC", "-x", "c++", "-", "-o", made], input=CALLER, text=True, check=True)
    told = python(f"""
        import ctypes, tidepool
        module = ctypes.CDLL(tidepool._core.__file__)
        caller = ctypes.CDLL({str(made)!r})
        for size in (100, 0, -1):
            words = ctypes.create_string_buffer(200)
            print(caller.caught(module.tide_python_torch_malloc, ctypes.c_long(size), {NO_SUCH_DEVICE}, words), words.value.decode())
        module.tide_torch_free.restype = None
        module.tide_torch_free(None, ctypes.c_ssize_t(8), 0, None)
    """).splitlines()
    assert told[0].startswith("-1 ") and "device 64" in told[0] and told[1] == "0 " and told[2].startswith("-1 "), told


TELLER = r"""
#include <functional>
#include <utility>
struct CUstream_st;
using Pool = std::pair<unsigned long long, unsigned long long>;
using Filter = std::function<bool(CUstream_st *)>;
static unsigned asked;
extern "C" const char *begun(void (*function)(int, Pool, Filter), int device)
{
    static std::string words;
    try {
        function(device, {1, 2}, [](CUstream_st *) { return asked++, true; });
    } catch (const std::exception &error) {
        words = error.what();
        return words.c_str();
    }
    return nullptr;
}
extern "C" void ended(void (*function)(int, Pool), int device)
{
    function(device, {1, 2});
}
"""


@pytest.mark.skipif(COMPILER is None, reason="no compiler for C++")
def test_what_pytorch_tells_of_captures(tmp_path):
    """In the types of PyTorch's own functions; a device that is not there is an exception."""
    made = tmp_path / "teller.so"
    subprocess.run([COMPILER, "-shared", "-fPIC", "-include", "string", "-x", "c++", "-", "-o", made], input=TELLER,
                   text=True, check=True)
    told = python(f"""
        import ctypes, tidepool
        module = ctypes.CDLL(tidepool._core.__file__)
        teller = ctypes.CDLL({str(made)!r})
        teller.begun.restype = ctypes.c_char_p
        print(teller.begun(module.tide_python_torch_begin, {NO_SUCH_DEVICE}).decode())
        for end in (module.tide_python_torch_end, module.tide_python_torch_release):
            teller.ended(end, 0)
            teller.ended(end, {NO_SUCH_DEVICE})
        try:
            tidepool._core.torch_stats({NO_SUCH_DEVICE})
        except ValueError as error:
            print(error)
    """).splitlines()
    assert len(told) == 2 and all("device 64" in line for line in told), told


def test_the_allocator_connects_what_pytorch_tells(monkeypatch):
    """As much of PyTorch as the allocator uses."""
    told = {}

    class Setters:
        def __getattr__(self, name):
            return lambda address: told.update({name: address})

    class Allocator:
        def __init__(self, path, malloc, free):
            self.symbols = [ctypes.CDLL(path)[name] for name in (malloc, free)]

        def allocator(self):
            return Setters()

    memory = types.SimpleNamespace(CUDAPluggableAllocator=Allocator)
    monkeypatch.setitem(sys.modules, "torch", types.SimpleNamespace(cuda=types.SimpleNamespace(memory=memory)))
    assert isinstance(tidepool.torch.allocator(), Allocator)
    assert set(told) == {"set_begin_allocate_to_pool", "set_end_allocate_to_pool_fn", "set_release_pool",
                         "set_reset_fn", "set_record_stream_fn", "set_memory_fraction_fn"} and all(told.values())


@with_torch
def test_pytorch_takes_the_allocator():
    python("""
        import torch, tidepool.torch
        allocator = tidepool.torch.allocator()
        assert isinstance(allocator, torch.cuda.memory.CUDAPluggableAllocator)
        torch.cuda.memory.change_current_allocator(allocator)
        assert torch.ones(3).sum() == 3
        torch._C._cuda_setMemoryFraction(0.5, 64)  # there are 0 to 63: so it is heard of
        assert "device 64" in tidepool._core.error_last()
        try:
            torch._C._cuda_getCheckpointState(0, (0, 1))
        except RuntimeError as error:
            assert "does not yet support" in str(error)  # else the page's advice to do without trees of graphs is out of date
        else:
            raise AssertionError
    """)


# ---- CuPy's allocator ----


@pytest.fixture
def made_up_cupy(monkeypatch):
    """As much of CuPy as the allocator uses. Its C allocator asks nobody whether an address is one."""
    current = types.SimpleNamespace(ptr=0)
    made = []

    class Allocator:
        def __init__(self, stream, malloc, free, owner):
            self.stream, self.owner = stream, owner
            self.function = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)(malloc)
            assert malloc and free
            made.append(self)

        def malloc(self, size):
            return types.SimpleNamespace(ptr=self.function(self.stream, size, 0) or 0 if size else 0)

    function = ctypes.CFUNCTYPE(ctypes.c_ssize_t)(lambda: current.ptr)
    named = ctypes.create_string_buffer(b"intptr_t (void)")
    capsule = ctypes.pythonapi.PyCapsule_New
    capsule.restype, capsule.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
    offered = {"get_current_stream_ptr": capsule(ctypes.cast(function, ctypes.c_void_p), ctypes.addressof(named), None)}
    cuda = types.SimpleNamespace(get_current_stream=lambda: current, stream=types.SimpleNamespace(__pyx_capi__=offered),
                                 memory=types.SimpleNamespace(CFunctionAllocator=Allocator))
    monkeypatch.setitem(sys.modules, "cupy", types.SimpleNamespace(cuda=cuda))
    yield current, made
    del function, named


def test_cupys_allocator_asks_for_the_current_stream(made_up_cupy, monkeypatch):
    current, made = made_up_cupy
    asked = []

    @ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    def malloc(stream, size, device):
        asked.append((stream or 0, size, device))
        return 4096

    address = ctypes.cast(malloc, ctypes.c_void_p).value
    monkeypatch.setattr(_core, "cupy_functions", lambda: (address, address))
    allocate = tidepool.cupy.allocator()
    for current.ptr in (0, 64, 0, 64):
        assert allocate(100).ptr == 4096
    assert asked == [(0, 100, 0), (64, 100, 0)] * 2 and len(made) == 2
    assert all(allocator.owner is current for allocator in made)  # so the stream lives
    assert allocate(0).ptr == 0


def test_cupys_allocator_fails_with_the_librarys_words(made_up_cupy, monkeypatch):
    library = ctypes.CDLL(str(pathlib.Path(tidepool.__file__).with_name("libtidepool.so.0")))
    malloc, free = _core.cupy_functions()
    assert free == ctypes.cast(library.tide_cupy_free, ctypes.c_void_p).value
    too_much = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)(
        lambda stream, size, device: ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)(
            malloc)(stream, size, NO_SUCH_DEVICE))
    monkeypatch.setattr(_core, "cupy_functions", lambda: (ctypes.cast(too_much, ctypes.c_void_p).value, free))
    with pytest.raises(MemoryError, match="device 64"):
        tidepool.cupy.allocator()(100)


@with_cupy
def test_cupy_takes_the_allocator():
    """Without a driver CuPy asks for the device first, and fails there."""
    python("""
        import cupy, tidepool.cupy
        allocate = tidepool.cupy.allocator()
        cupy.cuda.set_allocator(allocate)
        assert cupy.cuda.get_allocator() is allocate
        malloc, free = tidepool._core.cupy_functions()
        cupy.cuda.memory.CFunctionAllocator(0, malloc, free, None)
        try:
            cupy.empty(3)
        except cupy.cuda.runtime.CUDARuntimeError as error:
            print(error)
        else:
            raise AssertionError
    """)


def test_the_allocators_want_their_libraries(monkeypatch):
    for name, make in (("torch", tidepool.torch.allocator), ("cupy", tidepool.cupy.allocator)):
        monkeypatch.setitem(sys.modules, name, None)
        with pytest.raises(ModuleNotFoundError, match=name):
            make()
