# SPDX-License-Identifier: MIT
"""tidepool report, pprof and web: a record read, or a process looked at, and something made of it."""
from __future__ import annotations

import os
import time
from typing import Any

from profiler.metrics.serve import Answer, serve
from profiler.record.look import Look
from profiler.record.output import output
from profiler.record.read import read
from profiler.record.value import clipped, text
from profiler.report import advice as advices
from profiler.report import page as pages
from profiler.report.data import CODES, Limits, data_of
from profiler.report.history import LISTS, THINGS, History
from profiler.tool import programs
from profiler.tool.client import is_number, process_of
from profiler.tool.say import BROKEN, OK, USAGE, Refusal, complain, print_json, say

CODE_MAX = 6000  # characters of one site's machine code
LOOK = .2  # seconds: a live page's process is not looked at more often


def history_of(path: str) -> tuple[History, str]:
    """Of a record, and what is wrong with it. A damaged one is used as far as it is whole."""
    history = History()
    problem = read(path, history.add)
    if not history.last:
        raise Refusal(BROKEN, f"{problem}; no facts before it" if problem else f"{path}: there are no facts in it")
    return history, problem


def history_of_process(process: int, options: Any) -> History:
    """Of the documents of one look the first alone: it tells of all since the process began, two would tell of what was
    between them."""
    history, look = History(), Look(process, options.folder, options.timeout)
    for kind, line in look.once():
        if kind != "facts" or not history.last:
            history.add(kind, line)
    look.close()
    return history


def process_meant(said: str, options: Any) -> int:
    """A number or a program's name. 0: a record, for it is a path, ends in ".rec", or is here and no program that can be run."""
    if "/" in said or said.endswith(".rec") or (os.path.isfile(said) and not os.access(said, os.X_OK)):
        return 0
    try:
        return process_of(said, options)
    except Refusal as refusal:
        raise refusal if is_number(said) else Refusal(refusal.code, f"{said} is no record, and {refusal.text}") from None


def end(problem: str) -> int:
    if problem:
        complain(f"{problem}; what is before it is used")
    return BROKEN if problem else OK


def make_code(history: History) -> None:
    """Where there is a stager of the same build, sites that were compiled get their code as assembler text, each once."""
    for thing in history.sorted("sites")[:CODES] if programs.find("tidepool-stage") else []:
        if thing.code and thing.machine is None:
            thing.machine = clipped(programs.stage(text(thing.code, "spec"), "--asm", captures=True) or "", CODE_MAX)


# ---- words ----------------------------------------------------------------------------------


def say_one(number: int, advice: advices.Advice) -> None:
    say(f"{number}. {advice.what}")
    say(f"   {advice.subject}: {advice.why}")
    say(f"   {advice.instead}")
    if advice.others:
        share = f"; together {100 * advice.share:.2g} %" if advice.share > 0 else ""
        say(f"   The same holds for {advice.others} more{share}.")
    if advice.code:
        say(f"       {advice.code}")
    print()


def say_words(history: History) -> None:
    found = advices.advise(history)
    say(advices.judge(history, found).words)
    print()
    for i, advice in enumerate(found.each[:found.worth]):
        say_one(i + 1, advice)
    if found.small:
        print(f"{found.small} The page (-o) and --json have all.")
    for which, noun in zip(LISTS, ("sites", "pools", "instances of buffers")):
        left = history.left_out[which]
        if left:
            print(f"{left} {noun} of {left + len(history.things[which])} are not in this report: a report has room for {THINGS}.")


def report(options: Any) -> int:
    process, problem = process_meant(options.record, options), ""
    if process:
        history = history_of_process(process, options)
    else:
        history, problem = history_of(options.record)
    if history.documents == 1:
        history.begin_with_events()
    if options.output is not None or options.json:
        make_code(history)
    if options.output is not None:
        made = pages.page(history, problem, live=False)
        with output(options.output) as file:
            file.write(made)
    elif options.json:
        print_json(data_of(history, problem, Limits()))
    else:
        say_words(history)
    return end(problem)


# ---- the profile ----------------------------------------------------------------------------


def pprof(options: Any) -> int:
    from profiler.report.pprof import profile_of

    if options.output is None:
        raise Refusal(USAGE, "pprof: name a file for it: -o FILE, or -o - for the standard output")
    if is_number(options.record) and not os.path.exists(options.record):
        raise Refusal(USAGE, f"pprof: '{options.record}' is no file; of a process make a record first: tidepool record")
    history, problem = history_of(options.record)
    with output(options.output) as file:
        file.write(profile_of(history))
    return end(problem)


# ---- the live page --------------------------------------------------------------------------


def web(options: Any) -> int:
    """The page of a process that runs. It is looked at only while somebody looks at the page; what was seen is kept."""
    pages.parts()
    history, look, looked = History(), Look(process_of(options.pid, options), options.folder, options.timeout), 0.0

    def look_once() -> None:
        nonlocal looked
        if time.monotonic() - looked >= LOOK:
            for kind, line in look.once():
                history.add(kind, line)
            looked = time.monotonic()

    def answer(path: str) -> Answer:
        """Of a process that has ended the page shows what was seen, but there are no newer data."""
        try:
            look_once()
        except Refusal as refusal:
            if path != "/" or not history.last:
                return 503, "text/plain; charset=utf-8", f"{refusal.text}\n".encode("utf-8", "backslashreplace")
        make_code(history)
        if path == "/":
            return 200, "text/html; charset=utf-8", pages.page(history, "", live=True)
        return 200, "application/json; charset=utf-8", pages.data(history, "").encode()

    look_once()  # before a port is taken for nothing
    return serve(options.listen or "0", ["/", "/data.json"], answer)
