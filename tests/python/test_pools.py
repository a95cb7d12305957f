# SPDX-License-Identifier: MIT
"""Pools: made, closed, whose they are, what they refuse."""
import gc
import os
import subprocess
import sys
import threading

import numpy
import pytest

import tidepool


def in_thread(function):
    """What the function returns or raises on another thread."""
    result = []

    def run():
        try:
            result.append(function())
        except BaseException as error:  # noqa: BLE001
            result.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return result[0]


def used_here(pool):
    """What is raised when this thread uses the pool."""
    try:
        return pool.stats()
    except tidepool.ThreadError as error:
        return error


def test_a_pool_is_used_again_without_allocating():
    with tidepool.Pool() as pool:
        for _ in range(3):
            with pool.scope() as s:
                s.empty(1000)
        before = pool.stats()["allocations"]
        for _ in range(100):
            with pool.scope() as s:
                s.empty(1000)
        assert pool.stats()["allocations"] == before
        pool.check()


def test_statistics_count_scopes_and_arrays():
    pool = tidepool.Pool("counted")
    with pool.scope() as s:
        s.empty(10)
        s.empty(10)
        assert pool.depth == 1
        assert pool.stats()["slots_live"] == 2
    stats = pool.stats()
    assert (stats["scopes"], stats["arrays"], stats["pinned"]) == (1, 2, 0)
    assert stats["depth"] == 0 and stats["slots_live"] == 0


def test_a_closed_pool_says_so():
    pool = tidepool.Pool("shut")
    pool.close()
    pool.close()
    assert pool.closed and "closed" in repr(pool)
    with pytest.raises(tidepool.StaleError, match="'shut' is closed"):
        with pool.scope():
            pass
    with pytest.raises(tidepool.StaleError):
        pool.stats()


def test_a_pool_with_an_open_scope_is_not_closed():
    pool = tidepool.Pool()
    with pool.scope() as s:
        a = s.zeros(4)
        with pytest.raises(RuntimeError, match="open scopes"):
            pool.close()
        assert a.sum() == 0


def test_the_limit_is_a_memory_error_with_the_librarys_message():
    pool = tidepool.Pool("small", limit_bytes=1 << 20)
    with pool.scope() as s:
        with pytest.raises(MemoryError, match="small"):
            s.empty(1 << 24, "u1")
        assert s.ones(10).sum() == 10
    pool.check()


def test_a_message_that_was_cut_within_a_character_is_told():
    pool = tidepool.Pool("é" * 26, limit_bytes=1 << 20)
    with pool.scope() as s:
        with pytest.raises(MemoryError, match="é"):
            s.empty(1 << 24, "u1")


def test_another_thread_is_refused_until_it_adopts():
    pool = tidepool.Pool("theirs")
    error = in_thread(lambda: pool.scope().__enter__())
    assert isinstance(error, tidepool.ThreadError) and "another thread" in str(error)

    def use():
        pool.adopt()
        with pool.scope() as s:
            return float(s.ones(5).sum())

    assert in_thread(use) == 5.0
    with pytest.raises(tidepool.ThreadError):
        pool.stats()
    pool.adopt()
    assert pool.stats()["scopes"] == 1


def test_a_pool_may_be_dropped_by_another_thread():
    pools = [tidepool.Pool()]
    with pools[0].scope() as s:
        kept = s.full(100, 7.0)
    assert in_thread(lambda: pools.clear() or gc.collect()) is not None
    assert kept.sum() == 700


def test_each_thread_has_its_own_pool():
    ours = tidepool.local()
    assert tidepool.local() is ours
    assert in_thread(lambda: tidepool.local() is ours) is False
    assert ours in tidepool.pools()


def test_a_thread_whose_own_pool_was_adopted_gets_another():
    before = tidepool.local()
    in_thread(before.adopt)
    ours = tidepool.local()
    assert ours is not before and ours is tidepool.local() and ours.usable and not before.usable
    ours.close()
    assert not ours.usable and tidepool.local() is not ours


def test_a_later_thread_is_another_one():
    """Though it may have the number that Python gave the one that has ended."""
    for _ in range(20):
        pool, first = in_thread(lambda: (tidepool.Pool("theirs"), threading.get_ident()))
        error, second = in_thread(lambda: (used_here(pool), threading.get_ident()))
        assert isinstance(error, tidepool.ThreadError), (first, second)
        assert not pool.usable


