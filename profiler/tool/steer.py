# SPDX-License-Identifier: MIT
"""tidepool pin, unpin, reset, declare, compile, set, ask, tell, forget, trim, events, explain and profile: what a process is
asked to do or to tell."""
from __future__ import annotations

import socket
import sys
from typing import Any, Callable

from profiler.record.output import output
from profiler.record.value import member, number, objects, text
from profiler.tool import programs
from profiler.tool.client import Client, client_of, process_of, site_of
from profiler.tool.say import NO, OK, USAGE, Refusal, clean, duration, print_json, say, words

# What each command asks; the rest ask the same with their own name.
REQUESTS: dict[str, Callable[[Any], dict[str, Any]]] = {
    "pin": lambda o: {"do": "pin", "site": site_of(o.site), "tier": o.tier},
    "declare": lambda o: {"do": "declare", "site": site_of(o.site), "types": o.type},
    "compile": lambda o: {"do": "compile-now", "site": site_of(o.site)},
    "set": lambda o: {"do": "set", "key": o.setting, "value": o.value},
    "ask": lambda o: {"ask": o.tunable},
    "tell": lambda o: {"do": "tell", "tunable": o.tunable, **tell(o.value)},
    "forget": lambda o: {"do": "forget", "tunable": o.tunable},
    "trim": lambda o: {"do": "trim", "pool": pool_of(o.pool)},
}


def tell(said: list[str]) -> dict[str, Any]:
    """A knob's value, or a variant and its key."""
    number_of = site_of(said[-1])
    if len(said) > 2 or not isinstance(number_of, int):
        raise Refusal(USAGE, f"'{said[-1]}' is no whole number: a knob's value, or a variant's key")
    return {"value": number_of} if len(said) == 1 else {"variant": said[0], "row": number_of}


def pool_of(said: str) -> int:
    number_of = site_of(said)
    if not isinstance(number_of, int):
        raise Refusal(USAGE, f"'{said}' is no number of a pool: `tidepool pools` lists them")
    return number_of


def steer(options: Any) -> int:
    known = REQUESTS.get(options.command)
    request = known(options) if known is not None else {"do": options.command, "site": site_of(options.site)}
    if getattr(options, "kind", None) is not None:
        request["kind"] = options.kind
    with client_of(options) as client:
        answer = client.ask(request)
        if "do" in request and answer.get("ok") is not True:
            raise client.refusal("its answer is none to that")
    if options.json or "ask" in request:
        print_json(answer)
    return OK


# ---- events ---------------------------------------------------------------------------------

EVENTS_MAX = 65536  # lines of one answer: a process keeps far less


def event_line(event: dict[str, Any]) -> str:
    if "gap" in event:
        return f"     ... {number(event, 'gap'):.0f} events are missing"
    why = ": ".join(filter(None, (text(event, "reason"), text(event, "detail"))))
    return (f"{number(event, 'serial'):8.0f} {number(event, 'time_ns') * 1e-9:12.3f} s  {text(event, 'kind'):<9} "
            f"{clean(text(event, 'name'), 39):<20} {text(event, 'tier'):<8}  {why}")


def events(options: Any) -> int:
    """While it follows, silence is no failure."""
    with client_of(options) as client:
        client.send({"follow" if options.follow else "get": "events", "since": options.since})
        lines = 0
        while "end" not in (event := client.line(waits=options.follow)):
            lines += 1
            if "error" in event or (lines > EVENTS_MAX and not options.follow):
                raise client.refusal(text(event, "error") or "its answer has no end")
            if options.json:
                print_json(event)
            else:
                say(event_line(event))
            if options.follow:
                sys.stdout.flush()
    return OK


# ---- explain --------------------------------------------------------------------------------


def say_site(site: dict[str, Any]) -> None:
    say(f"{text(site, 'name')} ({text(site, 'kind')}, {text(site, 'file')}:{number(site, 'line'):.0f}): runs {text(site, 'tier')}"
        f"{', pinned' if member(site, 'pinned') is True else ''}")
    say(f"  why: {text(site, 'reason')}")
    say(f"  types: {words(member(site, 'types') or [], 160)}")
    if number(site, "use_ns") > 0:
        say(f"  a use takes {duration(number(site, 'use_ns'))}")
    for rival in objects(site, "rivals"):
        say(f"  by {text(rival, 'tier')} it would take {duration(number(rival, 'ns'))} "
            f"({'measured' if member(rival, 'measured') is True else 'estimated'})")


def explain(options: Any) -> int:
    wanted = site_of(options.site)
    with client_of(options) as client:
        found = [s for s in objects(client.facts(), "sites") if s.get("id" if isinstance(wanted, int) else "name") == wanted
                 and options.kind in (None, text(s, "kind"))]
        if not found:
            raise client.refusal(f"there is no site '{options.site}'", NO)
        kind = {} if options.kind is None else {"kind": options.kind}
        if not options.json:
            say_site(found[0])
        answer = client.ask({"explain": wanted, **kind})
        spec = text(answer, "text")
        if options.json:
            print_json(answer)
            return OK
        if not all(c.isprintable() or c == "\n" for c in spec):  # the stager may quote what it cannot read
            raise client.refusal("its answer is no spec")
    return OK if programs.stage(spec, *["--asm"] * options.asm) is not None else NO


# ---- profile --------------------------------------------------------------------------------


def fetch_profile(options: Any, pid: int, own: bool) -> str:
    with Client(pid, options.folder, options.timeout) as client:
        answer = text(client.ask({"get": "profile", "own": own}), "profile")
        if not answer.startswith("tidepool profile "):  # the library reads it with more care
            raise client.refusal("its answer is no profile")
    return answer


SHARES = {"save": 1, "push": 2, "pull": 2, "watch": 2}  # how many words follow


def profile(options: Any) -> int:
    """Profiles are read, added and shared by a program that has the library in it."""
    does, said, limit = options.action, options.words, str(int(options.timeout * 1000))
    if (does != "merge" and does not in SHARES) or len(said) != SHARES.get(does, len(said)):
        raise Refusal(USAGE, "profile: save PID, merge FILE..., push PID URL, pull PROGRAM URL, watch PROGRAM URL")
    if does == "watch":
        programs.profile("watch", *said, limit)
    if does == "push":
        pid = process_of(said[0], options)
        member_of = f"process {pid} of {socket.gethostname()[:64]}"  # containers have the same numbers
        programs.profile("push", f"/proc/{pid}/exe", said[1], limit, member_of, input=fetch_profile(options, pid, True))
    if does in ("watch", "push"):
        return OK
    made = fetch_profile(options, process_of(said[0], options), False).encode() if does == "save" else \
        programs.profile(does, *said, *[limit] * (does == "pull"), captures=True)
    with output(options.output or "-") as file:
        file.write(made)
    return OK
