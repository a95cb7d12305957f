# SPDX-License-Identifier: MIT
"""Scopes: their arrays, and that none of them can dangle."""
import asyncio
import datetime
import gc
import linecache
import sys
import threading
import warnings
import weakref

import numpy
import pytest

import tidepool


@pytest.fixture
def pool():
    with tidepool.Pool("tested") as made:
        yield made
        gc.collect()
        made.check()


# ---- what arrays there are ----


def test_constructors_are_numpys(pool):
    none = numpy.zeros(3, [("a", "i4"), ("b", "U0")])["b"]
    with pool.scope() as s:
        for ours, theirs in (
                (s.zeros((2, 3)), numpy.zeros((2, 3))),
                (s.ones(4, "i2"), numpy.ones(4, "i2")),
                (s.zeros((2, 3), order="F"), numpy.zeros((2, 3), order="F")),
                (s.ones(shape=(2,), dtype=bool), numpy.ones(2, bool)),
                (s.full((2, 2), 7), numpy.full((2, 2), 7)),
                (s.full(3, 1 + 2j), numpy.full(3, 1 + 2j)),
                (s.full(3, 2.5, "f4"), numpy.full(3, 2.5, "f4")),
                (s.full((2, 3), [1, 2, 3]), numpy.full((2, 3), [1, 2, 3])),
                (s.full(3, ""), numpy.full(3, "")), (s.full(3, b""), numpy.full(3, b"")),
                (s.full(3, numpy.void(b"")), numpy.full(3, numpy.void(b""))),
                (s.zeros_like(none), numpy.zeros_like(none)), (s.copy(none), none.copy()),
                (s.arange(10), numpy.arange(10)),
                (s.arange(2, 10, 3), numpy.arange(2, 10, 3)),
                (s.arange(1.0, 2, 0.1), numpy.arange(1.0, 2, 0.1)),
                (s.arange(10, 0, -3), numpy.arange(10, 0, -3)),
                (s.arange(3, 1), numpy.arange(3, 1)),
                (s.arange(5, dtype="f4"), numpy.arange(5, dtype="f4")),
                (s.arange(1), numpy.arange(1)),
                (s.zeros(()), numpy.zeros(())),
                (s.zeros((0, 3)), numpy.zeros((0, 3))),
                (s.zeros((1,) * 12), numpy.zeros((1,) * 12)),
                (s.zeros(3, "M8[s]"), numpy.zeros(3, "M8[s]")),
                (s.zeros(3, "S5"), numpy.zeros(3, "S5")),
                (s.zeros(3, [("a", "i4"), ("b", "f8", 2)]), numpy.zeros(3, [("a", "i4"), ("b", "f8", 2)])),
                (s.zeros_like([[1, 2], [3, 4]]), numpy.zeros_like([[1, 2], [3, 4]])),
                (s.ones_like(numpy.ones((2, 3), "f4", "F")), numpy.ones((2, 3), "f4", "F")),
                (s.ones_like(numpy.ones(3), dtype="u1"), numpy.ones(3, "u1")),
                (s.copy(numpy.arange(6).reshape(2, 3)), numpy.arange(6).reshape(2, 3))):
            assert ours.dtype == theirs.dtype and ours.shape == theirs.shape
            assert (ours.strides == theirs.strides or not ours.size) and (ours == theirs).all()
            assert ours.flags.writeable and not ours.flags.owndata
            assert ours.ctypes.data % 64 == 0
        assert type(s.empty(3)) is numpy.ndarray and s.empty_like(numpy.ones(3, ">i4")).dtype == ">i4"
        del ours
    assert pool.stats()["pinned"] == 0


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("kind", ["i2", "u4", "i8", "f2", "f4", "f8", "c8", "c16", "m8[s]"])
def test_byte_orders(pool, order, kind):
    dtype = numpy.dtype(order + kind)
    with pool.scope() as s:
        for ours, theirs in ((s.arange(0, 2000, 100, dtype), numpy.arange(0, 2000, 100).astype(dtype)),
                             (s.arange(2, dtype=dtype), numpy.arange(2).astype(dtype)),
                             (s.arange(0, dtype=dtype), numpy.arange(0).astype(dtype)),
                             (s.ones(5, dtype), numpy.ones(5, dtype)),
                             (s.full(5, 300, dtype), numpy.full(5, 300, dtype)),
                             (s.copy(numpy.arange(300).astype(dtype)), numpy.arange(300).astype(dtype))):
            assert ours.dtype == dtype and ours.dtype.byteorder == theirs.dtype.byteorder
            assert ours.tobytes() == theirs.tobytes()
        del ours
    assert pool.stats()["pinned"] == 0


