#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""commands TIDEPOOL SHORT TARGET STAGER: the commands record, report, pprof, metrics and web against a process that listens and
against files that are wrong. Each answer is compared with what the process said."""
import json
import os
import pathlib
import re
import resource
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

here = pathlib.Path(__file__).parent
metrics = here.parent.parent / "profiler/metrics"
tidepool, short, target, stager = sys.argv[1:5]
launcher = os.environ.get("TIDE_TEST_LAUNCHER", "").split()
work = pathlib.Path(tempfile.mkdtemp(prefix="tide-report-", dir="/tmp"))  # a socket's path is short
environment = dict(os.environ, XDG_RUNTIME_DIR=str(work))
sample = work / "sample.rec"
listener = [sys.executable, str(here / "listener.py")]
failures = 0
SILENCE = "no answer in time"

# What listens here is asked directly, whatever the environment says of proxies.
urllib.request.install_opener(urllib.request.build_opener(urllib.request.ProxyHandler({})))


def check(condition, what):
    global failures
    if not condition:
        failures += 1
        print("wrong:", what)


def run(*arguments, **options):
    return subprocess.run([*launcher, tidepool, *map(str, arguments)], env=environment, capture_output=True, text=True, timeout=120, **options)


def run_answered(*arguments):
    """The same, again where a process was too slow to answer: it is not to be waited for without end."""
    for _ in range(20):
        result = run(*arguments)
        if SILENCE not in result.stderr:
            break
    return result


def refused(code, words, *arguments, **options):
    """One line of error that has these words, which is returned; nothing on the standard output."""
    result = run(*arguments, **options) if options or SILENCE in words else run_answered(*arguments)
    check(result.returncode == code, f"{arguments}: {result.returncode}, not {code}: {result.stderr}")
    said = [line for line in result.stderr.splitlines() if not re.match(r"--\d+--", line)]  # as Valgrind's begin
    check(len(said) == 1 and words in said[0], f"{arguments}: {result.stderr!r} without {words!r}")
    check(result.stdout == "", f"{arguments}: {result.stdout!r}")
    return said[0] if said else ""


def nothing_left(name):
    check(not [p for p in work.iterdir() if p.name.startswith(name)], f"{name} is there: {os.listdir(work)}")


def wait_for(condition, what):
    """Far longer than it takes: who is slow is not wrong."""
    end = time.monotonic() + 200
    while not condition():
        if time.monotonic() > end:
            check(False, f"in time: {what}")
            break
        time.sleep(.02)


def wait_for_kept(name, words):
    """A record that is being made has these words."""
    def has():
        parts = [p for p in work.iterdir() if p.name.startswith(name)]
        return any(words in p.read_text(encoding="utf-8", errors="replace") for p in parts)

    wait_for(has, f"{words} in {name}")


def read_lines(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def records():
    path = work / "made.rec"
    result = run("record", "-o", path, "-p", "20", "--", *listener, sample, "8x", 7)
    check(result.returncode == 7, f"record ends with {result.returncode}, not the program's 7: {result.stderr}")
    check(result.stdout == "TIDEPOOL_LISTEN=1\n", f"the program's output: {result.stdout!r}")
    lines = read_lines(path)
    facts = [l for l in lines if l.get("format") == "tidepool-facts"]
    wanted = [l for l in read_lines(sample) if l.get("format") == "tidepool-facts"]
    check(lines[0]["format"] == "tidepool-record" and lines[0]["program"][0] == sys.executable, "the first line")
    check(lines[-1] == {"end": {"exit_status": 7}}, f"the last line: {lines[-1]}")
    check(len(facts) >= 7, f"only {len(facts)} of 8 documents")  # of the last it hears no end
    said = {l["time_ns"]: l for l in wanted}
    for got in facts:
        check(dict(got, pid=0) == dict(said.get(got["time_ns"], {}), pid=0), "a document is not what the process said")
    times = [l["time_ns"] for l in facts]
    check(times == sorted(times), f"documents in their order: {times}")
    serials = [l["serial"] for l in lines if l.get("format") == "tidepool-event"]
    check(serials == list(range(1, len(serials) + 1)) and serials, f"events: {serials}")
    check(run("report", path).returncode == 0, "a report of what was recorded")


def records_signals():
    path = work / "signal.rec"
    process = subprocess.Popen([*launcher, tidepool, "record", "-o", path, "--", *listener, sample, "600s", "0"],
                               env=environment, stdout=subprocess.PIPE, text=True)
    process.stdout.readline()
    wait_for_kept("signal.rec", '"tidepool-facts"')
    process.send_signal(signal.SIGUSR1)
    check(process.stdout.readline() == "USR1\n", "SIGUSR1 was handed on")
    check(not path.exists(), "there is no file before the program ends")
    process.send_signal(signal.SIGTERM)
    check(process.wait(120) == 43, f"SIGTERM was handed on: {process.returncode}")
    check(read_lines(path)[-1] == {"end": {"exit_status": 43}}, "the last line")
    result = run("record", "-o", work / "killed.rec", "-p", "20", "--", sys.executable, here / "listener.py", sample, "8x", "-9")
    check(result.returncode == 128 + 9, f"killed: {result.returncode}")
    check(read_lines(work / "killed.rec")[-1] == {"end": {"signal": 9}}, "killed: the last line")


def records_short_programs():
    """However soon it ends, its last facts are there."""
    for period in ("100", "1"):
        path = work / "short.rec"
        result = run("record", "-o", path, "-p", period, "--", short, "return")
        check(result.returncode == 0, f"a short program: {result}")
        facts = [l for l in read_lines(path) if l.get("format") == "tidepool-facts"]
        check(facts and any(s["samples"] > 0 for s in facts[-1]["sites"]), "its last facts have the uses of its site")
        check(run("report", "-o", work / "short.html", path).returncode == 0, "a page of a short program")
    environment["TIDEPOOL_STATS"] = "1"
    result = run("record", "-o", path, "--", short, "return")
    check(" ends\n" in result.stderr, f"a page of statistics was asked for: {result}")
    del environment["TIDEPOOL_STATS"]
    check(not list(work.glob("short.rec.*")), "only the record is left")


def code_of(record, **variables):
    """The sites of the page's data that have code, by name."""
    result = subprocess.run([*launcher, tidepool, "report", "--json", record], env=dict(environment, **variables), capture_output=True, text=True, timeout=120)
    return {s["name"]: s for s in json.loads(result.stdout)["sites"] if "code" in s}


