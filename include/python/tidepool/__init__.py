# SPDX-License-Identifier: MIT
"""Tidepool: temporary arrays for hot loops.

>>> import tidepool
>>> pool = tidepool.Pool()
>>> with pool.scope() as s:
...     a = s.ones((100, 100), "f4")
...     total = float(a.sum())
>>> total
10000.0

When the scope ends, its arrays' memory is free again for the next. An array that somebody still
holds is not touched: its memory leaves the pool until the array is gone. So `a` is still good:

>>> float(a[0, 0]), pool.stats()["pinned"]
(1.0, 1)

`tidepool.numpy` gives NumPy's own temporaries such memory, without a change to the program.
"""
from __future__ import annotations

import atexit
import functools
import inspect
import threading
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar, overload

from . import _core, numpy, profile
from ._core import (Buffer, Buffers, DeviceArray, EscapeWarning, Scope, StaleError, ThreadError, __version__,
                    settle, step)
from .page import facts, report
from .steer import Setting, Settings, Site, Sites, log_events, on_event, settings, sites
from .tuning import Knob, Tunable, Variants, measure, measured, tunable, tunables, variants

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Buffer", "Buffers", "DeviceArray", "EscapeWarning", "Knob", "Pool", "Scope", "Setting", "Settings", "Site",
           "Sites", "StaleError", "ThreadError", "Tunable", "Variants", "facts", "from_dlpack", "local", "log_events",
           "measure", "measured", "numpy", "on_event", "pools", "profile", "report", "scoped", "settings", "settle",
           "sites", "step", "tunable", "tunables", "variants", "__version__"]

Result = TypeVar("Result")
_pools: dict[int, weakref.ref[Pool]] = {}  # by id: list() of its values runs no code of Python's
_mine = threading.local()


class Pool(_core.Pool):
    """Memory for the arrays of scopes. It belongs to the thread that made it.

    limit_bytes: most memory that it may hold, 0 for no limit; up to twice as much where a cached
    buffer serves that is larger. check: 1 has memory poisoned when a scope ends, which shows code
    that uses addresses after it.

    device: "cuda:0" for memory of a GPU. Its scopes have `empty`, `zeros` and their `_like`, and their arrays are
    for other libraries to take: `torch.from_dlpack(a)`, `cupy.from_dlpack(a)`. stream: the one that its work is
    queued on, of CuPy, PyTorch or anything with `__cuda_stream__`, or a number; without one CUDA's legacy default
    stream, which is PyTorch's and CuPy's own. What takes an array on another stream declares that (`use_on`).

    >>> pool = Pool("mine")
    >>> with pool.frame(((2, 3), "f4"), 5) as (a, b):
    ...     a.shape, a.dtype.name, b.shape, b.dtype.name
    ((2, 3), 'float32', (5,), 'float64')
    """

    def __init__(self, name: str = "python", limit_bytes: int = 0, check: int = 0, device: str = "host",
                 stream: Any = None) -> None:
        # Not by super(): nanobind would make a bound method, without a look whether there is memory.
        number = _stream_number(stream)
        _core.Pool.__init__(self, name, limit_bytes, check, device, number)
        self._streams = {number: stream}  # they live as long as what uses them
        key = id(self)
        _pools[key] = weakref.ref(self, functools.partial(_pools.pop, key))

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def use_on(self, stream: Any) -> None:
        """Declares that its arrays are used on this stream, too, until the scope ends that is open now: the end comes
        behind what is queued there by then. Taking an array by DLPack does it.
        """
        number = _stream_number(stream)
        self._use_on(number)
        self._streams[number] = stream

    def __reduce__(self) -> Any:
        raise TypeError("a pool is memory of this process: it cannot be pickled or copied")

    def __repr__(self) -> str:
        if self.closed:
            return f"<tidepool.Pool {self.name!r}, closed>"
        return f"<tidepool.Pool {self.name!r}>"

    def _repr_html_(self) -> str:
        from .steer import table
        if self.closed:
            return table(repr(self), ["closed"], [])
        try:
            return table(repr(self), ["", ""], list(self.stats().items()))
        except ThreadError:
            return table(repr(self), ["another thread's"], [])


