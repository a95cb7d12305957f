# SPDX-License-Identifier: MIT
"""gdb's commands and printers, on a process and on a core file of it: both must say the same, and
what the program was told of itself by the public interface."""
import re
import sys

from support import *

need_gdb()
SCRIPT = SOURCE / "profiler" / "gdb" / "tidepool-gdb.py"

# Each is announced by a line, so that its answer can be found among all that gdb says.
ASKED = ["tidepool pools", "tidepool sites", "tidepool where points", "tidepool where &points[2].y",
         "tidepool where array", "tidepool where (char *)array->tensor.data + 320", "tidepool where pool",
         "tidepool where buffer + 4000", "tidepool where scope", "tidepool where pool->core->log.start",
         "tidepool where target_code", "tidepool where 16", "print pool", "print *scope", "print *array",
         "print array->type", "print *target_site", "print (tide_type)3", "info pretty-printer global tidepool"]


def asked():
    for command in ASKED:
        yield "echo \\n[[%s]]\\n" % command
        yield command


def answers(text):
    parts = re.split(r"^\[\[(.*)\]\]\n", text, flags=re.M)
    return {name: answer.strip() for name, answer in zip(parts[1::2], parts[2::2])}


def check(said, facts, kind):
    def has(command, *patterns):
        for pattern in patterns:
            must(re.search(pattern, said[command]), kind, command, "says", said[command], "not", pattern)

    pool = [line for line in said["tidepool pools"].splitlines() if " target " in line]
    must(len(pool) == 1 and re.search(r" %s +0 +1  0x" % facts["allocations"], pool[0]), kind, "pools", said)
    must(size(facts["held"]) in pool[0] and size(facts["live"]) in pool[0], kind, pool, facts)
    site = [line for line in said["tidepool sites"].splitlines() if " target_scope " in line]
    must(len(site) == 1, kind, "sites", said["tidepool sites"])
    for word in (facts["site"], "scope", facts["tier"], facts["misses"], facts["reason"] or "-",
                 "target.c:" + facts["line"], facts["site_address"]):
        must(re.search(r"(^|[ /])%s( |$)" % re.escape(word), site[0]), kind, "site", site[0], word)
    has("tidepool where points", "live slot 0 of target_point in pool 'target'", "byte 0 of 512", "element 0")
    has("tidepool where &points[2].y", "byte 40 of 512", "element 2")
    has("tidepool where array", r"the header of an array \[3, 40\] of f64")
    has("tidepool where (char *)array->tensor.data + 320", "byte 320", "element 40", r"\[3, 40\]")
    has("tidepool where pool", "the words and shelves of pool 'target'")
    has("tidepool where buffer + 4000", "a live buffer of 'target_buffers': byte 4000 of 5120")
    has("tidepool where scope", "not of Tidepool")
    has("tidepool where 16", "not of Tidepool")
    has("tidepool where pool->core->log.start", "entry 0 of the undo log of pool 'target'")
    has("print pool", "pool 'target'", "depth 1", re.escape("holds " + size(facts["held"])))
    has("print *scope", r"scope.*level 1.*pool 'target'")
    has("print *array", r"array \[3, 40\] of f64, row-major")
    has("print array->type", r"3 \(f64\)")
    has("print (tide_type)3", r"3 \(f64\)")
    has("print *target_site", "scope site 'target_scope'", "tier " + facts["tier"])
    if LEARNING:
        must(facts["tier"] == "compiled", facts)
        has("tidepool where target_code", r"compiled code of site 'target_scope', file /")


def size(count):
    count = int(count)
    return "%.0f B" % count if count < 10240 else "%.0f KiB" % (count / 1024)


def look(kind, *ways_to_load):
    """Live first, then the core file of the same moment."""
    program, core = TARGETS[kind], WORK / (kind + ".core")
    out, errors = gdb(program, *ways_to_load, "set width 0", "set breakpoint pending on", "break target_stop", "run",
                      *asked(), *(["generate-core-file %s" % core] if CORES else []), "kill")
    live, facts = answers(out), told(out)
    must(len(live) == len(ASKED), out, errors)
    check(live, facts, kind)
    must(not LEARNING or re.search(r": tide_scope_f64_\w+_enter$", live["tidepool where target_code"]), kind, live)
    if not CORES:
        return
    must(core.exists(), "no core file", out, errors)
    out, errors = gdb(program, *ways_to_load, "set width 0", *asked(), core=core)
    dead = answers(out)
    must(len(dead) == len(ASKED), out, errors)
    for command in ASKED:
        # What only the file knows: it is removed once the stager sees that the process has ended.
        was, now = (re.sub(r": tide_\w+$", "", said[command]) for said in (live, dead))
        must(was == now or command == ASKED[-1], kind, command, "live:", was, "core:", now)
    check(dead, facts, kind + " core")


def load_by_itself(kind):
    """Where the user trusts the folder, and only there."""
    program = TARGETS[kind]
    trusted = ["-iex", "set auto-load safe-path " + BUILD]
    out, errors = gdb(program, "break target_stop", "run", "tidepool pools", "kill", options=trusted)
    must(" target " in out, kind, "is not loaded by itself", out, errors)
    out, errors = gdb(program, "break target_stop", "run", "tidepool pools", "kill",
                      options=["-iex", "set auto-load safe-path /nonexistent"])
    must("Undefined command" in errors and "declined" in errors, kind, out, errors)


BUILD = next(a for a in sys.argv[2:] if "=" not in a)
for kind in TARGETS:
    look(kind, "source %s" % SCRIPT)
    load_by_itself(kind)
print("ok")
