# SPDX-License-Identifier: MIT
"""PyTorch's device memory from Tidepool's buffers.

    import torch, tidepool.torch
    torch.cuda.memory.change_current_allocator(tidepool.torch.allocator())   # before the first tensor

Tensors of the host need nothing of this: `torch.from_dlpack(array)` shows an array of a scope, or a
buffer, and `tidepool.from_dlpack(tensor)` a tensor.
"""
from __future__ import annotations

import ctypes
import importlib
import os
import pickle
from typing import Any

from . import _core

__all__ = ["allocator", "snapshot", "stats"]


def allocator() -> Any:
    """A `torch.cuda.memory.CUDAPluggableAllocator` over each device's shared buffers.

    Memory that is freed on a stream goes to the next tensor behind the work that was queued there;
    the host waits for nothing and calls no driver. PyTorch tells it of captures: a graph's memory is its
    pool's (`torch.cuda.graph(g, pool=...)`), serves again within the capture and in others of that pool,
    and stays the pool's when PyTorch has dropped it, until the device has no other memory, or until
    `torch.cuda.empty_cache()`, which also gives back what is cached beside graphs. Either waits for the device
    then, but not while a graph is captured. `Tensor.record_stream` is heard of, and
    `torch.cuda.set_per_process_memory_fraction` limits all that Tidepool holds of the device. A device that is full is a
    RuntimeError with the library's message. For figures ask `stats`, not `torch.cuda.memory_stats`.
    ModuleNotFoundError without PyTorch, AttributeError with one before 2.3. It can be made without a GPU, only not
    used.
    """
    torch = importlib.import_module("torch")
    assert _core.__file__ is not None
    made = torch.cuda.memory.CUDAPluggableAllocator(_core.__file__, "tide_python_torch_malloc", "tide_torch_free")
    module = ctypes.CDLL(_core.__file__)
    for tell, name in (("set_begin_allocate_to_pool", "tide_python_torch_begin"),
                       ("set_end_allocate_to_pool_fn", "tide_python_torch_end"),
                       ("set_release_pool", "tide_python_torch_release"),
                       ("set_reset_fn", "tide_torch_empty_cache"),
                       ("set_memory_fraction_fn", "tide_torch_memory_fraction"),
                       ("set_record_stream_fn", "tide_torch_record_stream")):
        getattr(made.allocator(), tell)(ctypes.cast(getattr(module, name), ctypes.c_void_p).value)
    _core.torch_told()
    return made


def stats(device: int = 0) -> dict[str, int]:
    """What PyTorch and CuPy hold on the device, and what is cached for them.

    `live` allocations with `bytes_live`, rounded up; `bytes_cached` for the next; of both `bytes_graphs` in
    `graph_pools` of captured graphs, dropped ones too; allocations that were cached, `hits`, and that were not, `misses`.
    `bytes_peak` is the most that all pools and buffers have ever held of the device at once, in use and cached, as
    `torch.cuda.max_memory_reserved` tells of PyTorch's own allocator; what was in use at most is not counted.
    """
    return _core.torch_stats(device)


def snapshot(path: str | os.PathLike[str], device: int = 0) -> None:
    """Writes what PyTorch and CuPy hold on the device now, and what is cached, for PyTorch's memory viewer
    (pytorch.org/memory_viz), as `torch.cuda.memory._dump_snapshot` does for PyTorch's own allocator.

    Each allocation is a segment of one block, live or inactive, with its graph's pool. There is no history and there
    are no stacks: the trace has everything appear at once, so its timeline ends with what there is.
    """
    segments: list[dict[str, Any]] = []
    trace: list[dict[str, Any]] = []
    for address, size, live, pool in sorted(_core.torch_blocks(device)):
        used = size if live else 0
        block = {"address": address, "size": size, "requested_size": used, "frames": [],
                 "state": "active_allocated" if live else "inactive"}
        segments.append({"device": device, "address": address, "total_size": size, "allocated_size": used,
                         "active_size": used, "requested_size": used, "stream": 0, "segment_type": "large",
                         "segment_pool_id": pool, "is_expandable": False, "frames": [], "blocks": [block]})
        for action in ("segment_alloc", "alloc")[:1 + live]:
            trace.append({"action": action, "addr": address, "size": size, "stream": 0, "time_us": 0, "frames": []})
    with open(path, "wb") as file:
        pickle.dump({"segments": segments, "device_traces": [[] for _ in range(device)] + [trace],
                     "allocator_settings": {}}, file)
