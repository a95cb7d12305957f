# SPDX-License-Identifier: MIT
"""What a program does wrong, or at the wrong time: the right exception, and nothing is lost."""
import copy
import dataclasses
import functools
import gc
import os
import pickle
import subprocess
import sys
import textwrap
import threading

import numpy
import pytest

import tidepool


@pytest.fixture
def pool():
    made = tidepool.Pool("misused")
    yield made
    assert made.depth == 0
    made.check()


# Python says from 3.12 on that a process with threads should not fork; these mean to.
NO_WORD_OF_FORKS = "ignore:This process:DeprecationWarning"


def program(script, **environment):
    """In a process of its own, which ends well."""
    done = subprocess.run([sys.executable, "-X", "dev", "-W", NO_WORD_OF_FORKS, "-c", textwrap.dedent(script)], capture_output=True, text=True,
                          timeout=300, check=False, env={**os.environ, **environment})
    assert done.returncode == 0, (done.returncode, done.stdout, done.stderr)
    return done.stdout + done.stderr


def elsewhere(function):
    """What it returns, or raises, in another thread."""
    told = []

    def run():
        try:
            told.append((function(), None))
        except BaseException as error:  # noqa: BLE001
            told.append((None, error))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(300)
    (value, error), = told
    if error is not None:
        raise error
    return value


# ---- copies ----


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_nothing_of_the_process_is_pickled(pool, protocol):
    with pool.scope() as s:
        hold = s.empty(3).base
        for one in (pool, s, hold, tidepool.Buffers(), tidepool.Buffers().acquire(10)):
            with pytest.raises(TypeError, match="cannot"):
                pickle.dumps(one, protocol)
        del hold
    with pool.scope() as s:
        a = s.arange(5)
        assert (pickle.loads(pickle.dumps(a, protocol)) == a).all()
        del a
    assert pool.stats()["pinned"] == 0


@pytest.mark.parametrize("way", [copy.copy, copy.deepcopy])
def test_nothing_of_the_process_is_copied(pool, way):
    with pool.scope() as s:
        for one in (pool, s, tidepool.Buffers(), tidepool.Buffers().acquire(10)):
            with pytest.raises(TypeError, match="cannot"):
                way(one)
        a = s.arange(5)
        b = way(a)
        del a
    assert b.tolist() == [0, 1, 2, 3, 4] and pool.stats()["pinned"] == 0


# ---- arguments ----


def test_names_with_a_zero_byte(pool):
    for make in (tidepool.Pool, tidepool.Buffers, pool.scope):
        with pytest.raises(ValueError, match="zero byte"):
            make("a\0b")
    for act in (tidepool.profile.save, tidepool.profile.load, tidepool.profile.merge):
        with pytest.raises(ValueError, match="zero byte"):
            act("a\0b")


def test_sizes_that_cannot_be(pool):
    buffers = tidepool.Buffers()
    for size in (1.5, "1"):
        with pytest.raises(TypeError):
            buffers.acquire(size)
    assert buffers.acquire(numpy.int64(7)).nbytes == 7


@pytest.mark.parametrize("what, least, most, call", [
    ("Pool: limit_bytes", 0, sys.maxsize, lambda n: tidepool.Pool(limit_bytes=n)),
    ("Pool: check", 0, 1, lambda n: tidepool.Pool(check=n)),
    ("acquire: nbytes", 0, sys.maxsize, lambda n: tidepool.Buffers().acquire(n)),
    ("Buffers: bytes_max", 0, sys.maxsize, lambda n: tidepool.Buffers(bytes_max=n)),
    ("settle: timeout_ms", 0, (1 << 31) - 1, tidepool.settle),
    ("set_least: nbytes", 0, sys.maxsize, tidepool.numpy.set_least)])
def test_integers_out_of_range(what, least, most, call):
    """What, which, and the limit."""
    for number in (-1, -1 << 70, numpy.int64(-1)):
        with pytest.raises(ValueError, match=f"^{what} is {number}, and {least} is the least$"):
            call(number)
    for number in (most + 1, 1 << 70):
        with pytest.raises(ValueError, match=f"^{what} is {number}, and {most} is the most$"):
            call(number)
    for value in (1.5, "1", None):
        with pytest.raises(TypeError, match="integer"):
            call(value)
    if what != "set_least: nbytes":
        call(numpy.int64(1))


