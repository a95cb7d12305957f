# SPDX-License-Identifier: MIT
"""Every case and variant that --list promises runs and is reported, once, in valid JSON."""
import json
import subprocess
import sys

# All of them run compiled code, or none does.
COMPILED = {
    "scope4-small tide-compiled",
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
    return found["case"], found["variant"]

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
