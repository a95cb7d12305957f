#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What is said of a record, and how much of it a page holds."""
import json
import pathlib
import re
import sys

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP))
from profiler.record.value import fault_of_facts
from profiler.report import page
from profiler.report.advice import MOST, NOTE, SLOW, WRONG, Advice, advise, judge, put_in_order
from profiler.report.history import POINTS, THINGS, History
from profiler.report.sites import C_TYPES


def facts_at(seconds, sites=(), pools=(), buffers=(), **more):
    facts = {"format": "tidepool-facts", "format_version": 1, "time_ns": int(1000e9 + seconds * 1e9), "process_cpu_ns": int(seconds * 2e9),
             "program": "p", "version": "0", "sites": list(sites), "pools": list(pools), "buffers": list(buffers), **more}
    assert fault_of_facts(facts) is None
    return facts


def history_of(*documents):
    history = History()
    for facts in documents:
        history.add("facts", facts)
    return history


def of_site(**members):
    """All advice about a record of 10 s with one site."""
    site = {"id": 1, "name": "solve", "file": "src/solve.c", "line": 12, **members}
    return advise(history_of(facts_at(0), facts_at(10, [site]))).each


def said(pieces, words):
    return next((a for a in pieces if words in a.what), None)


def test_known_types_are_named():
    known = dict(uses=4e7, use_ns=14, rivals=[{"tier": "compiled", "ns": 5}])
    first, = of_site(kind="scope", tier="table", types=["f64", "i32"], **known)
    assert first.what == "`solve` always takes f64 and i32: TIDE_SCOPE_TYPES saves 9 ns a use, 1.8 % of the program's processor time.", first
    assert first.code == "TIDE_SCOPE_TYPES(pool, double, int32_t);" and first.subject == "solve (solve.c:12)"
    assert .0179 < first.share < .0181, "0.36 s of 20 s"
    bit, = of_site(kind="scope", tier="full", types=["bit"], uses=4e7)
    assert bit.code == "TIDE_SCOPE_TYPES(pool, uint64_t);" and bit.cost_ns == 0, "nothing was measured: no figure is made up"


def test_types_are_called_as_the_header_does():
    header = (TOP / "include/tidepool/inline/type.h").read_text()
    assert C_TYPES == {name: c for c, name in re.findall(r'X\(\d+, TIDE_\w+, (\w+), \d+, "(\w+)"\)', header)}


def test_types_are_not_named_where_that_is_wrong():
    for members in (dict(kind="scope", tier="compiled", types=["f64"], uses=4e7), dict(kind="scope", tier="full", types=[], uses=4e7),
                    dict(kind="scope", tier="table", types=["f64"], uses=4e7, misses=60000),
                    dict(kind="scope", tier="table", types=["f64"], uses=999), dict(kind="dispatch", tier="full", types=["f64"], uses=4e7)):
        assert said(of_site(**members), "always") is None, members
    for plans, varied in (([], ["f64"], ["f64"], ["f64"]), False), (([], ["f64"], ["i32"], ["f64"]), True):  # each phase has its own
        history = history_of(*(facts_at(i, [{"id": 1, "name": "s", "kind": "scope", "tier": "table", "types": types, "uses": i * 10 ** 7}])
                               for i, types in enumerate(plans)))
        assert (said(advise(history).each, "always") is None) == varied


def test_misses_and_reasons_are_explained():
    pieces = of_site(kind="scope", tier="table", types=["f64"], uses=1e6, misses=3e4, use_ns=10, rivals=[{"tier": "full", "ns": 110}])
    assert said(pieces, "3 % of the uses of `solve`").cost_ns == 3e6, "30 000 misses of 100 ns"
    assert said(of_site(kind="dispatch", tier="full", uses=1e6, reason_code="megamorphic"), "more different types")
    assert not of_site(kind="dispatch", tier="full", uses=1e6, reason_code="unpaid")
    assert said(of_site(kind="scope", tier="compiled", uses=1e6, compiles=9, compile_ns=4e8, saved_ns=1e8), "has cost more than it has saved")


