/* SPDX-License-Identifier: MIT */
#include "jit/learn/compile_request.h"

#include <stdio.h>
#include <string.h>

#include "jit/learn/budget.h"
#include "jit/learn/event.h"
#include "jit/kernels/modules.h"
#include "jit/cache/cache.h"
#include "jit/learn/limbo.h"
#include "jit/stager/locate.h"
#include "jit/stager/stager.h"
#include "jit/learn/watch.h"
#include "runtime/base/assert.h"
#include "runtime/base/os.h"
#include "runtime/base/settings.h"
#include "runtime/scope/site.h"

/* One plan on its way, and what became of it. */
typedef struct item {
    uint64_t learner; /* its number: the learner itself may be gone by then */
    uint64_t order;   /* it was first sent with                             */
    uint32_t plan;
    tide_spec spec;
    tide_artefact *artefact; /* once it has come; NULL: it will not, for `reason` */
    tide_reason reason;
} item;

typedef struct order {
    struct order *next;
    uint64_t number;
    uint32_t count, room;
    char error[256]; /* the stager's or the loader's, if it failed */
    item items[];
} order;

/* Guarded by the lock of the round: what is gathered, what is with the stager, what has come. */
static order *gathered, *out, *arrived;
static uint64_t orders_made;

/* ---- gathering -------------------------------------------------------------------------- */

static order *make_order(void)
{
    uint32_t room = (uint32_t)tide_setting_get(TIDE_SETTING_batch_max);
    order *made = tide_os_resize(NULL, sizeof *made + room * sizeof(item));
    if (made == NULL)
        return NULL;
    *made = (order){.number = ++orders_made, .room = room};
    return made;
}

/* An order's stems must differ: they become symbols of one file. */
static bool holds_stem(const order *o, const char *stem)
{
    for (uint32_t i = 0; i < o->count; i++)
        if (strcmp(o->items[i].spec.stem, stem) == 0)
            return true;
    return false;
}

static order *order_for(const char *stem)
{
    order **last = &gathered;
    for (; *last != NULL; last = &(*last)->next)
        if ((*last)->count < (*last)->room && !holds_stem(*last, stem))
            return *last;
    return *last = make_order();
}

void tide_compile_request_gather(tide_site *site, uint64_t round)
{
    tide_learner *learner = site->record->learner;
    if (learner == NULL || learner->in_force == TIDE_NO_PLAN)
        return;
    tide_learned *plan = learner->plans[learner->in_force];
    if (plan->state != TIDE_CODE_WANTED || round < plan->retry_round)
        return;
    tide_reason why_not = tide_budget_take(round);
    order *o = why_not == TIDE_REASON_none ? order_for(plan->stem) : NULL;
    if (o == NULL) {
        tide_watch_failed(learner, learner->in_force, round,
                          why_not != TIDE_REASON_none ? why_not : TIDE_REASON_no_memory, "");
        return;
    }
    tide_assert(o->count < o->room);
    item *it = &o->items[o->count++];
    *it = (item){
        .learner = learner->number, .order = o->number, .plan = learner->in_force};
    tide_learner_spec(learner, plan, &it->spec);
    plan->state = TIDE_CODE_ORDERED;
    plan->order = o->number;
    learner->reason = TIDE_REASON_ordered;
    tide_count(ordered);
    tide_event_note(TIDE_EVENT_STAGED, site,
                    __atomic_load_n(&site->plan, __ATOMIC_RELAXED)->tier, TIDE_REASON_ordered, "");
}

/* ---- sending ---------------------------------------------------------------------------- */

static void push(order **list, order *o)
{
    while (*list != NULL)
        list = &(*list)->next;
    o->next = NULL;
    *list = o;
}

static void fail_all(order *o, tide_reason reason)
{
    for (uint32_t i = 0; i < o->count; i++)
        if (o->items[i].artefact == NULL)
            o->items[i].reason = reason;
}

/* Those found are given their artefact; true when there is none left to compile. */
static bool find_kept(order *o)
{
    bool keeping = tide_setting_get(TIDE_SETTING_artefact_cache) != 0, all = keeping;
    for (uint32_t i = 0; keeping && i < o->count; i++) {
        item *it = &o->items[i];
        if (it->artefact == NULL && (it->artefact = tide_artefact_cache_find(&it->spec)) != NULL)
            tide_count(kept);
        all = all && it->artefact != NULL;
    }
    return all;
}

