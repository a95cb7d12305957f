#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""sample FILE [hostile]: a record that a program might have made, always the same. `hostile` gives its
things names that try to leave the page."""
import json
import math
import random
import sys

SITES = [
    # name, kind, file, line, types, tiers over time as (share of the record, tier), ns by tier, uses a second
    ("solve", "scope", "src/solve.c", 112, ["f64", "i32"], [(0, "full"), (.08, "table")], (24, 14.2, 5.1), 2.2e6),
    ("group_by", "scope", "src/groups.c", 57, ["i64", "f64", "i32"], [(0, "full"), (.05, "table"), (.21, "compiled")], (31, 17, 6.4), 1.3e6),
    ("evaluate", "scope", "src/evaluate.c", 240, ["f64"], [(0, "full"), (.3, "compiled"), (.62, "full"), (.75, "compiled")], (11, 11, 3.2), 3.1e6),
    ("parse_row", "scope", "src/csv.c", 88, ["u8"], [(0, "full")], (18.5, 18.5, 4.4), 6e5),
    ("matrix", "scope", "src/table.c", 301, ["f32"], [(.1, "full"), (.45, "compiled")], (42, 42, 12), 2e5),
    ("order", "scope", "src/order.c", 19, ["i64", "i64"], [(.0, "full"), (.12, "table"), (.4, "compiled")], (29, 21, 8), 9e4),
    ("progress", "scope", "src/progress.c", 33, ["u8"], [(0, "full"), (.5, "table")], (22, 13, 0), 120),
]
TIERS = {"full": 0, "table": 1, "compiled": 2}
SPEC = "tidepool-spec 1\nlayout 0000000000000000\nsite scope group_by\ntype f64 6\ntype i64 7\nend\n"  # of no build
EVIL = ['</script><img src=x onerror=document.title="owned">', "<!--<script>", "{{SCRIPT}}", "\u2028\u202e&quot;'\"\\"]


def tier_at(spans, share):
    found = None
    for start, tier in spans:
        if share >= start:
            found = tier
    return found


def site(number, spec, share, seconds, hostile, rng):
    name, kind, file, line, types, spans, ns, rate = spec
    tier = tier_at(spans, share)
    if tier is None:
        return None
    since = max(0, share - spans[0][0]) * 20
    missed = {"evaluate": .031}.get(name, 0)
    uses = rate * since
    if hostile:
        name, file = EVIL[number % len(EVIL)], EVIL[(number + 1) % len(EVIL)]
    use = ns[TIERS[tier]] * (1 + .05 * math.sin(seconds * 2 + number) + rng.uniform(-.02, .02))
    code = "trial_won" if tier == "compiled" else "compile_failed" if name == "parse_row" else "decided"
    return {"id": number, "name": name, "function": name, "file": file, "line": line, "kind": kind, "tier": tier,
            "pinned": False, "observed": False, "generation": 1 + sum(share >= s for s, _ in spans), "types": types,
            "uses": int(uses), "uses_counted": True, "samples": int(64 * since), "misses": int(uses * missed), "runs": 0,
            "compiles": sum(share >= s and t == "compiled" for s, t in spans), "lost_ns": 0.0,
            "compile_ns": 31e6 * sum(share >= s and t == "compiled" for s, t in spans), "saved_ns": uses * 3.0 if tier == "compiled" else 0.0,
            "trial": {"uses": 0, "ns": 0.0, "code_ns": 0.0, "error_ns": 0.0}, "use_ns": round(use, 2), "use_measured": name != "parse_row", "use_bytes": 1000.5 * number,
            "rivals": [{"tier": "full", "ns": ns[0], "measured": True}] + ([{"tier": "compiled", "ns": ns[2], "measured": False}] if ns[2] else []),
            "reason": {"trial_won": "compiled code won its trial", "compile_failed": "the stager could not compile it",
                       "decided": "observed: these types recur"}[code], "reason_code": code}


def pools(share, seconds, hostile, rng):
    wave = [abs(math.sin(seconds * 1.7 + i)) for i in range(3)]
    shapes = [("pool", "main", 48e6 * min(1, share * 4) + 4e6, .8), ("pool", "worker-1", 22e6 * min(1, share * 3) + 1e6, .7),
              ("results", "worker-2", 6e6 + 60e6 * share ** 1.5, .95)]
    for i, (name, thread, held, part) in enumerate(shapes):
        held = int(held)
        yield {"id": i + 1, "name": EVIL[i] if hostile else name, "thread": 4100 + i, "thread_name": thread, "device": "host", "local": i < 2,
               "disabled": False, "check": 0, "held_bytes": held, "live_bytes": int(held * part * (.6 + .4 * wave[i])), "peak_bytes": held,
               "limit_bytes": 0 if i else 54 << 20, "slots": 40 + i, "slots_live": 20, "types": 3, "depth": i + 1,
               "allocations": int(400 * min(1, share * 4) + i), "releases": 0, "exchanges": 0, "exported_bytes": 0}


def facts(step, steps, hostile, rng):
    share, ns = step / steps, 9_000_000_000_000 + step * 200_000_000
    seconds = step * .2
    sites = [site(i + 1, spec, share, seconds, hostile, rng) for i, spec in enumerate(SITES)]
    hits = int(5e4 * share)
    live, cached = int(9e6 + 5e6 * math.sin(seconds)), int(30e6 * min(1, share * 2))
    return {"format": "tidepool-facts", "format_version": 1, "version": "0.1.0", "pid": 4100, "program": EVIL[0] if hostile else "columns",
            "time_ns": ns, "wall_ns": 1_795_392_000_000_000_000 + step * 200_000_000, "process_cpu_ns": int(seconds * 1.8e9),
            "pools": list(pools(share, seconds, hostile, rng)), "sites": [s for s in sites if s],
            "buffers": [{"id": 1, "name": "batches", "device": "host", "hits": hits, "misses": hits // 4, "releases": hits, "refused": 0,
                         "dropped": hits // 5, "trimmed": 0, "pressed": 0, "failed": 0, "live": 12, "cached": 30, "live_bytes": live,
                         "cached_bytes": cached, "high_bytes": live + cached, "max_bytes": 33554432, "asked_bytes": 10 ** 9, "given_bytes": 11 * 10 ** 8}],
            "learning": {"rounds": step * 20, "windows": step * 3, "decisions": 12, "ordered": 6, "compiled": 5, "failed": 0, "reused": 0,
                         "won": 5, "lost": 1, "code_objects": 5, "code_bytes": 75000, "stagers": 1, "untold": 0, "spent_us": 186000,
                         "enabled": True, "background": True},
            "samples": {"every_bytes": 524288, "lost": 0, "places": [
                {"type": "double", "place": EVIL[0] if hostile else "rows.c:12 parse_row", "taken": 40.5 * share, "taken_bytes": 6e7 * share,
                 "held": 3, "held_bytes": 4.5e7 * share, "stack": ["parse_row+0x41", EVIL[1] if hostile else "columns+0x1f20"]},
                {"type": "", "place": "", "taken": 12, "taken_bytes": 2e7, "held": 12, "held_bytes": 2e7, "stack": ["columns+0x2a00"]}]},
            "process": {"limit_bytes": 0, "held_bytes": 80 << 20}, "settings": {"learn": 1}}


def events(steps, hostile):
    found, serial = [], 0
    for i, spec in enumerate(SITES):
        told = [(spec[5][0][0], "found", spec[5][0][1], "used for the first time")]
        for share, tier in spec[5][1:]:
            if tier == "compiled":
                told.append((share - .03, "staged", "table", "sent to the stager"))
                told.append((share, "published", tier, "compiled code won its trial"))
            elif tier == "table":
                told.append((share, "published", tier, "observed: these types recur"))
            else:
                told.append((share, "missed", tier, "its guards failed often; observed again"))
        if spec[0] == "parse_row":
            told.append((.4, "gave up", "full", "the stager could not compile it"))
        for share, kind, tier, reason in told:
            found.append((int(9_000_000_000_000 + share * steps * 2e8), kind, i + 1, EVIL[i % len(EVIL)] if hostile else spec[0], tier, EVIL[0] if hostile else reason))
    for time, kind, site_id, name, tier, reason in sorted(found):
        serial += 1
        yield {"format": "tidepool-event", "serial": serial, "time_ns": time, "kind": kind, "site": site_id, "name": name, "tier": tier,
               "reason": reason, "detail": "", "round": serial}


def main():
    hostile, steps, rng = "hostile" in sys.argv[2:], 100, random.Random(7)
    lines = [{"format": "tidepool-record", "format_version": 1, "program": ["columns", "--rounds", "400"], "pid": 4100,
              "started_wall_ns": 1_795_392_000_000_000_000, "period_ms": 200}]
    waiting = list(events(steps, hostile))
    for step in range(steps + 1):
        document = facts(step, steps, hostile, rng)
        while waiting and waiting[0]["time_ns"] <= document["time_ns"]:
            lines.append(waiting.pop(0))
        lines.append(document)
    lines.append({"format": "tidepool-code", "site": 2, "generation": 3, "spec": EVIL[0] if hostile else SPEC})
    lines.append({"end": {"exit_status": 0}})
    with open(sys.argv[1], "w", encoding="utf-8") as out:
        out.writelines(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)


main()
