# SPDX-License-Identifier: MIT
"""What sites could do faster: types that are known, guards that fail, code that never came."""
from __future__ import annotations

from profiler.record.value import items, member, number, text
from profiler.report.advice import NOTE, SLOW, Advice, place_of
from profiler.report.history import History, Thing, use_ns
from profiler.tool.say import amount, clean

USES_MIN = 1000  # from which on anything is said of a site
HOT = 10000  # uses a second
BRIEF_NS = 60e9  # in a shorter record compiles cannot have paid yet
MISSES_PART = .01  # from which part of the uses on they count
ALWAYS_PART = .001
NS_MIN = .05  # of a use, below which nothing was measured
TYPE_MAX = 31  # characters of a name: of more, it is none
WORDS_MAX = 100  # of a list that stands in a sentence
FORM, FORM_TYPES = "TIDE_SCOPE_TYPES", 8  # where types are known, and the most that it takes
SPLIT, SPLIT_PYTHON = 'TIDE_SCOPE_NAMED(pool, "what is done here");', 'with pool.scope("what is done here") as scope:'
C_TYPES = {"f32": "float", "f64": "double", "f16": "tide_f16", "bf16": "tide_bf16", "c64": "tide_c64", "c128": "tide_c128",
           "bool": "bool", "bit": "uint64_t", **{f"{u}{bits}": f"{word}{bits}_t" for u, word in (("i", "int"), ("u", "uint"))
                                                for bits in (8, 16, 32, 64)}}


class Site:
    """A site as it is spoken of."""

    def __init__(self, history: History, thing: Thing) -> None:
        self.history, self.thing, self.last = history, thing, thing.last
        self.name, self.tier = clean(text(self.last, "name"), 60), text(self.last, "tier")[:12]
        self.is_scope = text(self.last, "kind") == "scope"
        self.place = clean(place_of(self.last), 60)
        # It stands in a Python program, which cannot use macros: its name has its place, or was given to the package.
        self.python = text(history.last, "program").startswith("python") and (not self.place or self.place in text(self.last, "name"))
        self.uses, self.misses = history.grown(thing, "uses"), history.grown(thing, "misses")
        self.use_ns = number(self.last, "use_ns")
        self.faster_ns, self.slower_ns = use_ns(self.last, "compiled"), use_ns(self.last, "full")  # 0: not known

    def advice(self, what: str, why: str, instead: str, saves_ns: float, uses: float, **more: object) -> Advice:
        """{share} in `what` becomes ", 2.1 % of the program's processor time", where it is worth a word."""
        cost = max(saves_ns, 0) * uses
        share = min(cost / self.history.busy(), 1)
        of_all = f", {share * 100:.2g} % of the program's processor time" if share >= .0005 else ""
        subject = self.name if self.place in self.name else f"{self.name} ({self.place})"
        return Advice(what.replace("{share}", of_all), why, instead, subject,
                      use_ns=max(saves_ns, 0), cost_ns=cost, share=share, site=self.thing.id, **more)  # type: ignore[arg-type]


# ---- types that are known -------------------------------------------------------------------


def types_of(site: Site) -> tuple[str, list[str]] | None:
    """ "f64 and i32", and each in C; None if a type has no short name, or there are too many."""
    names = [clean(t) if isinstance(t, str) else "" for t in items(site.last, "types")]
    if not site.is_scope or not 0 < len(names) <= FORM_TYPES or any(not name or (name not in C_TYPES and len(name) > TYPE_MAX) for name in names):
        return None
    words = " and ".join([", ".join(names[:-1])] * (len(names) > 1) + names[-1:])
    return words if len(words) <= WORDS_MAX else f"the same {len(names)} types", [C_TYPES.get(name, name) for name in names]


def of_types(site: Site) -> Advice | None:
    """The types never change, so that the program may as well name them."""
    changed = site.thing.varied or (site.misses > 0 and site.history.documents == 1)  # one look sees the last plan alone
    known = types_of(site)
    if site.python or changed or known is None or site.misses > ALWAYS_PART * site.uses or site.tier == "compiled":
        return None
    saves_ns = max(site.use_ns - site.faster_ns, 0) if site.faster_ns > 0 else 0
    if saves_ns < NS_MIN and site.uses < HOT * site.history.duration() / 1e9:
        return None  # nothing was measured, and nobody would notice
    why = f"{amount(site.uses)} uses in the record, {amount(site.misses)} of them with other types; it runs its {site.tier} plan"
    if saves_ns >= NS_MIN:
        gain = f"saves {saves_ns:.2g} ns a use{{share}}"
        why += f", {site.use_ns:.1f} ns a use, and code for its types takes {site.faster_ns:.1f} ns"
    else:
        gain = "needs no learning for it"
    return site.advice(f"`{site.name}` always takes {known[0]}: {FORM} {gain}.", f"{why}.",
                       f"Name the types where the site stands: {FORM} is inlined, and at least as fast as code compiled later.",
                       saves_ns, site.uses, code=f"{FORM}({', '.join(['pool', *known[1]])});", alike="types")