def test_pools_come_and_go_while_they_are_listed():
    """Here a pool itself makes and drops others when it is looked at, as a thread could just then."""
    class Busy(tidepool.Pool):
        @property
        def closed(self):
            made.extend(tidepool.Pool("comes") for _ in range(20))
            del made[:30]
            return False

    made = []
    ours, shut, busy = tidepool.Pool("stays"), tidepool.Pool("shut"), [Busy() for _ in range(5)]
    shut.close()
    for _ in range(5):
        listed = tidepool.pools()
        assert all(any(one is pool for pool in listed) for one in (ours, *busy))
        assert not any(pool is shut for pool in listed)
    made.clear()
    del listed, busy
    gc.collect()
    assert "comes" not in [pool.name for pool in tidepool.pools()]


@pytest.mark.parametrize("level", [-1, 2, 3])
def test_a_bad_check_level(level):
    with pytest.raises(ValueError, match="check"):
        tidepool.Pool(check=level)


def test_check_level_1_poisons():
    pool = tidepool.Pool(check=1)
    with pool.scope() as s:
        address = s.zeros(64, "u1").ctypes.data
    with pool.scope() as s:
        again = s.empty(64, "u1")
        assert again.ctypes.data == address
        assert (again == 0xFF).all()
        del again


@pytest.mark.parametrize("sample", ["1", "1000"])
def test_kept_arrays_leave_pools_of_check_level_2(sample):
    """Which is level 1 here: its pools poison, unless none does but one in so many."""
    program = """
import numpy, tidepool
pool = tidepool.Pool()
for i in range(5):
    with pool.scope() as s:
        kept, address = s.ones(3), s.zeros(64, "u1").ctypes.data
    with pool.scope() as s:
        again = s.empty(64, "u1")
        assert again.ctypes.data == address and (again == 0xFF).all() and kept.sum() == 3
        del again
pool.close()
print(kept.sum())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300, check=False,
                          env={**os.environ, "TIDEPOOL_CHECK": "2", "TIDEPOOL_GUARD_SAMPLE": sample})
    assert (done.returncode, done.stdout) == (0, "3.0\n"), done.stderr


def test_memory_of_kept_arrays_is_not_in_the_figures():
    """But what a slot had last that has served no other array since."""
    pool, kept = tidepool.Pool(limit_bytes=1 << 17), []
    for _ in range(10):
        with pool.scope() as s:
            kept.append(s.ones(60_000, "u1"))
            del s
    stats = pool.stats()
    assert (stats["pinned"], stats["bytes_held"], stats["slots"]) == (10, 0, 1) and 60_000 <= stats["bytes_exported"] < 120_000


def test_trim_gives_memory_back():
    pool = tidepool.Pool()
    with pool.scope() as s:
        s.empty(1 << 20)
    held = pool.stats()["bytes_held"]
    assert held >= 8 << 20
    assert pool.trim() == held
    assert pool.stats()["bytes_held"] == 0


def test_a_forked_child_uses_the_pool():
    pool = tidepool.Pool()
    with pool.scope() as s:
        a = s.full(1000, 3.0)
        child = os.fork()
        if child == 0:
            status = 1
            try:
                a += 1
                b = s.ones(1000)
                status = 0 if (a + b).sum() == 5000 else 2
            finally:
                os._exit(status)
        assert os.waitpid(child, 0)[1] == 0
        assert a.sum() == 3000


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_child_of_another_thread_is_told_of_no_adopt():
    pool = tidepool.Pool("theirs")

    def fork():
        child = os.fork()
        if child == 0:
            try:
                pool.stats()
            except tidepool.ThreadError as error:
                os._exit(0 if "parent process" in str(error) and "adopt" not in str(error) else 2)
            os._exit(1)
        return os.waitpid(child, 0)[1]

    assert in_thread(fork) == 0


def test_arrays_may_be_of_any_plain_dtype():
    pool = tidepool.Pool()
    for name in numpy.typecodes["All"]:
        dtype = numpy.dtype(name)
        if name in "OSUV" or dtype.hasobject:
            continue
        with pool.scope() as s:
            a = s.zeros((3, 4), dtype)
            assert a.dtype == dtype and a.shape == (3, 4) and not a.any()
            a[...] = numpy.ones((3, 4), dtype)
            assert (a == numpy.ones((3, 4), dtype)).all()
            del a
    assert pool.stats()["pinned"] == 0
