/* SPDX-License-Identifier: MIT */
/* One change at a time. Of the worker and of an untouched one the objective is measured before and
 * after a change; the change is kept if the worker got faster by more than the other did, at a
 * confidence of 95 %, and taken back otherwise. So a worker never ends worse than it was. */
#define _GNU_SOURCE
#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "service.h"

enum { LEAST_USES = 40, WAIT_MS = 10000, LOOK_MS = 20 };

#define TUNE_CONFIDENCE 1.96 /* standard errors: 95 % */

typedef struct tune_run {
    json_t *held; /* "facts" of the worker at the start, and the "order" */
    pid_t worker, control;
    const char *only, *objective; /* names; only: NULL: all */
    bool lost;                    /* one of the two is gone: nothing more is tried */
} tune_run;

typedef struct tune_figure {
    double ns, error_ns;
} tune_figure;

static pthread_mutex_t tune_lock = PTHREAD_MUTEX_INITIALIZER;
static bool tune_is_running, tune_ends; /* atomic */

static bool tune_is_ended(void)
{
    return __atomic_load_n(&tune_ends, __ATOMIC_RELAXED);
}

bool tune_running(void)
{
    return __atomic_load_n(&tune_is_running, __ATOMIC_ACQUIRE);
}

/* NULL: it has none. */
static const char *tune_text(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

static double tune_number(const json_t *object, const char *key)
{
    return json_number_value(json_object_get(object, key));
}

/* ---- measuring ---------------------------------------------------------------------------- */

/* Takes the request over. */
static json_t *tune_ask(tune_run *run, pid_t pid, json_t *request)
{
    char error[200];
    bool gone;
    json_t *answer = workers_ask(pid, request, error, &gone);
    run->lost = run->lost || gone;
    return answer;
}

/* The objective's figure, of all keys by their uses. False: too few uses yet, or nobody answers. */
static bool tune_read(tune_run *run, pid_t pid, tune_figure *out)
{
    json_t *answer = tune_ask(run, pid, json_pack("{s:s}", "ask", run->objective)), *row;
    double uses = 0, sum = 0, squares = 0;
    size_t i;
    json_array_foreach(json_object_get(answer, "rows"), i, row)
    {
        const json_t *one = json_array_get(json_object_get(row, "candidates"), 0);
        double n = tune_number(one, "uses"), error = tune_number(one, "error_ns");
        uses += n;
        sum += n * tune_number(one, "ns");
        squares += n * n * error * error;
    }
    json_decref(answer);
    if (uses < LEAST_USES)
        return false;
    *out = (tune_figure){sum / uses, sqrt(squares) / uses};
    return true;
}

/* Worker and control, over the same time, from now on. */
static bool tune_measure(tune_run *run, tune_figure out[2])
{
    const pid_t both[] = {run->worker, run->control};
    for (int i = 0; i < 2; i++)
        json_decref(tune_ask(run, both[i],
                             json_pack("{s:s, s:s}", "do", "forget", "tunable", run->objective)));
    for (int waited = 0; waited < WAIT_MS && !run->lost && !tune_is_ended(); waited += LOOK_MS) {
        nanosleep(&(struct timespec){.tv_nsec = LOOK_MS * 1000000L}, NULL);
        if (tune_read(run, both[0], &out[0]) && tune_read(run, both[1], &out[1]))
            return true;
    }
    return false;
}

/* ---- one change --------------------------------------------------------------------------- */

/* Figures: of worker and control before, of worker and control after; NULL: they were not measured.
 * Takes `what` over. */
static void tune_tell(tune_run *run, json_t *what, const char *verdict, const char *why,
                      const tune_figure *figures)
{
    static const char *const names[] = {"before_ns", "control_before_ns", "after_ns",
                                        "control_after_ns"};
    json_t *reason = json_string(why); /* NULL: a worker's words were cut within a character */
    json_t *entry =
        json_pack("{s:i, s:i, s:s, s:o, s:s, s:o}", "worker", (int)run->worker, "control",
                  (int)run->control, "objective", run->objective, "what", what, "verdict", verdict,
                  "why", reason != NULL ? reason : json_string("it was refused"));
    for (int i = 0; figures != NULL && i < 4; i++)
        json_object_set_new(entry, names[i], json_real(figures[i].ns));
    journal_add(entry);
}

static bool tune_wins(const tune_figure f[4], char why[200])
{
    double gain = (f[0].ns - f[2].ns) - (f[1].ns - f[3].ns), squares = 0;
    for (int i = 0; i < 4; i++)
        squares += f[i].error_ns * f[i].error_ns;
    double error = sqrt(squares);
    bool wins = gain > TUNE_CONFIDENCE * error;
    snprintf(why, 200,
             "a use got %.1f ns %s than the control's did, with a standard error of %.1f ns%s",
             fabs(gain), gain >= 0 ? "faster" : "slower", error,
             !wins && gain > 0 ? ": not sure at 95 %" : "");
    return wins;
}

/* The worker, as it was measured, gets the change, which is taken back unless it wins. */
static bool tune_apply(tune_run *run, json_t *apply, json_t *undo, json_t *what,
                       tune_figure figures[4])
{
    char why[430] = "the objective was not measured often enough after it", error[200];
    const char *verdict = "kept";
    bool gone;
    json_t *answer = workers_ask(run->worker, apply, why, &gone);
    bool measured = answer != NULL && tune_measure(run, figures + 2);
    json_decref(answer);
    bool kept = measured && tune_wins(figures, why);
    if (!kept) {
        answer = workers_ask(run->worker, json_incref(undo), error, &gone);
        verdict = answer != NULL ? "rolled back" : "not undone";
        size_t length = strlen(why);
        if (answer == NULL)
            snprintf(why + length, sizeof why - length, "; taking it back failed: %s", error);
        json_decref(answer);
    }
    tune_tell(run, what, verdict, why, measured ? figures : NULL);
    return kept;
}

/* Takes both requests over; `format`: what is tried. The control's own changes count as noise of both,
 * so each change is measured from a new start. True: it was kept. */
__attribute__((format(printf, 4, 5))) static bool tune_try(tune_run *run, json_t *apply,
                                                           json_t *undo, const char *format, ...)
{
    tune_figure figures[4];
    bool kept = false;
    va_list values;
    va_start(values, format);
    json_t *what = json_vsprintf(format, values);
    va_end(values);
    if (run->lost || tune_is_ended())
        json_decref(what);
    else if (tune_measure(run, figures))
        kept = tune_apply(run, json_incref(apply), undo, what, figures);
    else
        tune_tell(run, what, "not tried", "the objective is not measured often enough", NULL);
    json_decref(apply);
    json_decref(undo);
    return kept;
}

/* ---- what there is to try ----------------------------------------------------------------- */

/* Takes a request over and gives it with one member more. */
static json_t *tune_with(json_t *request, const char *key, json_t *value)
{
    json_object_set(request, key, value);
    return request;
}

/* Tries each value in the place of what is there now, and goes on from what wins. `request` sets one when
 * `key` is added. Takes `request` and `values` over. */
static void tune_values(tune_run *run, const char *name, json_t *now, json_t *request,
                        const char *key, json_t *values)
{
    size_t i;
    json_t *next;
    json_array_foreach(values, i, next)
    {
        char *from = json_dumps(now, JSON_ENCODE_ANY), *to = json_dumps(next, JSON_ENCODE_ANY);
        if (!json_equal(now, next) && from != NULL && to != NULL &&
            tune_try(run, tune_with(json_copy(request), key, next),
                     tune_with(json_copy(request), key, now), "%s from %s to %s", name, from, to))
            now = next;
        free(from);
        free(to);
    }
    json_decref(values);
    json_decref(request);
}

/* The lowest value and its doubles, and the highest. */
static void tune_knob(tune_run *run, const json_t *knob)
{
    const char *name = tune_text(knob, "name");
    json_int_t low = json_integer_value(json_object_get(knob, "low"));
    json_int_t high = json_integer_value(json_object_get(knob, "high"));
    json_t *values = json_array();
    for (json_int_t value = low; value<high; value = value> 0 ? 2 * value : 1) {
        json_array_append_new(values, json_integer(value));
        if (value > high / 2)
            break;
    }
    json_array_append_new(values, json_integer(high));
    tune_values(run, name, json_object_get(knob, "value"),
                json_pack("{s:s, s:s}", "do", "tell", "tunable", name), "value", values);
}

/* The library has chosen by itself what nobody pinned. */
static void tune_variants(tune_run *run, const json_t *tunable)
{
    const char *name = tune_text(tunable, "name");
    size_t i, k;
    json_t *row, *one;
    json_array_foreach(json_object_get(tunable, "rows"), i, row)
    {
        json_t *values = json_array(), *key = json_object_get(row, "key");
        json_array_foreach(json_object_get(row, "candidates"), k, one)
            json_array_append(values, json_object_get(one, "name"));
        if (key != NULL && json_is_true(json_object_get(row, "pinned")))
            tune_values(run, name, json_object_get(row, "choice"),
                        json_pack("{s:s, s:s, s:O}", "do", "tell", "tunable", name, "row", key),
                        "variant", values);
        else
            json_decref(values);
    }
}

/* A site that somebody pinned, or declared types of: is it better off by itself? One that learned its
 * types is left alone: nothing would bring back what a reset takes. */
static void tune_site(tune_run *run, const json_t *site)
{
    json_t *id = json_object_get(site, "id"), *types = json_object_get(site, "types");
    const char *name = tune_text(site, "name"), *tier = tune_text(site, "tier");
    const char *kind = tune_text(site, "kind");
    if (id == NULL || tier == NULL || kind == NULL)
        return;
    if (json_is_true(json_object_get(site, "pinned")))
        (void)tune_try(run, json_pack("{s:s, s:O}", "do", "unpin", "site", id),
                       json_pack("{s:s, s:O, s:s}", "do", "pin", "site", id, "tier", tier),
                       "site %s no longer pinned to %s", name, tier);
    else if (json_is_true(json_object_get(site, "declared")) && strcmp(tier, "table") == 0 &&
             strcmp(kind, "scope") == 0 && json_array_size(types) != 0)
        (void)tune_try(run, json_pack("{s:s, s:O}", "do", "reset", "site", id),
                       json_pack("{s:s, s:O, s:O}", "do", "declare", "site", id, "types", types),
                       "site %s, declared for %zu types, anew", name, json_array_size(types));
}

static void tune_setting(tune_run *run, const char *name, json_t *now)
{
    static const struct {
        const char *name;
        int low, high;
    } table[] = {{"trim_after", 2, 32}, {"auto_compact", 0, 1}, {"break_even", 0, 4}};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (strcmp(table[i].name, name) == 0)
            tune_values(run, name, now, json_pack("{s:s, s:s}", "do", "set", "key", name), "value",
                        json_pack("[i, i]", table[i].low, table[i].high));
}

static void tune_tunable(tune_run *run, const json_t *tunable)
{
    if (json_object_get(tunable, "value") != NULL)
        tune_knob(run, tunable);
    else if (strcmp(tune_text(tunable, "name"), run->objective) != 0)
        tune_variants(run, tunable);
}

/* Is it to be tried? Without a run it is only counted. */
static bool tune_wants(tune_run *run, const char *only, const char *name, int *found)
{
    bool wants = name != NULL && (only == NULL || strcmp(only, name) == 0);
    *found += wants;
    return wants && run != NULL;
}

/* Tries all that has the name (NULL: any); gives how much that is. */
static int tune_each(tune_run *run, const json_t *facts, const char *only)
{
    size_t i;
    int found = 0;
    json_t *one;
    const char *name;
    json_array_foreach(json_object_get(facts, "tunables"), i,
                       one) if (tune_wants(run, only, tune_text(one, "name"), &found))
        tune_tunable(run, one);
    json_array_foreach(json_object_get(facts, "sites"), i,
                       one) if (tune_wants(run, only, tune_text(one, "name"), &found))
        tune_site(run, one);
    json_object_foreach(json_object_get(facts, "settings"), name,
                        one) if (tune_wants(run, only, name, &found)) tune_setting(run, name, one);
    return found;
}

/* ---- a run -------------------------------------------------------------------------------- */

static void *tune_work(void *argument)
{
    tune_run *run = argument;
    (void)tune_each(run, json_object_get(run->held, "facts"), run->only);
    tune_tell(run, json_string("the run"), "ended",
              run->lost         ? "a worker is gone"
              : tune_is_ended() ? "it was stopped"
                                : "all was tried",
              NULL);
    json_decref(run->held);
    __atomic_store_n(&tune_is_running, false, __ATOMIC_RELEASE);
    return NULL;
}

/* The first tunable of the worker that is only measured; NULL: there is none. */
static const char *tune_find_objective(const json_t *facts)
{
    size_t i;
    const json_t *one;
    const char *found = NULL;
    json_array_foreach(json_object_get(facts, "tunables"), i, one)
    {
        const char *kind = tune_text(one, "kind");
        if (found == NULL && kind != NULL && strcmp(kind, "measured") == 0)
            found = tune_text(one, "name");
    }
    return found;
}

/* Another worker that runs the same program; 0: there is none. */
static pid_t tune_find_control(const json_t *facts)
{
    json_t *list = workers_seen(), *one;
    size_t i;
    pid_t found = 0;
    json_array_foreach(list, i, one)
    {
        if (json_equal(json_object_get(one, "program"), json_object_get(facts, "program")) &&
            !json_equal(json_object_get(one, "pid"), json_object_get(facts, "pid")))
            found = (pid_t)json_integer_value(json_object_get(one, "pid"));
    }
    json_decref(list);
    return found;
}

/* False with a text: it cannot be run. */
static bool tune_prepare(tune_run *run, const json_t *order, char error[200])
{
    run->worker = (pid_t)json_integer_value(json_object_get(order, "worker"));
    run->control = (pid_t)json_integer_value(json_object_get(order, "control"));
    run->only = tune_text(order, "only");
    run->objective = tune_text(order, "objective");
    const json_t *facts = json_object_get(run->held, "facts");
    if (run->objective == NULL)
        run->objective = tune_find_objective(facts);
    if (run->control == 0)
        run->control = tune_find_control(facts);
    json_t *control = run->control != run->worker ? workers_facts(run->control) : NULL;
    json_decref(control);
    if (facts == NULL)
        return false;
    if (control == NULL)
        snprintf(error, 200, "there is no other worker of this program to compare it with");
    else if (run->objective == NULL)
        snprintf(error, 200, "the worker measures nothing");
    else if (tune_each(NULL, facts, run->only) == 0)
        snprintf(error, 200, "the worker has nothing of the name \"%.100s\"", run->only);
    else
        return true;
    return false;
}

bool tune_begin(const json_t *order, char error[200])
{
    static tune_run run; /* the thread's, while there is one */
    pthread_t thread;
    bool good = false;
    pthread_mutex_lock(&tune_lock);
    snprintf(error, 200, "a run is under way");
    if (!tune_running() && !tune_is_ended()) {
        bool gone; /* what was last seen may be older than the last order */
        json_t *facts = workers_ask((pid_t)json_integer_value(json_object_get(order, "worker")),
                                    json_pack("{s:s}", "get", "facts"), error, &gone);
        json_t *held = json_pack("{s:o, s:o*}", "order", json_deep_copy(order), "facts", facts);
        run = (tune_run){.held = held};
        good = tune_prepare(&run, json_object_get(held, "order"), error);
        __atomic_store_n(&tune_is_running, good, __ATOMIC_RELEASE);
        if (!good || pthread_create(&thread, NULL, tune_work, &run) != 0) {
            __atomic_store_n(&tune_is_running, false, __ATOMIC_RELEASE);
            json_decref(held);
            good = false;
        } else
            pthread_detach(thread);
    }
    pthread_mutex_unlock(&tune_lock);
    return good;
}

void tune_stop(void)
{
    pthread_mutex_lock(&tune_lock);
    __atomic_store_n(&tune_ends, true, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&tune_lock);
    while (tune_running())
        nanosleep(&(struct timespec){.tv_nsec = LOOK_MS * 1000000L}, NULL);
}
