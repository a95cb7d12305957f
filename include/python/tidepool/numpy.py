# SPDX-License-Identifier: MIT
"""NumPy's temporaries from buffers, in two lines and without a change to the program.

>>> import numpy, tidepool.numpy
>>> with tidepool.numpy.using():
...     a = numpy.ones(100_000)
>>> tidepool.numpy.holds(a)
True

The handler is in force in the thread and context (contextvars) that called use(), as NumPy defines
it: a new thread begins with NumPy's own. use(all_threads=True) has it in force in all threads. Each
array remembers how it was allocated, so it may outlive the handler and be freed anywhere. Arrays of
fewer than `least()` bytes are NumPy's own.
"""
from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from . import _core

__all__ = ["active", "holds", "least", "off", "set_least", "stats", "trim", "use", "using"]


def use(*, all_threads: bool = False) -> None:
    """From now on NumPy's arrays get their memory from buffers, in this thread and context.

    all_threads: in all others, too, those that are there and those that begin later, whoever starts
    them. A context that has chosen a handler itself keeps that; a process that is spawned begins with
    NumPy's own. It costs small arrays less: a context that has a variable is searched by NumPy for
    others, in each operation."""
    if all_threads:
        _core.handler_everywhere(True)
    if not all_threads or not active():
        _core.handler_set(None)


def off(*, all_threads: bool = False) -> None:
    """From now on NumPy's own handler serves again, in this thread and context; all_threads: also in
    all others that called no use() themselves. Arrays that have buffers keep them."""
    if all_threads:
        _core.handler_everywhere(False)
    _core.handler_set(_core.handler_default())


@contextlib.contextmanager
def using() -> Iterator[None]:
    """use() for a block. At its end the handler that was in force before is so again."""
    before = _core.handler_set(None)
    try:
        yield
    finally:
        _core.handler_set(before)


def active() -> bool:
    """Do new arrays of this thread and context come from buffers?"""
    return _core.handler_in_force()


def holds(array: Any) -> bool:
    """Does the memory that the array shows begin a buffer?"""
    return _core.handler_holds(array)


def stats() -> dict[str, int]:
    """Counts since the process began: hits and misses of the cache, buffers and bytes that are
    live and cached, the most bytes at once, and page_faults_saved: pages of 4 KiB that hits were
    given, each of which would have been a page fault had the memory come from the system. Pools of
    this package draw from the same buffers and are counted, too."""
    return _core.handler_stats()


def trim() -> int:
    """Gives all cached memory back to the system. Returns how many bytes that were."""
    return _core.handler_trim()


def least() -> int:
    """Bytes from which an array gets a buffer."""
    return _core.handler_least()


def set_least(nbytes: int) -> None:
    """Sets that size, for the whole process."""
    _core.handler_set_least(nbytes)