def test_memory_is_explained():
    def buffers(**more):
        return [{"id": 1, "name": "b", "hits": 1000, "misses": 900, "refused": 2, **more}]

    pieces = advise(history_of(*(facts_at(i, pools=[
        {"id": 1, "name": "grows", "held_bytes": i * 10 ** 6, "live_bytes": i * 10 ** 6},
        {"id": 2, "name": "idle", "held_bytes": 80000000, "live_bytes": 1000},
        {"id": 3, "name": "near", "limit_bytes": 100, "peak_bytes": 95, "check": 1}], buffers=buffers()) for i in range(61)))).each
    assert "grows" in said(pieces, "still growing").subject
    for words in "76.3 MiB and was never seen to use more than 1000 B", "near its limit", "not those of a normal run":
        assert said(pieces, words), words
    assert not said(pieces, "served from the cache") and not said(pieces, "no longer owned"), "nothing was missed in the record itself"
    pieces = advise(history_of(facts_at(0, buffers=buffers()))).each
    assert said(pieces, "not served from the cache") and pieces[0].grade == WRONG


# ---- the verdict, and what is worth a line ----


def judged(sites=(), buffers=(), program="p"):
    """Two looks, 10 s and 20 s of the processor apart; the second one's figures are grown."""
    history = history_of(facts_at(0), facts_at(10, sites, buffers=buffers, program=program))
    history.last = {**history.last, "program": program}
    found = advise(history)
    return judge(history, found), found


def test_the_verdict_says_what_the_sites_took():
    v, _ = judged([{"id": 1, "kind": "scope", "uses": 3000000, "use_ns": 10, "use_measured": True, "uses_counted": True, "use_arrays": 4,
                    "use_bytes": 400, "tier": "compiled"}, {"id": 2, "kind": "scope", "uses": 100, "use_ns": 20, "use_measured": True}])
    assert v.words == ("Nothing to do: the call sites take 0.15 % of the processor (30.0 ms of 20.0 s, measured); the same arrays from "
                       "glibc's malloc would take up to 144 ms, by a model."), v
    assert v.taken_ns == 30002000 and v.malloc_ns == 144e6
    v, _ = judged([{"id": 1, "kind": "scope", "uses": 30, "use_ns": 10, "tier": "full"}, {"id": 2, "kind": "dispatch", "uses": 9, "uses_counted": False}])
    assert v.words == ("Nothing to do: the call sites take less than 0.01 % of the processor (300 ns of 20.0 s, by a model); 1 site is "
                       "not counted in full."), v
    v, _ = judged([{"id": 1, "uses": -5, "use_ns": 1e308, "use_arrays": -1}])
    assert v.taken_ns == 0 and v.malloc_ns == 0


def test_the_verdict_says_what_came_from_buffers():
    host = {"id": 1, "device": "host", "hits": 990, "misses": 10, "asked_bytes": 409600000}
    device = {"id": 2, "device": "cuda:0", "hits": 9000, "misses": 9, "asked_bytes": 9e9}
    v, _ = judged(buffers=[host, device])
    assert v.words == ("No call sites: frames are not counted; 100 % of the arrays (1.00 k) came from "
                       "buffers, 99 % of these from the cache; the same arrays from glibc's malloc would take up to 40.1 ms, by a model."), v
    v, _ = judged([{"id": 1, "kind": "scope", "uses": 500, "use_ns": 10, "use_arrays": 6, "use_bytes": 60}], [host])
    assert "; 25 % of the arrays (1.00 k) came from buffers, " in v.words and v.malloc_ns == 3000 * 12 + 1000 * (120 + 100 * 400)
    for buffers in device, {"id": 1, "device": "host", "hits": 1e300, "asked_bytes": -1}:
        v, _ = judged(buffers=[buffers])
        assert v.buffer_arrays == v.cached_arrays == v.malloc_ns == 0, v


def site_of(number, uses):
    return {"id": number, "name": f"s{number}", "kind": "scope", "tier": "table", "types": ["f64"], "uses": uses, "use_ns": 14,
            "rivals": [{"tier": "compiled", "ns": 4}]}


