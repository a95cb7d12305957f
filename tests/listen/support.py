# SPDX-License-Identifier: MIT
"""What the tests of the socket share: a target program, a client, the command."""
import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import time

COMMAND, TARGETS = sys.argv[1], dict(a.split("=", 1) for a in sys.argv[2:] if "=" in a)
FOLDER = tempfile.TemporaryDirectory(prefix="tide-listen-", dir="/tmp")  # a socket's path is short
os.environ["XDG_RUNTIME_DIR"] = FOLDER.name
os.environ["TSAN_OPTIONS"] = os.environ.get("TSAN_OPTIONS", "") + ":die_after_fork=0"  # a child gets a thread
SOCKETS = pathlib.Path(FOLDER.name) / "tidepool"
LAUNCHER = os.environ.get("TIDE_TEST_LAUNCHER", "").split()


def must(condition, *what):
    if not condition:
        print("failed:", *what, flush=True)
        raise AssertionError(what)


def wait_for(condition, *what, seconds=120):
    """Far longer than it takes: who is slow is not wrong."""
    end = time.monotonic() + seconds
    while not condition():
        must(time.monotonic() < end, "in time:", *what)
        time.sleep(0.01)


def descriptors(pid):
    """What each of its descriptors leads to, but for those that are closed just now."""
    links = []
    for number in os.listdir(f"/proc/{pid}/fd"):
        try:
            links.append(os.readlink(f"/proc/{pid}/fd/{number}"))
        except FileNotFoundError:
            pass
    return links


class Target:
    def __init__(self, kind="shared", threads=1, listens=True, **environment):
        env = {**os.environ, "TIDEPOOL_LISTEN": "1" if listens else "0", **environment}
        self.process = subprocess.Popen([*LAUNCHER, TARGETS[kind], str(threads)], env=env, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.pid = int(self.process.stdout.readline().split()[1])
        self.path = SOCKETS / f"{self.pid}.sock"
        if listens and threads:
            wait_for(self.path.exists, "socket of", kind)

    def tell(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def hear(self):
        return self.process.stdout.readline().strip()

    def end(self):
        self.process.stdin.close()
        code = self.process.wait(timeout=240)
        complaints = self.process.stderr.read()
        must(code == 0, "target ended with", code, complaints)
        must(not self.path.exists(), "the socket stays after the end")
        return complaints

    def __enter__(self):
        return self

    def __exit__(self, kind, *rest):
        if kind is None:
            self.end()
        else:
            self.process.kill()


class Client:
    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(120)
        wait_for(lambda: self.connects(path), "a place in the queue of", path)
        self.file = self.socket.makefile("rb")

    def connects(self, path):
        try:
            self.socket.connect(str(path))
            return True
        except BlockingIOError:  # many come at the same time
            return False

    def send(self, request):
        self.socket.sendall(request if isinstance(request, bytes) else (json.dumps(request) + "\n").encode())

    def line(self):
        try:
            text = self.file.readline()
        except ConnectionResetError:  # it hung up before it had read all
            text = b""
        return json.loads(text) if text else None

    def ask(self, request):
        self.send(request)
        return self.line()

    def close(self):
        self.file.close()
        self.socket.close()


def run(*words, code=0, **options):
    done = subprocess.run([COMMAND, *map(str, words)], capture_output=True, text=True, timeout=240, **options)
    must(done.returncode == code, words, "gave", done.returncode, done.stdout[-500:], done.stderr[-500:])
    if code not in (0,):
        must(len(done.stderr.splitlines()) == 1 or not done.stderr, words, "complained", done.stderr)
    return done.stdout if code == 0 else done.stderr


def said(*words):
    """What it shows now, be it refused or not: for who waits until it shows something."""
    return subprocess.run([COMMAND, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, timeout=240).stdout


def run_in_terminal(*words, code=0):
    """What it complains of where its standard output is a terminal, on which it shows nothing."""
    ours, its = os.openpty()
    done = subprocess.run([COMMAND, *map(str, words)], stdout=its, stderr=subprocess.PIPE, text=True, timeout=240)
    os.close(its)
    must(done.returncode == code and len(done.stderr.splitlines()) == 1, words, done)
    try:
        must(not os.read(ours, 1), words, "is shown")
    except OSError:  # nothing is
        pass
    os.close(ours)
    return done.stderr


def run_json(*words):
    return [json.loads(line) for line in run(*words, "--json").splitlines()]
