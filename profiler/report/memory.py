# SPDX-License-Identifier: MIT
"""What pools and buffers could do with less: memory that grows, lies idle, or comes and goes."""
from __future__ import annotations

from profiler.record.value import member, number, text
from profiler.report.advice import NOTE, WRONG, Advice
from profiler.report.history import History, Thing
from profiler.tool.say import amount, clean, size

LOOKS_TREND, LOOKS_MANY = 12, 50  # as few looks as can tell a trend, and as many as can tell a maximum
WORTH = 1 << 20  # bytes below which nothing is said


def subject(noun: str, thing: Thing) -> str:
    thread = clean(text(thing.last, "thread_name"), 32)
    return f"{noun} {clean(text(thing.last, 'name'), 64)}{f' (thread {thread})' if thread else ''}"


def most(history: History, thing: Thing, part: int, which: str) -> float:
    """The most that it held in one of three parts of the record."""
    third = history.duration() / 3
    begin, end = history.first_ns + third * part, history.first_ns + third * (part + 1)
    ends = [p.time_ns for p in thing.points[1:]] + [end]
    return max((getattr(p, which) for p, until in zip(thing.points, ends) if p.time_ns < end and until > begin), default=0)


def of_growth(history: History, pool: Thing) -> Advice | None:
    a, b, c = (most(history, pool, part, "value") for part in range(3))
    if history.documents < LOOKS_TREND or c < WORTH or b < 1.1 * a or c < 1.1 * b:
        return None
    return Advice("It was still growing when the record ended.",
                  f"Most held in the first third of the record: {size(a)}, in the last: {size(c)}; "
                  f"{number(pool.last, 'depth'):.0f} levels are open.",
                  "Arrays acquired outside of every scope, or in one that never ends, stay. Open a scope in the loop's body; "
                  "tide_pool_print tells which types it is.", alike="growth of memory")


def of_idle(history: History, pool: Thing) -> Advice | None:
    held, live = number(pool.last, "held_bytes"), max(most(history, pool, part, "second") for part in range(3))
    if history.documents < LOOKS_MANY or held < WORTH or live == 0 or held < 4 * live:
        return None
    return Advice(f"It holds {size(held)} and was never seen to use more than {size(live)}.",
                  f"{history.documents} looks at it; slots keep the greatest length they ever had.",
                  "After a rare large round call tide_pool_trim, or set `auto_trim` to 1.",
                  code="tide_pool_trim(pool, TIDE_ALL_TYPES);", alike="idle of memory")


def of_churn(history: History, pool: Thing) -> Advice | None:
    seconds, made, gone = history.duration() / 1e9, history.grown(pool, "allocations"), history.grown(pool, "releases")
    churn = min(made, gone)
    if history.documents < 2 or churn < 1000 or churn / seconds < 50:
        return None
    return Advice(f"It allocates and releases {amount(churn / seconds)} times a second.",
                  f"{amount(made)} allocations and {amount(gone)} releases in {seconds:.3g} s. A pool that fits its loop does "
                  "neither.", "It is a disabled pool: each acquire is an allocation. Take TIDEPOOL_DISABLE away."
                  if member(pool.last, "disabled") is True else
                  "Is it made, trimmed or reset in each round? Keep it, and let scopes rewind it.", alike="churn of memory")


def of_limit(_: History, pool: Thing) -> Advice | None:
    limit, peak = number(pool.last, "limit_bytes"), number(pool.last, "peak_bytes")
    if limit <= 0 or peak < .9 * limit:
        return None
    return Advice(f"It is near its limit: {size(peak)} of {size(limit)} were held.",
                  "At its limit an acquire fails and gives NULL.", "Raise the limit of the pool, or acquire less within one scope.",
                  alike="limit of memory")


def of_checks(history: History) -> list[Advice]:
    pools = [pool.last for pool in history.things["pools"].values()]
    checked, disabled = sum(number(p, "check") > 0 for p in pools), sum(member(p, "disabled") is True for p in pools)
    if checked + disabled == 0:
        return []
    return [Advice("Its times are not those of a normal run.",
                   f"Of {len(pools)} pools {checked} looked for misuse (check level 1 or 2), and {disabled} were disabled.",
                   "Record once more without TIDEPOOL_CHECK and TIDEPOOL_DISABLE before you draw conclusions.",
                   "this record", grade=NOTE)]


# ---- buffers --------------------------------------------------------------------------------


def of_misses(history: History, buffers: Thing) -> Advice | None:
    hits, misses, dropped, pressed = (history.grown(buffers, key) for key in ("hits", "misses", "dropped", "pressed"))
    if hits + misses < 1000 or misses < .1 * (hits + misses):
        return None
    return Advice(f"{100 * misses / (hits + misses):.2g} % of its requests are not served from the cache.",
                  f"{amount(hits)} hits, {amount(misses)} misses; {amount(dropped)} released buffers found no room, "
                  f"{amount(pressed)} were freed because the device was short.",
                  "The device has too little memory for what the program holds at once." if pressed > 0
                  else "Raise bytes_max (or count_max) of the instance." if dropped > 0
                  else "Sizes differ too much: tidepool-replay tells from a trace which policy fits.", alike="misses of memory")


def of_rounding(_: History, buffers: Thing) -> Advice | None:
    asked, given = number(buffers.last, "asked_bytes"), number(buffers.last, "given_bytes")
    if asked < WORTH or given < 1.3 * asked:
        return None
    return Advice(f"It gives {100 * (given / asked - 1):.0f} % more memory than it is asked for.",
                  f"{size(asked)} were asked for; small sizes are rounded up to multiples of 64 bytes, and large requests get "
                  "cached buffers of up to twice their size.",
                  "Ask for sizes that come back; tidepool-replay shows for a trace how often they do.", alike="rounding of memory")


def of_wrong(history: History, buffers: Thing) -> Advice | None:
    refused, failed = history.grown(buffers, "refused"), history.grown(buffers, "failed")
    if refused == 0 and failed == 0:
        return None
    return Advice("The program released or used buffers that it no longer owned." if refused > 0 else "Requests got no memory.",
                  f"{amount(refused)} handles were refused, {amount(failed)} requests failed.",
                  "A buffer is released once, by the last who uses it; TIDEPOOL_CHECK=1 under a sanitizer shows who is too late."
                  if refused > 0 else "The program must look at generation == 0, and hold less at once.", grade=WRONG)


RULES = {"pools": ("pool", (of_growth, of_idle, of_churn, of_limit)), "buffers": ("buffers", (of_misses, of_rounding, of_wrong))}


def advise(history: History) -> list[Advice]:
    found = []
    for which, (noun, rules) in RULES.items():
        for thing in history.sorted(which):
            for advice in filter(None, (rule(history, thing) for rule in rules)):
                advice.subject = subject(noun, thing)
                found.append(advice)
    return found + of_checks(history)
