# SPDX-License-Identifier: MIT
"""tidepool record: runs a program, looks at its facts and events now and then, and keeps them."""
from __future__ import annotations

import contextlib
import json
import os
import signal
import tempfile
import time
from typing import Any, BinaryIO

from profiler.record import read
from profiler.record.look import Look
from profiler.record.output import output
from profiler.record.value import count, fault_of_facts, member, number, parse
from profiler.tool.say import NOBODY, USAGE, Refusal, complain

SOON = .005  # seconds between tries, until it listens
ANSWER = 2  # for an answer; signals wait for so long, too
BYTES = 400e3  # written in a second at most, on the average
SIGNALS = [signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2]
SI_KERNEL = 0x80


class Child:
    """A program that is run as if it were this one: it gets the signals that somebody sent to this process alone, for a
    terminal sends its own to both."""

    def __init__(self, words: list[str]) -> None:
        before = signal.pthread_sigmask(signal.SIG_BLOCK, [*SIGNALS, signal.SIGCHLD])
        try:
            self.pid = os.posix_spawnp(words[0], words, os.environ, setsigmask=before,
                                       setsigdef=[signal.SIGPIPE, signal.SIGXFSZ])  # which Python ignores
        except OSError as error:
            raise Refusal(127 if isinstance(error, FileNotFoundError) else 126, f"{words[0]}: {error.strerror}") from None
        self.status = 0

    def wait(self, seconds: float) -> bool:
        """True once the program has ended."""
        until = time.monotonic() + seconds
        while True:
            ended, self.status = os.waitpid(self.pid, os.WNOHANG)
            left = until - time.monotonic()
            if ended or left <= 0:
                return bool(ended)
            got = signal.sigtimedwait([*SIGNALS, signal.SIGCHLD], left)
            if got is not None and got.si_signo != signal.SIGCHLD and got.si_code != SI_KERNEL:
                os.kill(self.pid, got.si_signo)


class Record:
    """The record that is being made."""

    def __init__(self, file: BinaryIO) -> None:
        self.file, self.documents, self.time_ns = file, 0, 0
        self.silent = False  # nothing but its end was told, for it did not listen

    def keep(self, kind: str, line: dict[str, Any]) -> None:
        if kind == "facts":
            self.documents += 1
            self.time_ns = count(line, "time_ns")
        self.file.write(json.dumps(line, separators=(",", ":")).encode() + b"\n")

    def begin(self, words: list[str], pid: int, period: float) -> None:
        plain = [os.fsencode(word).decode("utf-8", "replace") for word in words]
        self.keep("head", {"format": "tidepool-record", "format_version": read.VERSION, "program": plain, "pid": pid,
                           "started_wall_ns": time.time_ns(), "period_ms": round(period * 1000)})

    def end(self, status: int) -> None:
        end = {"signal": os.WTERMSIG(status)} if os.WIFSIGNALED(status) else {"exit_status": os.waitstatus_to_exitcode(status)}
        self.keep("end", {"end": end})

    def follow(self, child: Child, look: Look, period: float) -> None:
        """Documents of many pools and sites come more rarely, so that a record has less than half a megabyte a second."""
        wait, written, failed = .001, 0, None
        while not child.wait(wait):
            if failed is not None:  # the program goes on to its end
                continue
            try:
                for kind, line in look.once():
                    self.keep(kind, line)
                self.file.flush()
                soon = period
            except Refusal:
                soon = SOON
            except OSError as error:
                failed = error
                continue
            wait, written = max(min(soon, period), (self.file.tell() - written) / BYTES), self.file.tell()
        look.close()
        if failed is not None:
            raise failed

    def take_last(self, path: str, pid: int) -> None:
        """A program's own last facts: those that it started may have written there, too. While it ends it may still be
        looked at; then that was the last."""
        with open(path, "rb") as file:
            for line in map(parse, file):
                if count(line, "pid") == pid and fault_of_facts(line) is None and count(line, "time_ns") >= self.time_ns:
                    self.silent = self.documents == 0 and number(member(line, "settings"), "listen") == 0
                    self.keep("facts", line or {})


def name_last(path: str) -> str | None:
    """A program may end before anybody looks at it, and always ends after the last look. So it writes its facts to a file of
    ours (the setting `stats`), beside the record, unless its user wants them elsewhere."""
    os.environ["TIDEPOOL_LISTEN"] = "1"
    if "TIDEPOOL_STATS" in os.environ:
        return None
    folder, name = os.path.split(os.path.abspath(path))
    number, last = tempfile.mkstemp(prefix=f"{name}.last-", dir=folder)
    os.close(number)
    os.environ.update(TIDEPOOL_STATS="json", TIDEPOOL_STATS_FILE=last)
    return last


def record(options: Any) -> int:
    words = options.program[options.program[:1] == ["--"]:]
    if options.output in (None, "-"):
        raise Refusal(USAGE, "record: name a file for it: -o FILE; the standard output is the program's")
    if not words or not words[0]:
        raise Refusal(USAGE, "record: which program?")
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # who started this may have it ignored
    with output(options.output) as file:
        last, made = name_last(options.output), Record(file)
        try:
            child = Child(words)
            made.begin(words, child.pid, options.period)
            made.follow(child, Look(child.pid, options.folder, ANSWER), options.period)
            if last is not None:
                with contextlib.suppress(FileNotFoundError):  # the program has removed it
                    made.take_last(last, child.pid)
        finally:
            if last is not None:
                with contextlib.suppress(OSError):
                    os.unlink(last)
        made.end(child.status)
        code = os.waitstatus_to_exitcode(child.status)
        code = 128 - code if code < 0 else code
        if made.documents == 0:  # there is no file, then
            raise Refusal(code or NOBODY, f"{words[0]} told nothing: is it linked to Tidepool (a Python program: does it import "
                          "tidepool?), with libtidepool-listen beside the library?")
    if made.silent:
        complain(f"{words[0]} did not listen: the record has what it told at its end, and no more")
        return code or NOBODY
    return code
