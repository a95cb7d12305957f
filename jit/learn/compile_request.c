/* SPDX-License-Identifier: MIT */
/* Plans that are wanted as code, on their way to the stager and back. Requests travel in batches; a
 * batch is what the stager sees as one request. It has one at a time. */
#include "jit/learn/compile_request.h"

#include <stdio.h>
#include <string.h>

#include "jit/events/event.h"
#include "jit/learn/force.h"
#include "jit/learn/pays.h"
#include "jit/stager/code.h"
#include "jit/stager/locate.h"
#include "jit/stager/stager.h"
#include "runtime/base/assert.h"
#include "runtime/base/os.h"
#include "runtime/base/registry.h"
#include "runtime/base/settings.h"
#include "runtime/pool/core.h"
#include "runtime/scope/kind.h"
#include "runtime/scope/site.h"

/* One plan on its way, and what became of it. */
typedef struct request {
    uint64_t learner; /* its number: the learner itself may be gone by then */
    uint32_t plan;
    double uses; /* of its plan without code, for which it was ordered    */
    tide_spec spec;
    double spent_ns;     /* its part of what the compile took of the processor       */
    void *enter, *leave; /* its code; `enter` is NULL unless all functions are there */
    tide_reason reason;  /* why it is not */
} request;

typedef struct batch {
    struct batch *next;
    uint64_t number;
    uint32_t count, room;
    bool tried;      /* a stager has worked on it, with success or without */
    void *object;    /* code for all of them, once it has come and is loaded */
    char error[256]; /* the stager's or the loader's, if it failed */
    request requests[];
} batch;

/* Guarded by the lock of the round: what is gathered, what the stager has (one), what has come. */
static batch *request_gathered, *request_out, *request_arrived;
static uint64_t request_batches_made;

_Static_assert(sizeof((batch *)0)->error == sizeof((tide_stager_answer *)0)->error,
               "an answer's error is copied whole");

/* ---- a rest ----------------------------------------------------------------------------- */

enum {
    FAILED_FEW = 3, /* batches in a row that may fail before there is a rest … */
    FIRST_REST = 8, /* … of so many rounds, doubled by each one more           */
    DOUBLINGS = 20  /* more than that is beyond any limit                      */
};

static uint64_t request_failed_in_a_row, request_rest_until; /* a round */

/* Where nothing can be compiled, not every site shall have to find that out. */
static void request_note_result(bool good, uint64_t round)
{
    uint64_t most = tide_constant_whole(TIDE_CONSTANT_back_off_max);
    request_failed_in_a_row = good ? 0 : request_failed_in_a_row + 1;
    if (request_failed_in_a_row < FAILED_FEW)
        return;
    uint64_t doublings = request_failed_in_a_row - FAILED_FEW;
    uint64_t rest = doublings < DOUBLINGS ? (uint64_t)FIRST_REST << doublings : most;
    request_rest_until = round + (rest < most ? rest : most);
    tide_assert(request_rest_until > round);
}

/* ---- gathering -------------------------------------------------------------------------- */

static batch *request_make_batch(uint32_t room)
{
    tide_assert(room >= 1 && room <= TIDE_SPEC_SITES);
    batch *made = tide_os_resize(NULL, sizeof *made + room * sizeof(request));
    if (made == NULL)
        return NULL;
    *made = (batch){.number = ++request_batches_made, .room = room};
    return made;
}

/* A batch's stems must differ: they become symbols of one file. */
static bool request_batch_holds(const batch *b, const char *stem)
{
    for (uint32_t i = 0; i < b->count; i++)
        if (strcmp(b->requests[i].spec.stem, stem) == 0)
            return true;
    return false;
}

/* The first batch that has room for the stem, or a new one; NULL without memory. */
static batch *request_batch_for(const char *stem)
{
    batch **last = &request_gathered;
    for (; *last != NULL; last = &(*last)->next)
        if ((*last)->count < (*last)->room && !request_batch_holds(*last, stem))
            return *last;
    return *last = request_make_batch((uint32_t)tide_constant_get(TIDE_CONSTANT_batch_max));
}

/* The plan that the site wants as code now; NULL: none. While it is pinned its code could not even
 * be tried. */
static tide_learned *request_wanted(const tide_site *site, uint64_t round)
{
    const tide_learner *learner = site->record->learner;
    tide_learned *plan = learner != NULL ? tide_learner_plan_in_force(learner) : NULL;
    if (plan == NULL || site->record->pinned)
        return NULL;
    return plan->state == TIDE_CODE_WANTED && round >= plan->retry_round ? plan : NULL;
}

void tide_compile_request_weigh(const tide_site *site, uint64_t round)
{
    enum { POOLS_AT_ONCE = 128 }; /* whose counts are read for a site in a round, on the average */
    tide_learner *learner = site->record->learner;
    tide_learned *plan = request_wanted(site, round);
    if (plan == NULL || round < learner->weigh_round)
        return;
    uint64_t every = tide_pools_count() / POOLS_AT_ONCE + 1;
    bool first = learner->weigh_round == 0; /* sites that came together part */
    learner->weigh_round = round + (first ? learner->number % every : every);
    tide_pays_count(learner);
    tide_pays_offer(plan);
}

