# SPDX-License-Identifier: MIT
"""tidepool ps, sites, pools, buffers, tunables and top: the lists of a facts document as tables."""
from __future__ import annotations

import os
import signal
import sys
import time
from typing import Any, Callable, NamedTuple

from profiler.record.value import count, items, member, number, objects, text
from profiler.tool.client import Client, client_of, pids_in
from profiler.tool.say import NOBODY, OK, Refusal, amount, clean, complain, duration, print_json, say, size, words

Facts = dict[str, Any]
NAME, NAMES = 20, 24  # characters


class Column(NamedTuple):
    title: str
    width: int  # what is longer is cut; < 0: stands to the left
    show: Callable[[Any], str]


def figure(title: str, width: int, key: str, form: Callable[[float], str] = "{:.0f}".format, without: str = "") -> Column:
    """`without` stands for 0, unless it is ""."""
    return Column(title, width, lambda one: form(number(one, key)) if not without or number(one, key) > 0 else without)


def name(title: str, width: int, key: str) -> Column:
    return Column(title, -width, lambda one: text(one, key))


def hits(one: Any) -> str:
    every = number(one, "hits") + number(one, "misses")
    return f"{100 * number(one, 'hits') / every if every > 0 else 0:.1f}%"


def load(site: Any) -> str:
    """Of a second of one thread; all threads' may be more than a hundred of them."""
    return "-" if site["load"] is None else f"{100 * site['load']:.{2 if site['load'] < 10 else 0}f}%"


TIER = Column("TIER", -9, lambda s: f"{text(s, 'tier'):<8}{'*' if member(s, 'pinned') is True else ' '}")
USE = figure("USE", 9, "use_ns", duration, "-")
LISTS = {
    "sites": [figure("ID", 4, "id"), name("NAME", NAME, "name"), name("KIND", 8, "kind"), TIER,
              figure("USES", 8, "uses", amount), USE, figure("MISSES", 8, "misses"),
              Column("TYPES", -39, lambda s: f"{words(items(s, 'types'), 39):<16}"),
              name("WHY", 79, "reason")],
    "pools": [figure("ID", 4, "id"), name("NAME", 16, "name"), name("THREAD", 15, "thread_name"), name("DEVICE", 8, "device"),
              figure("HELD", 10, "held_bytes", size), figure("LIVE", 10, "live_bytes", size),
              figure("PEAK", 10, "peak_bytes", size),
              figure("LIMIT", 10, "limit_bytes", size, "-"), figure("ALLOCS", 8, "allocations"), figure("EXCHGES", 8, "exchanges")],
    "buffers": [figure("ID", 4, "id"), name("NAME", 16, "name"), name("DEVICE", 8, "device"), figure("HITS", 10, "hits"),
                figure("MISSES", 10, "misses"), Column("HIT", 6, hits), figure("LIVE", 10, "live_bytes", size),
                figure("CACHED", 10, "cached_bytes", size), figure("MAX", 10, "max_bytes", size)],
    "tunables": [name("TUNABLE", 24, "tunable"), Column("KEY", 10, lambda r: str(r["key"])),
                 figure("TIMED", 8, "uses", without="-"), figure("USE", 9, "ns", duration, "-"),
                 figure("ERROR", 9, "error_ns", duration, "-"), name("", 7, "state"), name("VARIANT", 79, "name")],
    "ps": [figure("PID", 8, "pid"), figure("POOLS", 6, "pools"), figure("SITES", 6, "sites"),
           figure("HELD", 10, "held_bytes", size), name("VERSION", NAME, "version"), name("PROGRAM", 255, "program")],
    "top pools": [figure("POOL", 5, "id"), figure("HELD", 9, "held_bytes", size), figure("LIVE", 9, "live_bytes", size),
                  figure("PEAK", 9, "peak_bytes", size), figure("LIMIT", 9, "limit_bytes", size, "-"),
                  figure("ALLOCS", 8, "allocations", amount),
                  Column("NAME (THREAD)", -79, lambda p: f"{text(p, 'name')} ({text(p, 'thread_name')})")],
    "top sites": [figure("SITE", 5, "id"), name("KIND", 8, "kind"), TIER, figure("USES", 8, "uses", amount), USE,
                  Column("LOAD", 7, load), figure("MISSES", 7, "misses", amount),
                  Column("NAME  TYPES", -199, lambda s: f"{text(s, 'name')}  {words(items(s, 'types'), 99)}")],
}


def line_of(columns: list[Column], texts: list[str]) -> str:
    """What is wider than NAMES is not filled up."""
    cells = [(c.width, clean(cell, abs(c.width))) for c, cell in zip(columns, texts)]
    return " ".join(cell if width < -NAMES else f"{cell:<{-width}}" if width < 0 else f"{cell:>{width}}" for width, cell in cells)


def table(which: str, rows: list[Any]) -> list[str]:
    columns = LISTS[which]
    return [line_of(columns, [c.title for c in columns])] + [line_of(columns, [c.show(row) for c in columns]) for row in rows]


