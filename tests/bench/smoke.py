# SPDX-License-Identifier: MIT
"""Every case and variant that --list promises runs and is reported, once, in valid JSON."""
import json
import subprocess
import sys


# What these report beside times, if they run.
FIGURES = {
    ("dispatch-sweep", "tide-learning"): {"windows", "compiles", "reused", "tier"},
    ("stage-1", "warm"): {"ms_mean", "ms_max", "ms_cpu"},
    ("stage-16", "fresh"): {"ms_mean", "ms_max", "ms_cpu"},
    ("stage-tail", "idle"): {"p50", "p99", "p99_9", "p99_99", "slowest", "compiled"},
    ("stage-tail", "compiling"): {"p50", "p99", "p99_9", "p99_99", "slowest", "compiled"},
    ("phase-1k", "tide-stepped"): {"changes", "fast_again", "uses_until", "ns_until", "compiles",
                                   "misses", "generations"},
    ("types-unused", "tide-types-unused"): {"shelves"},
    ("buffers-live-24", "buffers"): {"cpu_ns", "peak_mib"},
    ("observe", "on"): {"mean_ns", "cpu_ns", "keeper_percent", "windows_a_second"},
}

# All of them run compiled code, or none does.
COMPILED = {
    "scope4-small tide-compiled", "scope4-small tide-frame-compiled", "types-8 tide-compiled",
    "types-256 tide-compiled", "sites-8 tide-compiled", "untracked tide-compiled", "nd tide-compiled",
    "dispatch-3 tide-compiled", "dispatch-actors tide-compiled", "stage-1 cold", "stage-16 fresh",
    "stage-tail compiling", "phase-32k tide-keeper", "observe on",
}


def lines(*arguments):
    done = subprocess.run(arguments, stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(arguments)}: exit status {done.returncode}")
    return done.stdout.splitlines()


def check(found):
    """One line of the report."""
    for name in ("case", "variant", "unit"):
        assert isinstance(found[name], str) and found[name], found
    assert 0 < found["ns_min"] <= found["ns_median"], found
    assert isinstance(found["n"], int) and found["n"] > 0, found
    pair = found["case"], found["variant"]
    assert FIGURES.get(pair, set()) <= set(found), found
    return pair


def check_list(listed):
    """Where the stager is missing, --list says so of every variant that needs it."""
    missing = {" ".join(line.split()[1:3]) for line in listed if "(no stager" in line}
    runs = {line for line in listed if not line.startswith("#")}
    assert COMPILED <= missing or (not missing and COMPILED <= runs), missing


def main(bench):
    check_list(lines(bench, "--list"))
    wanted = [tuple(line.split()) for line in lines(bench, "--list") if not line.startswith("#")]
    found = [check(json.loads(line)) for line in lines(bench, "--quick", "--json")]
    assert len(wanted) == len(set(wanted)), "a pair is listed twice"
    missing, unknown = set(wanted) - set(found), set(found) - set(wanted)
    assert not missing, f"not reported: {sorted(missing)}"
    assert not unknown, f"not listed: {sorted(unknown)}"
    assert len(found) == len(wanted), "a pair is reported twice"

    table = lines(bench, "--quick", "--case", "scope4-small", "--variant", "[bf]*")
    assert [row.split()[1] for row in table[2:]] == ["floor", "bump"], table
    print(f"{len(found)} pairs of {len({case for case, _ in found})} cases ran")


main(sys.argv[1])
