/* SPDX-License-Identifier: MIT */
/* One look at everything: hears what workers said, ends what is late, gives out and sends what
 * waits. Submitting looks; polling looks, and sleeps in between.
 *
 * A worker works on one request after the other, so the deadline is that of its head. It runs from
 * when the head could be begun: when it was given, or when the one before it was answered. */
#include "jit/stager/stager.h"

#include <unistd.h>

#include "jit/stager/directory.h"
#include "jit/stager/protocol.h"
#include "jit/stager/queue.h"
#include "jit/stager/workers.h"
#include "runtime/base/assert.h"
#include "runtime/base/probe.h"
#include "runtime/base/settings.h"

/* ---- giving requests to workers ----------------------------------------------------------- */

static void stager_give(tide_worker *worker, tide_queued *one)
{
    tide_assert(worker->state == TIDE_WORKER_READY && one->worker == NULL);
    if (tide_queue_head(worker) == NULL)
        worker->since = tide_workers_now();
    one->worker = worker;
    one->sent = 0;
    worker->sites += one->sites;
    tide_assert(tide_queue_head(worker) != NULL);
}

static void stager_refuse_waiting(tide_stager_result result, const char *error)
{
    tide_assert(result != TIDE_STAGER_OK);
    for (tide_queued *one; (one = tide_queue_head(NULL)) != NULL;)
        tide_queue_answer(one, result, error);
}

/* Our directory is gone or cannot be trusted any more, nor can what workers make in it. */
static void stager_leave_directory(const char *why, tide_ending how)
{
    tide_workers_lose_all(why, how);
    tide_directory_remove();
    tide_assert(!tide_directory_made());
}

static void stager_give_waiting(void)
{
    char error[256] = "";
    tide_stager_result result;
    if (tide_queue_head(NULL) != NULL && tide_directory_made() &&
        !tide_directory_sound(error, sizeof error))
        stager_leave_directory(error, TIDE_KILL);
    for (tide_queued *one; (one = tide_queue_head(NULL)) != NULL;) {
        tide_worker *worker = tide_workers_serving(&result, error, sizeof error);
        if (worker == NULL)
            stager_refuse_waiting(result, error);
        else
            stager_give(worker, one);
    }
    tide_assert(tide_queue_head(NULL) == NULL); /* each is given or answered */
}

/* ---- one look at everything --------------------------------------------------------------- */

/* Until when a worker may go on, in milliseconds from `since`; false: as long as it likes. */
static bool stager_time_limit(const tide_worker *worker, double *limit)
{
    bool terminating = worker->state == TIDE_WORKER_TERMINATING;
    tide_assert(worker->state != TIDE_WORKER_FREE);
    *limit = terminating ? TIDE_WORKERS_GRACE : tide_setting_get(TIDE_SETTING_stager_deadline);
    return terminating ? !worker->killed
                       : worker->state == TIDE_WORKER_DRAINING || tide_queue_head(worker) != NULL;
}

static void stager_check_time(tide_worker *worker)
{
    double limit;
    if (!stager_time_limit(worker, &limit) || (double)(tide_workers_now() - worker->since) < limit)
        return;
    if (worker->state == TIDE_WORKER_TERMINATING)
        tide_workers_kill(worker);
    else
        tide_workers_lose_late(worker);
}

static void stager_attend_worker(tide_worker *worker)
{
    tide_assert(worker->state != TIDE_WORKER_FREE);
    bool ended = tide_process_ended(&worker->process);
    tide_protocol_listen(worker);
    if (ended && tide_workers_works(worker)) /* though what it started may hold its socket */
        tide_workers_lose_ended(worker);
    if (worker->state != TIDE_WORKER_FREE)
        stager_check_time(worker);
    if (worker->state == TIDE_WORKER_TERMINATING)
        tide_workers_collect(worker);
}

/* Two things that the program may have done. If it closed our connections, workers take it for dead
 * and remove the directory. If it gave up privileges, they must not keep them; the directory may be
 * beyond our reach by now, and they remove it, since nobody says "bye". */
