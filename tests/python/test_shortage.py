# SPDX-License-Identifier: MIT
"""Python's allocator refuses the n-th request of a call, for each n there is: MemoryError, and nothing is lost.

Each act is done again and again, with one request refused and with all from the n-th on, until none is. By hand:
`test_shortage.py [GROUP [ACT...]]` prints what was done last.
"""
import itertools
import os
import re
import subprocess
import sys

import pytest


class Acts:
    """What a program does with the package, as functions without arguments."""

    def __init__(self):
        import numpy

        import tidepool
        import tidepool.numpy

        self.t, self.n = tidepool, numpy
        tidepool.settings["background"] = 0  # so that each call makes the same requests each time
        self.pool, self.buffers = tidepool.Pool("short"), tidepool.Buffers("short")
        self.buffer = self.buffers.acquire(1000)
        self.outer = self.pool.scope("outer").__enter__()
        self.a = numpy.arange(12.0).reshape(3, 4)
        self.path = os.path.join(os.environ.get("TMPDIR", "/tmp"), f"tidepool-short-{os.getpid()}")
        self.names = itertools.count()

    def state(self):
        """What no call that fails may change."""
        p, b = self.pool.stats(), self.buffers.stats()
        return {"depth": p["depth"], "slots": p["slots_live"], "buffers": b["live"], "pools": len(self.t.pools()),
                "references": [sys.getrefcount(one) for one in (
                    self.pool, self.buffers, self.buffer, self.outer, self.a)]}

    def within(self, make):
        def act():
            with self.pool.scope() as s:
                a = make(s)
                del a
        return act

    def arrays(self):
        def escaped():
            with self.pool.scope() as s:
                a = s.empty(100)
            return a

        def many():
            with self.pool.scope() as s:
                arrays = [s.empty(3) for _ in range(20)]
                del arrays

        def frame():
            with self.pool.frame(((2, 3), "f4"), 5) as (a, b):
                del a, b

        @self.t.scoped(pool=self.pool)
        def scoped(x, *, scope):
            return scope.empty_like(x).size

        made = {name: self.within(make) for name, make in {
            "scope": lambda s: None, "empty": lambda s: s.empty((3, 4)), "zeros": lambda s: s.zeros(7, dtype="i4"),
            "ones": lambda s: s.ones(7), "full": lambda s: s.full(7, 2.5), "full_text": lambda s: s.full(3, "abc"),
            "arange": lambda s: s.arange(1, 20, 2), "arange_swapped": lambda s: s.arange(1, 20, 2, ">i4"),
            "zeros_like": lambda s: s.zeros_like(self.a), "ones_like": lambda s: s.ones_like([1, 2]),
            "copy": lambda s: s.copy(self.a), "full_empty_text": lambda s: s.full(3, "")}.items()}
        return {**made, "escaped": escaped, "many": many, "frame": frame, "scoped": lambda: scoped(self.a),
                "members": lambda: (self.outer.pool, self.outer.site, self.outer.open)}

    def pools(self):
        def named():
            with self.pool.scope("named"):
                pass

        codes = [compile("with pool.scope(): pass", f"file {i}", "exec") for i in range(500)]

        def place():
            exec(codes.pop(), {"pool": self.pool})

        def local():
            self.t._mine.__dict__.pop("pool", None)
            self.t.local().close()

        def closed():
            with self.t.Pool("x", limit_bytes=1 << 20):
                pass

        return {"named": named, "place": place, "local": local, "closed": closed, "made": lambda: self.t.Pool("y", check=1),
                "bound": lambda: [getattr(self.pool, name)() for name in ("stats", "check", "adopt", "trim")],
                "members": lambda: (self.pool.depth, self.pool.usable, self.pool.closed, self.pool.name, repr(self.pool)),
                "pools": self.t.pools, "page": self.pool._repr_html_}

    def shared(self):
        numpy, b, take = self.n, self.buffer, self.t.from_dlpack

        def used():
            with self.buffers.acquire(10):
                pass

        def failed():
            try:
                with self.buffers.acquire(10) as one:
                    view = memoryview(one)
                    raise KeyError
            except KeyError:
                del view

        def taken():
            capsule = b.__dlpack__()
            try:
                take(capsule)
            except MemoryError:
                assert "used" not in repr(capsule)
                raise

        return {"released": lambda: self.buffers.acquire(5000).release(),
                "acquired": lambda: self.buffers.acquire(5000, zeroed=True), "used": used, "failed": failed,
                "instance": lambda: self.t.Buffers("z", bytes_max=1 << 20).acquire(10),
                "members": lambda: (len(b), b.nbytes, b.capacity, b.released, b.__dlpack_device__(), self.buffers.name),
                "counts": lambda: (self.buffers.stats(), self.buffers.trim()),
                "view": lambda: memoryview(b).release(), "array": lambda: numpy.frombuffer(b, "u1"),
                "offer": lambda: b.__dlpack__(), "offer_versioned": lambda: b.__dlpack__(max_version=(1, 0)),
                "offer_all": lambda: getattr(b, "__dlpack__")(stream=None, max_version=(1, 1), dl_device=(1, 0), copy=False),
                "to_numpy": lambda: numpy.from_dlpack(b), "from_buffer": lambda: take(b), "from_numpy": lambda: take(self.a),
                "from_capsule": lambda: take(b.__dlpack__(max_version=(1, 1))), "taken": taken}

    def steering(self):
        t, core = self.t, self.t._core

        def refused(call, *arguments):
            def act():
                try:
                    call(*arguments)
                except (KeyError, ValueError, TypeError, BufferError):
                    return
                raise AssertionError(call)
            return act

        def told():
            heard = []
            t.on_event(heard.append)
            try:
                with self.pool.scope(f"new {next(self.names)}") as s:
                    s.empty(3)
                t.step()
            finally:
                t.on_event(None)

        def setting():
            t.settings["trim_after"] = t.settings["trim_after"]

        return {"settings": core.settings_list, "setting": setting, "settings_page": t.settings._repr_html_,
                "described": lambda: t.settings.describe("trim_after"), "sites": t.sites,
                "sites_page": lambda: t.steer.Sites(t.sites()[:2])._repr_html_(), "step": t.step, "settle": t.settle,
                "save": lambda: t.profile.save(self.path), "load": lambda: t.profile.load(self.path),
                "merge": lambda: t.profile.merge(self.path), "facts": core.facts_text, "told": told,
                "numpy": lambda: (t.numpy.stats(), t.numpy.holds(self.a), t.numpy.active(), t.numpy.trim(),
                                  t.numpy.set_least(t.numpy.least())),
                "no_setting": refused(core.setting_get, "no such"), "no_name": refused(core.setting_get, "a\0b"),
                "no_integer": refused(self.buffers.acquire, -1), "no_limit": refused(t.Buffers, "b", -1),
                "no_text": refused(self.pool.scope, 3), "no_stream": refused(lambda: self.buffer.__dlpack__(stream=1)),
                "too_many": refused(t.step, 3), "unknown": refused(lambda: self.pool.scope(nme="x"))}

    def tuning(self):
        t, file = self.t, __file__
        core, body = t._core, t.variants("short work", "one", "other")
        knob, functions = t.tunable("short knob", 0, 9), t.variants("short functions", len, key=len)

        def used():
            with t.measure(body, 3):
                pass

        return {"knob": lambda: core.tunable_knob(f"knob {next(self.names)}", file, 1, 0, 9, 5),
                "variants": lambda: core.tunable_variants(f"variants {next(self.names)}", file, 1, ["a", "b"]),
                "again": lambda: t.tunable("short again", 0, 9), "used": used, "rows": body.rows,
                "value": lambda: core.tunable_set(knob._number, knob.value), "pin": lambda: body.pin(3, "one"),
                "reset": body.reset, "called": lambda: functions("abc")}

    def handler(self):
        """What says that there was no memory has changed nothing. `using` may end so: then `off` comes later."""
        t = self.t.numpy

        def changes(call, to):
            def act():
                try:
                    call()
                except MemoryError:
                    assert t.active() is not to
                    raise
                assert t.active() is to
            return act

        def array():
            with t.using():
                assert t.active()
                self.n.ones(10_000)

        return {"use": changes(t.use, True), "off": changes(t.off, False), "using": array}


