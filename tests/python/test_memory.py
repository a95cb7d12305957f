# SPDX-License-Identifier: MIT
"""What is left when there is no memory to keep an array that outlived its scope."""
import os
import pathlib
import shutil
import subprocess
import sys
import textwrap

import pytest

COMPILER = os.environ.get("CC") or shutil.which("cc")
BEGIN = """
    import ctypes, gc, sys, threading
    import numpy, tidepool
    short = ctypes.c_int.in_dll(ctypes.CDLL(None), "short_exports")
    pool = tidepool.Pool()

    def elsewhere(function):
        thread = threading.Thread(target=function)
        thread.start()
        thread.join()

    def fails(function):
        try:
            function()
        except MemoryError as error:
            assert "export" in str(error), error
            return True

    def opened(*values):
        s = pool.scope().__enter__()
        return s, [s.full(100, value) for value in values]
"""


@pytest.fixture(scope="module")
def preloaded(tmp_path_factory):
    if COMPILER is None:
        pytest.skip("no C compiler")
    made = tmp_path_factory.mktemp("short") / "short_memory.so"
    source = pathlib.Path(__file__).with_name("short_memory.c")
    subprocess.run([COMPILER, "-shared", "-fPIC", "-o", made, source, "-ldl"], check=True)
    return made


def run(preloaded, script):
    done = subprocess.run([sys.executable, "-X", "dev", "-c", textwrap.dedent(BEGIN) + textwrap.dedent(script)],
                          env={**os.environ, "LD_PRELOAD": str(preloaded)}, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stderr


def test_a_scope_that_could_not_end_ends_later(preloaded):
    run(preloaded, """
        s, kept = opened(1.0, 2.0)
        short.value = 1
        assert fails(lambda: s.__exit__(None, None, None)) and s.open and pool.depth == 1
        with pool.scope() as inner:
            inner.full(100, 3.0)
        s.__exit__(None, None, None)
        assert (kept[0] == 1).all() and (kept[1] == 2).all()
        assert pool.depth == 0 and pool.stats()["pinned"] == 2
        del kept
        pool.check()
        assert pool.stats()["slots_live"] == 0
    """)


def test_a_scope_that_is_dropped_and_cannot_end(preloaded):
    told = run(preloaded, """
        outer, (a,) = opened(1.0)
        s, (b, c) = opened(2.0, 3.0)
        short.value = 1
        del s
        assert short.value == 0
        d = outer.full(100, 4.0)
        assert [x[0] for x in (a, b, c, d)] == [1, 2, 3, 4]
        del a, d
        outer.__exit__(None, None, None)
        with pool.scope() as s:
            e = s.full(100, 5.0)
            assert (b == 2).all() and (c == 3).all()
            del e
        assert pool.depth == 0 and pool.stats()["pinned"] == 2
        del b, c
        with pool.scope() as s: # gets what came back
            for _ in range(4):
                s.empty(100)
        pool.check()
        s = pool.stats()
        assert (s["bytes_exported"], s["slots_live"], s["depth"]) == (0, 0, 0), s
        pool.close()
    """)
    assert "MemoryError" in told


def test_a_pool_that_could_not_end_ends_later(preloaded):
    run(preloaded, """
        box = [pool.scope()]
        s = box[0].__enter__()
        a, b, c = (s.full(100, float(i)) for i in range(3))
        del s, a
        elsewhere(box.clear)
        short.value = 1
        assert fails(pool.close) and not pool.closed
        other = tidepool.Pool().scope().__enter__()
        d = [other.full(100, 9.0) for _ in range(3)]
        references = [sys.getrefcount(one.base) for one in d]
        short.value = 1
        assert fails(pool.close)
        assert (b == 1).all() and (c == 2).all()
        pool.close()
        assert pool.closed and (b == 1).all() and (c == 2).all()
        assert [sys.getrefcount(one.base) for one in d] == references
    """)


def test_a_pool_that_is_dropped_and_cannot_end_leaks(preloaded):
    run(preloaded, """
        box = [pool.scope()]
        s = box[0].__enter__()
        a, b, c = (s.full(100, float(i)) for i in range(3))
        del s, a
        elsewhere(box.clear)
        short.value = 1000
        del pool
        gc.collect()
        assert (b == 1).all() and (c == 2).all()
    """)


def test_facts_that_no_memory_was_left_for(preloaded):
    """At the last the C library closes a text in memory with success, and has none."""
    run(preloaded, """
        growth = ctypes.c_int.in_dll(ctypes.CDLL(None), "short_growth")
        facts, refused, growths = tidepool._core.facts_text, 0, 1
        whole = len(facts()) // 2
        while True:
            growth.value = growths
            try:
                assert len(facts()) > whole
            except MemoryError:
                refused += 1
            if growth.value > 0:
                break
            growths += 1
        growth.value = 0
        assert refused > 0, growths
    """)
