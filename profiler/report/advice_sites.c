/* SPDX-License-Identifier: MIT */
/* What sites could do faster: types that are known, guards that fail, code that never came. */
#include <stdio.h>
#include <string.h>

#include <tidepool/type.h>

#include "profiler/record/value.h"
#include "profiler/report/advice.h"
#include "runtime/base/assert.h"

/* From how many uses on anything is said of a site, and from which part of them on they count. */
enum { ADVICE_USES_MIN = 1000, ADVICE_HOT = 10000 }; /* HOT: in a second */
#define ADVICE_BRIEF_NS 60e9 /* in a shorter record compiles cannot have paid yet */
static const double advice_misses_part = 0.01;
static const double advice_always_part = 0.001;
enum { ADVICE_TYPES_MAX = 8, ADVICE_TYPE_BYTES = 32 }; /* bytes of a name: of more, it is none */
enum { ADVICE_LIST_BYTES = ADVICE_TYPES_MAX * (ADVICE_TYPE_BYTES + 10) };
enum { ADVICE_WORDS_BYTES = 100 }; /* of a list that stands in a sentence */

typedef struct site_view {
    const tide_history *history;
    const tide_thing *thing;
    const json_t *last;
    const char *kind, *reason_code;
    bool python;   /* it stands in a Python program, which cannot use macros */
    char name[64]; /* as a person may read it                                */
    char used[TOOL_COUNT_TEXT], missed[TOOL_COUNT_TEXT]; /* uses and misses, likewise       */
    double uses, misses, use_ns;                         /* in the record; of one use */
    double faster_ns; /* of a use by compiled code, 0: not known                */
    double slower_ns; /* of a use by the general path, 0: not known             */
} site_view;

static site_view site_viewed(const tide_history *history, const tide_thing *thing)
{
    site_view site = {
        .history = history,
        .thing = thing,
        .last = thing->last,
        .kind = tide_value_text(thing->last, "kind"),
        .reason_code = tide_value_text(thing->last, "reason_code"),
        .python = strncmp(tide_value_text(history->last, "program"), "python", 6) == 0 &&
                  tide_value_text(thing->last, "file")[0] == 0,
        .uses = tide_history_grown(history, thing, "uses"),
        .misses = tide_history_grown(history, thing, "misses"),
        .use_ns = tide_value_number(thing->last, "use_ns"),
        .faster_ns = tide_history_use_ns(thing->last, "compiled"),
        .slower_ns = tide_history_use_ns(thing->last, "full"),
    };
    tide_value_plain(site.name, sizeof site.name, tide_value_text(thing->last, "name"));
    tool_count(site.uses, site.used);
    tool_count(site.misses, site.missed);
    return site;
}

static void site_subject(const site_view *site, tide_advice *advice)
{
    char file[48];
    const char *path = tide_value_text(site->last, "file"), *slash = strrchr(path, '/');
    tide_value_plain(file, sizeof file, slash != NULL ? slash + 1 : path);
    if (file[0] != 0)
        TIDE_SAY(advice->subject, "%s (%s:%.0f)", site->name, file,
                 tide_value_number(site->last, "line"));
    else
        TIDE_SAY(advice->subject, "%s", site->name);
    advice->site = site->thing->id;
}

/* ", 2.1 % of the program's processor time", where it is worth a word. */
static const char *site_share(const tide_advice *advice, char *out, size_t size)
{
    out[0] = 0;
    if (advice->share >= 0.0005)
        snprintf(out, size, ", %.2g %% of the program's processor time", advice->share * 100);
    return out;
}

static void site_cost(const site_view *site, tide_advice *advice, double use_ns, double uses)
{
    advice->use_ns = use_ns > 0 ? use_ns : 0;
    advice->cost_ns = advice->use_ns * uses;
    advice->share = tide_advice_share(site->history, advice->cost_ns);
}

/* ---- types that are known ---- */