# ---- guards that fail -----------------------------------------------------------------------


def of_misses(site: Site) -> Advice | None:
    if site.misses < 100 or site.misses < MISSES_PART * site.uses or member(site.last, "uses_counted") is False:
        return None  # of uses that are not counted there is no share
    saves_ns = site.slower_ns - site.use_ns if site.slower_ns > 0 and site.use_ns > 0 else 0
    part = 100 * site.misses / site.uses if site.uses > 0 else 100
    advice = site.advice(f"{part:.2g} % of the uses of `{site.name}` are not what its plan is for{{share}}.",
                         f"A guard failed in {amount(site.misses)} of {amount(site.uses)} uses, which then took the general path; "
                         f"{number(site.last, 'generation'):.0f} plans were published for it so far.",
                         "Does it serve callers of different types? Give each a site of its own, so that each learns its own types"
                         + (": another name for its scope." if site.python else "; or declare all types with tide_site_declare."),
                         saves_ns, site.misses, code="" if not site.is_scope else SPLIT_PYTHON if site.python else SPLIT, alike="misses")
    advice.use_ns = 0  # of a miss, not of a use
    return advice


# ---- code that never came -------------------------------------------------------------------

SPLIT_NAMES = 'Give each sort of work a scope of its own name: pool.scope("name").'
REASONS = {  # by their code: why, what to do, what to do in Python where that is another thing
    "megamorphic": ("takes more different types than are worth testing for",
                    "Split it by type: one site in each branch; where the order of values is free, sort them by type.",
                    SPLIT_NAMES),
    "others": ("takes more different types than a profile has room for",
               "Split it by type, so that each site sees a few.", SPLIT_NAMES),
    "many_types": ("takes more types than compiled code saves",
                   "Open an inner scope for a part of the work, or declare the types that matter.",
                   "Open an inner scope for a part of the work."),
    "several_functions": ("calls different generic functions", "Give each generic function a site of its own.", None),
    "no_method": ("is called with types that have no method of their own", "Add methods for its types (tide_generic_add).", None),
    "too_many_plans": ("has had as many plans as are remembered: what it does keeps changing",
                       "Split it by what changes; or pin the plan that serves best (tide_site_pin).", SPLIT_NAMES),
    "stager_missing": ("could not be compiled, for there is no stager",
                       "Install tidepool-stage beside the library, or name it in TIDEPOOL_STAGER.", None),
    "stager_refused": ("could not be compiled, for the stager may not be used here",
                       "See the page of the stager about its owner, its mode and privileged programs.", None),
    "compile_failed": ("could not be compiled: the stager refused its spec",
                       "Please report it, with what `tidepool explain` prints of the site.", None),
    "stager_late": ("could not be compiled: the stager was late", "Is the machine overloaded?", None),
    "code_full": ("stays without code, for as much is loaded as may be", "Raise the setting `code_bytes`.", None),
    "pinned": ("is pinned", "Take the pin away (tide_site_unpin, `tidepool unpin`), if it is there by mistake.",
               "Take the pin away (`Site.unpin`), if it is there by mistake."),
}


def of_reason(site: Site) -> Advice | None:
    code = text(site.last, "reason_code")
    known = site.use_ns > site.faster_ns > 0
    if code not in REASONS or site.tier == "compiled" or (code == "pinned" and not known):
        return None
    why, instead, python = REASONS[code]
    plan = f"by its {site.tier} plan"
    figures = f"; one takes {site.use_ns:.1f} ns {plan}, and would take {site.faster_ns:.1f} ns by code" if known else f", {plan}"
    return site.advice(f"`{site.name}` {why}{', and code would be faster{share}' if known else ''}.",
                       f"{amount(site.uses)} uses in the record{figures}.", python if site.python and python else instead,
                       site.use_ns - site.faster_ns if known else 0, site.uses, alike=code)


def of_compiles(site: Site) -> Advice | None:
    spent, saved = (site.history.grown(site.thing, key) for key in ("compile_ns", "saved_ns"))
    if spent < 50e6 or saved > spent / 2:
        return None
    advice = site.advice(f"Compiling `{site.name}` has cost more than it has saved so far{{share}}.",
                         f"{site.history.grown(site.thing, 'compiles'):.0f} compiles took {spent / 1e6:.0f} ms and saved "
                         f"{saved / 1e6:.0f} ms in the record.",
                         "In short runs: set `break_even` higher. In long ones this evens out.",
                         spent - saved, 1, alike="compiles", grade=NOTE if site.history.duration() < BRIEF_NS else SLOW)
    advice.use_ns = 0
    return advice


def advise(history: History) -> list[Advice]:
    found: list[Advice | None] = []
    for thing in history.sorted("sites"):
        site = Site(history, thing)
        if site.uses >= USES_MIN:
            found += [of_misses(site), of_types(site) or of_reason(site), of_compiles(site)]
    return [advice for advice in found if advice is not None]
