# SPDX-License-Identifier: MIT
"""The page: a template with places for its parts, all in one file."""
from __future__ import annotations

import pkgutil
import re

from profiler.report.data import Limits, data_of, text_for_page
from profiler.report.history import History
from profiler.tool.say import NO, Refusal

BYTES = 500000  # a page has fewer
LIMITS = Limits(sites=200, pools=40, buffers=20, events=800, points=400)


def part(name: str) -> str:
    return (pkgutil.get_data(__name__, f"page/{name}") or b"").decode()


def parts() -> dict[str, str]:
    """Refusal where the charting library is not in this build."""
    found = {"STYLE": part("page.css"), "CHARTS": part("charts.js"), "SCRIPT": part("page.js")}
    if not found["CHARTS"]:
        raise Refusal(NO, "this tidepool was built without libjs-chart.js, so it makes no page")
    return found


def data(history: History, damage: str, room: int = BYTES) -> str:
    """What fits a page of so many bytes."""
    limits: Limits | None = LIMITS
    while limits is not None:
        said, limits = text_for_page(data_of(history, damage, limits)), limits.less()
        if len(said) < room:
            break
    return said


def page(history: History, damage: str, live: bool) -> bytes:
    """A live page asks for more each second where it came from. What is put in is not looked at again."""
    template, known = part("page.html"), parts()
    room = BYTES - len(template.encode()) - sum(len(text.encode()) for text in known.values())
    known.update(DATA=data(history, damage, room), LIVE="live" if live else "report")
    return re.sub(r"\{\{([A-Z]+)\}\}", lambda found: known[found[1]], template).encode()
