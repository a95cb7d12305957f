# SPDX-License-Identifier: MIT
"""Text for people. What other processes and files say reaches a terminal by `say`, `clean` or a Refusal only."""
from __future__ import annotations

import json
import sys
import textwrap

OK = 0
NO = 1  # it was asked and the answer is no: no such site, a refusal, a failure
USAGE = 2  # the command line is wrong
NOBODY = 3  # there is no such process, or it does not listen
BROKEN = 4  # it said what cannot be true, nothing in time, or ended while it spoke


class Refusal(Exception):
    """What ends a command: its exit code, and one line for the standard error."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code
        self.text = text


def complain(text: str) -> None:
    """What is not shown is written by its bytes: \\xHH."""
    shown = (c if c.isprintable() else "".join(f"\\x{b:02x}" for b in c.encode("utf-8", "surrogateescape")) for c in text)
    print("tidepool: " + "".join(shown), file=sys.stderr)


def clean(text: str, most: int | None = None) -> str:
    """With "?" for what a terminal would not just show: controls, ends of lines, turns of the direction of writing."""
    text = "".join(c if c.isprintable() else "?" for c in text)
    return text if most is None or len(text) <= most else text[:most - 3] + "..."


def say(text: str) -> None:
    print(clean(text))


def print_json(value: object) -> None:
    print(json.dumps(value, separators=(",", ":")))


def words(texts: list[object], most: int) -> str:
    """ "f64 i32"; "..." stands for those that have no room."""
    return textwrap.shorten(" ".join(clean(t) if isinstance(t, str) else "?" for t in texts), most, placeholder=" ...")


def scaled(value: float, step: float, units: tuple[str, ...]) -> str:
    value, unit = min(max(value, 0), 1e21), 0
    while unit < len(units) - 1 and value >= step * .9995:
        value, unit = value / step, unit + 1
    digits = 0 if unit == 0 and value == int(value) else 2 if value < 10 else 1 if value < 100 else 0
    return f"{value:.{digits}f}{units[unit]}"


def size(count: float) -> str:
    return scaled(count, 1024, (" B", " KiB", " MiB", " GiB", " TiB", " PiB", " EiB"))


def duration(ns: float) -> str:
    return scaled(ns, 1000, (" ns", " us", " ms", " s", " ks", " Ms", " Gs"))


def amount(count: float) -> str:
    return scaled(count, 1000, ("", " k", " M", " G", " T", " P", " E"))
