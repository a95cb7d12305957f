# SPDX-License-Identifier: MIT
"""What pip installed: doctests, stubs, files, names."""
import doctest
import inspect
import os
import pathlib
import re
import subprocess
import sys
import warnings

import numpy
import pytest

import tidepool
import tidepool.cupy
import tidepool.page
import tidepool.steer
import tidepool.torch
import tidepool.tuning

HOME = pathlib.Path(tidepool.__file__).parent


@pytest.mark.parametrize("module", [tidepool, tidepool.numpy, tidepool.page, tidepool.steer, tidepool.tuning, tidepool.profile])
def test_doctests(module):
    done = doctest.testmod(module)
    assert done.failed == 0
    assert module is tidepool.profile or done.attempted > 0


def test_the_package_has_the_library_beside_it():
    assert (HOME / "libtidepool.so.0").is_file()
    with open("/proc/self/maps") as maps:
        loaded = {line.split()[-1] for line in maps if "libtidepool" in line}
    assert loaded == {os.path.realpath(HOME / "libtidepool.so.0")}
    stager = HOME / "tidepool-stage"
    assert not stager.exists() or os.access(stager, os.X_OK)


def test_the_wheel_wants_no_younger_c_library_than_this_machine_has():
    pytest.importorskip("auditwheel", reason="pip could not get auditwheel")
    [wheel] = (pathlib.Path(sys.prefix).parent / "wheel").glob("*.whl")
    shown = subprocess.run([sys.executable, "-m", "auditwheel", "show", wheel], capture_output=True, text=True)
    assert shown.returncode == 0, shown.stderr
    tag = re.search(r"manylinux_2_(\d+)_", shown.stdout)
    assert tag, shown.stdout
    assert int(tag[1]) <= int(os.confstr("CS_GNU_LIBC_VERSION").split(".")[1])


def words_of(name, thing):
    """Its documentation, without the signature that stands before it in what nanobind makes."""
    text = thing.__doc__ or ""
    return text.removeprefix(text.splitlines()[0]) if text.startswith(f"{name}(") else text


def test_every_public_name_is_documented():
    for module in (tidepool, tidepool.numpy, tidepool.profile, tidepool.torch, tidepool.cupy):
        for name in module.__all__:
            if not name.startswith("_"):
                assert words_of(name, getattr(module, name)).strip(), f"{module.__name__}.{name}"


@pytest.mark.parametrize("kind", [tidepool.Pool, tidepool.Scope, tidepool.Buffers, tidepool.Buffer, tidepool.DeviceArray, tidepool.Site,
                                  tidepool.Settings, tidepool.Knob, tidepool.Variants])
def test_every_member_is_documented(kind):
    members = [name for name in dir(kind) if not name.startswith("_") and name not in dir(list) + dir(dict)]
    assert members
    for name in members:
        assert words_of(name, getattr(kind, name)).strip(), f"{kind.__name__}.{name}"


def test_methods_that_make_arrays_show_their_arguments():
    for name in ("empty", "zeros", "ones", "full", "arange", "empty_like", "zeros_like", "ones_like", "copy"):
        assert len(inspect.signature(getattr(tidepool.Scope, name)).parameters) >= 2


PAGE = pathlib.Path(__file__).parents[2] / "include/python/README.md"
NAMES = """from collections.abc import Iterable
from typing import Any
import numpy
import numpy.typing
import tidepool
data: Iterable[numpy.typing.NDArray[numpy.float64]]
total: float
n: int; m: int; k: int
by_rows: Any; by_tiles: Any; a: Any; b: Any
"""


def test_every_example_of_the_page_is_typed(tmp_path):
    """As it stands, with what it leaves to the reader declared; a wrong call is found."""
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.S | re.M)
    assert len(blocks) >= 3
    files = [tmp_path / f"block_{i}.py" for i in range(len(blocks) + 1)]
    wrong = ("def area(x: numpy.typing.NDArray[Any]) -> float: return float(tidepool.scoped(lambda x, *, scope: x.sum())(x))\n"
             "with tidepool.Pool('x').scope() as s:\n"
             "    reveal_type(s.empty((2, 3), 'f4'))\n"
             "tidepool.Pool(limit_bytes='x')\n")
    for file, block in zip(files, [*blocks, wrong]):
        file.write_text(NAMES + block)
    done = subprocess.run([sys.executable, "-m", "mypy", "--check-untyped-defs", "--ignore-missing-imports", "--cache-dir=/dev/null", *files],
                          capture_output=True, text=True, timeout=300, cwd=tmp_path, check=False)
    errors = [line for line in done.stdout.splitlines() if " error: " in line]
    assert len(errors) == 1 and 'incompatible type "str"; expected "int"' in errors[0], done.stdout
    assert "numpy.ndarray" in done.stdout


