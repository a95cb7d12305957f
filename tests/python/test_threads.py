# SPDX-License-Identifier: MIT
"""Buffers for NumPy in all threads, and for programs that know nothing of them."""
import pathlib
import subprocess
import sys
import sysconfig
import zipapp

import pytest

HOLDS = "import numpy, tidepool.numpy as handler\nholds = lambda: handler.holds(numpy.empty(1 << 17))\n"


def run(*words, **keywords):
    return subprocess.run([sys.executable, "-X", "dev", *words], capture_output=True, text=True, timeout=300, check=False,
                          **keywords)


def told(code):
    done = run("-c", HOLDS + code)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.split()


STARTERS = {
    "threading": "t = threading.Thread(target=work); t.start(); t.join()",
    "_thread": "lock.acquire(); _thread.start_new_thread(lambda: (work(), lock.release()), ()); lock.acquire(); lock.release()",
    "executor": "concurrent.futures.ThreadPoolExecutor(1).submit(work).result()",
    "context": "contextvars.Context().run(work)",
    "asyncio": "asyncio.run(asyncio.to_thread(work))",
    "fork": "sys.stdout.flush(); child = os.fork(); child or (work(), sys.stdout.flush(), os._exit(0)); os.waitpid(child, 0)",
}


@pytest.mark.parametrize("start", STARTERS.values(), ids=STARTERS)
def test_every_thread_has_it(start):
    code = f"""
import _thread, asyncio, concurrent.futures, contextvars, os, sys, threading, warnings
warnings.simplefilter("ignore", DeprecationWarning)  # of a fork in a process with threads
lock = _thread.allocate_lock()
work = lambda: print(holds())
{start}
handler.use(all_threads=True)
{start}
handler.off(all_threads=True)
{start}
print(holds())
"""
    assert told(code) == ["False", "True", "False", "False"]


def test_a_thread_that_is_there_already_gets_it():
    assert told("""
import threading
go, gone = threading.Semaphore(0), threading.Semaphore(0)
def work():
    for _ in range(3):
        go.acquire(); print(holds()); gone.release()
thread = threading.Thread(target=work)
thread.start()
for change in (lambda: None, lambda: handler.use(all_threads=True), lambda: handler.off(all_threads=True)):
    change(); go.release(); gone.acquire()
thread.join()
""") == ["False", "True", "False"]


def test_a_thread_may_choose_otherwise():
    assert told("""
import threading
def work():
    print(holds()); handler.off(); print(holds(), numpy._core.multiarray.get_handler_name()); handler.use(); print(holds())
handler.use(all_threads=True)
t = threading.Thread(target=work); t.start(); t.join()
print(holds())
handler.off()
print(holds())
handler.use(all_threads=True)
print(holds())
""") == ["True", "False", "default_allocator", "True", "True", "False", "True"]


def test_no_context_is_made_for_it():
    assert told("""
import contextvars
handler.use(all_threads=True)
print(holds(), len(contextvars.copy_context()))
handler.off(); handler.use(all_threads=True)
print(holds(), len(contextvars.copy_context()))
""") == ["True", "0", "True", "1"]


def test_arrays_outlive_it():
    """They are freed, and grow, when NumPy's own handler is in force again, and those of it when ours is."""
    assert told("""
own = [numpy.ones(n) for n in (10, 1 << 17)]
handler.use(all_threads=True)
ours = [numpy.ones(n) for n in (10, 1 << 17)]
for a in own: a.resize(1 << 18, refcheck=False)
live = handler.stats()["live"]
del own
handler.off(all_threads=True)
print(live, [handler.holds(a) for a in ours])
for a in ours: a.resize(1 << 19, refcheck=False)
print(all(a[0] == 1 and a[-1] == 0 for a in ours))
del a, ours
print(handler.stats()["live"], holds(), numpy._core.multiarray.get_handler_name())
""") == ["1", "[False,", "True]", "True", "0", "False", "default_allocator"]


# ---- python -m tidepool ----

