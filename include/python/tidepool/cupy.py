# SPDX-License-Identifier: MIT
"""CuPy's memory from Tidepool's buffers.

    import cupy, tidepool.cupy
    cupy.cuda.set_allocator(tidepool.cupy.allocator())
"""
from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from . import _core

__all__ = ["allocator"]


def allocator() -> Callable[[int], Any]:
    """A function for `cupy.cuda.set_allocator`, over each device's shared buffers.

    An array's memory is of the stream that is current when it is made, and goes to the next array behind the work
    that was queued there before it died; the host waits for nothing. A stream that arrays were made on is kept for
    good, for memory of it is in the cache. A device that is full is a MemoryError with the library's message.
    ModuleNotFoundError without CuPy. It can be made without a GPU, only not used.
    """
    cupy = importlib.import_module("cupy")
    malloc, free = _core.cupy_functions()

    def of_stream(pointer: int) -> Callable[[int], Any]:
        return cupy.cuda.memory.CFunctionAllocator(pointer, malloc, free, cupy.cuda.get_current_stream()).malloc

    return _core.cupy_allocator(cupy.cuda.stream.__pyx_capi__["get_current_stream_ptr"], of_stream)