def from_dlpack(x: Any) -> NDArray[Any]:
    """The array of another library as a NumPy array on the same memory, by DLPack.

    x: an array with `__dlpack__`, or a capsule. It is told to make no copy. Memory of a device is
    refused (BufferError). The array may be written if the other library says so; what it says no
    version of DLPack for, may not. The memory is held until the last array on it is gone.

    >>> b = Buffers().acquire(4, zeroed=True)
    >>> a = from_dlpack(b)
    >>> memoryview(b)[1] = 7
    >>> a.tolist()
    [0, 7, 0, 0]
    """
    return _core.from_dlpack(x)


def pools() -> list[Pool]:
    """The pools of Python that are there now, of all threads."""
    known = [reference() for reference in list(_pools.values())]
    return [pool for pool in known if pool is not None and not pool.closed]


def local() -> Pool:
    """The calling thread's own pool. It ends with the thread. Where another thread has adopted it, or it
    was closed, this one gets a new one.

    >>> local() is local()
    True
    """
    pool = getattr(_mine, "pool", None)
    if pool is None or not pool.usable:
        pool = _mine.pool = Pool(threading.current_thread().name)
    return pool


@overload
def scoped(function: Callable[..., Result], *, pool: Pool | None = None) -> Callable[..., Result]: ...
@overload
def scoped(function: None = None, *, pool: Pool | None = None) -> Callable[[Callable[..., Result]], Callable[..., Result]]: ...
def scoped(function: Callable[..., Any] | None = None, *, pool: Pool | None = None) -> Any:
    """Decorator: each call has a scope of its own, which the function gets as its argument `scope`.

    >>> @scoped
    ... def variance(x, *, scope):
    ...     d = scope.empty_like(x)
    ...     d[:] = x - x.mean()
    ...     return float((d * d).mean())
    >>> import numpy
    >>> variance(numpy.array([1.0, 3.0]))
    1.0

    The scope is of the given pool, else of the calling thread's. An array that is returned stays
    good. Each function is a site of its own. Generators and coroutines are refused: they would be
    suspended inside of their scope while others use the pool.
    """
    if function is None:
        return functools.partial(scoped, pool=pool)
    if not callable(function):
        raise TypeError(f"a function is wanted, not {function!r}")
    if pool is not None and not isinstance(pool, Pool):
        raise TypeError(f"a tidepool.Pool is wanted, not {pool!r}")
    wrapped = inspect.unwrap(function)
    if (inspect.isgeneratorfunction(wrapped) or inspect.iscoroutinefunction(wrapped)
            or inspect.isasyncgenfunction(wrapped)):
        raise TypeError(f"{_name(wrapped)} is a generator or coroutine: it would be suspended "
                        "inside of its scope; give it a pool of its own and open scopes in it")
    site: Any = getattr(wrapped, "__code__", None) or _name(wrapped)  # the place of its code, or a name

    @functools.wraps(function)
    def call(*args: Any, **keywords: Any) -> Any:
        with (pool or local()).scope(site) as scope:
            return function(*args, scope=scope, **keywords)

    return call


def _stream_number(stream: Any) -> Any:
    """CUDA's handle of a stream, as CuPy (ptr), PyTorch (cuda_stream) and others (__cuda_stream__) tell it."""
    if stream is None:
        return 0
    if hasattr(stream, "__cuda_stream__"):
        return stream.__cuda_stream__()[1]
    return getattr(stream, "cuda_stream", getattr(stream, "ptr", stream))


def _name(function: Callable[..., Any]) -> str:
    return str(getattr(function, "__qualname__", None) or repr(function))


def _end() -> None:
    _core.events_end()


atexit.register(_end)