def records_code():
    """A real program, until it has compiled code: the record has what that is made of, the report the code."""
    path = work / "code.rec"
    process = subprocess.Popen([*launcher, tidepool, "record", "-o", path, "-p", "20", "--", target, "1"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               text=True, env=dict(environment, TIDEPOOL_BACKGROUND="1", TIDEPOOL_BREAK_EVEN="0", TIDEPOOL_TRIAL="0", TIDEPOOL_STAGER=stager))
    wait_for_kept("code.rec", '"tidepool-code"')
    process.stdin.close()
    check(process.wait(120) == 0, f"the program ends with {process.returncode}")
    codes = {l["site"]: l["spec"] for l in read_lines(path) if l.get("format") == "tidepool-code"}
    check(codes and all(spec.startswith("tidepool-spec 1\n") for spec in codes.values()), f"specs: {codes}")
    made = code_of(path, TIDEPOOL_STAGER=stager)
    check(len(made) == len(codes), f"{len(made)} sites with code of {len(codes)}")
    for site in made.values():
        check(site["code_is"] == "assembler" and re.search(r"^\s+ret$", site["code"], re.M), f"machine code: {site}")
    plain = code_of(sample, TIDEPOOL_STAGER=stager)
    check([(n, s["code_is"]) for n, s in plain.items()] == [("group_by", "spec")], f"a spec that no stager knows: {plain}")


def records_nothing():
    result = run("record", "-o", work / "none.rec", "--", "sh", "-c", "exit 0")
    check(result.returncode == 3 and "told nothing" in result.stderr, f"no Tidepool: {result}")
    result = run("record", "-o", work / "none.rec", "--", "sh", "-c", "exit 5")
    check(result.returncode == 5, f"no Tidepool, status 5: {result}")
    refused(127, "no-such-program", "record", "-o", work / "none.rec", "no-such-program")
    refused(2, "name a file", "record", "sh")
    refused(2, "which program", "record", "-o", work / "none.rec", "")
    refused(2, "'0'", "record", "-p", "0", "-o", work / "none.rec", "sh")
    refused(1, "no-folder", "record", "-o", work / "no-folder/x.rec", "sh")
    refused(2, "the standard output is the program's", "record", "-o", "-", "sh", cwd=work)
    check(not [p for p in work.iterdir() if p.name.startswith("-")], f"a file called '-': {os.listdir(work)}")
    nothing_left("none.rec")
    for variable in "TIDEPOOL_LISTEN=0", "XDG_RUNTIME_DIR=/dev/null":
        result = run("record", "-o", work / "quiet.rec", "--", "env", variable, short, "return")
        check(result.returncode == 3 and "env did not listen" in result.stderr, f"it does not listen: {result}")
        check(run("report", work / "quiet.rec").returncode == 0, "what it told at its end is kept")


def records_without_room():
    """The program goes on to its end, and then the command says what it could not write."""
    full, said = work / "full.rec", work / "full.said"
    with said.open("w") as err:  # a pipe would be waited for until the program's end
        done = subprocess.run([*launcher, tidepool, "record", "-o", full, "-p", "20", "--", *listener, sample, "4s", "0"],
                              env=environment, stdout=subprocess.DEVNULL, stderr=err, timeout=120,
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY)))
    check(run("ps").stdout.count("\n") == 1, "the program has ended before the command")
    check(done.returncode == 1 and "File too large" in said.read_text(), f"a record without room: {said.read_text()}")
    check(not full.exists() and not list(work.glob("full.rec.*")), "nothing is left of a record without room")


