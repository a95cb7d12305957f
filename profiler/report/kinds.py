# SPDX-License-Identifier: MIT
"""The kinds of call sites: what is special about each, for whoever says something of a site."""
from __future__ import annotations

from typing import Any, NamedTuple

from profiler.record.value import items, text


class Kind(NamedTuple):
    """`counts`: whose arrays a use's are: "level" (all acquired until the scope ends), "array" (its own), "" (none)."""

    counts: str = "array"
    form: str = ""  # the macro where the types are known; "": there is none
    code: str = ""  # how that is written, {} for the types
    each: str = ", {0}"  # one of these types; {1} for the name of a variable
    types: int = 8  # most types that the form takes
    split: str = ""  # how a site of its own is written for one sort of callers
    split_python: str = ""

    def code_for(self, types: list[str]) -> str:
        return self.code.format("".join(self.each.format(t, chr(ord("a") + i)) for i, t in enumerate(types)))


KINDS = {
    "scope": Kind("level", "TIDE_SCOPE_TYPES", "TIDE_SCOPE_TYPES(pool{});", split='TIDE_SCOPE_NAMED(pool, "what is done here");',
                  split_python='with pool.scope("what is done here") as scope:'),
    "frame": Kind("level", "TIDE_FRAME", "TIDE_FRAME(pool{});", ", ({0}, {1}, n)"),
    "acquire": Kind("array", "tide_acquire", "tide_acquire(pool{}, n)", types=1),
    "array": Kind("array"),
    "dispatch": Kind(""),
}
OTHER = Kind()


def kind_of(site: Any) -> Kind:
    return KINDS.get(text(site, "kind"), OTHER)


def has_form(site: Any) -> bool:
    kind = kind_of(site)
    return bool(kind.form) and 0 < len(items(site, "types")) <= kind.types