def test_advice_that_saves_little_is_one_line():
    v, found = judged([site_of(1, 1000000)])  # 10 ms of 20 s
    assert len(found.each) == 1 and found.worth == 0 and "Nothing to do" in v.words
    assert found.small == "1 piece of advice would save 0.05 % of the processor time."
    v, found = judged([site_of(1, 100000000)])  # 1 s of it
    assert len(found.each) == found.worth == 1 and found.small == "" and "1 thing to do: " in v.words


def test_the_same_advice_is_given_once():
    """Each of them alone would not be worth a line."""
    _, found = judged([site_of(1, 9000000), site_of(2, 10000000), site_of(3, 9000000)])
    one, = found.each
    assert found.worth == 1 and one.others == 2 and one.subject == "s2" and .0139 < one.share < .0141


def test_a_python_program_is_told_no_macros():
    assert not judged([site_of(1, 100000000)], program="python3")[1].each
    for place in ({"name": "f (a.py:12)", "file": "b/a.py", "line": 12}, {"name": "f"}):
        _, found = judged([{"id": 1, "kind": "scope", "tier": "table", "uses": 1e8, "misses": 5e7, "use_ns": 10,
                            "rivals": [{"tier": "full", "ns": 110}], **place}], program="python3")
        assert found.worth == 1 and "with pool.scope(" in found.each[0].code and "tide_" not in found.each[0].instead
        assert found.each[0].subject == place["name"]


def test_the_worst_comes_first():
    found = put_in_order([Advice("x", "", "", grade=NOTE if i % 3 == 0 else SLOW, cost_ns=i * 37 % 50) for i in range(MOST + 10)])
    order = [(-a.grade, -a.cost_ns) for a in found.each]
    assert len(order) == MOST and order == sorted(order) and found.small.startswith("10 more pieces")


# ---- what is kept, and what a page holds ----


def test_a_history_is_bounded_and_keeps_tiers():
    history = history_of(*(facts_at(i, [{"id": 1, "name": "s", "tier": "full" if i < 100 else "table" if i == 100 else "compiled",
                                         "use_ns": i % 97 + 1, "use_measured": True}]) for i in range(3 * POINTS)))
    points = history.things["sites"][1].points
    times = [p.time_ns for p in points]
    assert POINTS / 2 <= len(points) <= POINTS and times == sorted(set(times))
    assert any(p.tier == 1 for p in points), "the one look at which it had that tier"


def test_a_page_keeps_its_size():
    """Many sites with long names that must be escaped: as bad as it gets. What it has no place for is not in its data."""
    name = "<" * 799
    history = history_of(*(facts_at(look, [{"id": i, "name": name, "file": name, "reason": name, "tier": "table", "use_ns": look * 1.2345 + i,
                                            "uses": look} for i in range(1, THINGS + 6)], learning={"compiled": 7, "won": "x" * page.BYTES})
                           for look in range(3)))
    assert history.left_out["sites"] > 0
    page.parts = lambda: {"STYLE": "s", "CHARTS": "c" * 200000, "SCRIPT": "x"}
    made = page.page(history, "a </script> damage", live=False).decode()
    assert 200000 < len(made) < page.BYTES and "{{" not in made
    data = re.search(r'id="data">(.*?)</script>', made)[1]
    read = json.loads(data)
    assert not re.search("[<>&]", data) and read["damage"] == "a </script> damage" and len(read["sites"]) >= 10
    assert read["learning"] == {"compiled": 7, "won": 0, "spent_us": 0}


def test_a_thread_that_ended_is_none_that_never_was():
    for rounds, sites in (0, [{"id": 1}]), (1, [{"id": 1}]), (0, []):  # without sites nobody misses it
        history = history_of(facts_at(0, sites, learning={"enabled": True, "background": False, "rounds": rounds}))
        assert bool(said(advise(history).each, "no background thread")) == (rounds == 0 and bool(sites))


for test_name, test in list(globals().items()):
    if test_name.startswith("test_"):
        test()