static const char *site_c_type(const char *name)
{
#define SITE_TYPE(id, constant, ctype, bits, text) \
    if (strcmp(name, text) == 0)                   \
        return #ctype;
    TIDE_BUILTIN_TYPES(SITE_TYPE)
#undef SITE_TYPE
    return strlen(name) < ADVICE_TYPE_BYTES ? name : NULL; /* as the program registered it */
}

/* "f64 and i32", and the same in C with `before` in front of each and `after` behind it. False if a
 * type has no short name, or there are too many. */
static bool site_list_types(const json_t *types, char *words, char *code, size_t size,
                            const char *after)
{
    size_t count = json_array_size(types), i;
    const json_t *type;
    words[0] = code[0] = 0;
    if (count == 0 || count > ADVICE_TYPES_MAX)
        return false;
    json_array_foreach(types, i, type)
    {
        char name[40];
        const char *text = json_is_string(type) ? json_string_value(type) : "";
        const char *c = site_c_type(text);
        if (c == NULL || text[0] == 0)
            return false;
        tide_value_plain(name, sizeof name, text);
        const char *join = i == 0 ? "" : i + 1 == count ? " and " : ", ";
        snprintf(words + strlen(words), size - strlen(words), "%s%s", join, name);
        tide_value_plain(name, sizeof name, c);
        char variable = (char)('a' + (int)i);
        if (after != NULL)
            snprintf(code + strlen(code), size - strlen(code), ", (%s, %c, %s)", name, variable,
                     after);
        else
            snprintf(code + strlen(code), size - strlen(code), ", %s", name);
    }
    tide_assert(strlen(words) + 1 < size && strlen(code) + 1 < size); /* nothing was cut */
    if (strlen(words) > ADVICE_WORDS_BYTES)
        snprintf(words, size, "the same %zu types", count);
    return true;
}

/* What stands for a site whose types are known: the macro, and how it is written. */
static const char *site_typed_form(const site_view *site, const char *types, tide_advice *advice)
{
    if (strcmp(site->kind, "scope") == 0) {
        TIDE_SAY(advice->code, "TIDE_SCOPE_TYPES(pool%.350s);", types);
        return "TIDE_SCOPE_TYPES";
    }
    if (strcmp(site->kind, "frame") == 0) {
        TIDE_SAY(advice->code, "TIDE_FRAME(pool%.350s);", types);
        return "TIDE_FRAME";
    }
    tide_assert(strcmp(site->kind, "acquire") == 0 && types[0] == ',');
    TIDE_SAY(advice->code, "tide_acquire(pool%.350s, n)", types);
    return "tide_acquire";
}

static bool site_has_typed_form(const site_view *site)
{
    size_t count = json_array_size(json_object_get(site->last, "types"));
    return strcmp(site->kind, "scope") == 0 || strcmp(site->kind, "frame") == 0 ||
           (strcmp(site->kind, "acquire") == 0 && count == 1);
}

#define SITE_NAME_TYPES                                                                  \
    "Name the types where the site stands: %s is inlined, and at least as fast as code " \
    "compiled later."

/* The types never change, so that the program may as well name them. True if that was said. */
static bool site_advise_types(const site_view *site, tide_advice_list *out)
{
    tide_advice advice = {.grade = TIDE_GRADE_SLOW, .alike = "types"};
    char words[ADVICE_LIST_BYTES], types[ADVICE_LIST_BYTES], share[64];
    const char *tier = tide_value_text(site->last, "tier");
    bool changed =
        site->thing->varied || /* one look sees the last plan alone, and that one missed */
        (site->misses > 0 && site->history->last_ns == site->history->first_ns);
    if (site->python || !site_has_typed_form(site) || changed ||
        site->misses > advice_always_part * site->uses || strcmp(tier, "compiled") == 0 ||
        !site_list_types(json_object_get(site->last, "types"), words, types, sizeof words,
                         strcmp(site->kind, "frame") == 0 ? "n" : NULL))
        return false;
    site_subject(site, &advice);
    site_cost(site, &advice, site->faster_ns > 0 ? site->use_ns - site->faster_ns : 0, site->uses);
    if (advice.use_ns < 0.05 &&
        site->uses < ADVICE_HOT * tide_history_duration(site->history) / 1e9)
        return false; /* nothing was measured, and nobody would notice */
    const char *form = site_typed_form(site, types, &advice);
    if (advice.use_ns >= 0.05)
        tide_advice_say(
            out, &advice,
            "`%s` always takes %.100s: %s saves %.2g ns a use%s.\n"
            "%s uses in the record, %s of them with other types; it runs its %.12s "
            "plan, %.1f ns a use, and code for its types takes %.1f ns.\n" SITE_NAME_TYPES,
            site->name, words, form, advice.use_ns, site_share(&advice, share, sizeof share),
            site->used, site->missed, tier, site->use_ns, site->faster_ns, form);
    else
        tide_advice_say(out, &advice,
                        "`%s` always takes %.100s: %s needs no learning for it.\n"
                        "%s uses in the record, %s of them with other types; it runs its %.12s "
                        "plan.\n" SITE_NAME_TYPES,
                        site->name, words, form, site->used, site->missed, tier, form);
    return true;
}

