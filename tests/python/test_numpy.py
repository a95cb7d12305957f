# SPDX-License-Identifier: MIT
"""NumPy's memory handler on buffers."""
import contextvars
import gc
import os
import subprocess
import sys
import threading

import numpy
import pytest

import tidepool
import tidepool.numpy as handler

BIG = 1 << 17  # doubles, 1 MiB


@pytest.fixture(autouse=True)
def no_handler():
    assert not handler.active()
    yield
    handler.off()


def run(code, **keywords):
    """The code in a process of its own."""
    return subprocess.run([sys.executable, "-X", "dev", "-c", code], capture_output=True, text=True,
                          timeout=300, check=False, **keywords)


def test_use_and_off():
    plain = numpy.ones(BIG)
    handler.use()
    assert handler.active()
    ours = numpy.ones(BIG)
    handler.off()
    assert not handler.active()
    later = numpy.ones(BIG)
    assert [handler.holds(a) for a in (plain, ours, later)] == [False, True, False]
    assert (ours + plain + later).sum() == 3 * BIG


def test_using_puts_back_what_was_in_force():
    with handler.using():
        with handler.using():
            assert handler.active()
        assert handler.active()
    assert not handler.active()
    with pytest.raises(KeyError):
        with handler.using():
            raise KeyError
    assert not handler.active()


def test_sizes_below_the_least_are_numpys():
    with handler.using():
        assert not handler.holds(numpy.empty(handler.least() - 1, "u1"))
        assert handler.holds(numpy.empty(handler.least(), "u1"))
    with pytest.raises(ValueError):
        handler.set_least(-1)


def test_the_next_array_gets_the_memory_of_the_last():
    with handler.using():
        a = numpy.empty(BIG)
        address = a.ctypes.data
        before = handler.stats()
        del a
        a = numpy.empty(BIG)
        assert a.ctypes.data == address
        after = handler.stats()
    assert after["hits"] == before["hits"] + 1 and after["misses"] == before["misses"]
    assert after["page_faults_saved"] - before["page_faults_saved"] >= BIG * 8 // 4096


def test_zeros_are_zeros_on_used_memory():
    with handler.using():
        for n in (1, 100, 1 << 13, BIG, 1 << 20):
            for _ in range(3):
                used = numpy.full(n, 7.0)
                del used
                a = numpy.zeros(n)
                assert not a.any()
                a[:] = 3
                del a


def test_arrays_outlive_the_handler():
    with handler.using():
        kept = [numpy.full(BIG, i) for i in range(4)]
    live = handler.stats()["live"]
    for i, a in enumerate(kept):
        assert (a == i).all()
    del a
    kept.clear()
    assert handler.stats()["live"] == live - 4


def test_resize_keeps_the_contents():
    with handler.using():
        a = numpy.arange(1 << 14, dtype="u4")
        address = a.ctypes.data
        a.resize((1 << 14) - 10, refcheck=False)
        assert a.ctypes.data == address  # in place within the bucket
        for n in (100, 1 << 16, 10, 1 << 20, 3 << 18, 1 << 10):
            have = min(n, len(a))
            wanted = a[:have].copy()
            a.resize(n, refcheck=False)
            assert (a[:have] == wanted).all() and not a[have:].any()


def test_arrays_without_elements():
    """NumPy tells the free another size than the allocation there."""
    with handler.using():
        live = handler.stats()["live"]
        for _ in range(100):
            a = numpy.empty((0, 1 << 20))
            b = numpy.zeros((1 << 20, 0, 3))
            del a, b
        assert handler.stats()["live"] == live


def test_an_impossible_size_is_a_memory_error():
    with handler.using():
        with pytest.raises(MemoryError):
            numpy.empty(1 << 58, "u1")
        assert numpy.ones(BIG).sum() == BIG


def test_a_thread_begins_with_numpys_own():
    with handler.using():
        seen = []

        def work():
            seen.append(handler.active())
            with handler.using():
                seen.append(handler.holds(numpy.empty(BIG)))

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert seen == [False, True]


def test_a_context_has_its_own():
    def work():
        handler.use()
        return handler.active()

    assert contextvars.copy_context().run(work)
    assert not handler.active()


def test_threads_pass_arrays_to_each_other():
    """Made by one, freed by another."""
    arrays, failures = [], []

    def work(number):
        try:
            with handler.using():
                for i in range(200):
                    a = numpy.full(9000 + i * 16, float(number))
                    arrays.append((number, a))
                    del a
                    if len(arrays) > 8:
                        owner, taken = arrays.pop(0)
                        assert (taken == owner).all()
                        del taken
        except BaseException as error:  # noqa: BLE001
            failures.append(error)

    live = handler.stats()["live"]
    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    arrays.clear()
    gc.collect()
    assert handler.stats()["live"] == live


def test_a_forked_child_goes_on():
    with handler.using():
        a = numpy.full(BIG, 2.0)
        child = os.fork()
        if child == 0:
            status = 1
            try:
                b = a * 3
                a += 1
                c = numpy.zeros(BIG)
                status = 0 if handler.holds(b) and (a + b + c).sum() == 9 * BIG else 2
                del a
            finally:
                os._exit(status)
        assert os.waitpid(child, 0)[1] == 0
        assert (a == 2).all()


def test_arrays_live_at_the_interpreters_end():
    done = run("""
import numpy, tidepool.numpy, atexit, sys
tidepool.numpy.use()
kept = [numpy.ones(1 << 17) for _ in range(5)]
sys.kept = kept
cycle = []; cycle.append((cycle, numpy.ones(1 << 17)))
atexit.register(lambda: print(numpy.ones(1 << 17).sum()))
""")
    assert (done.returncode, done.stdout, done.stderr) == (0, "131072.0\n", "")


def test_a_subinterpreter_is_refused_with_a_message():
    done = run("""
try:
    import _xxsubinterpreters as interpreters
except ImportError:
    import _interpreters as interpreters
one = interpreters.create()
interpreters.run_string(one, '''
import warnings
warnings.simplefilter("ignore")
try:
    import tidepool
except ImportError as error:
    print("refused:", error, error.__cause__)
''')
""")
    assert done.returncode == 0, done.stderr
    assert "refused" in done.stdout and "subinterpreter" in done.stdout


def test_a_program_computes_the_same():
    """Temporaries, reductions, sorts, FFTs, linear algebra, pickles, masks, in place and not."""
    import pickle

    def program():
        r = numpy.random.default_rng(1)
        a, b = r.standard_normal((300, 300)), r.standard_normal((300, 300))
        c = (a * b + a @ b - a.T) / (numpy.abs(b) + 1)
        d = numpy.where(c > 0.5, c, a)
        e = numpy.sort(d, axis=0) + numpy.fft.fft(d).real
        f = numpy.concatenate([e, pickle.loads(pickle.dumps(d))])
        g = numpy.linalg.solve(a + 300 * numpy.eye(300), f[:300])
        return [d, e, f[f > 0], g, numpy.unique(numpy.round(f, 1)), f.astype("f4").astype(str)]

    wanted = program()
    with handler.using():
        got = program()
    for w, g in zip(wanted, got):
        assert w.dtype == g.dtype and (w == g).all()


def test_trim_gives_cached_memory_back():
    with handler.using():
        numpy.empty(BIG)
    assert handler.stats()["bytes_cached"] > 0
    assert handler.trim() > 0
    assert handler.stats()["bytes_cached"] == 0
    assert isinstance(tidepool.settings["buffers_bytes"], float)
