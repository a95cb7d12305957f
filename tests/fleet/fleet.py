# SPDX-License-Identifier: MIT
"""A Redis server of the test's own, and programs that share by it."""
import atexit
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time

COMMAND, TARGET = sys.argv[1:3]
FOLDER = tempfile.TemporaryDirectory(prefix="tide-fleet-", dir="/tmp")
os.environ["XDG_RUNTIME_DIR"] = FOLDER.name


def must(condition, *what):
    if not condition:
        print("failed:", *what, flush=True)
        raise AssertionError(what)


def wait_for(condition, *what):
    end = time.monotonic() + 240
    while not condition():
        must(time.monotonic() < end, "in time:", *what)
        time.sleep(0.02)


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Redis:
    """With a password, and no file unless it is told to have one."""

    def __init__(self, *options):
        if shutil.which("redis-server") is None:
            print("no redis-server here")
            sys.exit(77)
        self.port = free_port()
        self.url = f"redis://:secret@127.0.0.1:{self.port}/3"
        self.command = ["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--requirepass", "secret",
                        "--dir", FOLDER.name, *options]
        self.start()

    def start(self):
        self.process = subprocess.Popen(self.command, stdout=subprocess.DEVNULL)
        atexit.register(self.process.terminate)  # also where the test fails
        wait_for(self.answers, "redis-server")

    def answers(self):
        try:
            return self.ask("PING") == b"PONG"
        except OSError:
            return False

    def ask(self, *words):
        """One command of database 3, and its first line or text."""
        def command(words):
            parts = [w if isinstance(w, bytes) else str(w).encode() for w in words]
            return b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(p), p) for p in parts)
        with socket.create_connection(("127.0.0.1", self.port), timeout=60) as connection:
            file = connection.makefile("rb")
            connection.sendall(command(["AUTH", "secret"]) + command(["SELECT", 3]) + command(words))
            must(file.readline() == b"+OK\r\n" and file.readline() == b"+OK\r\n", "redis refuses the test")
            line = file.readline().rstrip()
            if line[:1] == b"*":
                return [file.read(int(file.readline()[1:]) + 2)[:-2] for _ in range(int(line[1:]))]
            return line[1:] if line[:1] != b"$" else file.read(int(line[1:]))

    def key(self):
        keys = [k for k in self.ask("KEYS", "*:texts")]
        return keys[0] if keys else None

    def contributors(self):
        key = self.key()
        return int(self.ask("HLEN", key)) if key else 0

    def end(self):
        self.process.terminate()
        self.process.wait(timeout=60)


class Program:
    """Works until it is ended."""

    def __init__(self, url, **environment):
        env = {**os.environ, "TIDEPOOL_FLEET": url, **environment}
        self.process = subprocess.Popen([TARGET, "1"], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True)
        self.pid = int(self.process.stdout.readline().split()[1])

    def end(self):
        self.process.stdin.close()
        must(self.process.wait(timeout=240) == 0, "the program ends badly")
        return self.process.stderr.read()


def run_once(url, uses=2):
    """What a program says at its end after so many uses, and its complaints."""
    done = subprocess.run([TARGET, "use", str(uses)], env={**os.environ, "TIDEPOOL_FLEET": url}, capture_output=True, text=True, timeout=240)
    must(done.returncode == 0, done.stderr)
    return done.stdout, done.stderr.splitlines()


def command(*words, code=0):
    done = subprocess.run([COMMAND, *map(str, words)], capture_output=True, text=True, timeout=240)
    must(done.returncode == code, words, "gave", done.returncode, done.stdout, done.stderr)
    return done.stdout if code == 0 else done.stderr