/* ---- guards that fail ---- */

static void site_advise_misses(const site_view *site, tide_advice_list *out)
{
    tide_advice advice = {.grade = TIDE_GRADE_SLOW, .alike = "misses"};
    char share[64];
    if (site->misses < 100 || site->misses < advice_misses_part * site->uses ||
        json_is_false(json_object_get(site->last, "uses_counted"))) /* then there is no share */
        return;
    site_subject(site, &advice);
    bool both = site->slower_ns > 0 && site->use_ns > 0;
    site_cost(site, &advice, both ? site->slower_ns - site->use_ns : 0, site->misses);
    if (strcmp(site->kind, "scope") == 0)
        TIDE_SAY(advice.code, "%s",
                 site->python ? "with pool.scope(\"what is done here\") as scope:"
                              : "TIDE_SCOPE_NAMED(pool, \"what is done here\");");
    advice.use_ns = 0; /* of a miss, not of a use */
    tide_advice_say(out, &advice,
                    "%.2g %% of the uses of `%s` are not what its plan is for%s.\n"
                    "A guard failed in %s of %s uses, which then took the general path; %.0f "
                    "plans were published for it so far.\n"
                    "Does it serve callers of different types? Give each a site of its own, so "
                    "that each learns its own types%s.",
                    site->uses > 0 ? 100 * site->misses / site->uses : 100, site->name,
                    site_share(&advice, share, sizeof share), site->missed, site->used,
                    tide_value_number(site->last, "generation"),
                    site->python ? ": another name for its scope"
                                 : "; or declare all types with tide_site_declare");
}

/* ---- code that never came ---- */

typedef struct site_reason {
    const char *code, *why, *instead, *python; /* NULL: `instead` holds there, too */
} site_reason;

#define SITE_SPLIT_NAMES "Give each sort of work a scope of its own name: pool.scope(\"name\")."

static const site_reason site_reasons[] = {
    {"megamorphic", "takes more different types or shapes than are worth testing for",
     "Split it by type: one site in each branch; where the order of values is free, sort them by "
     "type.",
     SITE_SPLIT_NAMES},
    {"others", "takes more different types or shapes than a profile has room for",
     "Split it by type or shape, so that each site sees a few.", SITE_SPLIT_NAMES},
    {"many_types", "takes more types than compiled code saves",
     "Open an inner scope for a part of the work, or declare the types that matter.",
     "Open an inner scope for a part of the work."},
    {"no_method",
     "calls methods of different generic functions, or types without a method of their own",
     "Add methods for its types (tide_generic_add), and give each generic function a site of its "
     "own.",
     NULL},
    {"too_many_plans", "has had as many plans as are remembered: what it does keeps changing",
     "Split it by what changes; or pin the plan that serves best (tide_site_pin).",
     SITE_SPLIT_NAMES},
    {"stager_missing", "could not be compiled, for there is no stager",
     "Install tidepool-stage beside the library, or name it in TIDEPOOL_STAGER.", NULL},
    {"stager_refused", "could not be compiled, for the stager may not be used here",
     "See the page of the stager about its owner, its mode and privileged programs.", NULL},
    {"compile_failed", "could not be compiled: the stager refused its spec",
     "Please report it, with what `tidepool explain` prints of the site.", NULL},
    {"stager_late", "could not be compiled: the stager was late", "Is the machine overloaded?",
     NULL},
    {"code_full", "stays without code, for as much is loaded as may be",
     "Raise the setting `code_bytes`.", NULL},
    {"pinned", "is pinned by the program",
     "Take the pin away (tide_site_unpin), if it is there by mistake.",
     "Take the pin away (`Site.unpin`), if it is there by mistake."},
};

