# SPDX-License-Identifier: MIT
"""Probes of the library: each stands in its notes, and fires as often as what it tells of happens, with
the arguments that the page promises. gdb stops at them as a tracer would."""
import re
import sys

from support import *

# Arguments as profiler/README.md has them: d a number, s a text, p a pointer.
PROBES = {
    "pool_grow": "psddd", "pool_trim": "psddd", "pool_limit": "psddd", "buffers_pressed": "psd",
    "site_found": "pdsds", "site_staged": "pdsds", "site_published": "pdsds", "site_missed": "pdsds",
    "site_gave_up": "pdsds", "compile_begin": "dd", "compile_end": "ddd",
}
FORMATS = {"p": ("%p", "(void *)$_probe_arg%d"), "d": ("%ld", "(long)$_probe_arg%d"),
           "s": ("%s", "(char *)$_probe_arg%d")}


def notes(path):
    """Of each probe the number of its arguments, by its note."""
    out, _ = run("readelf", "--wide", "--notes", path)
    found = re.findall(r"Provider: tidepool\n\s+Name: (\w+)\n.*\n\s+Arguments: (.*)", out)
    return {name: len(arguments.split()) for name, arguments in found}


def page():
    """The probes of the page, in order, with how many arguments it gives each."""
    text = (SOURCE / "profiler" / "README.md").read_text()
    rows = re.findall(r"^\| `(\w+)` \| (.+?) \|", text[text.index("### Probes"):], re.M)
    return {name: len(arguments.split(", ")) for name, arguments in rows if name in PROBES}


def script(path):
    """Each probe prints its name and arguments, and goes on."""
    lines = ["set breakpoint pending on", "set width 0", "set pagination off", "break target_stop"]
    for number, (name, kinds) in enumerate(PROBES.items(), 2):
        words = " ".join(FORMATS[kind][0] for kind in kinds)
        values = ", ".join(FORMATS[kind][1] % i for i, kind in enumerate(kinds))
        lines += ["break -probe-stap tidepool:%s" % name, "commands", "silent",
                  'printf "fired %s %s\\n", %s' % (name, words, values), "continue", "end"]
    lines += ["continue", "kill"]
    path.write_text("\n".join(lines) + "\n")


def fired(kind):
    path = WORK / "probes.gdb"
    script(path)
    # The shared library's are known once it is there: main comes first.
    program = TARGETS[kind]
    out, errors = gdb(program, "break main", "run", "source %s" % path)
    hits = {name: [] for name in PROBES}
    for line in out.splitlines():
        if line.startswith("fired "):
            words = line.split(" ")
            hits[words[1]].append(words[2:])
    facts = told(out)
    must("held" in facts, out, errors)
    return hits, facts


def check(kind):
    hits, facts = fired(kind)
    count = {name: len(list_of) for name, list_of in hits.items()}
    fact = {name: int(value) for name, value in facts.items() if value.isdigit()}

    def of(probe, pool):
        return [one for one in hits[probe] if one[1] == pool]

    must(len(of("pool_grow", "target")) == fact["allocations"], kind, hits["pool_grow"], facts)
    must(len(of("pool_grow", "limited")) == fact["limited_allocations"] == 2, kind, hits["pool_grow"])
    must(int(of("pool_grow", "target")[-1][4]) == fact["held"], kind, hits["pool_grow"])
    must([one[1:4] for one in hits["pool_trim"]] == [["limited", "2", facts["trimmed"]]], kind, hits["pool_trim"])
    must([one[1:] for one in hits["pool_limit"]] == [["limited", "3", str(8 << 20), str(1 << 20)]], kind,
         hits["pool_limit"])
    must([one[1:] for one in hits["buffers_pressed"]] == [["target_buffers", str(8 << 20)]] * fact["pressed"] and
         fact["pressed"] == 1, kind, hits["buffers_pressed"])
    for event in ("found", "staged", "published", "missed", "gave_up"):
        must(count["site_" + event] == fact[event], kind, event, count, facts)
    must(count["site_found"] == 2, kind, count)  # the target's two sites
    must([one[1:] for one in hits["site_found"]][0] == ["1", "target_scope", "0", "found"], kind, hits["site_found"])
    if LEARNING:
        must(fact["published"] > 2 and fact["missed"] > 0, "the target does too little", facts)
        must(0 < count["compile_begin"] == count["compile_end"] <= fact["ordered"], kind, count, facts)
        begun, ended = [[one[0] for one in hits["compile_" + word]] for word in ("begin", "end")]
        must(sorted(begun) == sorted(ended) and len(set(begun)) == len(begun), kind, begun, ended)
        must(all(one[1] == "0" and int(one[2]) > 0 for one in hits["compile_end"]), kind, hits["compile_end"])


need("readelf", "--version")
wanted = {name: len(kinds) for name, kinds in PROBES.items()}
must(page() == wanted, "the page lists", page(), "not", wanted)
library = next(a for a in sys.argv[2:] if "=" not in a)
for path in library, TARGETS["static"]:
    must(notes(path) == wanted, path, "has", notes(path), "not", wanted)
need_gdb()
for kind in TARGETS:
    check(kind)
print("ok")