# Not done, unless named by hand: nanobind uses what Python's allocator did not give it.
NANOBINDS_OWN = {
    "bound": "the bound method of `getattr(pool, name)`, in nb_method_descr_get",
    "too_many": "the names of types in its message about wrong arguments, in nb_func_error_overload",
    "unknown": "the same",
}

GROUPS = ("arrays", "pools", "shared", "steering", "tuning", "handler")
STEPS = {"settings_page": 37}  # of a long row of like requests not each


# Where there is no memory for the traceback of an exception, Python may lose the exception.
PYTHONS_OWN = re.compile("^error return without exception set|^<function .* returned NULL without setting an exception")


def crashes(program):
    """Does Python itself, without the package?"""
    return subprocess.run([sys.executable, "-c", program], capture_output=True, check=False).returncode < 0


# Where all requests are refused, contextvars crash, by which NumPy knows its handler.
CRASHES = crashes("import _testcapi, contextvars; v = contextvars.ContextVar('v'); v.set(1); "
                  "_testcapi.set_nomemory(0, 0); v.set(2)")

# Functions within functions, of which a page is made, crash Python 3.12 and 3.13.
PAGES = ("page", "settings_page", "sites_page") if crashes("""
import _testcapi
def outer():
    def inner(cells): return "".join(f"<{cell}>" for cell in cells)
    return "".join(inner(row) for row in ((1.5, 2.5), (3.5,)))
for n in range(100):
    for stop in (0, n + 1):
        _testcapi.set_nomemory(n, stop)
        try: outer()
        except (MemoryError, SystemError): pass
        _testcapi.remove_mem_hooks()
""") else ()


