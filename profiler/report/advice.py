# SPDX-License-Identifier: MIT
"""What is slow in a record, why, and what to write instead, in words; worst first. Before that a verdict in one sentence."""
from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from profiler.record.value import member, number, text
from profiler.report.history import History
from profiler.tool.say import amount, duration

MOST = 24  # pieces that are told; the rest would be read by nobody
WORTH = .01  # of the processor time: what is said of a site that saves less is summed up
NOTE, SLOW, WRONG = range(3)  # so that nobody concludes wrongly; costs time or memory; the program does what it should not
GRADES = ("note", "slow", "wrong")


@dataclass
class Advice:
    """`what` is one sentence that says it all, `why` the figures behind it, `instead` what to do, `code` what to write."""

    what: str
    why: str
    instead: str
    subject: str = ""  # "solve (solve.c:12)"
    code: str = ""
    grade: int = SLOW
    use_ns: float = 0  # that a use would save; 0: not known
    cost_ns: float = 0  # that it took in the record; 0: not known
    share: float = 0  # the same of the processor time of the program, 0 to 1
    site: int = 0  # its id
    alike: str = ""  # two pieces with one `alike` and one `code` say the same
    others: int = 0  # sites or pools of which the same was to be said; this is the dearest

    def is_worth(self) -> bool:
        return self.site == 0 or self.grade == WRONG or self.share >= WORTH


@dataclass
class Found:
    """All advice about a record: the first `worth` pieces are worth a line each."""

    each: list[Advice] = field(default_factory=list)
    worth: int = 0
    small: str = ""  # "5 more pieces of advice would save 0.3 % of the processor time together."


def merged(pieces: list[Advice]) -> list[Advice]:
    """What says the same of several is said once, of the dearest."""
    found: dict[object, Advice] = {}
    costs: dict[object, float] = {}  # of the dearest alone
    for i, piece in enumerate(pieces):
        key = (piece.alike, piece.code) if piece.alike else i
        old = found.get(key)
        if old is None:
            found[key], costs[key] = piece, piece.cost_ns
            continue
        dearest = old if costs[key] >= piece.cost_ns else piece
        costs[key] = max(costs[key], piece.cost_ns)
        found[key] = replace(dearest, cost_ns=old.cost_ns + piece.cost_ns, share=min(old.share + piece.share, 1),
                             others=old.others + 1)
    return list(found.values())


def put_in_order(pieces: list[Advice]) -> Found:
    every = sorted(merged(pieces), key=lambda a: (not a.is_worth(), -a.grade, -a.cost_ns))
    found = Found(every[:MOST])
    found.worth = sum(a.is_worth() for a in found.each)
    small = every[found.worth:]
    if small:
        found.small = (f"{len(small)} {'more ' if found.worth else ''}piece{'s' * (len(small) > 1)} of advice would save "
                       f"{percent(sum(a.share for a in small))} of the processor time{' together' * (len(small) > 1)}.")
    return found


def percent(share: float) -> str:
    if 0 < share < 1e-4:
        return "less than 0.01 %"
    return f"{100 * share:.2g} %" if share < .1 else f"{100 * share:.0f} %"


# ---- the verdict ----------------------------------------------------------------------------


@dataclass
class Verdict:
    """What the record's call sites took of the processor, how many arrays came from buffers, and what all would have taken
    from malloc; times in ns."""

    busy_ns: float  # of the processor, by the whole program
    sites: int
    taken_ns: float = 0
    measured_ns: float = 0  # the part of it at sites whose use was timed
    scope_arrays: float = 0  # that sites acquired; modelled, 0: not known
    buffer_arrays: float = 0  # of host memory, requests to buffers ...
    cached_arrays: float = 0  # ... and how many of these the caches had
    malloc_ns: float = 0  # for all these arrays, modelled; 0: not known
    uncounted: int = 0  # sites whose uses are more than is told
    capped: bool = False  # taken_ns would be more than busy_ns
    words: str = ""


class Arrays:
    """How many, and what malloc and free of them take at most from glibc as it comes: a loop over four of them, and the pages
    of large ones, as if each were mapped anew (both measured: profiler/README.md). A model: glibc keeps some of them."""

    def __init__(self) -> None:
        self.count = self.malloc_ns = 0.0

    def add(self, arrays: float, size: float) -> bool:
        """That many of `size` bytes each. False: there cannot have been such."""
        ns = arrays * (12 if size < 4096 else 60 if size < 262144 else 120 + size / 4096 * 400)
        if not (arrays > 0 and size >= 0 and ns < 1e30):
            return False
        self.count += arrays
        self.malloc_ns += ns
        return True


def arrays_of_sites(history: History) -> Arrays:
    arrays = Arrays()
    for site in history.things["sites"].values():
        each = number(site.last, "use_arrays")
        if each > 0:
            arrays.add(history.grown(site, "uses") * each, number(site.last, "use_bytes") / each)
    return arrays


