# SPDX-License-Identifier: MIT
"""tidepool: looks into processes that use Tidepool and listen. Here: its table of commands."""
from __future__ import annotations

import argparse
import contextlib
import importlib
import math
import os
import pkgutil
import signal
import sys
from typing import Any, NoReturn, NamedTuple

from profiler.tool.say import BROKEN, NO, USAGE, Refusal, complain


class Command(NamedTuple):
    name: str
    function: str  # of a room's file
    options: str  # by their letters
    arguments: str
    line: str


COMMANDS = [Command(*words) for words in (
    ("ps", "tool.lists.ps", "jtd", "", "the processes that listen"),
    ("sites", "tool.lists.lists", "jtd", "PID", "call sites: tier, types, cost, why"),
    ("pools", "tool.lists.lists", "jtd", "PID", "pools: owner, bytes, allocations"),
    ("buffers", "tool.lists.lists", "jtd", "PID", "instances of buffers: hits, bytes"),
    ("events", "tool.steer.events", "jtdfs", "PID", "what learning did, and does (-f)"),
    ("top", "tool.lists.top", "tdSp", "PID", "pools and sites, drawn anew each second"),
    ("pin", "tool.steer.steer", "jtdk", "PID SITE TIER", "keep a site at full, table or compiled"),
    ("unpin", "tool.steer.steer", "jtdk", "PID SITE", "let learning decide again"),
    ("reset", "tool.steer.steer", "jtdk", "PID SITE", "forget what was learned of a site"),
    ("declare", "tool.steer.steer", "jtdk", "PID SITE TYPE...", "say which types a site takes"),
    ("compile", "tool.steer.steer", "jtdk", "PID SITE", "order code for a site now"),
    ("set", "tool.steer.steer", "jtd", "PID SETTING VALUE", "change a setting"),
    ("tunables", "tool.lists.lists", "jtd", "PID", "knobs and variants: values, times, choices"),
    ("ask", "tool.steer.steer", "jtd", "PID TUNABLE", "what is known of a tunable, as JSON"),
    ("tell", "tool.steer.steer", "jtd", "PID TUNABLE VALUE...", "set a knob: VALUE, or pin a variant: VARIANT KEY"),
    ("forget", "tool.steer.steer", "jtd", "PID TUNABLE", "measure a tunable anew"),
    ("trim", "tool.steer.steer", "jtd", "PID POOL", "ask a pool to give back free memory"),
    ("explain", "tool.steer.explain", "jtdak", "PID SITE", "what is compiled for a site, and how"),
    ("profile", "tool.steer.profile", "tdo", "ACTION WORDS...", "save PID | merge FILE... | push PID URL | pull|watch PROGRAM URL"),
    ("record", "record.record.record", "opd", "PROGRAM...", "runs a program and keeps what it tells"),
    ("report", "report.report.report", "jotd", "RECORD", "what is slow in a record (or: PID) and why, in words or as a page"),
    ("pprof", "report.report.pprof", "o", "RECORD", "a record for pprof"),
    ("metrics", "metrics.metrics.metrics", "ltd", "PID", "figures for Prometheus"),
    ("web", "report.report.web", "ltd", "PID", "its report, live, for a browser"),
)]


def real(said: str) -> float:
    with contextlib.suppress(ValueError):
        if math.isfinite(float(said)):
            return float(said)
    raise Refusal(USAGE, f"'{said}' is no number")


def seconds(said: str, scale: float = 1) -> float:
    if not 0 < real(said) * scale <= 3600:
        raise Refusal(USAGE, f"'{said}' is no time of an hour at most")
    return real(said) * scale


def milliseconds(said: str) -> float:
    return seconds(said, 1e-3)


def serial(said: str) -> int:
    if not (said.isascii() and said.isdecimal() and len(said) <= 18):
        raise Refusal(USAGE, f"'{said}' is no number of an event")
    return int(said)


OPTIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "j": ("--json", {"action": "store_true", "help": "print JSON, one document or one event a line"}),
    "f": ("--follow", {"action": "store_true", "help": "go on printing what happens"}),
    "a": ("--asm", {"action": "store_true", "help": "as machine code"}),
    "o": ("--output", {"metavar": "FILE", "help": "write to this file; -: the standard output"}),
    "k": ("--kind", {"help": "of the site: scope or dispatch"}),
    "s": ("--since", {"metavar": "SERIAL", "type": serial, "default": 0, "help": "events after the one of this number"}),
    "S": ("--sort", {"choices": ["load", "uses", "misses", "use", "name"], "default": "load", "help": "sort by this column"}),
    "l": ("--listen", {"metavar": "[ADDRESS:]PORT", "help": "serve there; without an address at 127.0.0.1"}),
    "p": ("--period", {"metavar": "MS", "type": milliseconds, "default": .1, "help": "milliseconds from look to look (100; of top 1000 at least)"}),
    "t": ("--timeout", {"metavar": "SECONDS", "type": seconds, "default": 30, "help": "wait so long for an answer (30)"}),
    "d": ("--folder", {"help": "look for sockets there"}),
}
TYPES: dict[str, Any] = {"VALUE": real}


class Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise Refusal(USAGE, f"{self.prog.split()[-1]}: {message}; see {self.prog} --help")


def read_options(command: Command, words: list[str]) -> argparse.Namespace:
    parser = Parser(prog=f"tidepool {command.name}", description=command.line, allow_abbrev=False)
    for letter in command.options:
        name, how = OPTIONS[letter]
        parser.add_argument(f"-{letter}", name, **how)
    for word in command.arguments.split():
        plain = word.removesuffix("...")
        many = None if plain == word else argparse.REMAINDER if plain == "PROGRAM" else "+"
        parser.add_argument(plain.lower(), metavar=plain, nargs=many, type=TYPES.get(word, str))
    return parser.parse_args(words, argparse.Namespace(command=command.name))


def usage() -> str:
    lines = [f"  {c.name:<8} {c.arguments:<18} {c.line}" for c in COMMANDS]
    return "\n".join(["usage: tidepool COMMAND [OPTION]... [ARGUMENT]...", "", *lines, "",
                      "`tidepool COMMAND --help` tells its options. PID is the number of a process, or its",
                      "program's name: the youngest of that name that listens. A process listens if it runs",
                      "with TIDEPOOL_LISTEN=1, or calls tide_listen.", "",
                      "Exit codes: 0 done, 1 the answer is no, 2 wrong usage, 3 no such process or it does",
                      "not listen, 4 it ended or its answer (or a record) cannot be believed."])


def run(words: list[str]) -> int:
    if not words:
        print(usage(), file=sys.stderr)
        return USAGE
    if words[0] == "help" and len(words) > 1:
        words = [words[1], "--help"]
    if words[0] in ("--help", "-h", "help"):
        print(usage())
        return 0
    if words[0] == "--version":
        version = pkgutil.get_data("profiler.tool.command", "version")
        print("tidepool", version.decode() if version else "?")
        return 0
    command = next((c for c in COMMANDS if c.name == words[0]), None)
    if command is None:
        raise Refusal(USAGE, f"no command '{words[0]}'; see tidepool --help")
    options = read_options(command, words[1:])
    module, function = command.function.rsplit(".", 1)
    code: int = getattr(importlib.import_module(f"profiler.{module}"), function)(options)
    return code


def main() -> int:
    """Output that cannot be written is a failure, whatever the command thought of it."""
    for stream, number in (("stdout", 1), ("stderr", 2)):
        if getattr(sys, stream) is None:  # closed: what is written to it is lost, and a failure
            setattr(sys, stream, open("/dev/full" if number == 1 else os.devnull, "w"))
        getattr(sys, stream).reconfigure(encoding="utf-8", errors="backslashreplace")
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        code = run(sys.argv[1:])
        sys.stdout.flush()
    except Refusal as refusal:
        complain(refusal.text)
        code = refusal.code
    except BrokenPipeError:  # who reads it has enough of it
        code = NO
    except OSError as error:
        complain(f"the output cannot be written: {error.strerror}")
        code = NO
    except SystemExit as end:  # after a help
        code = int(end.code or 0)
    except Exception as error:  # an answer or a file that nobody thought of
        complain(f"{sys.argv[1]} has failed: {error!r}")
        code = BROKEN
    try:
        sys.stdout.flush()
    except OSError:  # said already; Python would say it again
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = code or NO
    return code
