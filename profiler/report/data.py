# SPDX-License-Identifier: MIT
"""A history as the JSON document that the page draws."""
from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

from profiler.record.value import clipped, count, items, member, number, text
from profiler.report import advice as advices
from profiler.report.history import EVENTS, POINTS, THINGS, History, Point, Thing

TEXT_MAX, TYPES_MAX, SPEC_MAX = 400, 16, 2000
CODES = 24  # sites whose code is shown as assembler: the first ones
Object = dict[str, Any]


@dataclass
class Limits:
    """How much of it: a page has a size that it keeps to."""

    sites: int = THINGS
    pools: int = THINGS
    buffers: int = THINGS
    events: int = EVENTS
    points: int = POINTS  # of each of these
    codes: int = CODES  # of the first sites, those whose code is in it

    def less(self) -> Limits | None:
        """First less of each, then fewer; None: no less can be taken, and what is left has bounds of its own, far below."""
        if self.points > 40:
            return replace(self, points=self.points // 2, codes=self.codes // 2, events=self.events * 3 // 4)
        if self.sites + self.pools + self.buffers + self.events == 0:
            return None
        return Limits(self.sites // 2, self.pools // 2, self.buffers // 2, self.events // 2, max(self.points // 2, 2), 0)


def short(value: float) -> float:
    """In at most seven digits."""
    return int(value) if value == int(value) and abs(value) < 1e15 else float(f"{value:.7g}")


def copy(thing: Any, texts: str, numbers: str) -> Object:
    return {**{key: clipped(text(thing, key), TEXT_MAX) for key in texts.split()},
            **{key: short(number(thing, key)) for key in numbers.split()}}


def ms(history: History, time_ns: int) -> float:
    return short(round((time_ns - history.first_ns) / 1e6, 1))


def points(history: History, thing: Thing, limit: int, tiers: bool) -> list[list[float]]:
    """At most about `limit`: of each run of neighbours with one tier the one of the greatest value."""
    runs: list[list[Point]] = []
    step = -(-len(thing.points) // limit)
    for point in thing.points:
        if not runs or len(runs[-1]) == step or runs[-1][0].tier != point.tier:
            runs.append([])
        runs[-1].append(point)
    drawn = [(ms(history, run[0].time_ns), max(run, key=lambda p: p.value)) for run in runs[:2 * limit]]
    return [[t, p.tier, short(p.value)] if tiers else [t, short(p.value), short(p.second)] for t, p in drawn]


def code_of(thing: Thing) -> Object:
    """As machine code if that was made, else the spec that it was compiled from."""
    if not thing.code:
        return {}
    if thing.machine:
        return {"code_is": "assembler", "code": thing.machine}
    return {"code_is": "spec", "code": clipped(text(thing.code, "spec"), SPEC_MAX)}


def site_of(history: History, thing: Thing, limits: Limits, rank: int) -> Object:
    last = thing.last
    return {**copy(last, "name file kind tier reason", "id line use_ns"),
            **{key: short(history.grown(thing, key)) for key in ("uses", "misses")},
            "pinned": member(last, "pinned") is True, "measured": member(last, "use_measured") is True,
            "counted": member(last, "uses_counted") is not False,
            "types": [clipped(t, TEXT_MAX) for t in items(last, "types")[:TYPES_MAX] if isinstance(t, str)],
            "points": points(history, thing, limits.points, True), **(code_of(thing) if rank < limits.codes else {})}


def memory_of(history: History, thing: Thing, limits: Limits, _: int) -> Object:
    """A pool, or an instance of buffers."""
    numbers = ("id thread held_bytes live_bytes peak_bytes limit_bytes slots types allocations exchanges hits misses refused "
               "failed live cached high_bytes max_bytes cached_bytes")
    return {**copy(thing.last, "name thread_name device", numbers), "gone": thing.last_ns != history.last_ns,
            "points": points(history, thing, limits.points, False)}


def advice_of(history: History) -> Object:
    """Advice that is worth a line each, then the rest, of which `small` says what it is worth."""
    found = advices.advise(history)
    verdict = advices.judge(history, found)
    return {"advice": [{"grade": advices.GRADES[one.grade], "use_ns": short(one.use_ns), "share": short(one.share),
                        **{key: getattr(one, key) for key in ("subject", "what", "why", "instead", "code", "site", "others")}}
                       for one in found.each],
            "worth": found.worth, "small": found.small, "verdict": verdict.words,
            **{key: round(getattr(verdict, key)) for key in ("taken_ns", "measured_ns", "malloc_ns")}}


def end_of(history: History) -> str:
    end = member(history.end, "end")
    if isinstance(member(end, "signal"), int):
        return f"killed by signal {end['signal']}"
    return f"ended with status {end['exit_status']}" if isinstance(member(end, "exit_status"), int) else ""


def data_of(history: History, damage: str, limits: Limits) -> Object:
    """`damage` says what is wrong with the record, or is ""."""
    last, lists, left = history.last, {}, {}
    for which, describe in (("sites", site_of), ("pools", memory_of), ("buffers", memory_of)):
        things, most = history.sorted(which), getattr(limits, which)
        lists[which] = [describe(history, thing, limits, rank) for rank, thing in enumerate(things[:most])]
        left[which] = max(len(things) - most, 0) + history.left_out[which]
    shown = history.events[max(len(history.events) - limits.events, 0):]
    left["events"] = history.events_left_out + len(history.events) - len(shown)
    busy = history.busy() if number(last, "process_cpu_ns") > 0 else 0
    return {**copy(last, "program version", "pid"), "wall_ms": int(number(history.first, "wall_ns") // 1e6),
            "duration_ms": ms(history, history.last_ns), "cpu_ms": round(busy / 1e6), "documents": history.documents,
            "end": end_of(history), "damage": clipped(damage, 256), **lists,
            "events": [{**copy(e, "kind name tier reason detail", "site"), "t": ms(history, count(e, "time_ns"))} for e in shown],
            **advice_of(history), "learning": copy(member(last, "learning"), "", "compiled won spent_us"), "left_out": left}


def text_for_page(data: Object) -> str:
    """As text that may stand in a <script> of a page: without '<', '>' and '&'."""
    said = json.dumps(data, separators=(",", ":"))
    return said.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