static const site_reason *site_reason_find(const char *code)
{
    for (size_t i = 0; i < sizeof site_reasons / sizeof *site_reasons; i++) {
        if (strcmp(site_reasons[i].code, code) == 0)
            return &site_reasons[i];
    }
    return NULL;
}

static void site_advise_reason(const site_view *site, tide_advice_list *out)
{
    tide_advice advice = {.grade = TIDE_GRADE_SLOW};
    const site_reason *reason = site_reason_find(site->reason_code);
    char share[64];
    bool known = site->use_ns > site->faster_ns && site->faster_ns > 0;
    if (reason == NULL || strcmp(tide_value_text(site->last, "tier"), "compiled") == 0)
        return;
    if (strcmp(reason->code, "pinned") == 0 && !known)
        return;
    const char *instead = site->python && reason->python != NULL ? reason->python : reason->instead;
    advice.alike = reason->code;
    site_subject(site, &advice);
    site_cost(site, &advice, known ? site->use_ns - site->faster_ns : 0, site->uses);
    const char *tier = tide_value_text(site->last, "tier");
    if (known)
        tide_advice_say(out, &advice,
                        "`%s` %s, and code would be faster%s.\n"
                        "%s uses in the record; one takes %.1f ns by its %.12s plan, and would "
                        "take %.1f ns by code.\n%s",
                        site->name, reason->why, site_share(&advice, share, sizeof share),
                        site->used, site->use_ns, tier, site->faster_ns, instead);
    else
        tide_advice_say(out, &advice, "`%s` %s.\n%s uses in the record, by its %.12s plan.\n%s",
                        site->name, reason->why, site->used, tier, instead);
}

static void site_advise_compiles(const site_view *site, tide_advice_list *out)
{
    bool brief = tide_history_duration(site->history) < ADVICE_BRIEF_NS;
    tide_advice advice = {.grade = brief ? TIDE_GRADE_NOTE : TIDE_GRADE_SLOW, .alike = "compiles"};
    char share[64];
    double spent = tide_history_grown(site->history, site->thing, "compile_ns");
    double saved = tide_history_grown(site->history, site->thing, "saved_ns");
    if (spent < 50e6 || saved > spent / 2)
        return;
    site_subject(site, &advice);
    site_cost(site, &advice, spent - saved, 1);
    advice.use_ns = 0;
    tide_advice_say(out, &advice,
                    "Compiling `%s` has cost more than it has saved so far%s.\n"
                    "%.0f compiles took %.0f ms and saved %.0f ms in the record.\n"
                    "In short runs: set `break_even` higher. In long ones this evens out.",
                    site->name, site_share(&advice, share, sizeof share),
                    tide_history_grown(site->history, site->thing, "compiles"), spent / 1e6,
                    saved / 1e6);
}

void tide_advice_of_sites(const tide_history *history, tide_advice_list *out)
{
    for (size_t i = 0; i < history->sites.count; i++) {
        site_view site = site_viewed(history, history->sites.each[i]);
        tide_assert(site.last != NULL);
        if (site.uses < ADVICE_USES_MIN)
            continue;
        site_advise_misses(&site, out);
        if (!site_advise_types(&site, out)) /* which makes what a reason says needless */
            site_advise_reason(&site, out);
        site_advise_compiles(&site, out);
    }
}