def others_modules():
    """The command has modules of its own, whatever the environment has."""
    (work / "profiler.py").write_text("raise SystemExit('a module of somebody else')\n", encoding="utf-8")
    result = subprocess.run([*launcher, tidepool, "ps"], env=dict(environment, PYTHONPATH=str(work)), capture_output=True, text=True)
    check(result.returncode == 0, f"beside a module of the same name: {result}")


def bad_files():
    text = sample.read_text(encoding="utf-8").splitlines(keepends=True)
    cases = {"empty": ("", None, "is no record of `tidepool record`"), "other": ("hello\n", None, "is no record"), "list": ("[1]\n", None, "is no record"),
             "version": ('{"format":"tidepool-record","format_version":2}\n', None, "version 2"),
             "head": (text[0], 2, "without its last line"), "deep": (text[0] + "[" * 100000 + "\n", 2, "no JSON"),
             "facts": (text[0] + '{"format":"tidepool-facts","format_version":1,"time_ns":5,"sites":[1]}\n', 2, "no list of objects"),
             "ends": (text[0] + '{"end":{"exit_status":0}}\n', None, "no facts")}
    for name, (content, line, words) in cases.items():
        path = work / f"bad-{name}.rec"
        path.write_text(content)
        for command in (["report", path], ["report", path, "-o", work / "page.html"]):
            said = refused(4, words, *command)
            check(line is None or f"{path}:{line}:" in said, f"{name}: the line is named: {said}")
    for name in ("empty", "other", "list", "version"):
        refused(4, cases[name][2], "pprof", work / f"bad-{name}.rec", "-o", work / "page.html")
        refused(4, cases[name][2], "pprof", work / f"bad-{name}.rec", "-o", "-")
    nothing_left("page.html")
    refused(1, "No such file", "report", work / "nowhere.rec")
    refused(1, "Is a directory", "report", work)
    refused(1, "No such file", "report", "nowhere.rec", cwd=work)  # a name is that of a record, too ...
    (work / "notes").write_text("hello\n")
    for name in "notes", "./notes":
        refused(4, "is no record of `tidepool record`", "report", name, cwd=work)
    (work / "notes").chmod(0o700)  # ... unless it is a program's
    refused(3, "no process that listens runs 'notes'", "report", "notes", cwd=work)
    cut = work / "cut.rec"
    cut.write_text("".join(text[:40]) + text[40][:100])
    for command in (["report", cut, "-o", work / "cut.html"], ["pprof", cut, "-o", work / "cut.pb"]):
        result = run(*command)
        check(result.returncode == 4 and f"{cut}:41: the record ends within this line" in result.stderr, f"{command}: {result}")
    check("record is damaged" in (work / "cut.html").read_text(encoding="utf-8"), "a page of what is whole")
    refused(1, "no regular file", "report", sample, "-o", "/dev/null")
    refused(1, "", "report", sample, "-o", work / "no-folder/x.html")


def to_a_terminal(*arguments):
    """What the command shows on a terminal, and how it ends."""
    ours, its = os.openpty()
    process = subprocess.Popen([*launcher, tidepool, *map(str, arguments)], env=environment, stdout=its, stderr=subprocess.PIPE, text=True)
    os.close(its)
    shown = b""
    try:
        while select.select([ours], [], [], 120)[0] and (more := os.read(ours, 1 << 16)):
            shown += more
    except OSError:  # nobody has it open any more
        pass
    errors = process.communicate(timeout=120)[1]
    os.close(ours)
    return process.returncode, shown, errors


