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

    An array's memory is of the stream that is current when it is made, and goes to the next array
    behind the work that was queued there before it died; the host waits for nothing. So a stream
    has to live as long as the arrays that were made on it. A device that is full is a MemoryError
    with the library's message. ModuleNotFoundError without CuPy. It can be made without a GPU, only
    not used.
    """
    cupy = importlib.import_module("cupy")
    malloc, free = _core.cupy_functions()
    streams: dict[int, Any] = {}

    def allocate(nbytes: int) -> Any:
        stream = cupy.cuda.get_current_stream().ptr
        of_stream = streams.get(stream)
        if of_stream is None:
            of_stream = streams[stream] = cupy.cuda.memory.CFunctionAllocator(stream, malloc, free, None)
        memory = of_stream.malloc(nbytes)
        if memory.ptr == 0 and nbytes > 0:
            raise MemoryError(_core.error_last())
        return memory

    return allocate