def test_arguments_that_are_not_there(pool):
    b = tidepool.Buffers().acquire(10)
    for call in (lambda: pool.stats(1), lambda: pool.scope("a", "b"), lambda: pool.scope(nme="a"),
                 lambda: pool.scope("a", name="a"), lambda: tidepool.Buffers().acquire(),
                 lambda: tidepool.Buffers().acquire(1, nbytes=1), lambda: b.__dlpack__(None), lambda: tidepool.settle(1, 2),
                 lambda: tidepool.Pool(limit=3), lambda: tidepool.Buffers("a", 0, 0)):
        with pytest.raises(TypeError):
            call()
    with pytest.raises(TypeError, match="name is a str, not int"):
        pool.scope(3)


@pytest.mark.filterwarnings("ignore:nanobind")
def test_objects_are_made_once(pool):
    buffers = tidepool.Buffers("once")
    for call in (lambda: pool.__init__("again"), lambda: buffers.__init__("again"),
                 tidepool.Buffers.__new__(tidepool.Buffers).stats, lambda: tidepool.Buffers.__new__(tidepool.Buffers).name,
                 lambda: tidepool.Pool.__new__(tidepool.Pool).closed):
        with pytest.raises(TypeError):
            call()
    assert (pool.name, buffers.name) == ("misused", "once")


def test_objects_are_made_once_also_by_what_reads_arguments():
    class Makes:
        def __init__(self, made):
            self.made = made

        def __index__(self):
            self.made.__init__("inner")
            return 0

    for kind, word in ((tidepool.Pool, "limit_bytes"), (tidepool.Buffers, "bytes_max")):
        made = kind.__new__(kind)
        with pytest.raises(TypeError, match="initialised before"):
            made.__init__("outer", **{word: Makes(made)})
        assert made.name == "inner"


def test_integers_that_python_does_not_show():
    for sign, which in ((1, "most"), (-1, "least")):
        with pytest.raises(ValueError, match=f"limit_bytes has too many digits, and -?[0-9]+ is the {which}"):
            tidepool.Pool(limit_bytes=sign * 10**5000)


def test_buffers_that_were_not_acquired():
    with pytest.raises(TypeError, match="not acquired"):
        memoryview(tidepool.Buffer.__new__(tidepool.Buffer))
    with pytest.raises(TypeError, match="integer"):
        tidepool.Buffers("none").acquire(None)


def test_paths_that_are_no_text(tmp_path):
    path = os.fsencode(tmp_path) + b"/\xff"
    tidepool.profile.save(path)
    assert os.path.exists(path)
    tidepool.profile.load(os.fsdecode(path))


def test_settings_by_what_is_no_name():
    for name in (3, None, "background\0", "background\0s", "\udc80"):
        assert name not in tidepool.settings
        with pytest.raises(KeyError):
            tidepool.settings[name]
        with pytest.raises(KeyError):
            tidepool.settings[name] = 1
    for value in ("x", None):
        with pytest.raises(TypeError, match="^must be real number"):
            tidepool.settings["trim_after"] = value


def test_sites_that_are_no_more(pool):
    with pool.scope("misnamed"):
        pass
    site, = (one for one in tidepool.sites() if one.name == "misnamed")
    with pytest.raises(TypeError, match="^pin: tier is a str, not int"):
        site.pin(3)
    other = dataclasses.replace(site, id=1 << 60)
    for act in (lambda: other.pin("full"), other.unpin, other.reset):
        with pytest.raises(KeyError, match="no more"):
            act()


def test_what_is_no_function_or_pool():
    for act in (tidepool.on_event, tidepool.log_events, tidepool.measure, tidepool.scoped, lambda x: tidepool.scoped(pool=x)(lambda scope: None)):
        with pytest.raises(TypeError, match="wanted"):
            act(3)


def test_scoped_takes_whatever_can_be_called():
    class Called:
        def __call__(self, n, *, scope):
            return scope.full(n, 2.0)

    for function in (Called(), functools.partial(lambda m, n, *, scope: scope.full(n, m), 2.0)):
        assert tidepool.scoped(function)(3).tolist() == [2, 2, 2]

    async def coroutine(n, *, scope):
        pass

    with pytest.raises(TypeError, match="coroutine"):
        tidepool.scoped(functools.partial(coroutine, 3))