SCRIPT = """
import __main__, pathlib, pickle, sys, threading
import numpy, tidepool.numpy
import beside
class Kept: pass
assert isinstance(pickle.loads(pickle.dumps(Kept())), __main__.Kept) and __name__ == "__main__"
class Noted: x: int
assert Noted.__annotations__ == {"x": int}  # the source's own `from __future__`, none of others
def work(): print(tidepool.numpy.holds(numpy.empty(1 << 17)), *sys.argv[1:], pathlib.Path(__file__).name)
work()
def late():
    threading.main_thread().join()
    pickle.dumps(Kept())
    work()
threading.Thread(target=late).start()
sys.exit(7)
"""


@pytest.fixture
def script(tmp_path):
    (tmp_path / "beside.py").write_text("")
    made = tmp_path / "program.py"
    made.write_text(SCRIPT)
    return made


def test_a_script_runs_as_by_python(script, tmp_path):
    done = run("-m", "tidepool", str(script), "-x", "a b")
    assert (done.returncode, done.stdout, done.stderr) == (7, "True -x a b program.py\n" * 2, "")
    module = run("-m", "tidepool", "-m", "program", "-x", "a b", cwd=tmp_path)
    assert (module.returncode, module.stdout, module.stderr) == (7, "True -x a b program.py\n" * 2, "")


@pytest.mark.parametrize("words", [["sees.py"], ["folder"], ["folder.pyz"], ["-m", "sees"]])
def test_a_program_sees_what_it_sees_by_python(tmp_path, words):
    (tmp_path / "folder").mkdir()
    for file in (tmp_path / "sees.py", tmp_path / "folder/__main__.py"):
        file.write_text("import sys\nprint(__name__, __file__, type(__loader__), __spec__ and __spec__.name, __package__, sys.argv, "
                        "sys.path[0], sys.modules['__main__'].__dict__ is globals())\n")
    zipapp.create_archive(tmp_path / "folder", tmp_path / "folder.pyz")
    seen = run(*words, "x", cwd=tmp_path)
    assert seen.returncode == 0 and seen.stdout.startswith("__main__ ")
    ours = run("-m", "tidepool", *words, "x", cwd=tmp_path)
    assert (ours.returncode, ours.stdout, ours.stderr) == (0, seen.stdout, "")


def test_a_script_that_fails(tmp_path):
    (tmp_path / "bad.py").write_text("\nraise KeyError('gone')\n")
    done = run("-m", "tidepool", str(tmp_path / "bad.py"))
    assert done.returncode == 1 and f'{tmp_path}/bad.py", line 2' in done.stderr and "KeyError: 'gone'" in done.stderr
    missing = run("-m", "tidepool", "no-such.py")
    assert (missing.returncode, missing.stderr) == (2, "python -m tidepool: cannot read 'no-such.py': No such file or directory\n")


@pytest.mark.parametrize("words, status", [([], 2), (["-m"], 2), (["-x"], 2), (["--help"], 0)])
def test_what_is_no_program_gets_the_usage(words, status):
    done = run("-m", "tidepool", *words)
    assert (done.returncode, done.stderr) == (status, "usage: python -m tidepool [-m MODULE | SCRIPT] ARGUMENTS…\n")


# ---- what pip builds ----


def test_a_free_threaded_python_is_refused(tmp_path):
    """One that says of itself what a free-threaded one says."""
    (tmp_path / "sitecustomize.py").write_text("import sysconfig\nsysconfig.get_config_vars()['Py_GIL_DISABLED'] = 1\n")
    source = pathlib.Path(__file__).parents[2] / "include/python"
    cmake = pathlib.Path(sysconfig.get_path("scripts")) / "cmake"
    done = subprocess.run([cmake, "-S", source, "-B", tmp_path / "build", f"-DPython_EXECUTABLE={sys.executable}"], text=True,
                          capture_output=True, timeout=300, check=False, env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(tmp_path)})
    assert done.returncode != 0 and "is free-threaded" in " ".join(done.stderr.split()), done.stderr