def test_arrays_of_a_scope_do_not_overlap(pool):
    with pool.scope() as s:
        arrays = [s.full(100, i, "f4") for i in range(50)]
        for i, a in enumerate(arrays):
            assert (a == i).all()
        del a, arrays


def test_a_frame_is_one_call(pool):
    with pool.frame(((2, 3), "f4"), 5, ((4,), numpy.int64), (2, 2)) as (a, b, c, d):
        assert (a.shape, b.shape, c.shape, d.shape) == ((2, 3), (5,), (4,), (2, 2))
        assert [x.dtype.str for x in (a, b, c, d)] == ["<f4", "<f8", "<i8", "<f8"]
        del a, b, c, d
    with pytest.raises(ValueError):
        with pool.frame((3, "f4"), -1):
            pass
    with pool.frame((3, numpy.int64(4))) as (a,):
        assert a.shape == (3, 4)
        del a
    assert pool.depth == 0 and pool.stats()["slots_live"] == 0


@pytest.mark.parametrize("call, error", [
    (lambda s: s.empty(3, object), TypeError), (lambda s: s.empty(3, [("a", "O")]), TypeError),
    (lambda s: s.empty(3, numpy.dtypes.StringDType()), TypeError),
    (lambda s: s.empty(-1), ValueError), (lambda s: s.zeros((3, -2)), ValueError),
    (lambda s: s.empty((1 << 40, 1 << 40)), ValueError), (lambda s: s.empty((0, 1 << 40, 1 << 40)), ValueError),
    (lambda s: s.empty(1 << 55), MemoryError), (lambda s: s.empty("x"), TypeError),
    (lambda s: s.empty(3, "no such"), TypeError), (lambda s: s.empty(3, "f4", "X"), ValueError),
    (lambda s: s.empty(3, "f4", "\udc80"), ValueError), (lambda s: s.empty(3, "f4", "C\0"), ValueError),
    (lambda s: s.full(3, 1, order=7), ValueError),
    (lambda s: s.empty(3, nonsense=1), TypeError), (lambda s: s.empty(3, shape=4), TypeError),
    (lambda s: s.empty(), TypeError), (lambda s: s.empty(1, "f4", "C", 1), TypeError),
    (lambda s: s.full(3, "x", "f4"), ValueError), (lambda s: s.arange(0, 1, 0), ZeroDivisionError),
    (lambda s: s.arange(3, dtype=("f4", 2)), TypeError), (lambda s: s.arange(2, dtype="S3"), TypeError),
    (lambda s: s.arange(datetime.date(2020, 1, 1), datetime.date(2020, 1, 3)), TypeError), (lambda s: s.arange(1, dtype=[("a", "i4")]), TypeError), (lambda s: s.arange(1e300), ValueError), (lambda s: s.empty(3, "S"), ValueError)])
def test_bad_input_raises_and_loses_nothing(pool, call, error):
    with pool.scope() as s:
        with pytest.raises(error):
            call(s)
        assert s.ones(3).sum() == 3
    assert pool.stats()["slots_live"] == 0 and pool.stats()["pinned"] == 0


