# SPDX-License-Identifier: MIT
"""tidepool metrics: the figures of a process for Prometheus, once or for whoever scrapes. A program that is named is found again
when it was started anew. The text is made by tidepool-metrics, which lives as long as the command and remembers what is gone."""
from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

from profiler.metrics.serve import Answer, serve
from profiler.tool import programs
from profiler.tool.client import Client, find, is_number, process_of
from profiler.tool.say import NO, OK, Refusal, say

Facts = dict[str, Any]
TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Metrics:
    """The program that makes them, one document at a time."""

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self.child = subprocess.Popen([programs.need("tidepool-metrics")], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def text(self, facts: Facts) -> bytes:
        if self.child.poll() is not None:  # it has ended, and what it remembered is lost
            self._begin()
        assert self.child.stdin is not None and self.child.stdout is not None
        try:
            self.child.stdin.write(json.dumps(facts, allow_nan=False).encode() + b"\n")
            self.child.stdin.flush()
            return self.child.stdout.read(int(self.child.stdout.readline()))
        except (OSError, ValueError):  # NaN is none of JSON, either
            raise Refusal(NO, "tidepool-metrics makes no metrics of that document") from None


class Source:
    """The process; of a program that is named the youngest, in place of the one that was asked before."""

    def __init__(self, options: Any) -> None:
        self.options = options
        self.program = "" if is_number(options.pid) else options.pid
        self.pid = 0 if self.program else process_of(options.pid, options)

    def facts(self) -> Facts:
        try:
            return self._ask(self.pid or find(self.program, self.options))
        except Refusal:
            if not self.program or not self.pid:
                raise
            self.pid = 0
            return self.facts()

    def _ask(self, pid: int) -> Facts:
        with Client(pid, self.options.folder, self.options.timeout) as client:
            facts = client.facts()
        self.pid = pid
        return facts


def metrics(options: Any) -> int:
    source = Source(options)
    if options.listen is not None:
        return scrapes(source, options.listen)
    said = Metrics().text(source.facts())
    if sys.stdout.isatty():
        for line in said.decode("utf-8", "replace").splitlines():
            say(line)
    else:  # names stay as they are for a program
        sys.stdout.buffer.write(said)
    return OK


def scrapes(source: Source, where: str) -> int:
    known = Metrics()

    def answer(_: str) -> Answer:
        """A process that is gone is no server's error of ours: 503 tells the scraper so."""
        try:
            return 200, TYPE, known.text(source.facts())
        except Refusal as refusal:
            return 503, "text/plain; charset=utf-8", f"{refusal.text}\n".encode("utf-8", "backslashreplace")

    return serve(where, ["/metrics"], answer)
