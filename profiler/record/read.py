# SPDX-License-Identifier: MIT
"""Reads a record: JSON lines, first what was recorded, then facts and events in order of time, last how the program ended.
The file may come from anywhere."""
from __future__ import annotations

from typing import Any, Callable, NamedTuple

from profiler.record.value import count, fault_of_facts, member, parse, text
from profiler.tool.say import BROKEN, NO, Refusal

VERSION = 1
NO_RECORD = "is no record of `tidepool record`"
LINE_MAX = 96 << 20  # bytes: more than a process's answer, written anew
Line = dict[str, Any]


class Kind(NamedTuple):
    """A line of a record: what it is told by, and what is wrong with one."""

    is_it: Callable[[Line], bool]
    fault: Callable[[Line], str | None]


KINDS = {
    "end": Kind(lambda l: "end" in l, lambda l: None),
    "gap": Kind(lambda l: "gap" in l, lambda l: None),
    "event": Kind(lambda l: text(l, "format") == "tidepool-event",
                  lambda l: None if count(l, "time_ns") else "an event without a time"),
    "code": Kind(lambda l: text(l, "format") == "tidepool-code", lambda l: None if count(l, "site") else "code of no site"),
    "facts": Kind(lambda l: True, fault_of_facts),
}


def fault_of_head(line: Line) -> str | None:
    if text(line, "format") != "tidepool-record":
        return NO_RECORD
    if member(line, "format_version") != VERSION:
        return f"is a record of version {count(line, 'format_version')}; version {VERSION} is understood"
    return None


def read_line(raw: bytes) -> tuple[Line | None, str | None]:
    """A line, or what is wrong with it."""
    if not raw:
        return None, "the record ends without its last line"
    if len(raw) > LINE_MAX:
        return None, f"the line is longer than {LINE_MAX >> 20} MiB"
    if not raw.endswith(b"\n"):
        return None, "the record ends within this line"
    line = parse(raw)
    return line, None if line is not None else "no JSON object"


def read(path: str, keep: Callable[[str, Line], None]) -> str:
    """Calls `keep` for each good line in order. Returns what is wrong, with the file and the line: what is before that
    was kept; "" where the record is whole. Refusal where it cannot be read or is none."""
    number = 0
    try:
        file = open(path, "rb")  # closed below
    except OSError as error:
        raise Refusal(NO, f"{path}: {error.strerror}") from None
    with file:
        kind, time_ns = "head", 0
        while kind != "end":
            number += 1
            line, wrong = read_line(file.readline(LINE_MAX + 1))
            if line is not None:
                kind = "head" if number == 1 else next(k for k, known in KINDS.items() if known.is_it(line))
                wrong = fault_of_head(line) if kind == "head" else KINDS[kind].fault(line)
            if wrong is None and line is not None and kind == "facts":
                wrong = "time goes back here" if count(line, "time_ns") < time_ns else None
                time_ns = count(line, "time_ns")
            if wrong is not None or line is None:
                if number == 1:
                    raise Refusal(BROKEN, f"{path}: {NO_RECORD if line is None else wrong}")
                return f"{path}:{number}: {wrong}"
            keep(kind, line)
        return f"{path}:{number + 1}: more lines behind the last one" if file.read(1) else ""