def test_an_argument_that_ends_the_scope(pool):
    """A conversion runs code of the program; the array is not made in whatever scope is open then."""
    class Length:
        def __index__(self):
            s.__exit__(None, None, None)
            return 100

    with pool.scope() as outer:
        kept = outer.full(100, 1.0)
        s = pool.scope().__enter__()
        with pytest.raises(tidepool.StaleError, match="has ended"):
            s.empty(Length())
        assert (outer.zeros(100) + kept == 1).all()
        del kept


def test_a_frame_whose_specs_end_its_scope(pool):
    """Then it is not ended once more, nor in place of the one around."""
    class Length:
        def __index__(self):
            frame.__exit__(None, None, None)
            return 100

    for around in (False, True):
        outer = pool.scope().__enter__() if around else None
        frame = pool.frame(10, Length())
        with pytest.raises(tidepool.StaleError, match="has ended"):
            frame.__enter__()
        assert pool.depth == around and not frame.open
        if outer is not None:
            assert outer.ones(10).sum() == 10
            outer.__exit__(None, None, None)


@pytest.mark.filterwarnings("ignore:nanobind")
def test_objects_that_are_none(pool):
    for call in (lambda: tidepool.Pool.scope(3), lambda: tidepool.Pool.__new__(tidepool.Pool).scope(),
                 lambda: tidepool.Pool.__new__(tidepool.Pool).frame(3), lambda: tidepool.Scope(),
                 lambda: pool.__init__("again"), lambda: tidepool.Buffer(),
                 lambda: memoryview(tidepool.Buffer.__new__(tidepool.Buffer))):
        with pytest.raises((TypeError, RuntimeError)):
            call()
    with pool.scope() as s:
        s.empty(3)


# ---- what is held at the end ----


def escapes(a):
    """Ways to hold an array's memory."""
    yield a
    yield a[2:5]
    yield a.reshape(2, -1).T[1:]
    yield memoryview(a)
    yield numpy.from_dlpack(a)
    yield numpy.asarray(memoryview(a))
    yield numpy.lib.stride_tricks.as_strided(a, (3,), (8,))
    yield numpy.lib.stride_tricks.sliding_window_view(a, 3)
    yield [{"deep": a.view("u1")}]
    yield a.flat
    yield iter(a)
    yield lambda: a


@pytest.mark.parametrize("way", range(12))
def test_whatever_holds_an_array_pins_it(pool, way):
    with pool.scope() as s:
        a = s.arange(10, dtype="f8")
        address = a.ctypes.data
        holds = list(escapes(a))[way]
        del a
    assert pool.stats()["pinned"] == 1
    assert pool.stats()["bytes_exported"] > 0
    for _ in range(3):
        with pool.scope() as s:
            b = s.full(10, -1.0)
            assert b.ctypes.data != address
            del b
    assert holds is not None
    if isinstance(holds, numpy.ndarray):
        assert (holds >= 0).all()
    del holds
    assert pool.stats()["pinned"] == 1


def test_a_pinned_array_outlives_its_pool():
    pool = tidepool.Pool()
    with pool.scope() as s:
        kept = [s.full(1000, float(i)) for i in range(20)]
    pool.close()
    del pool, s
    gc.collect()
    for i, a in enumerate(kept):
        assert (a == i).all()


def test_what_is_dropped_by_another_thread_comes_back(pool):
    kept = []
    with pool.scope() as s:
        kept.append(s.ones(1 << 16))
    thread = threading.Thread(target=kept.clear)
    thread.start()
    thread.join()
    with pool.scope() as s:
        s.ones(1 << 16)
    assert pool.stats()["bytes_exported"] == 0


