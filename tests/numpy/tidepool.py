# SPDX-License-Identifier: MIT
"""As much of Tidepool as the exchange of arrays needs, through ctypes: what a binding would be."""
import ctypes
from ctypes import (CFUNCTYPE, POINTER, Structure, c_char_p, c_int, c_int32, c_int64, c_size_t,
                    c_uint8, c_uint16, c_uint32, c_uint64, c_void_p)

TYPES = {  # the names of NumPy
    "int32": 1, "float32": 2, "float64": 3, "int64": 4, "int8": 5, "int16": 6, "uint8": 7,
    "uint16": 8, "uint32": 9, "uint64": 10, "float16": 11, "bfloat16": 12, "complex64": 13,
    "complex128": 14, "bool": 15,
}
ROW_MAJOR, COLUMN_MAJOR = 0, 1


class Type(Structure):
    _fields_ = [("code", c_uint8), ("bits", c_uint8), ("lanes", c_uint16)]


class Tensor(Structure):
    _fields_ = [("data", c_void_p), ("device_type", c_int32), ("device_id", c_int32),
                ("ndim", c_int32), ("dtype", Type), ("shape", POINTER(c_int64)),
                ("strides", POINTER(c_int64)), ("byte_offset", c_uint64)]


DELETER = CFUNCTYPE(None, c_void_p)


class Managed(Structure):
    _fields_ = [("major", c_uint32), ("minor", c_uint32), ("manager_ctx", c_void_p),
                ("deleter", DELETER), ("flags", c_uint64), ("tensor", Tensor)]


class Header(Structure):
    _fields_ = [("tensor", Tensor), ("type", c_uint32), ("order", c_uint32), ("length", c_size_t)]


class Statistics(Structure):
    _fields_ = [(name, c_size_t) for name in (
        "bytes_held", "bytes_live", "bytes_peak", "bytes_limit", "slots", "slots_live", "shelves",
        "log_entries", "depth", "allocations", "releases", "requests", "bytes_exported",
        "exchanges", "bytes_settled")] + [("growth", c_uint64 * 8)]


class Error(Exception):
    pass


VERSIONED, USED = b"dltensor_versioned", b"used_dltensor_versioned"  # capsules keep the pointers
python = ctypes.pythonapi
python.PyCapsule_New.restype = ctypes.py_object
python.PyCapsule_New.argtypes = [c_void_p, c_char_p, c_void_p]
python.PyCapsule_IsValid.argtypes = [ctypes.py_object, c_char_p]
python.PyCapsule_GetPointer.restype = c_void_p
python.PyCapsule_GetPointer.argtypes = [ctypes.py_object, c_char_p]
python.PyCapsule_SetName.argtypes = [ctypes.py_object, c_char_p]


offered = []  # capsules that consumers were given


def withdraw():
    """A capsule that no consumer took still owns its tensor. (A destructor would do this better,
    but one written in Python would run, and fail, while the consumer's refusal is being raised.)
    """
    while offered:
        capsule = offered.pop()
        if python.PyCapsule_IsValid(capsule, VERSIONED):
            managed = python.PyCapsule_GetPointer(capsule, VERSIONED)
            python.PyCapsule_SetName(capsule, USED)
            Managed.from_address(managed).deleter(managed)


class Library:
    def __init__(self, path):
        self.c = ctypes.CDLL(path)
        shape = POINTER(c_int64)
        for name, result, arguments in (
                ("tide_error_message", c_char_p, []),
                ("tide_pool_create", c_void_p, [c_void_p]),
                ("tide_pool_destroy", c_int, [c_void_p]),
                ("tide_pool_reset", c_int, [c_void_p]),
                ("tide_pool_check", c_int, [c_void_p]),
                ("tide_pool_stats", c_int, [c_void_p, POINTER(Statistics)]),
                ("tide_scope_enter", c_int, [c_void_p, c_void_p, c_void_p]),
                ("tide_scope_leave", c_int, [c_void_p]),
                ("tide_array_acquire_slow", POINTER(Header),
                 [c_void_p, c_uint32, c_int, c_int, shape, c_char_p, c_char_p, c_uint32]),
                ("tide_array_view", POINTER(Header), [c_void_p, POINTER(Header), shape, shape, shape]),
                ("tide_array_export", POINTER(Managed), [c_void_p, POINTER(Header)]),
                ("tide_array_import", POINTER(Header), [c_void_p, c_void_p])):
            function = getattr(self.c, name)
            function.restype, function.argtypes = result, arguments

    def done(self, status):
        if status != 0:
            raise Error(self.c.tide_error_message().decode())

    def made(self, pointer):
        if not pointer:
            raise Error(self.c.tide_error_message().decode())
        return pointer


def extents(values):
    return (c_int64 * max(len(values), 1))(*values)


class Array:
    """A header, and the pool it is of. Offers itself to consumers of DLPack."""

    def __init__(self, pool, header):
        self.pool, self.header = pool, pool.library.made(header)
        tensor = self.header.contents.tensor
        self.address = (tensor.data or 0) + tensor.byte_offset
        self.shape = tuple(tensor.shape[: tensor.ndim])
        self.strides = tuple(tensor.strides[: tensor.ndim])  # in elements

    def view(self, start, extent, step):
        return Array(self.pool, self.pool.library.c.tide_array_view(
            self.pool.handle, self.header, extents(start), extents(extent), extents(step)))

    def __dlpack_device__(self):
        return 1, 0

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        if max_version is None or max_version[0] < 1:
            raise BufferError("only versioned tensors are offered")
        library = self.pool.library
        managed = library.made(library.c.tide_array_export(self.pool.handle, self.header))
        offered.append(python.PyCapsule_New(ctypes.cast(managed, c_void_p), VERSIONED, None))
        return offered[-1]


class Pool:
    def __init__(self, library):
        self.library, self.c = library, library.c
        self.handle = library.made(self.c.tide_pool_create(None))

    def destroy(self):
        self.library.done(self.c.tide_pool_destroy(self.handle))

    def acquire(self, name, shape, order=ROW_MAJOR):
        return Array(self, self.c.tide_array_acquire_slow(
            self.handle, TYPES[name], order, len(shape), extents(shape), None, None, 0))

    def take(self, producer):
        """Consumes what another library offers, as consumers do."""
        capsule = producer.__dlpack__(max_version=(1, 0))
        managed = python.PyCapsule_GetPointer(capsule, VERSIONED)
        python.PyCapsule_SetName(capsule, USED)
        return Array(self, self.c.tide_array_import(self.handle, managed))

    def stats(self):
        statistics = Statistics()
        self.library.done(self.c.tide_pool_stats(self.handle, ctypes.byref(statistics)))
        return statistics

    def check(self):
        self.library.done(self.c.tide_pool_check(self.handle))

    def __enter__(self):
        """A scope. They nest."""
        scope = (c_uint64 * 32)()
        self.library.done(self.c.tide_scope_enter(self.handle, None, scope))
        self.__dict__.setdefault("scopes", []).append(scope)
        return self

    def __exit__(self, *_):
        self.library.done(self.c.tide_scope_leave(self.scopes.pop()))