def terminals():
    """What is no text for people goes to no terminal, but to whatever else the standard output is."""
    for command in ("pprof", sample, "-o", "-"), ("report", sample, "-o", "-"):
        code, shown, errors = to_a_terminal(*command)
        check((code, shown) == (1, b"") and errors.count("\n") == 1 and "is a terminal" in errors, f"{command}: {code} {shown[:80]} {errors}")
        result = subprocess.run([*launcher, tidepool, *map(str, command)], env=environment, capture_output=True, timeout=120)
        check(result.returncode == 0 and len(result.stdout) > 1000, f"{command} to a pipe: {result.returncode} {result.stderr}")
    code, shown, errors = to_a_terminal("report", sample)
    check(code == 0 and b"solve" in shown, f"words go to a terminal: {code} {errors}")
    hostile, turned = work / "hostile.rec", "\u202e".encode()
    subprocess.run([sys.executable, here / "sample.py", hostile, "hostile"], check=True)
    target = subprocess.Popen([*listener, hostile, "600s", "0"], env=environment, stdout=subprocess.PIPE, text=True)
    target.stdout.readline()
    code, shown, errors = to_a_terminal("metrics", target.pid)
    check(code == 0 and b"tidepool_site_samples" in shown and turned not in shown, f"names on a terminal: {code} {shown} {errors}")
    check(turned.decode() in run_answered("metrics", target.pid).stdout, "names for a program are as they are")
    target.terminate()
    target.wait(120)


def fields(message):
    """What a message of protobuf says: (field, number or bytes) in order."""
    at = 0

    def number():
        nonlocal at
        value = shift = 0
        while True:
            byte, at = message[at], at + 1
            value, shift = value | (byte & 0x7F) << shift, shift + 7
            if byte < 0x80:
                return value

    while at < len(message):
        key = number()
        value = number()
        if key & 7 == 2:
            value, at = message[at:at + value], at + value
            check(at <= len(message), "a field ends with its message")
        else:
            check(key & 7 == 0, f"a kind of field that pprof has not: {key}")
        yield key >> 3, value


def profile_of(message):
    """A profile with its numbers replaced by what they stand for: its types, then stack, values and labels of each sample."""
    rows = list(fields(message))
    texts = [value.decode() for field, value in rows if field == 6]
    functions = {f[1]: (texts[f[2]], texts[f[4]]) for f in (dict(fields(v)) for field, v in rows if field == 5)}
    places = {}
    for location in (dict(fields(v)) for field, v in rows if field == 4):
        line = dict(fields(location[4]))
        places[location[1]] = (*functions[line[1]], line[2])
    types = [(texts[t[1]], texts[t[2]]) for t in (dict(fields(v)) for field, v in rows if field == 1)]
    samples = []
    for sample in (list(fields(v)) for field, v in rows if field == 2):
        labels = [dict(fields(v)) for field, v in sample if field == 3]
        samples.append(([places[v] for field, v in sample if field == 1], [v for field, v in sample if field == 2],
                        {texts[label[1]]: texts[label[2]] for label in labels}))
    check(texts[0] == "", "the first text is empty")
    check(len(functions) == len(places) == len([1 for field, _ in rows if field == 5]), "no two frames have one number")
    return types, samples, dict(rows)