# ---- buffers, again and too late ----


def test_a_released_buffer_is_not_entered():
    b = tidepool.Buffers().acquire(10)
    with b:
        pass
    with pytest.raises(tidepool.StaleError):
        with b:
            raise AssertionError


def test_an_exception_says_more_than_a_view_that_is_left():
    buffers = tidepool.Buffers()

    def fail():
        with buffers.acquire(10) as b:
            view = memoryview(b)
            raise KeyError(len(view))

    with pytest.raises(KeyError) as caught:
        fail()
    assert buffers.stats()["live"] == 1  # the frame has the view
    del caught
    gc.collect()
    assert buffers.stats()["live"] == 0
    with pytest.raises(BufferError):
        with buffers.acquire(10) as b:
            view = memoryview(b)
    assert len(view) == 10


# ---- other threads ----


def test_another_thread_sees_a_pool_and_uses_none_of_it(pool):
    s = pool.scope().__enter__()
    a = s.full(10, 1.0)
    for use in (lambda: s.empty(3), lambda: s.__exit__(None, None, None), lambda: pool.scope().__enter__(), pool.stats,
                pool.trim, pool.check, pool.close, lambda: pool.depth):
        with pytest.raises(tidepool.ThreadError):
            elsewhere(use)
    assert elsewhere(lambda: (pool.closed, pool.name, s.open)) == (False, "misused", True)
    assert "misused" in elsewhere(lambda: repr(pool)) and "another thread" in elsewhere(pool._repr_html_)
    s.__exit__(None, None, None)
    assert (a == 1).all()


def test_a_pool_that_is_adopted_within_a_scope(pool):
    def there():
        pool.adopt()
        with pool.scope() as inner:
            return inner.full(10, 3.0)

    with pool.scope() as s:
        a = s.full(10, 1.0)
        b = elsewhere(there)
        with pytest.raises(tidepool.ThreadError):
            s.empty(3)
        pool.adopt()
        c = s.full(10, 4.0)
    with pool.scope() as s:
        s.full(10, 9.0)
    assert [one.tolist() for one in (a, b, c)] == [[1] * 10, [3] * 10, [4] * 10]


# ---- the interpreter ----


def test_threads_that_settle_as_the_interpreter_ends():
    """Python ends them as they come back for the GIL, which no function of nanobind lets pass."""
    told = program("""
        import threading, time, tidepool
        tidepool.on_event(lambda event: time.sleep(0.001))
        begun = threading.Semaphore(0)
        def work():
            pool = tidepool.Pool()
            begun.release()
            while True:
                for i in range(100):
                    with pool.scope(f"site {i % 7}") as s:
                        s.empty(3, "u2" if i % 2 else "f4")
                for call in (lambda: tidepool.settle(20), tidepool.step, tidepool.facts):
                    try:
                        call()
                    except RuntimeError:
                        pass
        for _ in range(4):
            threading.Thread(target=work, daemon=True).start()
            begun.acquire()
        time.sleep(0.2)
        print("ends")
    """)
    assert told == "ends\n"


@pytest.mark.parametrize("call", ["tidepool.from_dlpack(it)", "tidepool.from_dlpack(buffer)", "buffers.acquire(it)",
                                  "buffer.__dlpack__(max_version=pair)", "buffer.__dlpack__(dl_device=pair)",
                                  "with pool.scope() as s: s.empty(it)", "with pool.frame(it): pass"])
def test_threads_in_code_that_was_asked_as_the_interpreter_ends(call):
    """There, too, Python ends them."""
    for _ in range(2):
        assert program(f"""
            import threading, time, numpy, tidepool
            class It:
                def __index__(self):
                    for _ in range(2000):
                        pass
                    return 1
                def __getattr__(self, name):
                    if name == "__dlpack_device__":
                        return lambda: pair
                    raise AttributeError(name)
                def __dlpack__(self, **keywords):
                    return buffer.__dlpack__(max_version=pair)
            class Pair:
                def __getitem__(self, at):
                    return it.__index__()
            buffers, it, pair = tidepool.Buffers(), It(), Pair()
            buffer = buffers.acquire(10)
            begun = threading.Semaphore(0)
            def work():
                pool = tidepool.Pool()
                while True:
                    {call}
                    begun.release()
            for _ in range(3):
                threading.Thread(target=work, daemon=True).start()
                begun.acquire()
            time.sleep(0.05)
            print("ends")
        """) == "ends\n"


