# SPDX-License-Identifier: MIT
"""Facts of the process, and the page that the command makes of them."""
import json
import os
import pathlib
import subprocess
import sys

import pytest

import tidepool
import tidepool.page

COMMAND = os.environ.get("TIDEPOOL_COMMAND", "")


@pytest.fixture
def pool():
    with tidepool.Pool("reported") as made:
        with made.scope("a site of the report") as s:
            s.empty(1000)
        yield made


@pytest.fixture
def command(tmp_path, monkeypatch):
    """A command of the test's own, in place of the package's: a function that says what it runs."""
    monkeypatch.setattr(tidepool.page, "__file__", str(tmp_path / "page.py"))
    folder = tmp_path / "path"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))

    def become(script):
        file = folder / "tidepool"
        file.write_text(f"#!{sys.executable}\nimport shutil, sys\n{script}\n")
        file.chmod(0o755)

    return become


def test_facts_are_what_the_others_say(pool):
    known = tidepool.facts()
    assert known["format"] == "tidepool-facts" and known["pid"] == os.getpid()
    ours = [one for one in known["pools"] if one["name"] == "reported"]
    assert [one["held_bytes"] for one in ours] == [pool.stats()["bytes_held"]]
    assert "a site of the report" in [site["name"] for site in known["sites"]]
    assert known["settings"]["trim_after"] == tidepool.settings["trim_after"]


def test_the_command_gets_a_record_of_now(pool, command, tmp_path, monkeypatch):
    command("assert sys.argv[1:3] == ['report', '-o'], sys.argv\nshutil.copy(sys.argv[4], sys.argv[3])")
    monkeypatch.chdir(tmp_path)
    tidepool.report("-page.html")
    head, known, end = map(json.loads, pathlib.Path("-page.html").read_text(encoding="utf-8").splitlines())
    assert head["format"] == "tidepool-record" and head["pid"] == known["pid"] == os.getpid() and head["program"]
    assert known["format"] == "tidepool-facts" and end == {"end": {}}
    assert "reported" in [one["name"] for one in known["pools"]]


def test_without_the_command(command, tmp_path):
    for script in (None, "from tidepool.__main__ import run_command"):
        if script:
            command(script)
        with pytest.raises(FileNotFoundError, match="no command `tidepool`"):
            tidepool.report(tmp_path / "page.html")


def test_a_command_that_fails(command, tmp_path):
    command("sys.exit('built without a charting library')")
    with pytest.raises(RuntimeError, match="built without a charting library"):
        tidepool.report(tmp_path / "page.html")
    command("sys.exit(7)")
    with pytest.raises(RuntimeError, match="ended with 7"):
        tidepool.report(tmp_path / "page.html")


POOL = """
import os, pathlib, time, tidepool
with tidepool.Pool("watched").scope("a watched site") as s:
    s.empty(1000)
"""
BUFFERS = """
import os, pathlib, time, numpy, tidepool.numpy
tidepool.numpy.use()
numpy.empty(1 << 17)
"""
WATCHED = """
socket = pathlib.Path(os.environ["XDG_RUNTIME_DIR"]) / "tidepool" / f"{os.getpid()}.sock"
end = time.monotonic() + 200
while not socket.exists() and time.monotonic() < end:
    time.sleep(0.01)
print(socket.exists())
"""


@pytest.mark.skipif(not (pathlib.Path(tidepool.__file__).parent / "libtidepool-listen.so").exists(),
                    reason="built without jansson")
@pytest.mark.parametrize("used", [POOL, BUFFERS])
def test_a_program_in_python_listens(tmp_path, used):
    done = subprocess.run([sys.executable, "-c", used + WATCHED], capture_output=True, text=True, timeout=300,
                          env={**os.environ, "XDG_RUNTIME_DIR": str(tmp_path), "TIDEPOOL_LISTEN": "1"})
    assert (done.returncode, done.stdout, done.stderr) == (0, "True\n", "")


@pytest.mark.skipif(not COMMAND, reason="the command was not built")
def test_a_whole_run_is_recorded(tmp_path):
    """It listens, and its last facts are those of its end."""
    record = tmp_path / "run.rec"
    done = subprocess.run([COMMAND, "record", "-o", str(record), "--", sys.executable, "-c", POOL + WATCHED],
                          capture_output=True, text=True, timeout=300, env={**os.environ, "XDG_RUNTIME_DIR": str(tmp_path)})
    assert (done.returncode, done.stderr) == (0, "")
    lines = [json.loads(line) for line in record.read_text(encoding="utf-8").splitlines()]
    last = [line for line in lines if line.get("format") == "tidepool-facts"][-1]
    assert "a watched site" in [site["name"] for site in last["sites"]]


@pytest.mark.skipif(not COMMAND, reason="the command was not built")
def test_a_run_without_tidepool_is_asked_for_its_import(tmp_path):
    done = subprocess.run([COMMAND, "record", "-o", str(tmp_path / "run.rec"), "--", sys.executable, "-c", "pass"],
                          capture_output=True, text=True, timeout=300, env={**os.environ, "XDG_RUNTIME_DIR": str(tmp_path)})
    assert done.returncode != 0 and "does it import tidepool?" in done.stderr


@pytest.mark.skipif(not COMMAND, reason="the command was not built")
def test_the_page_is_the_commands(pool, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", os.path.dirname(COMMAND) + ":" + os.environ["PATH"])
    page = tmp_path / "page.html"
    try:
        tidepool.report(page)
    except RuntimeError as error:
        if "libjs-chart.js" not in str(error):
            raise
        pytest.skip(str(error))
    text = page.read_text(encoding="utf-8")
    assert "a site of the report" in text and '"damage":""' in text and '"end":""' in text
    with pytest.raises(RuntimeError, match="no-folder"):
        tidepool.report(tmp_path / "no-folder" / "page.html")