static void stager_look_at_program(void)
{
    for (size_t i = 0; i < TIDE_WORKERS_MAX; i++) {
        const tide_worker *worker = &tide_workers[i];
        if (!tide_workers_works(worker))
            continue;
        if (tide_process_lost(&worker->process))
            stager_leave_directory("the program closed the connection to the stager", TIDE_KILL);
        else if (!tide_privileges_kept(&worker->privileges))
            stager_leave_directory("the program has other privileges now", TIDE_LET_GO);
    }
}

static void stager_attend(void)
{
    stager_look_at_program();
    for (size_t i = 0; i < TIDE_WORKERS_MAX; i++)
        if (tide_workers[i].state != TIDE_WORKER_FREE)
            stager_attend_worker(&tide_workers[i]);
    stager_give_waiting();
    for (size_t i = 0; i < TIDE_WORKERS_MAX; i++)
        if (tide_workers_works(&tide_workers[i]))
            tide_workers[i].full = !tide_protocol_send(&tide_workers[i]);
}

/* ---- what the header promises ------------------------------------------------------------- */

bool tide_stager_submit(uint64_t id, const char *specs, size_t bytes)
{
    tide_assert(specs != NULL);
    tide_worker_figures.requests++;
    stager_attend(); /* so that it is not given to one that died while idle */
    bool added = tide_queue_add(id, specs, bytes);
    if (added)
        TIDE_USDT(compile_begin, id, bytes);
    stager_attend();
    return added;
}

/* How long it is worth sleeping: to the nearest time at which something must be done. */
static int64_t stager_until_due(int64_t most)
{
    tide_assert(most > 0);
    for (size_t i = 0; i < TIDE_WORKERS_MAX; i++) {
        const tide_worker *worker = &tide_workers[i];
        double limit;
        if (worker->state == TIDE_WORKER_FREE || !stager_time_limit(worker, &limit))
            continue;
        int64_t left = worker->since + (int64_t)limit - tide_workers_now();
        if (left < most)
            most = left;
    }
    return most > 0 ? most : 0;
}

bool tide_stager_poll(tide_stager_answer *out, int timeout_ms)
{
    int64_t end = tide_workers_real_time() + timeout_ms;
    tide_assert(out != NULL);
    stager_attend();
    while (!tide_queue_fetch(out)) {
        int64_t left = end - tide_workers_real_time();
        if (left <= 0 || tide_queue_open() == 0)
            return false;
        tide_workers_wait(stager_until_due(left));
        stager_attend();
    }
    TIDE_USDT(compile_end, out->request, (int)out->result, out->spent_us);
    return true;
}

size_t tide_stager_pending(void)
{
    return tide_queue_count();
}

/* A look takes some ten system calls, and a program may step after every few uses of a site. So it
 * is taken every ten milliseconds; at once if the program is somebody else by now. */
static bool stager_look_is_due(void)
{
    enum { TEND_EVERY_MS = 10 };
    static int64_t last;
    static uid_t user;
    static gid_t group;
    int64_t now = tide_workers_real_time();
    if (now < last + TEND_EVERY_MS && user == geteuid() && group == getegid())
        return false;
    last = now;
    user = geteuid();
    group = getegid();
    return true;
}

void tide_stager_tend(void)
{
    for (size_t i = 0; i < TIDE_WORKERS_MAX; i++)
        if (tide_workers[i].state != TIDE_WORKER_FREE) {
            if (stager_look_is_due())
                stager_attend();
            return;
        }
}

const char *tide_stager_version(void)
{
    return tide_protocol_version();
}

int tide_stager_process(void)
{
    const tide_worker *worker = tide_workers_find(TIDE_WORKER_READY);
    return worker != NULL ? (int)worker->process.pid : 0;
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
    tide_assert(tide_stager_pending() == 0 && tide_stager_process() == 0);
    if (directory)
        tide_directory_remove();
}

/* Runs after the library's other destructors, which may still hand back artefacts. Only the process
 * that started the workers may end them: not a child that was made without our fork handlers. */
__attribute__((destructor(101))) static void stager_leave_at_exit(void)
{
    if (tide_workers_is_ours())
        tide_stager_stop(false);
    tide_directory_remove();
}
