# SPDX-License-Identifier: MIT
"""A record as a profile in pprof's format (profile.proto), not compressed: uses, time, misses and bytes acquired by site, most
bytes by pool and by instance of buffers, and by place and stack the bytes that were taken from devices, and what is held of them.

A message is fields; a field is a number that says which and how, then a number, or a length and bytes. Numbers have seven bits
to a byte, the lowest first."""
from __future__ import annotations

from typing import Any, Union

from profiler.record.value import clipped, count, items, member, number, objects, text
from profiler.report.history import History

TEXT_MAX = 200
TYPES = (("uses", "count"), ("time", "nanoseconds"), ("misses", "count"), ("acquired", "bytes"), ("peak", "bytes"),
         ("taken", "bytes"), ("held", "bytes"))
LABELS = ("kind", "tier", "reason_code", "device", "thread_name")


def varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(out) + bytes([value])


def message(*fields: tuple[int, Union[int, bytes]]) -> bytes:
    """Of pairs: a field's number as profile.proto has it, and its value."""
    return b"".join(varint(which << 3) + varint(value) if isinstance(value, int) else
                    varint(which << 3 | 2) + varint(len(value)) + value for which, value in fields)


def whole(value: float) -> int:
    """A count that came from somewhere: not below zero, and no more than pprof's numbers hold."""
    return int(min(max(value, 0), 9e18))


class Profile:
    def __init__(self, history: History) -> None:
        self.bytes = bytearray()
        self.texts = self.frames = 0  # so far; a text's number counts from 0, a frame's from 1
        self.text("")  # the first one has to be
        for name, unit in TYPES:
            self.put(1, message((1, self.text(name)), (2, self.text(unit))))
        self.root = self.frame(text(history.last, "program"))
        self.put(9, count(history.last, "wall_ns"))
        self.put(10, whole(history.duration()))
        if any(history.left_out.values()):
            self.put(13, self.text("There were more sites, pools or buffers than these."))

    def put(self, field: int, value: int | bytes) -> None:
        self.bytes += message((field, value))

    def text(self, said: str) -> int:
        self.put(6, clipped(said, TEXT_MAX).encode("utf-8", "replace"))
        self.texts += 1
        return self.texts - 1

    def frame(self, name: str, file: str = "", line: int = 0) -> int:
        """A function that stands at one place only, and that place; both have the number that is returned."""
        self.frames += 1
        said = self.text(name)
        self.put(5, message((1, self.frames), (2, said), (3, said), (4, self.text(file))))
        self.put(4, message((1, self.frames), (4, message((1, self.frames), (2, line)))))
        return self.frames

    def sample(self, stack: list[int], thing: Any, labels: tuple[str, ...], **values: float) -> None:
        fields: list[tuple[int, int | bytes]] = [(1, frame) for frame in [*stack, self.root]]
        fields += [(2, whole(values.get(name, 0))) for name, _ in TYPES]
        fields += [(3, message((1, self.text(key)), (2, self.text(text(thing, key))))) for key in labels if text(thing, key)]
        self.put(2, message(*fields))

    def thing(self, noun: str, thing: Any, **values: float) -> None:
        """Its own frame: its noun, name and number, which are its alone; then its function."""
        place = text(thing, "file"), count(thing, "line")
        stack = [self.frame(f"{noun} {clipped(text(thing, 'name'), TEXT_MAX // 2)} #{count(thing, 'id')}", *place)]
        if text(thing, "function"):
            stack.append(self.frame(text(thing, "function"), *place))
        self.sample(stack, thing, LABELS, **values)


def profile_of(history: History) -> bytes:
    profile = Profile(history)
    for site in history.things["sites"].values():
        uses = history.grown(site, "uses")
        profile.thing("site", site.last, uses=uses, time=uses * number(site.last, "use_ns"), misses=history.grown(site, "misses"),
                      acquired=uses * number(site.last, "use_bytes"))
    for which, noun, key in ("pools", "pool", "peak_bytes"), ("buffers", "buffers", "high_bytes"):
        for thing in history.things[which].values():
            profile.thing(noun, thing.last, peak=number(thing.last, key))
    for place in objects(member(history.last, "samples"), "places"):  # who took memory that is held: the place, then the stack
        stack = [profile.frame(text(place, "place"))] if text(place, "place") else []
        stack += [profile.frame(code if isinstance(code, str) else "?") for code in items(place, "stack")]
        profile.sample(stack, place, ("type",), taken=number(place, "taken_bytes"), held=number(place, "held_bytes"))
    return bytes(profile.bytes)
