# SPDX-License-Identifier: MIT
"""What the tests of this folder share: the target, and tools that may be missing."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(sys.argv[1])
TARGETS = dict(a.split("=", 1) for a in sys.argv[2:] if "=" in a)
CORES = TARGETS.pop("sanitized", None) is None  # shadow memory makes them too large
FOLDER = tempfile.TemporaryDirectory(prefix="tide-traces-")
WORK = pathlib.Path(FOLDER.name)
SKIPPED = 77
LEARNING = os.environ.get("TIDEPOOL_STAGER", "none") != "none"
ENVIRONMENT = {**os.environ, "TIDEPOOL_TRIAL": "0", "DEBUGINFOD_URLS": "", "PYTHONDONTWRITEBYTECODE": "1",
               "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"}  # it cannot be traced


def must(condition, *what):
    if not condition:
        print("failed:", *what, flush=True)
        raise AssertionError(what)


def skip(why):
    print("skipped:", why)
    sys.exit(SKIPPED)


def run(*words, environment=None, code=0):
    """Its standard output, and what it complained of. It must end with this code; None: with any."""
    done = subprocess.run([str(word) for word in words], env={**ENVIRONMENT, **(environment or {})}, timeout=300,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    must(code is None or done.returncode == code, words, "ended with", done.returncode, done.stdout, done.stderr)
    return done.stdout, done.stderr


def need(tool, *arguments):
    if shutil.which(tool) is None:
        skip(f"no {tool}")
    if arguments and subprocess.run([tool, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                    stderr=subprocess.DEVNULL).returncode != 0:
        skip(f"{tool} does not work here")


def need_gdb():
    """One that runs programs, and has Python."""
    need("gdb", "-nx", "-batch", "-ex", "python print(1)", "-ex", "run", "--args", "/bin/true")
    out, _ = run("gdb", "-nx", "-batch", "-ex", "python print(40 + 2)", "-ex", "run", "--args", "/bin/true")
    if "42" not in out or "exited normally" not in out:
        skip("gdb runs no programs here, or has no Python")


def told(text):
    """The NAME=VALUE lines of the target."""
    return dict(line.split("=", 1) for line in text.splitlines() if "=" in line and " " not in line.split("=")[0])


def gdb(program, *commands, core=None, arguments=(), options=(), environment=None):
    words = ["gdb", "-nx", "-batch", *options]
    for command in commands:
        words += ["-ex", command]
    words += [program, core] if core is not None else ["--args", program, *arguments]
    return run(*words, environment=environment, code=None)