static void request_note_staged(tide_learner *learner, tide_reason reason)
{
    const tide_plan *now = __atomic_load_n(&learner->site->plan, __ATOMIC_RELAXED);
    learner->reason = reason;
    tide_event_note(TIDE_EVENT_STAGED, learner->site, now->tier, reason, "");
}

/* Puts the plan into a batch; else the reason why it is in none. */
static tide_reason request_add(const tide_learner *learner, tide_learned *plan, uint64_t round)
{
    if (round < request_rest_until)
        return TIDE_REASON_backing_off;
    if (tide_code_full())
        return TIDE_REASON_code_full;
    batch *b = request_batch_for(plan->stem);
    if (b == NULL)
        return TIDE_REASON_no_memory;
    tide_assert(b->count < b->room);
    request *r = &b->requests[b->count++];
    *r = (request){.learner = learner->number, .plan = learner->in_force};
    tide_learner_spec(learner, plan, &r->spec);
    plan->state = TIDE_CODE_REQUESTED;
    r->uses = plan->uses_without;
    plan->uses_without = 0;
    plan->batch = b->number;
    return TIDE_REASON_none;
}

void tide_compile_request_gather(tide_site *site, uint64_t round)
{
    tide_learner *learner = site->record->learner;
    tide_learned *plan = request_wanted(site, round);
    if (plan == NULL)
        return;
    if (!learner->at_once && !tide_pays_together(plan)) {
        learner->reason = TIDE_REASON_unpaid;
        return;
    }
    tide_reason why_not = request_add(learner, plan, round);
    if (why_not != TIDE_REASON_none) {
        tide_force_failed(learner, learner->in_force, round, why_not, "");
        return;
    }
    learner->at_once = false;
    tide_count(ordered);
}

/* ---- sending ---------------------------------------------------------------------------- */

static void request_push(batch **list, batch *b)
{
    tide_assert(b->count > 0 && b->count <= b->room);
    while (*list != NULL)
        list = &(*list)->next;
    b->next = NULL;
    *list = b;
}

static void request_fail_all(batch *b, tide_reason reason)
{
    tide_assert(reason != TIDE_REASON_none);
    for (uint32_t i = 0; i < b->count; i++)
        b->requests[i].reason = reason;
}

/* NULL: its site was unloaded meanwhile. */
static tide_learner *request_find_learner(uint64_t number)
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

static void request_note_all_staged(const batch *b)
{
    tide_registry_lock();
    for (uint32_t i = 0; i < b->count; i++) {
        tide_learner *learner = request_find_learner(b->requests[i].learner);
        if (learner != NULL)
            request_note_staged(learner, TIDE_REASON_ordered);
    }
    tide_registry_unlock();
}

/* False: no memory. */
static bool request_submit(const batch *b)
{
    size_t room = TIDE_SPEC_SITE_BYTES * ((size_t)b->count + 1);
    tide_locate_prepare(); /* a fork meanwhile would leave the text to nobody */
    char *text = tide_os_resize(NULL, room);
    if (text == NULL)
        return false;
    size_t bytes = tide_spec_write_head(text, room);
    for (uint32_t i = 0; i < b->count; i++) {
        tide_assert(room - bytes >= TIDE_SPEC_SITE_BYTES);
        bytes += tide_spec_write(&b->requests[i].spec, text + bytes, room - bytes);
    }
    tide_assert(bytes < room);
    bool submitted = tide_stager_submit(b->number, text, bytes);
    tide_os_free(text);
    return submitted;
}

void tide_compile_request_send(void)
{
    while (request_gathered != NULL && !tide_stager_busy()) {
        batch *b = request_gathered;
        request_gathered = b->next;
        request_note_all_staged(b);
        bool submitted = request_submit(b);
        if (!submitted)
            request_fail_all(b, TIDE_REASON_no_memory);
        request_push(submitted ? &request_out : &request_arrived, b);
        tide_assert(request_out == NULL || request_out->next == NULL);
    }
}

/* ---- receiving -------------------------------------------------------------------------- */

static tide_reason request_reason_of(tide_stager_result result)
{
    switch (result) {
    case TIDE_STAGER_OK: return TIDE_REASON_none;
    case TIDE_STAGER_MISSING: return TIDE_REASON_stager_missing;
    case TIDE_STAGER_SHORT: return TIDE_REASON_stager_short;
    case TIDE_STAGER_FAILED: return TIDE_REASON_compile_failed;
    case TIDE_STAGER_LATE: return TIDE_REASON_stager_late;
    case TIDE_STAGER_DIED: return TIDE_REASON_stager_died;
    case TIDE_STAGER_GARBAGE: return TIDE_REASON_stager_garbage;
    case TIDE_STAGER_REFUSED: return TIDE_REASON_stager_refused;
    }
    return TIDE_REASON_compile_failed;
}