def pprof():
    path = work / "profile.pb"
    check(run("pprof", sample, "-o", path).returncode == 0, "pprof")
    types, samples, rest = profile_of(path.read_bytes())
    check(types == [("uses", "count"), ("time", "nanoseconds"), ("misses", "count"), ("acquired", "bytes"), ("peak", "bytes"), ("taken", "bytes"), ("held", "bytes")], f"types: {types}")
    facts = [l for l in read_lines(sample) if l.get("format") == "tidepool-facts"]
    places = [one for one in samples if one[1][:5] == [0] * 5 and any(one[1][5:])]
    check(sorted(int(p["held_bytes"]) for p in facts[-1]["samples"]["places"]) == sorted(values[6] for _, values, _ in places) and
          len(places) > 0 and all(stack[-1][0] == facts[-1]["program"] for stack, _, _ in places), f"who took memory: {places}")
    found = {stack[0][0]: (stack, values, labels) for stack, values, labels in samples if not any(values[5:])}
    check(len(found) + len(places) == len(samples), "each is there once")
    first, last = ({s["id"]: s for s in f["sites"]} for f in (facts[0], facts[-1]))
    for site in last.values():
        stack, values, labels = found.pop(f"site {site['name']} #{site['id']}")
        uses = site["uses"] - first.get(site["id"], {"uses": 0})["uses"]
        misses = site["misses"] - first.get(site["id"], {"misses": 0})["misses"]
        check(abs(values[0] - uses) < 1 and abs(values[1] - uses * site["use_ns"]) <= 1 + values[1] * 1e-9 and
              values[2] == misses and abs(values[3] - uses * site["use_bytes"]) <= 1 + values[3] * 1e-9 and values[4] == 0,
              f"site {site['name']}: {values}")
        check(stack[0][1:] == (site["file"], site["line"]) and stack[-1][0] == facts[-1]["program"], f"its stack: {stack}")
        check([frame[0] for frame in stack[1:-1]] == ([site["function"]] if site["function"] else []), f"its function: {stack}")
        check(labels["tier"] == site["tier"] and labels["kind"] == site["kind"], f"its labels: {labels}")
    for noun, key in ("pool", "peak_bytes"), ("buffers", "high_bytes"):
        for one in facts[-1]["pools" if noun == "pool" else "buffers"]:
            stack, values, labels = found.pop(f"{noun} {one['name']} #{one['id']}")
            check(values == [0, 0, 0, 0, one[key], 0, 0] and labels["device"] == one["device"], f"{noun}: {values} {labels}")
    check(all(name.split()[0] in ("site", "pool", "buffers") for name in found), f"what else is there: {list(found)}")
    check(rest[9] == facts[-1]["wall_ns"] and rest[10] == facts[-1]["time_ns"] - facts[0]["time_ns"], "its times")
    if shutil.which("pprof") and not launcher:
        top = subprocess.run(["pprof", "-top", "-sample_index=uses", path], capture_output=True, text=True, timeout=120)
        check(top.returncode == 0 and "site " in top.stdout, f"pprof reads it: {top}")
    refused(2, "name a file", "pprof", sample)
    refused(2, "'17' is no file; of a process make a record first", "pprof", "-o", work / "none.pb", 17)
    for bad in ("empty", "version", "ends"):
        refused(4, "", "pprof", work / f"bad-{bad}.rec", "-o", work / "none.pb")
    nothing_left("none.pb")


def fetch(url, **headers):
    """Asks again where the process was too slow to answer whoever serves."""
    request = urllib.request.Request(url, headers=headers)
    for _ in range(20):
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:
                return answer.read().decode(), answer.headers["Content-Type"]
        except urllib.error.HTTPError as error:
            if error.code != 503:
                raise
            said = error
    raise said


def status_of(url, method="GET", **headers):
    try:
        urllib.request.urlopen(urllib.request.Request(url, headers=headers, method=method), timeout=120)
        return 200
    except urllib.error.HTTPError as error:
        return error.code


def value_of(text, series):
    found = re.search("^" + re.escape(series) + " (.*)$", text, re.M)
    return float(found[1]) if found else None


def alerts_fire():
    if not shutil.which("promtool"):
        return
    for file in (metrics / "alerts.yml", here / "alerts_test.yml"):
        shutil.copy(file, work)
    for command in (["check", "rules", "alerts.yml"], ["test", "rules", "alerts_test.yml"]):
        result = subprocess.run(["promtool", *command], cwd=work, capture_output=True, text=True)
        check(result.returncode == 0, f"promtool {command}: {result.stdout}{result.stderr}")


def serves(command, wanted, use):
    target = subprocess.Popen([*listener, sample, "600s", "0"], env=environment, stdout=subprocess.PIPE, text=True)
    target.stdout.readline()
    for _ in range(20):  # it begins only where the process answers in time
        server = subprocess.Popen([*launcher, tidepool, command, "--listen", "127.0.0.1:0", str(target.pid)], env=environment,
                                  stdout=subprocess.PIPE, text=True)
        url = server.stdout.readline().strip()
        if url or server.wait(120) != 4:
            break
    try:
        check(re.fullmatch(r"http://127\.0\.0\.1:\d+" + wanted, url), f"{command} says where: {url!r}")
        base = url[:len(url) - len(wanted)]
        check(status_of(base + "/other") == 404, "another path")
        check(status_of(url, method="POST") == 405, "POST")
        check(status_of(url, Host="evil.example") == 403, "another name of this host")
        check(fetch(url, Host="localhost:1")[0] and status_of(url, Host="127.evil.example") == 403, "names of this host")
        use(url, target)
    finally:
        target.terminate()
        target.wait(120)
    time.sleep(.3)
    check(status_of(url + ("data.json" if wanted == "/" else "")) == 503, f"{command}: of a process that has ended")
    server.send_signal(signal.SIGINT)
    check(server.wait(120) == 0, f"{command} ends by SIGINT: {server.returncode}")


