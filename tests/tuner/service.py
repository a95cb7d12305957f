# SPDX-License-Identifier: MIT
"""A service with its workers, and a client of it."""
import atexit
import http.client
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

os.environ["PYTHONPATH"] = os.environ.get("TIDE_TEST_PACKAGES", "")  # also of programs that a test starts
sys.path += filter(None, [os.environ["PYTHONPATH"]])
TUNER, MODEL, STEPS, COMMAND, *ARGUMENTS = sys.argv[1:]  # programs; what is said by hand
PLAIN = MODEL + " plain"
EXAMPLES = pathlib.Path(TUNER).parent
SOURCES = pathlib.Path(__file__).resolve().parents[2] / "examples/tuner"
FOLDER = tempfile.TemporaryDirectory(prefix="tide-tuner-", dir="/tmp")  # a socket's path is short
os.environ["XDG_RUNTIME_DIR"] = FOLDER.name


def must(condition, *what):
    if not condition:
        print("failed:", *what, flush=True)
        raise AssertionError(what)


class Service:
    def __init__(self, *workers, options=(), port=0, waits=True):
        self.process = subprocess.Popen([TUNER, "--port", str(port), *options, *workers], stdout=subprocess.PIPE, text=True)
        atexit.register(self.process.terminate)  # also where the test fails; its workers end with it
        where, self.token = self.process.stdout.readline().strip().split("/#")
        self.port = int(where.rsplit(":", 1)[1])
        if waits:
            self.wait_for(lambda: len(self.get("/workers")) == len(workers) and self.measured() == len(workers), "all workers")

    def ask(self, method, path, body=None, token=True, raw=None, headers=()):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        all_headers = {"Authorization": "Bearer " + (self.token if token is True else token or "")} if token else {}
        data = raw if raw is not None else json.dumps(body).encode() if body is not None else None
        connection.request(method, path, data, {**all_headers, **dict(headers)})
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        kind = answer.getheader("Content-Type") or ""
        return answer.status, json.loads(text) if "json" in kind else text.decode(), kind

    def get(self, path):
        status, value, _ = self.ask("GET", path)
        must(status == 200, path, status, value)
        return value

    def do(self, method, path, body):
        status, value, _ = self.ask(method, path, body)
        must(status in (200, 202), method, path, status, value)
        return value

    def follow(self):
        """Events, each as its kind and its value."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        connection.request("GET", "/events")
        answer, kind = connection.getresponse(), None
        for line in answer:
            word, _, value = line.decode().rstrip("\n").partition(": ")
            kind = value if word == "event" else kind
            if word == "data":
                yield kind, json.loads(value)

    def measured(self):
        """How many workers have ended a round: before, an interpreter has not made its sites."""
        return sum(s["name"] == "round" and any(r["candidates"][0]["uses"] for r in s["rows"]) for s in self.get("/sites"))

    def sites(self, pid):
        return {s["name"]: s for s in self.get("/sites") if s["worker"] == pid}

    def wait_for(self, condition, *what):
        self.wait_until(lambda: must(self.process.poll() is None, "the service has ended:", *what) or condition(), *what)

    @staticmethod
    def wait_until(condition, *what):
        end = time.monotonic() + 240
        while not condition():
            must(time.monotonic() < end, "in time:", *what)
            time.sleep(0.02)

    def cost(self, pid):
        """What a round takes from now on, measured anew."""
        self.do("PUT", f"/sites/{pid}:round/reset", {})
        since = time.monotonic_ns()

        def figure():
            site = self.sites(pid)["round"]
            one = site["rows"][0]["candidates"][0]
            return one["ns"] if site["seen_ns"] > since and one["uses"] >= 40 else None

        self.wait_for(figure, "rounds of", pid)
        return figure()

    def end(self, all=True):
        workers = [w["pid"] for w in self.get("/workers")] if all else []
        self.process.send_signal(signal.SIGINT)
        must(self.process.wait(timeout=300) == 0, "the service ends badly")
        must(not any(os.path.exists(f"/proc/{pid}") for pid in workers), "workers stay")
