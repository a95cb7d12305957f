/* SPDX-License-Identifier: MIT */
/* Plans that are wanted as code, on their way to the stager and back. They travel in one batch; while
 * it is on its way the others go on wanting. Code that another site has is taken as it is. */
#include "jit/learn/compile_request.h"

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
#include "runtime/scope/site.h"

/* One plan on its way. */
typedef struct request {
    uint64_t learner; /* its number: the learner itself may be gone by then            */
    uint32_t plan;
    bool first; /* in its batch of this form, so that the spec is sent                */
    uint64_t form;
    tide_spec spec;
    const tide_code *code; /* NULL: none came */
} request;

/* Guarded by the lock of the round. */
static struct {
    uint64_t number;       /* of the last one                                          */
    uint32_t count, forms; /* 0: none is on its way                                    */
    bool sent;
    request requests[TIDE_SPEC_SITES];
} batch;

static bool request_waits; /* in this round some plan found no room in the batch */

/* ---- gathering -------------------------------------------------------------------------- */

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

/* Each pool counts for itself: where pools are many, they are not asked in every round. */
static void request_weigh(tide_learner *learner, uint64_t round)
{
    enum { POOLS_AT_ONCE = 128 }; /* whose counts are read for a site in a round, on the average */
    if (round < learner->weigh_round)
        return;
    uint64_t every = tide_pools_count() / POOLS_AT_ONCE + 1;
    bool first = learner->weigh_round == 0; /* sites that came together part */
    learner->weigh_round = round + (first ? learner->number % every : every);
    tide_pays_count(learner);
}

static bool request_is_first(uint64_t form)
{
    uint32_t i = 0;
    while (i < batch.count && batch.requests[i].form != form)
        i++;
    return i == batch.count;
}

static void request_add(tide_learner *learner, tide_learned *plan, uint64_t form)
{
    tide_assert(batch.count < TIDE_SPEC_SITES && !batch.sent);
    bool first = request_is_first(form);
    request *r = &batch.requests[batch.count++];
    *r = (request){
        .learner = learner->number, .plan = learner->in_force, .first = first, .form = form};
    batch.forms += first;
    tide_learned_spec(plan, &r->spec);
    plan->state = TIDE_CODE_REQUESTED;
    plan->uses_without = 0;
    learner->at_once = false;
    learner->reason = TIDE_REASON_ordered;
    tide_event_note(TIDE_EVENT_STAGED, learner->site,
                    __atomic_load_n(&learner->site->plan, __ATOMIC_RELAXED)->tier,
                    TIDE_REASON_ordered, "");
    tide_count(ordered);
}

/* A plan whose code is not there yet, and pays. */
static void request_order(tide_learner *learner, tide_learned *plan, uint64_t form, uint64_t round)
{
    if (tide_code_full())
        tide_force_failed(learner, learner->in_force, round, TIDE_REASON_code_full, "");
    else if (!batch.sent && batch.count < (uint32_t)tide_constant_get(TIDE_CONSTANT_batch_max))
        request_add(learner, plan, form);
    else
        request_waits = true;
}

static void request_gather(tide_site *site, uint64_t round)
{
    tide_learner *learner = site->record->learner;
    tide_learned *plan = request_wanted(site, round);
    if (plan == NULL)
        return;
    request_weigh(learner, round);
    uint64_t form = tide_learned_form(plan);
    const tide_code *known = tide_code_known(form);
    if (!learner->at_once && !(known != NULL ? tide_pays_trial(plan) : tide_pays_compile(plan))) {
        learner->reason = TIDE_REASON_unpaid;
    } else if (known == NULL) {
        request_order(learner, plan, form, round);
    } else {
        learner->at_once = false;
        tide_learned_load(plan, known->enter, known->leave);
        tide_force_loaded(learner, learner->in_force, round);
    }
}

void tide_compile_request_gather(uint64_t round)
{
    tide_site *const *sites;
    size_t count = tide_site_list(&sites);
    for (size_t i = 0; i < count; i++)
        request_gather(sites[i], round);
}

/* ---- there and back --------------------------------------------------------------------- */

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