def test_the_stubs_say_what_is_there(tmp_path):
    allowed = pathlib.Path(__file__).with_name("stubtest.allow")
    done = subprocess.run([sys.executable, "-m", "mypy.stubtest", "tidepool", "--ignore-missing-stub",
                           "--allowlist", str(allowed), "--ignore-unused-allowlist"],
                          capture_output=True, text=True, timeout=300, cwd=tmp_path, check=False)
    assert done.returncode == 0 and "Success" in done.stdout, done.stdout


def test_the_pages_scopes_warn_of_nothing():
    program = PAGE.read_text().split("## Scopes\n\n```python\n")[1].split("```")[0]
    names = {"numpy": numpy, "data": [numpy.arange(9.0)] * 50, "total": 0, "n": 2, "m": 3, "k": 4}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        exec(program, names)  # noqa: S102
    assert names["pool"].stats()["scopes"] == 100 and names["pool"].stats()["pinned"] == 0
    assert names["variance"](names["data"][0]) is None


def test_the_package_has_the_command():
    """`tidepool`, where it was built with jansson; a sentence that says what is missing where not."""
    done = subprocess.run([pathlib.Path(sys.executable).with_name("tidepool"), "--version"], capture_output=True, text=True,
                          timeout=300, check=False, env={**os.environ, "PATH": "/nowhere"})
    if (HOME / "tidepool-command").exists():
        assert (done.returncode, done.stdout) == (0, f"tidepool {tidepool.__version__}\n"), done.stderr
    else:
        assert done.returncode == 1 and "libjansson-dev" in done.stderr


def test_the_benchmark_runs():
    bench = pathlib.Path(__file__).with_name("bench")
    done = subprocess.run([sys.executable, bench, "--quick"], capture_output=True, text=True,
                          timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("µs") == 14 and "'hits'" in done.stdout


def test_the_comparison_with_peers_runs():
    """A program below the least size, one above, and one of the example."""
    peers = pathlib.Path(__file__).with_name("peers")
    done = subprocess.run([sys.executable, peers, "--quick", "800", "320000", "in_place", "scope:800"], capture_output=True, text=True,
                          timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    rows = [line.split("|")[1:-1] for line in done.stdout.splitlines() if line.startswith("| ")]
    assert [row[0].strip() for row in rows] == ["array", "800 B", "320 KB", "in-place", "scope, 800 B"] and {len(row) for row in rows} == {10}
    assert all(10 < float(row[at]) < 1000 for row in rows[1:] for at in (5, 6, 8)), done.stdout


def test_an_import_brings_little_else():
    """What a page or a log needs comes when it is asked for."""
    done = subprocess.run([sys.executable, "-c", "import sys, numpy; before = set(sys.modules); import tidepool.numpy; "
                           "tidepool.numpy.use(); print(*sorted(set(sys.modules) - before))"],
                          capture_output=True, text=True, timeout=300, check=True)
    assert not {"json", "logging", "subprocess", "tempfile", "html"} & set(done.stdout.split()), done.stdout


def test_the_example_runs(tmp_path):
    example = pathlib.Path(__file__).parents[2] / "examples/python/temporaries.py"
    done = subprocess.run([sys.executable, example, "--quick"], capture_output=True, text=True,
                          timeout=300, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("the same result") == 3


@pytest.mark.parametrize("words, message", [
    (["--csv", "none.csv"], "cannot read the points of none.csv"), (["--csv", "few.csv"], "few.csv has 1 rows of numbers: five are the least"),
    (["--plot", "x.png"], "wants matplotlib"), (["--csv", "few.csv"], "wants pandas")])
def test_what_the_example_cannot_do_it_says_at_once(tmp_path, words, message):
    """With a pandas that reads one row, or without; matplotlib is never there."""
    if "wants" not in message:
        (tmp_path / "pandas.py").write_text("import numpy\nclass Frame:\n    def __init__(self, file): open(file).close()\n"
                                            "    def select_dtypes(self, kind): return self\n    dropna = lambda self: self\n"
                                            "    __len__ = lambda self: 1\nread_csv = Frame\n")
    for name in ("matplotlib", "pandas"):
        if not (tmp_path / f"{name}.py").exists():
            (tmp_path / f"{name}.py").write_text("raise ModuleNotFoundError(__name__)\n")
    (tmp_path / "few.csv").write_text("a,b\n1,2\n")
    example = pathlib.Path(__file__).parents[2] / "examples/python/temporaries.py"
    done = subprocess.run([sys.executable, example, "--quick", *words], capture_output=True, text=True, timeout=300, cwd=tmp_path,
                          check=False, env={**os.environ, "PYTHONPATH": str(tmp_path)})
    assert done.returncode == 2 and message in done.stderr and "Traceback" not in done.stderr and not done.stdout, done.stderr
