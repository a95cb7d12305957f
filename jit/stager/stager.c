/* SPDX-License-Identifier: MIT */
/* One look at everything: what was said is heard, what is late is ended, what waits is given and
 * sent. Submitting looks; polling looks, and sleeps in between.
 *
 * A stager works on one order after the other, so the deadline is the head's: it runs from when the
 * order could be begun, which is when it was given or when the one before it was answered. */
#include "jit/stager/stager.h"

#include "jit/stager/workers.h"
#include "jit/stager/directory.h"
#include "jit/stager/queue.h"
#include "jit/stager/poll_set.h"
#include "jit/stager/protocol.h"
#include "runtime/base/assert.h"
#include "runtime/base/settings.h"

/* ---- giving orders to helpers ------------------------------------------------------------- */

static void give(tide_worker *member, tide_queued *one)
{
    tide_assert(member->role == TIDE_WORKER_READY && one->helper == NULL);
    if (tide_queue_head(member) == NULL)
        member->since = tide_workers_now();
    one->helper = member;
    one->sent = 0;
    member->sites += one->sites;
}

static void refuse_waiting(tide_stager_result result, const char *error)
{
    for (tide_queued *one; (one = tide_queue_head(NULL)) != NULL;)
        tide_queue_answer(one, result, error);
}

/* Our directory is gone or can no longer be trusted, and with it whatever helpers make. */
static void leave_directory(const char *why)
{
    tide_workers_lose_all(why);
    tide_directory_remove();
}

static void give_waiting(void)
{
    char error[256] = "";
    tide_stager_result result;
    if (tide_queue_head(NULL) != NULL && tide_directory_made() &&
        !tide_directory_sound(error, sizeof error))
        leave_directory(error);
    for (tide_queued *one; (one = tide_queue_head(NULL)) != NULL;) {
        tide_worker *member = tide_workers_serving(&result, error, sizeof error);
        if (member == NULL)
            refuse_waiting(result, error);
        else
            give(member, one);
    }
}

/* ---- one look at everything --------------------------------------------------------------- */

/* When something must be done about it, in milliseconds from when it began what it is at; false:
 * nothing need be done. */
static bool time_limit(const tide_worker *member, double *limit)
{
    bool doomed = member->role == TIDE_WORKER_TERMINATING;
    *limit = doomed ? TIDE_WORKERS_GRACE : tide_setting_get(TIDE_SETTING_stager_deadline);
    return doomed ? !member->killed
                  : member->role == TIDE_WORKER_DRAINING || tide_queue_head(member) != NULL;
}

static void check_time(tide_worker *member)
{
    double limit;
    if (!time_limit(member, &limit) || (double)(tide_workers_now() - member->since) < limit)
        return;
    if (member->role == TIDE_WORKER_TERMINATING)
        tide_workers_kill(member);
    else
        tide_workers_lose_late(member);
}

static void attend_one(tide_worker *member)
{
    bool ended = tide_process_ended(&member->process);
    tide_protocol_listen(member);
    if (ended && tide_workers_works(member)) /* though what it started may hold its socket */
        tide_workers_lose_ended(member);
    if (member->role != TIDE_WORKER_FREE)
        check_time(member);
    if (member->role == TIDE_WORKER_TERMINATING)
        tide_workers_collect(member);
}

static void attend(void)
{
    for (size_t i = 0; i < TIDE_WORKERS_MAX; i++)
        if (tide_workers[i].role != TIDE_WORKER_FREE)
            attend_one(&tide_workers[i]);
    give_waiting();
    for (size_t i = 0; i < TIDE_WORKERS_MAX; i++)
        if (tide_workers_works(&tide_workers[i]))
            tide_poll_set_for_room(&tide_workers[i].process, !tide_protocol_send(&tide_workers[i]));
}

/* ---- what the header promises ------------------------------------------------------------- */

void tide_stager_submit(uint64_t id, const char *specs, size_t bytes)
{
    tide_worker_figures.orders++;
    attend(); /* so that it is not given to one that died while idle */
    tide_queue_add(id, specs, bytes);
    attend();
}

/* How long it is worth sleeping: to the nearest time at which something must be done. */
static int64_t until_due(int64_t most)
{
    for (size_t i = 0; i < TIDE_WORKERS_MAX; i++) {
        const tide_worker *member = &tide_workers[i];
        double limit;
        if (member->role == TIDE_WORKER_FREE || !time_limit(member, &limit))
            continue;
        int64_t left = member->since + (int64_t)limit - tide_workers_now();
        if (left < most)
            most = left;
    }
    return most > 0 ? most : 0;
}

bool tide_stager_poll(tide_stager_answer *out, int timeout_ms)
{
    int64_t end = tide_workers_real_time() + timeout_ms;
    attend();
    while (!tide_queue_fetch(out)) {
        int64_t left = end - tide_workers_real_time();
        if (left <= 0 || tide_queue_open() == 0)
            return false;
        (void)tide_poll_set_wait(until_due(left));
        attend();
    }
    return true;
}

size_t tide_stager_pending(void)
{
    return tide_queue_count();
}

int tide_stager_descriptor(void)
{
    return tide_poll_set_descriptor();
}

const char *tide_stager_version(void)
{
    return tide_protocol_version();
}

int tide_stager_process(void)
{
    const tide_worker *member = tide_workers_find(TIDE_WORKER_READY);
    return member != NULL ? (int)member->process.pid : 0;
}

void tide_stager_figures_get(tide_stager_figures *out)
{
    *out = tide_worker_figures;
}

/* ---- leaving ------------------------------------------------------------------------------ */

void tide_stager_stop(bool directory)
{
    tide_workers_dismiss();
    tide_queue_clear();
    tide_poll_set_close();
    if (directory)
        tide_directory_remove();
}

/* After the library's other destructors, which may still have to hand back artefacts. A process
 * that was made behind our back is none of those that may clean up. */
__attribute__((destructor(101))) static void leave(void)
{
    if (tide_workers_is_ours())
        tide_stager_stop(false);
    tide_directory_remove();
}