/* Says once what the program has to do without, unless the program asked for that: then only events
 * and reasons say it. */
static void request_say_once(tide_reason reason, const char *error)
{
    static bool said;
    if (said || reason != TIDE_REASON_stager_missing || tide_locate_environment_get()->none)
        return;
    said = true;
    tide_assert(error != NULL);
    char line[400];
    int length = snprintf(line, sizeof line, "tidepool: nothing will be compiled (%s): %s\n", error,
                          tide_reason_words(reason));
    tide_os_write_error(line, (size_t)length < sizeof line ? (size_t)length : sizeof line - 1);
}

static void request_load(batch *b, const char *path)
{
    b->object = tide_code_load(path, b->error, sizeof b->error);
    if (b->object == NULL)
        request_fail_all(b, tide_code_full() ? TIDE_REASON_code_full : TIDE_REASON_load_failed);
    for (uint32_t i = 0; b->object != NULL && i < b->count; i++)
        tide_count(compiled);
}

/* Has a stager worked on it? In vain or not, that has cost. */
static bool request_was_tried(tide_stager_result result)
{
    return result == TIDE_STAGER_OK || result == TIDE_STAGER_FAILED || result == TIDE_STAGER_DIED ||
           result == TIDE_STAGER_LATE || result == TIDE_STAGER_GARBAGE;
}

/* Before it is loaded. */
static void request_note_spent(batch *b, double ns)
{
    tide_pays_spent(b->count, ns);
    for (uint32_t i = 0; i < b->count; i++)
        b->requests[i].spent_ns = ns / b->count;
}

/* What the stager had comes back, as code or with the reason why not. */
static void request_return(batch *b, const tide_stager_answer *answer, uint64_t round)
{
    bool good = answer->result == TIDE_STAGER_OK;
    b->tried = request_was_tried(answer->result);
    request_note_result(good, round);
    if (good && answer->spent_us != 0)
        request_note_spent(b, (double)answer->spent_us * 1e3);
    if (good) {
        request_load(b, answer->path);
    } else {
        request_fail_all(b, request_reason_of(answer->result));
        memcpy(b->error, answer->error, sizeof b->error);
        request_say_once(request_reason_of(answer->result), answer->error);
    }
    request_push(&request_arrived, b);
}

void tide_compile_request_receive(int timeout_ms, uint64_t round)
{
    tide_stager_answer answer;
    tide_assert(timeout_ms >= 0);
    while (request_out != NULL && tide_stager_poll(&answer, timeout_ms)) {
        batch *b = request_out;
        tide_assert(b->number == answer.request && b->next == NULL);
        request_out = NULL;
        request_return(b, &answer, round);
        tide_compile_request_send();
        timeout_ms = 0;
    }
}

bool tide_compile_request_pending(void)
{
    return request_gathered != NULL || request_out != NULL || request_arrived != NULL;
}

/* ---- installing ------------------------------------------------------------------------- */

static void request_find_code(request *r, void *object)
{
    tide_assert(object != NULL && r->spec.kind < TIDE_KIND_COUNT);
    r->enter = tide_code_find(object, r->spec.stem, tide_spec_suffix(r->spec.kind));
    r->leave = NULL;
    if (tide_kind_opens_level(r->spec.kind)) {
        r->leave = tide_code_find(object, r->spec.stem, "_leave");
        if (r->leave == NULL)
            r->enter = NULL;
    }
}

void tide_compile_request_find_code(void)
{
    for (batch *b = request_arrived; b != NULL; b = b->next)
        for (uint32_t i = 0; i < b->count && b->object != NULL; i++)
            request_find_code(&b->requests[i], b->object);
}

/* The plan may have been dropped, or wanted anew, since the request was made. Then its code stays
 * unused. */
static void request_install(const batch *b, const request *r, uint64_t round)
{
    tide_learner *learner = request_find_learner(r->learner);
    tide_assert(learner == NULL || r->plan < learner->plan_count);
    tide_learned *plan = learner != NULL ? learner->plans[r->plan] : NULL;
    if (plan != NULL)
        plan->compile_ns += r->spent_ns;
    if (plan == NULL || plan->state != TIDE_CODE_REQUESTED || plan->batch != b->number)
        return;
    if (r->enter == NULL) {
        if (!b->tried) /* nothing was spent, so what it has lost is still to be made good */
            plan->uses_without += r->uses;
        tide_count(failed);
        tide_force_failed(learner, r->plan, round,
                          r->reason != TIDE_REASON_none ? r->reason : TIDE_REASON_load_failed,
                          b->error);
        return;
    }
    tide_learned_load(plan, r->enter, r->leave);
    tide_force_loaded(learner, r->plan, round);
}

void tide_compile_request_install(uint64_t round)
{
    while (request_arrived != NULL) {
        batch *b = request_arrived;
        request_arrived = b->next;
        for (uint32_t i = 0; i < b->count; i++)
            request_install(b, &b->requests[i], round);
        tide_os_free(b);
    }
}
