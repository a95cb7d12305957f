# SPDX-License-Identifier: MIT
"""The kinds of call sites: what is special about each, for whoever says something of a site."""
from __future__ import annotations

from typing import Any, NamedTuple

from profiler.record.value import items, text


class Kind(NamedTuple):
    form: str = ""  # the macro where the types are known; "": there is none
    code: str = ""  # how that is written, {} for the types
    types: int = 8  # most types that the form takes
    split: str = ""  # how a site of its own is written for one sort of callers
    split_python: str = ""

    def code_for(self, types: list[str]) -> str:
        return self.code.format("".join(f", {t}" for t in types))


KINDS = {
    "scope": Kind("TIDE_SCOPE_TYPES", "TIDE_SCOPE_TYPES(pool{});", split='TIDE_SCOPE_NAMED(pool, "what is done here");',
                  split_python='with pool.scope("what is done here") as scope:'),
    "dispatch": Kind(),
}
OTHER = Kind()


def kind_of(site: Any) -> Kind:
    return KINDS.get(text(site, "kind"), OTHER)


def has_form(site: Any) -> bool:
    kind = kind_of(site)
    return bool(kind.form) and 0 < len(items(site, "types")) <= kind.types