def scrape(url, target):
    text, kind = fetch(url)
    check(kind.startswith("text/plain; version=0.0.4"), kind)
    check("# TYPE tidepool_pool_allocations_total counter" in text, "Prometheus")
    site = '{site="solve",kind="scope",place="solve.c:112"}'
    check(value_of(text, "tidepool_site_tier" + site) in (0, 1), "a tier")
    check(0 < (value_of(text, "tidepool_site_use_seconds" + site) or 0) < 1e-6, "seconds of a use")
    for tool in ["promtool"] if shutil.which("promtool") else []:
        lint = subprocess.run([tool, "check", "metrics"], input=text, text=True, capture_output=True)
        check(lint.returncode == 0 and lint.stdout + lint.stderr == "", f"promtool: {lint.stdout}{lint.stderr}")
    asked = (metrics / "alerts.yml").read_text(encoding="utf-8")
    unknown = [n for n in set(re.findall(r"tidepool_\w+", asked)) if not re.search(rf"^{n}({{| )", text, re.M)]
    check(not unknown, f"an alert asks for what is not there: {unknown}")
    once = run_answered("metrics", target.pid)
    check(once.returncode == 0 and "tidepool_build_info{" in once.stdout, "metrics, once")


def by_name():
    """A program that is named is found again when it was started anew."""
    server = subprocess.Popen([*launcher, tidepool, "metrics", "--listen", "127.0.0.1:0", "columns"], env=environment,
                              stdout=subprocess.PIPE, text=True)
    url = server.stdout.readline().strip()
    check(status_of(url) == 503, "nobody has that name yet")
    for _ in range(2):
        target = subprocess.Popen([*listener, sample, "600s", "0"], env=environment, stdout=subprocess.PIPE, text=True)
        target.stdout.readline()
        check('program="columns"' in fetch(url)[0], "the process of that name")
        target.terminate()
        target.wait(120)
        check(status_of(url) == 503, "it has ended")
    server.terminate()
    server.wait(120)


def watch(url, _):
    page, kind = fetch(url)
    check(kind.startswith("text/html") and 'data-mode="live"' in page, "a live page")
    first = json.loads(fetch(url + "data.json")[0])
    time.sleep(.5)
    second = json.loads(fetch(url + "data.json")[0])
    check(second["documents"] > first["documents"] >= 1, "each look adds to what is shown")
    check([s["name"] for s in second["sites"]] and second["pid"] == _.pid, "the sites of that process")


def nobody():
    none = 2**22 + 12345  # more than the system gives
    refused(3, str(none), "metrics", none)
    refused(3, str(none), "web", none)
    refused(3, "'x'", "metrics", "x")
    refused(2, "PORT", "metrics", "--listen", "127.0.0.1:99999", os.getpid())
    for mode, words in (("garbage", "its answer is no JSON object"), ("silent", SILENCE), ("timeless", "a facts document without a time"),
                        ("eventless", "its answer is no event")):
        target = subprocess.Popen([*listener, sample, "600s", "0", mode], env=environment, stdout=subprocess.PIPE, text=True)
        target.stdout.readline()
        wait = ("-t", "3") if mode == "silent" else ()
        if mode in ("garbage", "silent"):
            refused(4, f"process {target.pid}: {words}", "metrics", *wait, target.pid)
        refused(4, f"process {target.pid}: {words}", "web", *wait, target.pid)
        target.terminate()
        target.wait(120)
        result = run("record", "-o", work / "lies.rec", "--", *listener, sample, "1s", "0", mode)
        check(mode == "eventless" or result.returncode == 3 and not (work / "lies.rec").exists(), f"record of a process that lies ({mode}): {result}")


subprocess.run([sys.executable, here / "sample.py", sample], check=True)
records()
records_signals()
records_short_programs()
if os.path.exists(stager):
    records_code()
records_nothing()
records_without_room()
others_modules()
bad_files()
terminals()
alerts_fire()
pprof()
serves("metrics", "/metrics", scrape)
by_name()
serves("web", "/", watch)
nobody()
shutil.rmtree(work, ignore_errors=True)
sys.exit(1 if failures else 0)
