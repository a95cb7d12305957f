# SPDX-License-Identifier: MIT
"""Seeing what the library does, and telling it what to do."""
from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from . import _core

if TYPE_CHECKING:
    import logging

Event = dict[str, Any]


def table(title: str, heads: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """A table in HTML."""
    import html

    def line(tag: str, cells: Iterable[object]) -> str:
        return "<tr>" + "".join(f"<{tag}>{html.escape(str(c))}</{tag}>" for c in cells) + "</tr>"
    body = "".join(line("td", row) for row in rows)
    return f"<table><caption>{html.escape(title)}</caption>{line('th', heads)}{body}</table>"


@dataclass(frozen=True)
class Site:
    """A place in the program where scopes are opened, as it was when it was asked for."""
    name: str
    function: str  # where it is, unless the program gave it a name; else "", "", 0
    file: str
    line: int
    kind: str
    tier: str
    pinned: bool
    types: tuple[str, ...]
    uses: int
    samples: int
    misses: int
    compiles: int
    lost_ns: float
    saved_ns: float
    reason: str
    id: int  # in this process: two sites may have one name

    def pin(self, tier: str) -> None:
        """Keeps the site at a tier ('full', 'table', 'compiled') whatever is learned."""
        _core.site_pin(self.id, tier)

    def unpin(self) -> None:
        """Lets it learn again."""
        _core.site_unpin(self.id)

    def reset(self) -> None:
        """Forgets what it learned, and the pin."""
        _core.site_reset(self.id)


class Sites(list[Site]):
    """Sites, shown as a table in a notebook."""

    def _repr_html_(self) -> str:
        return table(f"{len(self)} sites", ["site", "kind", "tier", "types", "uses", "reason"],
                     [(s.name, s.kind, s.tier, " ".join(s.types), s.uses, s.reason)
                      for s in self])


def sites() -> Sites:
    """All sites that are known now."""
    known = Site.__dataclass_fields__
    made = Sites()
    for one in _core.sites_list():
        values: dict[str, Any] = {key: value for key, value in one.items() if key in known}
        values["types"] = tuple(values["types"])
        made.append(Site(**values))
    return made


@dataclass(frozen=True)
class Setting:
    """A threshold or default of the library."""
    name: str
    value: float
    initial: float
    min: float
    max: float
    meaning: str


class Settings(MutableMapping[str, float]):
    """The library's settings by name. In the environment each is TIDEPOOL_NAME.

    >>> from tidepool import settings
    >>> before = settings["trim_after"]
    >>> settings["trim_after"] = 8
    >>> settings["trim_after"]
    8.0
    >>> settings["trim_after"] = before
    """

    def __getitem__(self, name: str) -> float:
        if not isinstance(name, str):
            raise KeyError(name)
        return _core.setting_get(name)

    def __setitem__(self, name: str, value: float) -> None:
        if not isinstance(name, str):
            raise KeyError(name)
        _core.setting_set(name, value)

    def __delitem__(self, name: str) -> None:
        """Sets it to what it is at first."""
        _core.setting_set(name, self.describe(name).initial)

    def clear(self) -> None:
        """Sets each to what it is at first."""
        for name in self:
            del self[name]

    def popitem(self) -> Any:
        raise TypeError("settings are set to what they are at first, not removed: del settings[name], or clear()")

    def __iter__(self) -> Iterator[str]:
        return iter([one["name"] for one in _core.settings_list()])

    def __len__(self) -> int:
        return len(_core.settings_list())

    def describe(self, name: str) -> Setting:
        """A setting with its range and meaning."""
        for one in _core.settings_list():
            if one["name"] == name:
                return Setting(**one)
        raise KeyError(name)

    def _repr_html_(self) -> str:
        return table("settings", ["name", "value", "initial", "meaning"],
                     [(s["name"], s["value"], s["initial"], s["meaning"])
                      for s in _core.settings_list()])


settings = Settings()


def on_event(function: Callable[[Event], object] | None) -> None:
    """Has the function called for each event of learning, with a dict; None: nobody is told. There is one
    listener: it takes the place of the one before, which may be that of log_events(). It may be
    called on a thread of the library's. What it raises is printed and ignored. A call that goes on as
    the interpreter ends has two seconds to return; from then on nobody is told."""
    _core.event_set(function)


def log_events(logger: logging.Logger | None = None, level: int = 20) -> None:
    """Has each event of learning logged: by the logger `tidepool`, unless another is given, at the level
    INFO (20). It is the listener then, in place of one of on_event()."""
    import logging

    chosen = logging.getLogger("tidepool") if logger is None else logger
    if not isinstance(chosen, (logging.Logger, logging.LoggerAdapter)):
        raise TypeError(f"a logging.Logger is wanted, not {logger!r}")

    def tell(event: Mapping[str, Any]) -> None:
        chosen.log(level, "%s %s: %s%s", event["kind"], event["name"], event["reason"],
                   f" ({event['detail']})" if event["detail"] else "")

    on_event(tell)