def test_steady_escapes_do_not_grow(pool):
    """The local variable of a loop holds its array until the next one is there."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for i in range(300):
            with pool.scope() as s:
                a = s.full(1 << 15, float(i))
            assert a[5] == i
            if i == 20:
                before = tidepool.numpy.stats()["misses"]
    assert pool.stats()["pinned"] == 300
    assert tidepool.numpy.stats()["misses"] == before


def test_a_loop_whose_arrays_escape_is_warned_of_once(pool):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(100):
            with pool.scope() as s:
                a = s.ones(10)
    assert a.sum() == 10
    assert [w.category for w in caught] == [tidepool.EscapeWarning]
    assert "test_scopes.py" in str(caught[0].message) and caught[0].filename == __file__


def test_the_warning_of_a_scoped_function_names_it_and_who_calls(pool):
    @tidepool.scoped(pool=pool)
    def returned(*, scope):
        return scope.ones(10)

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(100):
            a = returned()
    assert a.sum() == 10
    code = sys._getframe().f_code
    (warned,) = caught
    assert warned.category is tidepool.EscapeWarning and warned.filename == code.co_filename
    assert "a = returned()" in linecache.getline(warned.filename, warned.lineno)
    words = str(warned.message)
    assert f"returned (test_scopes.py:{returned.__wrapped__.__code__.co_firstlineno})" in words and "use @" not in words


def test_a_warning_that_is_an_error_leaves_the_pool_whole(pool):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(tidepool.EscapeWarning):
            for _ in range(100):
                with pool.scope() as s:
                    a = s.ones(10)
    assert a.sum() == 10 and pool.depth == 0


# ---- how scopes lie in each other ----


def test_scopes_nest(pool):
    with pool.scope() as outer:
        a = outer.full(100, 1.0)
        with pool.scope() as inner:
            b = inner.full(100, 2.0)
            assert (a == 1).all() and (b == 2).all()
            with pytest.raises(RuntimeError, match="open inside"):
                outer.empty(3)
            del b
        c = outer.full(100, 3.0)
        assert (a == 1).all() and (c == 3).all()
        del a, c
    assert pool.stats()["pinned"] == 0


def test_a_scope_ends_with_an_exception(pool):
    with pytest.raises(KeyError):
        with pool.scope() as s:
            s.ones(3)
            raise KeyError
    assert pool.depth == 0


def test_a_scope_that_has_ended_is_refused(pool):
    with pool.scope() as s:
        assert s.open and s.pool is pool
    assert not s.open
    with pytest.raises(tidepool.StaleError, match="has ended"):
        s.empty(3)
    with pytest.raises(tidepool.StaleError):
        s.__enter__()
    with pytest.raises(tidepool.StaleError):
        s.__exit__(None, None, None)
    with pytest.raises(tidepool.StaleError, match="not been entered"):
        pool.scope().empty(3)


def test_a_scope_that_is_dropped_open_is_ended(pool):
    s = pool.scope().__enter__()
    a = s.full(10, 4.0)
    del s
    assert pool.depth == 0 and pool.stats()["pinned"] == 1
    assert (a == 4).all()


@pytest.mark.parametrize("closed", [False, True])
def test_scopes_that_nest_deeper_than_a_stack_are_dropped(pool, closed):
    """Each has the one around it. Of these one array is kept."""
    opened = [pool.scope("deep").__enter__() for _ in range(100_000)]
    kept = opened[-1].full(10, 4.0)
    while closed and pool.depth:
        opened[pool.depth - 1].__exit__(None, None, None)
    innermost = opened.pop()
    del opened
    del innermost
    assert pool.depth == 0 and (kept == 4).all() and pool.stats()["pinned"] == 1


def test_a_generator_that_is_suspended_in_a_scope(pool):
    """The scope around ends it, its arrays stay good, and it is told."""
    def numbers():
        with pool.scope() as s:
            a = s.full(10, 5.0)
            yield a
            assert (a == 5).all()
            s.empty(3)

    with pool.scope() as outer:
        generator = numbers()
        a = next(generator)
        with pytest.raises(RuntimeError, match="generator or coroutine"):
            outer.empty(10)
    with pool.scope() as s:
        b = s.full(10, 6.0)
        assert (a == 5).all() and (b == 6).all()
        with pytest.raises(tidepool.StaleError, match="has ended"):
            next(generator)
    assert pool.depth == 0


def test_a_coroutine_that_leaves_out_of_order(pool):
    async def one(delay):
        with pool.scope() as s:
            a = s.full(10, delay)
            await asyncio.sleep(delay)
            assert (a == delay).all()

    async def both():
        return await asyncio.gather(one(0.01), one(0.05), return_exceptions=True)

    results = asyncio.run(both())
    assert results[0] is None
    assert isinstance(results[1], tidepool.StaleError) and "own pool" in str(results[1])
    assert pool.depth == 0


def test_a_scope_that_another_thread_drops(pool):
    """Its arrays stay good, and its level ends when the owner next ends a scope at the root."""
    box = [pool.scope()]
    s = box[0].__enter__()
    a = s.full(10, 8.0)
    del s
    thread = threading.Thread(target=box.clear)
    thread.start()
    thread.join()
    with pool.scope() as s:
        assert (s.full(10, 9.0) == 9).all() and (a == 8).all()
    assert pool.depth == 0
    with pool.scope() as s:
        b = s.full(10, 9.0)
        assert (a == 8).all()
        del b


# ---- scoped functions ----


def test_a_scoped_function_pins_what_it_returns():
    @tidepool.scoped
    def double(x, *, scope):
        "documented"
        other = scope.ones(1000)
        result = scope.empty_like(x)
        result[:] = 2 * x * other[0]
        return result

    before = tidepool.local().stats()["pinned"]
    results = [double(numpy.full(10, float(i))) for i in range(5)]
    for i, r in enumerate(results):
        assert (r == 2 * i).all()
    assert tidepool.local().stats()["pinned"] == before + 5
    assert double.__name__ == "double" and double.__doc__ == "documented"
    assert any("double" in site.name for site in tidepool.sites())


def test_scoped_functions_recurse_in_a_pool_of_ones_own(pool):
    @tidepool.scoped(pool=pool)
    def depth(n, *, scope):
        a = scope.full(10, float(n))
        below = depth(n - 1) if n else 0
        assert (a == n).all()
        return below + 1

    assert depth(50) == 51 and pool.stats()["scopes"] == 51 and pool.stats()["pinned"] == 0


def test_generators_and_coroutines_are_refused():
    def generator():
        yield

    async def coroutine():
        pass

    async def both():
        yield

    for function in (generator, coroutine, both):
        with pytest.raises(TypeError, match="pool of its own"):
            tidepool.scoped(function)


# ---- leaks ----


@pytest.mark.parametrize("opened", [False, True])
def test_scopes_in_cycles_are_collected(opened):
    class Sequence(list):
        pass

    def cycles():
        through_pool = tidepool.Pool("cycle")
        through_pool.scope_of_mine = through_pool.scope()
        other = tidepool.Pool("specs")
        specs = Sequence([10])
        frame = other.frame(specs)
        held = frame.__enter__() if opened else None
        if opened:
            through_pool.scope_of_mine.__enter__()
            through_pool.scope_of_mine.ones(100)
        specs.append(frame)
        return [weakref.ref(one) for one in (through_pool, other, specs)], held

    gc.collect()
    gone, held = cycles()
    assert all(one() is not None for one in gone)
    gc.collect()
    assert [one() for one in gone] == [None] * 3
    if held is not None:
        held[0][:] = 1
        assert held[0].sum() == 10


def test_many_scopes_leak_nothing(pool):
    import resource

    def work(times):
        for _ in range(times):
            with pool.scope() as s:
                a = s.empty(100)
                s.zeros((4, 5), "f4")
                del a
            with pool.frame(10, 20):
                pass

    work(1000)
    gc.collect()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    work(30_000)
    gc.collect()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 2048
    assert pool.stats()["slots_live"] == 0