def held(facts: Facts) -> float:
    return min(max(sum(number(pool, "held_bytes") for pool in objects(facts, "pools")), 0), 9e18)


# ---- once -----------------------------------------------------------------------------------


def tunable_rows(facts: Facts) -> list[dict[str, Any]]:
    """A line for each knob, and for each key and candidate."""
    rows = []
    for tunable in objects(facts, "tunables"):
        if "value" in tunable:
            value, low, high = (f"{number(tunable, key):.0f}" for key in ("value", "low", "high"))
            rows.append({"tunable": text(tunable, "name"), "key": "", "uses": 0, "name": f"{value} ({low} to {high})"})
        for row in objects(tunable, "rows"):
            state = "pinned" if row.get("pinned") is True else "chosen" if row.get("settled") is True else "ahead"
            rows += [{**one, "tunable": text(tunable, "name"), "key": count(row, "key"),
                      "state": state if text(one, "name") == text(row, "choice") else ""} for one in objects(row, "candidates")]
    return rows


def lists(options: Any) -> int:
    """The command's name is that of the list."""
    with client_of(options) as client:
        facts = client.facts()
    if options.json:
        print_json(items(facts, options.command))
        return OK
    rows = tunable_rows(facts) if options.command == "tunables" else objects(facts, options.command)
    for line in table(options.command, rows):
        say(line)
    if options.command == "sites":
        from profiler.report.advice import verdict_of_facts

        say("")
        say(verdict_of_facts(facts))
    return OK


def ps(options: Any) -> int:
    """One that has just ended is left out."""
    worst, found = OK, []
    for pid in pids_in(options.folder):
        try:
            with Client(pid, options.folder, options.timeout) as client:
                facts = client.facts()
        except Refusal as refusal:
            if refusal.code != NOBODY:
                complain(refusal.text)
                worst = max(worst, refusal.code)
            continue
        found.append({"pid": pid, "program": text(facts, "program"), "version": text(facts, "version"),
                      "pools": len(facts["pools"]), "sites": len(facts["sites"]), "held_bytes": int(held(facts))})
    if options.json:
        print_json(found)
    else:
        for line in table("ps", found):
            say(line)
    return worst


# ---- top ------------------------------------------------------------------------------------

SORTS = {"load": "load", "uses": "uses", "misses": "misses", "use": "use_ns", "name": "name"}


def put_load(facts: Facts, before: Facts | None) -> None:
    """Of a second of one thread, the part that went into a site's uses since the facts before; None where there are none."""
    old = {count(s, "id"): number(s, "uses") for s in objects(before, "sites")}
    ns = number(facts, "time_ns") - number(before, "time_ns")
    for site in objects(facts, "sites"):
        uses = number(site, "uses") - old.get(count(site, "id"), 0)
        site["load"] = None if before is None else uses * number(site, "use_ns") / ns if ns > 0 and uses > 0 else 0


def top_lines(facts: Facts, before: Facts | None, sort: str, pools_most: int) -> list[str]:
    pools, cached = objects(facts, "pools"), sum(number(one, "cached_bytes") for one in objects(facts, "buffers"))
    live = sum(number(pool, "live_bytes") for pool in pools)
    put_load(facts, before)
    sites = sorted(objects(facts, "sites"), key=lambda s: (-number(s, sort), text(s, sort), number(s, "id")))
    pools.sort(key=lambda p: (-number(p, "held_bytes"), number(p, "id")))
    lines = [f"tidepool top   {text(facts, 'program')}, process {facts['pid']}, version {text(facts, 'version')}   "
             f"processor {number(facts, 'process_cpu_ns') * 1e-9:.1f} s",
             f"sites {len(sites)}   pools {len(pools)}, which hold {size(held(facts))}, {size(live)} of it live   "
             f"buffers cache {size(cached)}"]
    lines += table("top pools", pools[:pools_most])
    if len(pools) > pools_most:
        lines.append(f"      ... {len(pools) - pools_most} more")
    return [clean(line) for line in lines + table("top sites", sites)]


def draw(facts: Facts, before: Facts | None, sort: str) -> None:
    try:
        columns, rows = os.get_terminal_size(sys.stdout.fileno())
    except OSError:  # no terminal
        print("\n".join(top_lines(facts, before, sort, 1 << 30)))
        return
    columns, rows = columns or 80, rows or 24
    lines = top_lines(facts, before, sort, rows // 4)[:rows]
    print("\033[H" + "\n".join(line[:columns] + "\033[K" for line in lines) + "\033[J", end="", flush=True)


def top(options: Any) -> int:
    """Drawn anew each second until it is interrupted or the process ends; once, where the standard output is no terminal."""
    before = None
    with client_of(options) as client:
        try:
            for number_of in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number_of, signal.default_int_handler)
            while True:
                facts = client.facts()
                draw(facts, before, SORTS[options.sort])
                if not sys.stdout.isatty():
                    return OK
                before = facts
                time.sleep(max(options.period, 1))
        except KeyboardInterrupt:
            return OK
        finally:
            for number_of in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number_of, signal.SIG_DFL)
            if sys.stdout.isatty():
                print()