static bool submit(const order *o)
{
    size_t room = TIDE_SPEC_SITE_BYTES * ((size_t)o->count + 1);
    char *text = tide_os_resize(NULL, room);
    if (text == NULL)
        return false;
    size_t bytes = tide_spec_write_head(text, room);
    for (uint32_t i = 0; i < o->count; i++)
        if (o->items[i].artefact == NULL)
            bytes += tide_spec_write(&o->items[i].spec, text + bytes, room - bytes);
    tide_stager_submit(o->number, text, bytes);
    tide_os_free(text);
    return true;
}

void tide_compile_request_send(void)
{
    while (gathered != NULL) {
        order *o = gathered;
        gathered = o->next;
        if (find_kept(o)) {
            push(&arrived, o);
        } else if (submit(o)) {
            push(&out, o);
        } else {
            fail_all(o, TIDE_REASON_no_memory);
            push(&arrived, o);
        }
    }
}

/* ---- receiving -------------------------------------------------------------------------- */

static order *take_out(uint64_t number)
{
    for (order **at = &out; *at != NULL; at = &(*at)->next)
        if ((*at)->number == number) {
            order *found = *at;
            *at = found->next;
            return found;
        }
    return NULL;
}

static tide_reason reason_of(tide_stager_result result)
{
    switch (result) {
    case TIDE_STAGER_OK: return TIDE_REASON_none;
    case TIDE_STAGER_MISSING: return TIDE_REASON_stager_missing;
    case TIDE_STAGER_FAILED: return TIDE_REASON_compile_failed;
    case TIDE_STAGER_LATE: return TIDE_REASON_stager_late;
    case TIDE_STAGER_DIED: return TIDE_REASON_stager_died;
    case TIDE_STAGER_GARBAGE: return TIDE_REASON_stager_garbage;
    case TIDE_STAGER_REFUSED: return TIDE_REASON_stager_refused;
    }
    return TIDE_REASON_compile_failed;
}

/* What the program does without is said once, unless it was asked for; then events and reasons say it. */
static void say_once(tide_reason reason, const char *error)
{
    static bool said;
    if (said || reason != TIDE_REASON_stager_missing || tide_locate_environment_get()->none)
        return;
    said = true;
    char line[400];
    int length = snprintf(line, sizeof line, "tidepool: nothing will be compiled (%s): %s\n", error,
                          tide_reason_words(reason));
    tide_os_write_error(line, (size_t)length < sizeof line ? (size_t)length : sizeof line - 1);
}

static void keep(const order *o, const char *path)
{
    tide_spec specs[TIDE_SPEC_SITES];
    size_t count = 0;
    for (uint32_t i = 0; i < o->count; i++)
        if (o->items[i].artefact == NULL) {
            tide_assert(count < TIDE_SPEC_SITES);
            specs[count++] = o->items[i].spec;
        }
    tide_artefact_cache_store(path, specs, count);
}

/* Every item that is compiled here has a use of the artefact; the one it was loaded with goes to
 * the first. */
static void load(order *o, const char *path)
{
    tide_artefact *artefact = tide_artefact_load(path, true, o->error, sizeof o->error);
    bool first = true;
    if (artefact == NULL) {
        fail_all(o, TIDE_REASON_load_failed);
        return;
    }
    if (tide_setting_get(TIDE_SETTING_artefact_cache) != 0)
        keep(o, path);
    for (uint32_t i = 0; i < o->count; i++)
        if (o->items[i].artefact == NULL) {
            if (!first)
                tide_artefact_use(artefact);
            o->items[i].artefact = artefact;
            first = false;
            tide_count(compiled);
        }
}

/* One site may have spoilt it for all: each is sent again by itself. False: there was but one, or
 * no memory. */
static bool split(order *o)
{
    uint32_t moved = 0;
    for (; o->count > 1 && moved < o->count; moved++) {
        order *single = make_order();
        if (single == NULL)
            break;
        single->room = 1; /* nothing joins it */
        single->items[single->count++] = o->items[moved];
        push(&gathered, single);
    }
    memmove(o->items, o->items + moved, (o->count - moved) * sizeof *o->items);
    o->count -= moved;
    return moved != 0;
}

