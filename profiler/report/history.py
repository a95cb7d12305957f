# SPDX-License-Identifier: MIT
"""What a record tells of each site, pool and instance of buffers over time, in bounded memory."""
from __future__ import annotations

from typing import Any, NamedTuple

from profiler.record.value import count, items, member, number, objects, text

THINGS = 4096  # most of each list that are kept; the rest is counted
POINTS = 1024  # of a thing
EVENTS = 65536
LISTS = ("sites", "pools", "buffers")
TIERS = ("full", "table", "compiled")
Facts = dict[str, Any]


class Point(NamedTuple):
    """A state, from this moment on."""

    time_ns: int
    tier: int = -1  # of a site, as an index of TIERS; others: -1
    value: float = 0  # sites: ns of a use, measured (0: not yet); pools: bytes held; buffers: bytes live and cached
    second: float = 0  # pools and buffers: bytes live


def point_of(which: str, thing: Facts, time_ns: int) -> Point:
    if which == "sites":
        tier = text(thing, "tier")
        measured = number(thing, "use_ns") if member(thing, "use_measured") is True else 0
        return Point(time_ns, TIERS.index(tier) if tier in TIERS else -1, measured)
    live = number(thing, "live_bytes")
    return Point(time_ns, -1, number(thing, "held_bytes") if which == "pools" else live + number(thing, "cached_bytes"), live)


def is_same(a: Point, b: Point) -> bool:
    return a.tier == b.tier and abs(a.value - b.value) <= .005 * abs(a.value) and abs(a.second - b.second) <= .02 * abs(a.second)


class Thing:
    """A site, a pool or an instance of buffers: as the first and the last document that had it told it, and its states."""

    def __init__(self, thing: Facts, now: int) -> None:
        self.id, self.first, self.last = count(thing, "id"), thing, thing
        self.first_ns = self.last_ns = now
        self.varied = False  # two documents told different types of it
        self.points: list[Point] = []
        self.code: Facts = {}  # of a site: the record's last line about its code
        self.machine: str | None = None  # that code as text, once it was made; "": it cannot be had

    def update(self, which: str, thing: Facts, now: int) -> None:
        old, new = items(self.last, "types"), items(thing, "types")
        self.varied = self.varied or bool(old and new and old != new)  # a plan for no types knows none
        self.last, self.last_ns = thing, now
        self.append(point_of(which, thing, now))

    def append(self, point: Point) -> None:
        if self.points and is_same(self.points[-1], point):
            return
        if len(self.points) == POINTS:  # every other one goes whose tier is that of the one before
            kept = [p for i, p in enumerate(self.points) if i % 2 == 0 or p.tier != self.points[i - 1].tier]
            self.points = kept if len(kept) < POINTS else kept[:POINTS // 2]  # a tier that never stays
        self.points.append(point)


class History:
    def __init__(self) -> None:
        self.end: Facts = {}
        self._begin()

    def _begin(self) -> None:
        self.first: Facts = {}
        self.last: Facts = {}
        self.first_ns = self.last_ns = self.documents = self.events_left_out = 0
        self.things: dict[str, dict[int, Thing]] = {which: {} for which in LISTS}
        self.left_out = dict.fromkeys(LISTS, 0)  # most that one document told of beyond THINGS
        self.events: list[Facts] = []

    def add(self, kind: str, line: Facts) -> None:
        """A line of a record."""
        if kind == "end":
            self.end = line
        elif kind == "facts":
            self._add_facts(line)
        elif kind == "code" and count(line, "site") in self.things["sites"]:
            site = self.things["sites"][count(line, "site")]
            site.code, site.machine = line, None
        elif kind == "gap":
            self.events_left_out += count(line, "gap")
        elif kind == "event" and len(self.events) == EVENTS:
            self.events_left_out += 1
        elif kind == "event":
            self.events.append(line)

    def _add_facts(self, facts: Facts) -> None:
        """Facts of another program that the process has executed, or of another process, end what was before."""
        now = count(facts, "time_ns")
        if self.last and (count(self.last, "since_ns") != count(facts, "since_ns") or now < self.last_ns):
            self._begin()
        if not self.first:
            self.first, self.first_ns = facts, now
        self.last, self.last_ns = facts, now
        self.documents += 1
        for which, things in self.things.items():
            beyond = 0
            for thing in objects(facts, which):
                if count(thing, "id") not in things and len(things) == THINGS:
                    beyond += 1
                    continue
                things.setdefault(count(thing, "id"), Thing(thing, now)).update(which, thing, now)
            self.left_out[which] = max(self.left_out[which], beyond)
            for one in things.values():  # what is gone runs and holds nothing from now on
                if one.last_ns != now:
                    one.append(Point(now))

    def begin_with_events(self) -> None:
        """For a history of one document, which alone tells nothing of the time before it: that begins with the first event,
        and a site has had its plan since its last one."""
        self.first_ns = min([self.first_ns, *(count(e, "time_ns") for e in self.events)])
        since = {count(e, "site"): count(e, "time_ns") for e in self.events if count(e, "time_ns") <= self.last_ns}
        for site in self.things["sites"].values():
            site.points[0] = site.points[0]._replace(time_ns=since.get(site.id, self.first_ns))

    def duration(self) -> float:
        """From the first document to the last, in ns; at least 1."""
        return max(self.last_ns - self.first_ns, 1)

    def busy(self) -> float:
        """Processor time of the program in the record, in ns; where it has none, the time it lasted."""
        busy = number(self.last, "process_cpu_ns") - (number(self.first, "process_cpu_ns") if self.documents > 1 else 0)
        return busy if busy > 0 else self.duration()

    def grown(self, thing: Thing, key: str) -> float:
        """What a count grew by in the record: a thing that came later began with 0. Of one look all is told."""
        last = number(thing.last, key)
        if self.documents == 1 or thing.first is thing.last:
            return last
        return max(last - (0 if thing.first_ns > self.first_ns else number(thing.first, key)), 0)

    def _weight(self, which: str, thing: Thing) -> float:
        if which == "sites":  # the time that it took, or its uses where no use was measured
            return self.grown(thing, "uses") * (number(thing.last, "use_ns") or 1)
        return max(point.value for point in thing.points)

    def sorted(self, which: str) -> list[Thing]:
        """The weightiest first: sites by the time that they took, the rest by the most that it held."""
        return sorted(self.things[which].values(), key=lambda t: (-self._weight(which, t), t.id))


def use_ns(site: Facts, tier: str) -> float:
    """What a use of the site takes by that tier, as it says; 0: not known."""
    for rival in objects(site, "rivals"):
        if text(rival, "tier") == tier:
            return number(rival, "ns")
    return number(site, "use_ns") if text(site, "tier") == tier else 0
