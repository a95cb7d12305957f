# SPDX-License-Identifier: MIT
"""A connection to a process that listens: JSON lines, either way. What comes is not believed: an endless line, silence
and nonsense each end in a Refusal."""
from __future__ import annotations

import contextlib
import json
import os
import pwd
import select
import socket
import struct
import time
from typing import Any

from profiler.record import value
from profiler.tool.say import BROKEN, NO, NOBODY, USAGE, Refusal

LINE_MAX = 64 << 20  # bytes; of more, it lies


def folder_of(named: str | None) -> str:
    """Where the sockets are: as profiler/listen/folder.h has it for who serves."""
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    path = named or (f"{runtime}/tidepool" if runtime.startswith("/") else f"/tmp/tidepool-{os.geteuid()}")
    if len(os.fsencode(path)) >= 80:
        raise Refusal(USAGE, "the folder's path is too long")
    return path


def pids_in(named: str | None) -> list[int]:
    """The processes whose sockets are in the folder, ascending."""
    path = folder_of(named)
    try:
        names = os.listdir(path)
    except FileNotFoundError:  # nobody has listened yet
        return []
    except OSError as error:
        raise Refusal(NO, f"{path}: {error.strerror}") from None
    return sorted(int(name[:-5]) for name in names if name.endswith(".sock") and name[:-5].isdecimal() and len(name) < 15)


def has_ended(pid: int) -> bool:
    """There is none of that number, or it waits for nothing but its parent (a zombie)."""
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    except OSError:  # more than a process can have
        return not os.path.exists(f"/proc/{pid}")
    try:
        poll = select.poll()
        poll.register(process, select.POLLIN)
        return bool(poll.poll(0))
    finally:
        os.close(process)


class Client:
    """Every method raises Refusal."""

    def __init__(self, pid: int, folder: str | None, timeout: float) -> None:
        self.pid, self.timeout, self.bytes = pid, timeout, bytearray()
        path = folder_of(folder)
        self.socket = socket.socket(socket.AF_UNIX)
        try:
            self._connect(path)
            self._check_peer()
        except Refusal:
            self.socket.close()
            raise

    def close(self) -> None:
        self.socket.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def refusal(self, what: str, code: int = BROKEN) -> Refusal:
        return Refusal(code, f"process {self.pid}: {what}")

    # ---- opening ----

    def _connect(self, path: str) -> None:
        """Waits for its turn where many others come at the same time. A name that a dead process left is removed."""
        name = f"{path}/{self.pid}.sock"
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO,
                               struct.pack("ll", int(self.timeout), int(self.timeout % 1 * 1e6)))
        failed = None
        try:
            self.socket.connect(name)
        except ConnectionRefusedError:
            failed = NOBODY
            with contextlib.suppress(OSError):  # gone, or a folder that is not ours
                os.unlink(name)
        except OSError as error:
            failed = BROKEN if isinstance(error, BlockingIOError) else NOBODY
        if has_ended(self.pid):  # its socket may live a moment longer
            raise Refusal(NOBODY, f"there is no process {self.pid}")
        if failed is not None:
            raise self._refused(path, failed)

    def _refused(self, path: str, code: int) -> Refusal:
        try:
            owner = os.stat(f"/proc/{self.pid}").st_uid
        except OSError:
            owner = os.geteuid()
        if owner != os.geteuid():  # who has a folder of sockets of his own
            try:
                name = pwd.getpwuid(owner).pw_name
            except KeyError:
                name = "?"
            return Refusal(NOBODY, f"process {self.pid} is that of user {name} ({owner}): ask as that user, or as root "
                           "with -d and that user's folder")
        if code == BROKEN:
            return Refusal(BROKEN, f"process {self.pid} does not take connections")
        return Refusal(NOBODY, f"process {self.pid} does not listen (no socket in {path}; TIDEPOOL_LISTEN=1 makes a "
                       "program listen)")

    def _check_peer(self) -> None:
        """A process of this user or of root, and the one whose name it is? (0: one that has no number here.)"""
        pid, user, _ = struct.unpack("3i", self.socket.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        if user not in (os.geteuid(), 0) and os.geteuid() != 0:
            raise self.refusal("its socket is another user's")
        if pid not in (0, self.pid):
            raise self.refusal(f"its socket is that of process {pid}")

    # ---- lines ----

    def send(self, request: dict[str, Any]) -> None:
        try:  # Python's JSON holds what is no text: a surrogate
            line = json.dumps(request, ensure_ascii=False, allow_nan=False).encode() + b"\n"
        except ValueError:
            raise Refusal(NO, "the request is no text that JSON can hold") from None
        try:
            self.socket.settimeout(self.timeout)
            self.socket.sendall(line)
        except socket.timeout:
            raise self.refusal("it does not read what it is asked") from None
        except OSError:
            raise self.refusal("it has ended, or hung up") from None

    def line(self, waits: bool = False) -> dict[str, Any]:
        """The next line; `waits`: for ever."""
        until, looked = time.monotonic() + self.timeout, 0
        while (end := self.bytes.find(b"\n", looked)) < 0:
            looked = len(self.bytes)
            if looked >= LINE_MAX:
                raise self.refusal("its answer has no end")
            self._receive(None if waits else until - time.monotonic())
        answer = value.parse(self.bytes[:end])
        del self.bytes[:end + 1]
        if answer is None:
            raise self.refusal("its answer is no JSON object")
        return answer

    def _receive(self, seconds: float | None) -> None:
        try:
            self.socket.settimeout(max(seconds, 1e-3) if seconds is not None else None)
            more = self.socket.recv(1 << 20)
        except socket.timeout:
            raise self.refusal("no answer in time") from None
        except ConnectionResetError:
            more = b""
        except OSError as error:
            raise self.refusal(str(error.strerror)) from None
        if not more:
            raise self.refusal("it has ended, or hung up")
        self.bytes += more

    # ---- requests ----

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """The answer; with the process's own words where that is {"error":…}."""
        self.send(request)
        answer = self.line()
        if isinstance(answer.get("error"), str):
            raise self.refusal(answer["error"], NO)
        return answer

    def facts(self) -> dict[str, Any]:
        """The facts document."""
        facts = self.ask({"get": "facts"})
        if value.text(facts, "format") != "tidepool-facts" or facts.get("format_version") != 1 or facts.get("pid") != self.pid or \
                not all(isinstance(facts.get(key), list) for key in ("pools", "sites", "buffers")):
            raise self.refusal("its answer is no facts document of that process")
        return facts


def is_number(said: str) -> bool:
    return said.isascii() and said.isdecimal()


def find(program: str, options: Any) -> int:
    """Of the processes that listen the youngest that runs a program of this name: it is asked what it runs."""
    for pid in reversed(pids_in(options.folder)):
        with contextlib.suppress(Refusal), Client(pid, options.folder, options.timeout) as client:
            if value.text(client.facts(), "program") == program:
                return pid
    raise Refusal(NOBODY, f"no process that listens runs '{program}'")


def process_of(said: str, options: Any) -> int:
    """A process by its number, or by the name of its program."""
    if not is_number(said) and not said.startswith("-"):
        return find(said, options)
    if not is_number(said) or not 0 < int(said[:18]) < 1 << 31:
        raise Refusal(USAGE, f"'{said}' is no number of a process")
    return int(said)


def client_of(options: Any) -> Client:
    """To the process that the options name."""
    return Client(process_of(options.pid, options), options.folder, options.timeout)


def site_of(text: str) -> int | str:
    """A site as requests name it: digits are its number, all else its name."""
    return int(text) if is_number(text) and len(text) < 19 else text