# A thread uses so many new sites that one step tells of many events. `hold` keeps the GIL for a while.
TELLING = """
    import atexit, ctypes, sys, threading, time
    late = []
    atexit.register(lambda: [act() for act in late])  # after tidepool's own, which is registered later
    import tidepool
    tidepool.settings["background"] = 0
    pause = ctypes.PyDLL(None).usleep
    def hold():
        pause(200000)
    def use(name, count):
        pool = tidepool.Pool()
        for i in range(count):
            with pool.scope(f"{name} {i}") as s:
                s.empty(3)
    begun = threading.Event()
    def work(name):
        use(name, 500)
        begun.set()
        tidepool.step()
        while True:
            time.sleep(1)
    def begin(name):
        begun.clear()
        threading.Thread(target=work, args=[name], daemon=True).start()
        begun.wait()
"""


def ends_while_telling(script):
    return program(TELLING + script)


def test_the_interpreter_ends_as_a_thread_wants_to_tell():
    """It waits for the GIL, which nobody makes this one let go of."""
    for _ in range(3):
        assert ends_while_telling("""
    tidepool.on_event(lambda event: None)
    sys.setswitchinterval(100)
    begin("before")
    hold()
    print("ends")
""") == "ends\n"


def test_a_thread_wants_to_tell_after_the_end_was_prepared():
    """It has been there before: Python 3.12 starts none then."""
    for _ in range(3):
        assert ends_while_telling("""
    go = threading.Event()
    def wait():
        go.wait()
        work("after")
    threading.Thread(target=wait, daemon=True).start()
    def last():
        tidepool.on_event(lambda event: None)
        sys.setswitchinterval(100)
        go.set()
        begun.wait()
        hold()
        print("ends")
    late.append(last)
""") == "ends\n"


def test_the_interpreter_ends_while_a_listener_is_at_work():
    """It waits for the listener, which may let go of the GIL."""
    assert ends_while_telling("""
    inside, said = threading.Event(), threading.Event()
    def heard(event):
        tidepool.on_event(None)
        inside.set()
        said.wait()
        time.sleep(0.2)
        print("heard", event["kind"], flush=True)
    tidepool.on_event(heard)
    begin("there")
    inside.wait()
    print("ends", flush=True)
    said.set()
""") == "ends\nheard found\n"


@pytest.mark.parametrize("wakes", [False, True])
def test_the_interpreter_ends_while_a_listener_does_not_come_back(wakes):
    """It is not waited for much longer; and where it wakes later there is no Python any more."""
    assert ends_while_telling(f"""
    inside, wake = threading.Event(), threading.Event()
    def heard(event):
        inside.set()
        wake.wait()
    def last():
        sys.setswitchinterval(0.5)  # as its thread looks again there is no Python, but still the process
        wake.set()
        hold()
    tidepool.on_event(heard)
    if {wakes}:
        late.append(last)
    begin("there")
    inside.wait()
    print("ends", flush=True)
""") == "ends\n"


def test_a_child_does_not_wait_for_a_listener_of_its_parent():
    assert ends_while_telling("""
    import os, signal
    inside, wake = threading.Event(), threading.Event()
    def heard(event):
        tidepool.on_event(None)
        inside.set()
        wake.wait()
    tidepool.on_event(heard)
    begin("there")
    inside.wait()
    child = os.fork()
    if child == 0:
        os._exit(0 if tidepool._core.events_end() else 1)
    print("child", os.waitpid(child, 0)[1])
    wake.set()
""") == "child 0\n"


def test_settling_waits_for_no_listener():
    """Not for one that another thread calls; and there is nothing else to do."""
    assert ends_while_telling("""
    inside, wake = threading.Event(), threading.Event()
    def heard(event):
        inside.set()
        wake.wait()
    tidepool.on_event(heard)
    begin("there")
    inside.wait()
    tidepool.settle(200000)
    print("settled")
    wake.set()
""") == "settled\n"


