# SPDX-License-Identifier: MIT
"""Values of a JSON document that may be anything: what is missing or of another type reads as 0, as "" or as nothing.
So a reader needs no test of its own, and a hostile document harms nobody."""
from __future__ import annotations

import json
from typing import Any


def parse(text: bytes | bytearray | str) -> dict[str, Any] | None:
    """A JSON object; None where it is none."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def member(thing: Any, key: str) -> Any:
    return thing.get(key) if isinstance(thing, dict) else None


def number(thing: Any, key: str) -> float:
    value = member(thing, key)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return 0
    return value if abs(value) < 1e100 else 0  # neither no number nor one whose products are none


def count(thing: Any, key: str) -> int:
    return int(max(number(thing, key), 0))


def text(thing: Any, key: str) -> str:
    value = member(thing, key)
    return value if isinstance(value, str) else ""


def objects(thing: Any, key: str) -> list[dict[str, Any]]:
    value = member(thing, key)
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def items(thing: Any, key: str) -> list[Any]:
    value = member(thing, key)
    return value if isinstance(value, list) else []


def clipped(value: str, most: int) -> str:
    return value if len(value) <= most else value[:most - 3] + "..."


def fault_of_facts(document: Any) -> str | None:
    """Why this is no facts document of a version that is understood; None if it is one."""
    if text(document, "format") != "tidepool-facts":
        return "no facts document"
    if member(document, "format_version") != 1:
        return "a facts document of another version"
    if count(document, "time_ns") == 0:
        return "a facts document without a time"
    for key in ("pools", "sites", "buffers"):
        value = document.get(key, [])
        if not isinstance(value, list) or any(count(one, "id") == 0 for one in value):
            return "a facts document whose pools, sites or buffers are no list of objects with an id"
    return None