def arrays_of_buffers(history: History) -> tuple[Arrays, float]:
    """Of the host's memory, for a device's comes from no malloc; and how many the caches had."""
    arrays, cached = Arrays(), 0.0
    for buffers in history.things["buffers"].values():
        hits = history.grown(buffers, "hits")
        every = hits + history.grown(buffers, "misses")
        if every > 0 and text(buffers.last, "device") == "host":
            cached += hits if arrays.add(every, history.grown(buffers, "asked_bytes") / every) else 0
    return arrays, cached


def judge(history: History, found: Found) -> Verdict:
    verdict = Verdict(history.busy(), len(history.things["sites"]))
    for site in history.things["sites"].values():
        ns = history.grown(site, "uses") * number(site.last, "use_ns")
        verdict.uncounted += member(site.last, "uses_counted") is False
        if 0 < ns < 1e30:  # a time that there can have been
            verdict.taken_ns += ns
            verdict.measured_ns += ns if member(site.last, "use_measured") is True else 0
    verdict.capped = verdict.taken_ns > verdict.busy_ns  # what a use takes now may be more than it did
    verdict.taken_ns = min(verdict.taken_ns, verdict.busy_ns)
    verdict.measured_ns = min(verdict.measured_ns, verdict.taken_ns)
    sites, (buffers, verdict.cached_arrays) = arrays_of_sites(history), arrays_of_buffers(history)
    verdict.scope_arrays, verdict.buffer_arrays = sites.count, buffers.count
    verdict.malloc_ns = sites.malloc_ns + buffers.malloc_ns
    verdict.words = words_of(verdict, sum(a.grade != NOTE for a in found.each[:found.worth]))
    return verdict


def words_of(v: Verdict, due: int) -> str:
    measured = ", by a model"
    if v.taken_ns == 0:
        measured = ""
    elif v.capped:
        measured = ", at most"
    elif v.measured_ns >= .995 * v.taken_ns:
        measured = ", measured"
    elif v.measured_ns > 0:
        measured = f", {100 * v.measured_ns / v.taken_ns:.0f} % of that measured, the rest by a model"
    head = f"{due} thing{'s' * (due > 1)} to do" if due else "Nothing to do"
    buffers = ""
    if v.buffer_arrays > 0:
        share = percent(v.buffer_arrays / (v.buffer_arrays + v.scope_arrays))
        buffers = (f"; {share} of the arrays ({amount(v.buffer_arrays)}) came from buffers, "
                   f"{percent(v.cached_arrays / v.buffer_arrays)} of these from the cache")
    malloc = f"; the same arrays from glibc's malloc would take up to {duration(v.malloc_ns)}, by a model" if v.malloc_ns > 0 else ""
    least = f"; {v.uncounted} site{'s are' if v.uncounted > 1 else ' is'} not counted in full" if v.uncounted else ""
    if v.sites == 0:
        head = f"{head}; no call sites: frames are not counted" if due else "No call sites: frames are not counted"
    else:
        head += (f": the call sites take {percent(v.taken_ns / v.busy_ns)} of the processor ({duration(v.taken_ns)} of "
                 f"{duration(v.busy_ns)}{measured})")
    return f"{head}{buffers}{malloc}{least}."


# ---- all of it ------------------------------------------------------------------------------


def of_learning(history: History) -> list[Advice]:
    learning = member(history.last, "learning")
    if not history.things["sites"]:  # nothing to learn
        return []
    if member(learning, "enabled") is False:
        return [Advice("Learning was switched off: every site stayed as it was.", "The setting `learn` was 0.",
                       "Record once more without TIDEPOOL_LEARN=0 to see what sites would become.", "learning", grade=NOTE)]
    if member(learning, "background") is False and number(learning, "rounds") == 0:  # else there was one, and it ended
        return [Advice("There was no background thread: nothing is compiled unless the program calls tide_step.",
                       "The setting `background` is 0, or no site was used often enough for it to start.",
                       "If sites are used often here: set `background` to 1, or call tide_step now and then.", "learning",
                       grade=NOTE)]
    return []


def advise(history: History) -> Found:
    from profiler.report import memory, sites

    return put_in_order(sites.advise(history) + memory.advise(history) + of_learning(history) if history.last else [])


def verdict_of_facts(facts: dict[str, Any]) -> str:
    """In one sentence, of a process up to now."""
    history = History()
    history.add("facts", facts)
    return judge(history, advise(history)).words


def place_of(thing: object) -> str:
    """ "solve.c:12", "" where none is known."""
    file = text(thing, "file").rpartition("/")[2]
    return f"{file}:{number(thing, 'line'):.0f}" if file else ""
