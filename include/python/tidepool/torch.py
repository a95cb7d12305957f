# SPDX-License-Identifier: MIT
"""PyTorch's device memory from Tidepool's buffers.

    import torch, tidepool.torch
    torch.cuda.memory.change_current_allocator(tidepool.torch.allocator())   # before the first tensor

Tensors of the host need nothing of this: `torch.from_dlpack(array)` shows an array of a scope, or a
buffer, and `tidepool.from_dlpack(tensor)` a tensor.
"""
from __future__ import annotations

import importlib
from typing import Any

from . import _core

__all__ = ["allocator"]


def allocator() -> Any:
    """A `torch.cuda.memory.CUDAPluggableAllocator` over each device's shared buffers.

    Memory that is freed on a stream goes to the next tensor behind the work that was queued there;
    the host waits for nothing. A device that is full is a RuntimeError with the library's message.
    What is PyTorch's own here is not heard of: `Tensor.record_stream` (let streams wait for each
    other before a tensor is dropped that both use), `torch.cuda.memory_stats`.
    ModuleNotFoundError without PyTorch. It can be made without a GPU, only not used.
    """
    torch = importlib.import_module("torch")
    assert _core.__file__ is not None
    return torch.cuda.memory.CUDAPluggableAllocator(_core.__file__, "tide_python_torch_malloc", "tide_torch_free")
