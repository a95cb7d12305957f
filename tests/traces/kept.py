# SPDX-License-Identifier: MIT
"""Code that stays after the process has ended, so that it can be named: by its file's symbols, by gdb on a
core file, by perf."""
import os
import re
import shutil
import time

from support import *

SYMBOL = re.compile(r"tide_scope_f64_\w+_enter$")


def folder(name, mode=0o700):
    path = WORK / name
    path.mkdir()
    path.chmod(mode)
    return path


def play(keep, *arguments, kind="shared", code=0, core=None):
    out, errors = run(TARGETS[kind], *arguments, environment={"TIDEPOOL_KEEP_CODE": str(keep)}, code=code)
    return told(out), errors


def wait_until_alone(path):
    """No stager works in the folder any more."""
    def works_there(process):
        try:
            return os.readlink(f"/proc/{process}/cwd").startswith(str(path))
        except OSError:
            return False

    end = time.monotonic() + 240
    while any(works_there(process) for process in os.listdir("/proc") if process.isdigit()):
        must(time.monotonic() < end, "a stager stays in", path)
        time.sleep(0.01)


def symbols(path):
    out, _ = run("nm", path)
    return {int(line.split()[0], 16): line.split()[2] for line in out.splitlines() if len(line.split()) == 3}


def check_kept(facts, keep):
    """The file is where it was mapped, with the name at the address, and nothing but code is beside it."""
    path = pathlib.Path(facts["code_file"])
    must(path.parent.parent == keep and path.parent.name.startswith("tidepool-kept-%s-" % facts["pid"]), path)
    must(path.stat().st_mode & 0o077 == 0 and path.parent.stat().st_mode & 0o777 == 0o700, path)
    name = symbols(path).get(int(facts["code_offset"]), "")
    must(SYMBOL.match(name), path, facts["code_offset"], name, symbols(path))
    left = [one.name for one in path.parent.iterdir()]
    must(all(name.endswith(".so") for name in left), left)
    must(len(left) > 1, "code that is not in force stays, too", left, facts)


def it_stays_after_the_end():
    keep = WORK / "made"  # it is made if it is not there
    first, errors = play(keep)
    must(errors == "", errors)
    check_kept(first, keep)
    second, _ = play(keep, "killed", kind="static", code=-9)
    wait_until_alone(keep)
    check_kept(second, keep)
    third, _ = play(keep)  # which leaves those of before alone
    for facts in first, second, third:
        check_kept(facts, keep)


def it_goes_where_nobody_asked():
    facts, _ = play("")
    must("code_file" in facts and not os.path.exists(facts["code_file"]), facts)


def where_it_cannot_be_kept_is_said_once():
    path = WORK / "no" / "where"
    facts, errors = play(path)
    must(errors.count("code is not kept") == 1 and "No such file" in errors, errors)
    must(facts["tier"] == "compiled" and not facts["code_file"].startswith(str(path)), facts)
    facts, errors = play("relative")
    must("TIDEPOOL_KEEP_CODE=relative ignored" in errors and facts["tier"] == "compiled", errors)


def gdb_names_it_in_a_core_file():
    need_gdb()
    keep, core = folder("core"), WORK / "core.file"
    out, errors = gdb(TARGETS["shared"], "set breakpoint pending on", "break target_stop", "run",
                      "generate-core-file %s" % core, "kill", environment={"TIDEPOOL_KEEP_CODE": str(keep)})
    must(core.exists(), out, errors)
    wait_until_alone(keep)
    out, errors = gdb(TARGETS["shared"], "print target_code", "info symbol target_code", core=core)
    must(re.search(r"tide_scope_f64_\w+_enter in section \.text of " + re.escape(str(keep)), out), out, errors)


def perf_names_it():
    data = WORK / "perf.data"
    if shutil.which("perf") is None or \
            subprocess.run(["perf", "record", "-q", "-e", "cpu-clock", "-o", data, "/bin/true"], capture_output=True).returncode != 0:
        print("no perf, or it may not record here")
        return
    keep = folder("perf")
    run("perf", "record", "-q", "-e", "cpu-clock", "-N", "-o", data, TARGETS["static"], "busy",
        environment={"TIDEPOOL_KEEP_CODE": str(keep)})
    wait_until_alone(keep)
    out, errors = run("perf", "report", "--stdio", "-i", data, "--sort", "symbol")
    if "] target_" not in out:
        print("perf takes no samples here")
        return
    must(re.search(r"\[\.\] tide_scope_f64_\w+_(enter|leave)", out), out, errors)


if not LEARNING:
    skip("no stager")
it_stays_after_the_end()
it_goes_where_nobody_asked()
where_it_cannot_be_kept_is_said_once()
perf_names_it()
if CORES:
    gdb_names_it_in_a_core_file()
print("ok")
