# SPDX-License-Identifier: MIT
"""bpftrace, on a process as it runs: each probe fires as often as what it tells of happens, with the numbers that the
program has of it. Wants a kernel with BPF and uprobes, and the right to use them: root has it mostly.

What is traced is a copy that no other test runs: a uprobe is put into the file for whoever maps it, and where one is, the
kernel takes the breakpoint of a debugger for its own."""
import re
import sys

from support import *

# What each prints beside its name; a text only where it was written just before, for BPF reads none that is not in memory.
PROBES = {
    "pool_grow": ("%s %d %d", "str(arg1), arg3, arg4"), "pool_trim": ("%s %d %d", "str(arg1), arg2, arg3"),
    "pool_limit": ("%s %d %d", "str(arg1), arg3, arg4"), "buffers_pressed": ("%s %d", "str(arg1), arg2"),
    "site_found": ("%d %d", "arg1, arg3"), "site_staged": ("%d %d", "arg1, arg3"),
    "site_published": ("%d %d", "arg1, arg3"), "site_missed": ("%d %d", "arg1, arg3"),
    "site_gave_up": ("%d %d", "arg1, arg3"),
    "compile_begin": ("%d %d", "arg0, arg1"), "compile_end": ("%d %d %d", "arg0, arg1, arg2"),
}


def need_bpftrace():
    """One that may attach here: its own beginning is a uprobe. Else the reason is the last that it says."""
    if shutil.which("bpftrace") is None:
        skip("no bpftrace")
    tried = subprocess.run(["bpftrace", "-e", 'BEGIN { printf("begun\\n"); exit(); }'], stdin=subprocess.DEVNULL,
                           capture_output=True, text=True, timeout=120)
    if tried.returncode != 0 or "begun" not in tried.stdout:
        skip("bpftrace may not attach here: " + ((tried.stderr.strip().splitlines() or ["it says nothing"])[-1]))


def script(path, program):
    """The file is traced whoever maps it, so each line has the process. What BEGIN prints is shown once all are attached. It
    ends as the program is started the second time: then it reads all that was told before. An interrupt leaves unread
    what comes at that moment."""
    lines = ['BEGIN { printf("ready\\n"); }', "uprobe:%s:main { @started++; if (@started == 2) { exit(); } }" % program]
    for name, (words, values) in PROBES.items():
        lines.append('usdt:%s:tidepool:%s { printf("fired %%d %s %s\\n", pid, %s); }' % (path, name, name, words, values))
    lines.append('interval:s:240 { exit(); }')  # whoever started it may be gone
    return "\n".join(lines)


def copies(library):
    """Of each target the file that is traced, the program, and its environment: what the program says of where its library
    is gives way to LD_LIBRARY_PATH."""
    soname = re.match(r".*?\.so\.\d+", pathlib.Path(library).name)[0]
    traced = shutil.copy2(library, WORK / soname)
    shared, static = (shutil.copy2(TARGETS[kind], WORK) for kind in ("shared", "static"))
    return {"shared": (traced, shared, {"LD_LIBRARY_PATH": str(WORK)}), "static": (static, static, {})}


def rest(tracer):
    """What it has still to say. One that does not end by itself is stopped."""
    try:
        return tracer.communicate(timeout=200)
    except subprocess.TimeoutExpired:
        tracer.kill()
        must(False, "bpftrace does not end", tracer.communicate())


def fired(kind, path, program, environment):
    tracer = subprocess.Popen(["bpftrace", "-e", script(path, program)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True)
    said = []
    try:
        for line in tracer.stdout:
            said.append(line)
            if line == "ready\n":
                break
        must(said and said[-1] == "ready\n", kind, "bpftrace attaches to no probe of", path, said, tracer.stderr.read() if tracer.poll() else "")
        facts = told(run(program, environment=environment)[0])
        run(program, "nothing", environment=environment)
        out, errors = rest(tracer)
    finally:
        tracer.kill()
    must("Lost" not in errors, errors)
    hits = {name: [] for name in PROBES}
    for line in out.splitlines():
        words = line.split(" ")
        if words[0] == "fired" and words[1] == facts["pid"]:
            hits[words[2]].append(words[3:])
    return hits, facts


def check(kind, *traced):
    hits, facts = fired(kind, *traced)
    count = {name: len(list_of) for name, list_of in hits.items()}
    fact = {name: int(value) for name, value in facts.items() if value.isdigit()}

    def of(probe, pool):
        return [[int(word) for word in one[1:]] for one in hits[probe] if one[0] == pool]

    must(len(of("pool_grow", "target")) == fact["allocations"] > 0, kind, hits["pool_grow"], facts)
    must(of("pool_grow", "target")[-1][1] == fact["held"], kind, hits["pool_grow"], facts)
    must(of("pool_trim", "limited") == [[2, fact["trimmed"]]], kind, hits["pool_trim"])  # "target" is trimmed as it ends
    must(of("pool_limit", "limited") == [[8 << 20, 1 << 20]] and count["pool_limit"] == 1, kind, hits["pool_limit"])
    must(of("buffers_pressed", "target_buffers") == [[8 << 20]] * fact["pressed"], kind, hits["buffers_pressed"])
    for event in ("found", "staged", "published", "missed", "gave_up"):
        must(count["site_" + event] == fact[event], kind, event, count, facts)
    must(count["site_found"] == 2 and count["site_published"] > 0, kind, count)
    if LEARNING:
        must(0 < count["compile_begin"] == count["compile_end"] <= fact["ordered"], kind, count, facts)
        must(sorted(one[0] for one in hits["compile_begin"]) == sorted(one[0] for one in hits["compile_end"]), kind, hits)


need_bpftrace()
library = next(a for a in sys.argv[2:] if "=" not in a)
for kind, traced in copies(library).items():
    check(kind, *traced)
print("ok")