static bool of_one_site(tide_stager_result result)
{
    return result == TIDE_STAGER_FAILED || result == TIDE_STAGER_DIED ||
           result == TIDE_STAGER_LATE || result == TIDE_STAGER_GARBAGE;
}

void tide_compile_request_receive(int timeout_ms, uint64_t round)
{
    tide_stager_answer answer;
    while ((out != NULL || tide_modules_ordered()) && tide_stager_poll(&answer, timeout_ms)) {
        timeout_ms = 0;
        if (tide_modules_answer(&answer))
            continue;
        order *o = take_out(answer.order);
        if (o == NULL)
            continue;
        tide_reason reason = reason_of(answer.result);
        bool few = tide_budget_note(answer.result == TIDE_STAGER_OK, round);
        if (of_one_site(answer.result) && few && split(o) && o->count == 0) {
            tide_os_free(o);
            continue;
        }
        if (answer.result == TIDE_STAGER_OK)
            load(o, answer.path);
        else
            fail_all(o, reason);
        if (answer.result != TIDE_STAGER_OK)
            memcpy(o->error, answer.error, sizeof o->error);
        say_once(reason, answer.error);
        push(&arrived, o);
    }
}

bool tide_compile_request_pending(void)
{
    return gathered != NULL || out != NULL || arrived != NULL;
}

/* ---- installing ------------------------------------------------------------------------- */

static tide_learner *find_learner(uint64_t number)
{
    tide_site *const *sites;
    size_t count = tide_site_list(&sites);
    for (size_t i = 0; i < count; i++) {
        tide_learner *learner = sites[i]->record->learner;
        if (learner != NULL && learner->number == number)
            return learner;
    }
    return NULL;
}

static void find_code(const item *it, void **enter, void **leave)
{
    static const char *const suffixes[TIDE_KIND_COUNT] = {
        [TIDE_KIND_SCOPE] = "_enter",     [TIDE_KIND_FRAME] = "_frame",
        [TIDE_KIND_ACQUIRE] = "_acquire", [TIDE_KIND_ARRAY] = "_array",
        [TIDE_KIND_DISPATCH] = "_dispatch"};
    *enter = tide_artefact_find(it->artefact, it->spec.stem, suffixes[it->spec.kind]);
    *leave = NULL;
    if (it->spec.kind <= TIDE_KIND_FRAME) {
        *leave = tide_artefact_find(it->artefact, it->spec.stem, "_leave");
        if (*leave == NULL)
            *enter = NULL;
    }
}

static void install_item(const order *o, const item *it, uint64_t round)
{
    tide_learner *learner = find_learner(it->learner);
    tide_assert(learner == NULL || it->plan < learner->plan_count);
    tide_learned *plan = learner != NULL ? learner->plans[it->plan] : NULL;
    void *enter = NULL, *leave = NULL;
    if (it->artefact != NULL)
        find_code(it, &enter, &leave);
    if (plan == NULL || plan->state != TIDE_CODE_ORDERED || plan->order != it->order) {
        if (it->artefact != NULL)
            tide_limbo_add(it->artefact, false);
        return;
    }
    if (enter == NULL) {
        if (it->artefact != NULL)
            tide_limbo_add(it->artefact, false);
        tide_count(failed);
        tide_watch_failed(learner, it->plan, round,
                          it->reason != TIDE_REASON_none ? it->reason : TIDE_REASON_load_failed,
                          o->error);
        return;
    }
    tide_learned_load(learner, plan, it->artefact, enter, leave);
    if (plan->state == TIDE_CODE_LOADED)
        tide_watch_loaded(learner, it->plan, round);
}

void tide_compile_request_install(uint64_t round)
{
    while (arrived != NULL) {
        order *o = arrived;
        arrived = o->next;
        for (uint32_t i = 0; i < o->count; i++)
            install_item(o, &o->items[i], round);
        tide_os_free(o);
    }
}

/* The plans are wanted again: the child may have a stager of its own. */
void tide_compile_request_forget(void)
{
    for (order *o = out; o != NULL; o = o->next)
        fail_all(o, TIDE_REASON_stager_died);
    while (out != NULL) {
        order *o = out;
        out = o->next;
        push(&arrived, o);
    }
}