/* False: no memory. */
static bool request_send(void)
{
    size_t room = TIDE_SPEC_SITE_BYTES * ((size_t)batch.forms + 1);
    char *text = tide_os_resize(NULL, room);
    if (text == NULL)
        return false;
    size_t bytes = tide_spec_write_head(text, room);
    for (uint32_t i = 0; i < batch.count; i++)
        if (batch.requests[i].first)
            bytes += tide_spec_write(&batch.requests[i].spec, text + bytes, room - bytes);
    tide_assert(bytes < room);
    bool sent = tide_stager_submit(++batch.number, text, bytes);
    tide_os_free(text);
    return sent;
}

/* Says once what the program has to do without, unless the program asked for that: then only events
 * and reasons say it. */
static void request_say_once(tide_reason reason, const char *error)
{
    static bool said;
    if (said || reason != TIDE_REASON_stager_missing || tide_locate_environment_get()->none)
        return;
    said = true;
    tide_os_complain("nothing will be compiled (%s): %s", error, tide_reason_words(reason));
}

/* Why there is none; TIDE_REASON_none: it is there. */
static tide_reason request_load(tide_stager_answer *answer)
{
    void *object = tide_code_load(answer->path, answer->error, sizeof answer->error);
    if (object == NULL)
        return tide_code_full() ? TIDE_REASON_code_full : TIDE_REASON_load_failed;
    for (uint32_t i = 0; i < batch.count; i++) {
        request *r = &batch.requests[i];
        r->code = tide_code_find(object, r->form, &r->spec);
        tide_count(compiled);
    }
    return TIDE_REASON_none;
}

/* The plan of a request has its code, or not. A site that is reset meanwhile forgets that it wanted
 * it. */
static void request_install(const request *r, tide_reason why, const tide_stager_answer *answer,
                            uint64_t round)
{
    tide_learner *learner = request_find_learner(r->learner);
    if (learner == NULL)
        return;
    tide_assert(r->plan < learner->plan_count);
    tide_learned *plan = learner->plans[r->plan];
    tide_assert(plan->state == TIDE_CODE_REQUESTED);
    plan->compile_ns += (double)answer->spent_us * 1e3 / batch.count;
    if (r->code != NULL) {
        tide_learned_load(plan, r->code->enter, r->code->leave);
        tide_force_loaded(learner, r->plan, round);
        return;
    }
    tide_count(failed);
    tide_force_failed(learner, r->plan, round,
                      why != TIDE_REASON_none ? why : TIDE_REASON_load_failed, answer->error);
}

/* The batch has come back. The dynamic linker is called with the registry free. */
static void request_end(tide_stager_answer *answer, uint64_t round)
{
    static const tide_reason reasons[] = {
        [TIDE_STAGER_FAILED] = TIDE_REASON_compile_failed,
        [TIDE_STAGER_LATE] = TIDE_REASON_stager_late,
        [TIDE_STAGER_DIED] = TIDE_REASON_stager_died,
        [TIDE_STAGER_GARBAGE] = TIDE_REASON_stager_garbage,
        [TIDE_STAGER_MISSING] = TIDE_REASON_stager_missing,
        [TIDE_STAGER_SHORT] = TIDE_REASON_stager_short,
        [TIDE_STAGER_REFUSED] = TIDE_REASON_stager_refused,
    };
    tide_reason why = reasons[answer->result];
    if (answer->spent_us != 0)
        tide_pays_spent(batch.forms, (double)answer->spent_us * 1e3);
    if (why == TIDE_REASON_none)
        why = request_load(answer);
    else
        request_say_once(why, answer->error);
    tide_registry_lock();
    for (uint32_t i = 0; i < batch.count; i++)
        request_install(&batch.requests[i], why, answer, round);
    tide_registry_unlock();
    batch.count = batch.forms = 0;
    batch.sent = false;
}

bool tide_compile_request_attend(int timeout_ms, uint64_t round)
{
    tide_stager_answer answer = {.result = TIDE_STAGER_SHORT, .error = "no memory for the request"};
    tide_assert(timeout_ms >= 0);
    bool fails = batch.count != 0 && !batch.sent && !request_send();
    batch.sent = batch.count != 0;
    if (fails || (batch.sent && tide_stager_poll(&answer, timeout_ms)))
        request_end(&answer, round);
    bool pending = batch.count != 0 || request_waits;
    request_waits = false;
    return pending;
}