class Sweep:
    """Of one group's acts, in this process."""

    def __init__(self, group):
        import _testcapi
        self.refuse, self.allow = _testcapi.set_nomemory, _testcapi.remove_mem_hooks
        self.acts, self.group = Acts(), group
        sys.unraisablehook = lambda *_: None

    def is_refused(self, act, n, all_later):
        """Does the act make so many requests that one is refused? Some it can do without."""
        refused, failure = True, None
        self.refuse(n, 0 if all_later else n + 1)
        try:
            act()
            refused = False
            for _ in range(n + 2):
                bytearray(300)
            refused = True
        except MemoryError:
            pass
        except BaseException as error:  # noqa: BLE001
            failure = error
        self.allow()
        if isinstance(failure, SystemError) and PYTHONS_OWN.search(str(failure)):
            return True
        if failure is not None:
            raise failure
        return refused

    def act(self, name, act):
        for n in range(0, 100_000, STEPS.get(name, 1)):
            refused = False
            for all_later in (False,) if self.group == "handler" and CRASHES else (True, False):
                os.write(1, f"{self.group} {name} {n} {'and later' if all_later else 'alone'}\n".encode())
                act()
                (self.acts.t.numpy.use if name == "off" else self.acts.t.numpy.off)()
                before = self.acts.state()
                refused |= self.is_refused(act, n, all_later)
                self.acts.t.numpy.off()
                after = self.acts.state()
                assert after == before, (before, after)
            if not refused:
                return self.acts.pool.check()
        raise AssertionError("no end")

    def all(self, names):
        acts = getattr(self.acts, self.group)()
        for name in names or [name for name in acts if name not in NANOBINDS_OWN and name not in PAGES]:
            self.act(name, acts[name])


def sweep(group, names):
    one = Sweep(group)
    one.all(names)
    one.acts.t.numpy.off()
    if os.path.exists(one.acts.path):
        os.unlink(one.acts.path)


@pytest.mark.parametrize("group", GROUPS)
def test_a_refused_request_is_a_memory_error(group):
    pytest.importorskip("_testcapi")
    done = subprocess.run([sys.executable, "-X", "faulthandler", __file__, group], capture_output=True, text=True,
                          timeout=300, check=False)
    assert done.returncode == 0, done.stdout[-200:] + done.stderr
    assert done.stdout.count("\n") > 20


if __name__ == "__main__":
    for group in sys.argv[1:2] or GROUPS:
        sweep(group, sys.argv[2:])