def test_settling_hears_signals_and_says_how_long_it_took(tmp_path):
    """It has to wait here for a compiler process that does not answer."""
    silent = tmp_path / "silent"
    silent.write_text("#!/bin/sh\nexec sleep 60\n")
    silent.chmod(0o700)
    assert program("""
        import signal, tidepool
        class Heard(Exception):
            pass
        def ring(*_):
            raise Heard
        tidepool.settings["break_even"] = 0
        pool = tidepool.Pool()
        for _ in range(3000):
            with pool.scope("here") as s:
                s.empty(3)
        for ms in (0, 30, 130):
            try:
                tidepool.settle(ms)
            except RuntimeError as error:
                print(error)
        signal.signal(signal.SIGALRM, ring)
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.2)
            tidepool.settle(10**6)
        except Heard:
            print("heard")
    """, TIDEPOOL_STAGER=str(silent)) == "".join(f"something is still pending after {ms} ms\n" for ms in (0, 30, 130)) + "heard\n"


@pytest.mark.parametrize("first", ["main", "sub"])
@pytest.mark.parametrize("kind", ["legacy", "isolated"])
def test_a_refused_subinterpreter_changes_nothing(first, kind):
    """Whoever imports first. Python 3.13 has two kinds; to 3.11 and 3.12 `isolated` is a bool."""
    told = program(f"""
        try:
            import _xxsubinterpreters as interpreters
            one = interpreters.create(isolated={kind == "isolated"})
        except ImportError:
            import _interpreters as interpreters
            one = interpreters.create("{kind}")
        if "{first}" == "main":
            import tidepool
        for _ in range(2):
            interpreters.run_string(one, "import warnings; warnings.simplefilter('ignore')\\ntry: import tidepool\\n"
                                         "except ImportError as error: print('refused:', error)")
        interpreters.destroy(one)
        import tidepool
        with tidepool.Pool().scope() as s:
            print(s.ones(3).sum())
    """)
    lines = told.splitlines()
    assert len(lines) == 3 and lines[2] == "3.0", told
    assert all(line.startswith("refused:") and "subinterpreter" in line for line in lines[:2]), told


def test_the_module_is_not_loaded_twice():
    told = program("""
        import sys, tidepool
        pool = tidepool.Pool()
        mine = {name: sys.modules.pop(name) for name in list(sys.modules) if name.startswith("tidepool")}
        try:
            import tidepool
        except ImportError as error:
            print(error)
        sys.modules.update(mine)
        with mine["tidepool"].Pool().scope() as s, pool.scope() as t:
            print(s.ones(3).sum() + t.ones(3).sum())
    """)
    assert "twice" in told and told.endswith("6.0\n"), told


def test_what_is_open_and_alive_at_the_end():
    told = program("""
        import sys, numpy, tidepool, tidepool.numpy, atexit
        tidepool.numpy.use()
        pool, buffers = tidepool.Pool(), tidepool.Buffers()
        s = pool.scope().__enter__()
        buffer = buffers.acquire(100)
        sys.kept = [pool, s, s.full(10, 1.0), buffer, memoryview(buffer), numpy.from_dlpack(buffer), numpy.ones(1 << 17),
                    tidepool.from_dlpack(numpy.ones(1 << 17))]
        ring = [sys.kept]
        ring.append(ring)
        def last():
            with pool.scope() as t:
                print(t.ones(3).sum())
        atexit.register(last)
    """)
    assert told == "3.0\n"


def test_a_forked_child_in_a_scope(pool):
    with pool.scope() as s:
        a = s.full(1000, 1.0)
        child = os.fork()
        if child == 0:
            status = 1
            try:
                b = s.full(1000, 2.0)
                s.__exit__(None, None, None)
                status = 0 if (a == 1).all() and (b == 2).all() and pool.depth == 0 else 2
            finally:
                os._exit(status)
        assert os.waitpid(child, 0)[1] == 0
        b = s.full(1000, 3.0)
    assert (a == 1).all() and (b == 3).all()
