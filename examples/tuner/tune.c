/* SPDX-License-Identifier: MIT */
/* One change at a time. Of the worker and of an untouched one the objective is measured before and
 * after a change; the change is kept if the worker got faster by more than the other did, at a
 * confidence of 95 %, and taken back otherwise. So a worker never ends worse than it was. */
#define _GNU_SOURCE
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "service.h"

enum { LEAST_USES = 40, WAIT_MS = 10000, LOOK_MS = 20, VALUES = 8, NAME_ROOM = 1024 };

#define TUNE_CONFIDENCE 1.96 /* standard errors: 95 % */

typedef struct tune_run {
    pid_t worker, control;
    bool lost; /* one of the two is gone: nothing more is tried */
    char only[NAME_ROOM], objective[NAME_ROOM];
} tune_run;

typedef struct tune_figure {
    double ns, error_ns;
} tune_figure;

static pthread_mutex_t tune_lock = PTHREAD_MUTEX_INITIALIZER;
static bool tune_is_running, tune_has_thread, tune_ends;
static pthread_t tune_thread;

static bool tune_is_ended(void)
{
    pthread_mutex_lock(&tune_lock);
    bool ended = tune_ends;
    pthread_mutex_unlock(&tune_lock);
    return ended;
}

/* ---- measuring ---------------------------------------------------------------------------- */

/* Takes the request over. */
static json_t *tune_ask(tune_run *run, pid_t pid, json_t *request)
{
    char error[200];
    bool gone;
    json_t *answer = workers_ask(pid, request, error, &gone);
    run->lost = run->lost || gone;
    json_decref(request);
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
        json_t *one = json_array_get(json_object_get(row, "candidates"), 0);
        double n = json_number_value(json_object_get(one, "uses"));
        double error = json_number_value(json_object_get(one, "error_ns"));
        uses += n;
        sum += n * json_number_value(json_object_get(one, "ns"));
        squares += n * n * error * error;
    }
    json_decref(answer);
    if (uses < LEAST_USES)
        return false;
    *out = (tune_figure){sum / uses, sqrt(squares) / uses};
    return true;
}

/* Both, over the same time, from now on. */
static bool tune_measure(tune_run *run, tune_figure *worker, tune_figure *control)
{
    json_t *forget = json_pack("{s:s, s:s}", "do", "forget", "tunable", run->objective);
    json_decref(tune_ask(run, run->worker, json_incref(forget)));
    json_decref(tune_ask(run, run->control, json_incref(forget)));
    json_decref(forget);
    for (int waited = 0; waited < WAIT_MS && !run->lost && !tune_is_ended(); waited += LOOK_MS) {
        nanosleep(&(struct timespec){.tv_nsec = LOOK_MS * 1000000L}, NULL);
        if (tune_read(run, run->worker, worker) && tune_read(run, run->control, control))
            return true;
    }
    return false;
}

/* ---- one change --------------------------------------------------------------------------- */

/* Sends each; false: one was refused. */
static bool tune_send(pid_t pid, const json_t *requests, char error[200])
{
    size_t i;
    json_t *one;
    bool good = true, gone;
    json_array_foreach(requests, i, one)
    {
        json_t *answer = workers_ask(pid, one, error, &gone);
        good = answer != NULL && good;
        json_decref(answer);
    }
    return good;
}

static void tune_tell(tune_run *run, const char *what, const char *verdict, const char *why,
                      const tune_figure figures[4])
{
    json_t *entry = json_pack("{s:i, s:i, s:s, s:s, s:s, s:s}", "worker", (int)run->worker,
                              "control", (int)run->control, "objective", run->objective, "what",
                              what, "verdict", verdict, "why", why);
    static const char *const names[] = {"before_ns", "control_before_ns", "after_ns",
                                        "control_after_ns"};
    for (int i = 0; figures != NULL && i < 4; i++)
        json_object_set_new(entry, names[i], json_real(figures[i].ns));
    journal_add(entry);
}

/* Figures: worker and control before, worker and control after. */
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
             wins       ? ""
             : gain > 0 ? ": not sure at 95 %"
                        : "");
    return wins;
}

/* The control's own changes count as noise of both, so each change is measured from a new start.
 * True: it was kept. */
static bool tune_try(tune_run *run, const tune_change *change)
{
    tune_figure figures[4];
    char why[200] = "the objective was not measured often enough after it", error[200], text[430];
    if (run->lost || tune_is_ended())
        return false;
    if (!tune_measure(run, &figures[0], &figures[1])) {
        tune_tell(run, change->what, "not tried", "the objective is not measured often enough",
                  NULL);
        return false;
    }
    bool applied = tune_send(run->worker, change->apply, why);
    bool measured = applied && tune_measure(run, &figures[2], &figures[3]);
    if (measured && tune_wins(figures, why)) {
        tune_tell(run, change->what, "kept", why, figures);
        return true;
    }
    bool undone = tune_send(run->worker, change->undo, error);
    snprintf(text, sizeof text, "%s%s%s", why,
             undone ? "" : "; taking it back failed: ", undone ? "" : error);
    tune_tell(run, change->what, undone ? "rolled back" : "not undone", text,
              measured ? figures : NULL);
    return false;
}

static void tune_drop(tune_change *change)
{
    json_decref(change->apply);
    json_decref(change->undo);
}

/* Takes the requests over. */
static bool tune_try_one(tune_run *run, json_t *apply, json_t *undo, const char *what)
{
    tune_change change = {.apply = json_pack("[o]", apply),
                          .undo = undo != NULL ? json_pack("[o]", undo) : json_array()};
    snprintf(change.what, sizeof change.what, "%s", what);
    bool kept = tune_try(run, &change);
    tune_drop(&change);
    return kept;
}

/* ---- what there is to try ----------------------------------------------------------------- */

static json_t *tune_tell_knob(const char *name, double value)
{
    return json_pack("{s:s, s:s, s:f}", "do", "tell", "tunable", name, "value", value);
}

/* From where it is, by factors of four and then two, up and down, as long as that wins. */
static void tune_knob(tune_run *run, const json_t *knob)
{
    const char *name = json_string_value(json_object_get(knob, "name"));
    double low = json_number_value(json_object_get(knob, "low"));
    double high = json_number_value(json_object_get(knob, "high"));
    double now = json_number_value(json_object_get(knob, "value"));
    static const double factors[] = {4, 0.25, 2, 0.5};
    for (size_t i = 0; i < sizeof factors / sizeof *factors; i++)
        for (int times = 0; times < VALUES; times++) {
            char what[200];
            double next = now == 0 && factors[i] > 1 ? 1 : floor(now * factors[i]);
            next = next < low ? low : next > high ? high : next;
            snprintf(what, sizeof what, "%s from %.0f to %.0f", name, now, next);
            if (next == now ||
                !tune_try_one(run, tune_tell_knob(name, next), tune_tell_knob(name, now), what))
                break;
            now = next;
        }
}

static json_t *tune_pin_variant(const char *name, json_int_t key, const char *variant)
{
    return json_pack("{s:s, s:s, s:s, s:I}", "do", "tell", "tunable", name, "variant", variant,
                     "row", key);
}

/* The library has chosen by itself what nobody pinned. */
static void tune_variants(tune_run *run, const json_t *tunable)
{
    const char *name = json_string_value(json_object_get(tunable, "name"));
    size_t i, k;
    json_t *row, *one;
    json_array_foreach(json_object_get(tunable, "rows"), i, row)
    {
        const char *now = json_string_value(json_object_get(row, "choice"));
        json_int_t key = json_integer_value(json_object_get(row, "key"));
        if (!json_is_true(json_object_get(row, "pinned")) || now == NULL)
            continue;
        json_array_foreach(json_object_get(row, "candidates"), k, one)
        {
            char what[200];
            const char *variant = json_string_value(json_object_get(one, "name"));
            if (variant == NULL || strcmp(variant, now) == 0)
                continue;
            snprintf(what, sizeof what, "%.60s, key %lld, from %.40s to %.40s", name,
                     (long long)key, now, variant);
            if (tune_try_one(run, tune_pin_variant(name, key, variant),
                             tune_pin_variant(name, key, now), what))
                now = variant;
        }
    }
}

/* A site that somebody pinned, or declared types of: is it better off by itself? One that learned its
 * types is left alone: nothing would bring back what a reset takes. */
static void tune_site(tune_run *run, const json_t *site)
{
    json_t *id = json_object_get(site, "id"), *types = json_object_get(site, "types");
    const char *name = json_string_value(json_object_get(site, "name"));
    const char *tier = json_string_value(json_object_get(site, "tier"));
    const char *kind = json_string_value(json_object_get(site, "kind"));
    char what[200];
    if (id == NULL || name == NULL || tier == NULL || kind == NULL)
        return;
    if (json_is_true(json_object_get(site, "pinned"))) {
        snprintf(what, sizeof what, "site %.60s no longer pinned to %.20s", name, tier);
        (void)tune_try_one(run, json_pack("{s:s, s:O}", "do", "unpin", "site", id),
                           json_pack("{s:s, s:O, s:s}", "do", "pin", "site", id, "tier", tier),
                           what);
    } else if (json_is_true(json_object_get(site, "declared")) && strcmp(tier, "table") == 0 &&
               strcmp(kind, "scope") == 0 && json_array_size(types) != 0) {
        snprintf(what, sizeof what, "site %.60s, declared for %zu types, anew", name,
                 json_array_size(types));
        (void)tune_try_one(
            run, json_pack("{s:s, s:O}", "do", "reset", "site", id),
            json_pack("{s:s, s:O, s:O}", "do", "declare", "site", id, "types", types), what);
    }
}

static void tune_setting(tune_run *run, const char *name, double now)
{
    static const struct {
        const char *name;
        double values[2];
    } table[] = {{"trim_after", {2, 32}}, {"auto_compact", {0, 1}}, {"break_even", {0, 4}}};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        for (int k = 0; k < 2 && strcmp(table[i].name, name) == 0; k++) {
            char what[200];
            double next = table[i].values[k];
            if (next == now)
                continue;
            snprintf(what, sizeof what, "setting %s from %g to %g", name, now, next);
            if (tune_try_one(
                    run, json_pack("{s:s, s:s, s:f}", "do", "set", "key", name, "value", next),
                    json_pack("{s:s, s:s, s:f}", "do", "set", "key", name, "value", now), what))
                now = next;
        }
}

static bool tune_wants(tune_run *run, const json_t *one)
{
    const char *name = json_string_value(json_object_get(one, "name"));
    return name != NULL && (run->only[0] == '\0' || strcmp(run->only, name) == 0);
}

static void tune_all(tune_run *run, const json_t *facts)
{
    size_t i;
    json_t *one;
    const char *name;
    json_array_foreach(json_object_get(facts, "tunables"), i, one)
    {
        if (!tune_wants(run, one) ||
            strcmp(json_string_value(json_object_get(one, "name")), run->objective) == 0)
            continue;
        if (json_object_get(one, "value") != NULL)
            tune_knob(run, one);
        else
            tune_variants(run, one);
    }
    json_array_foreach(json_object_get(facts, "sites"), i, one)
    {
        if (tune_wants(run, one))
            tune_site(run, one);
    }
    json_object_foreach(json_object_get(facts, "settings"), name, one)
    {
        if (run->only[0] == '\0' || strcmp(run->only, name) == 0)
            tune_setting(run, name, json_number_value(one));
    }
}

/* ---- a run -------------------------------------------------------------------------------- */

static void *tune_work(void *argument)
{
    tune_run *run = argument;
    json_t *facts = workers_facts(run->worker);
    if (facts != NULL)
        tune_all(run, facts);
    json_decref(facts);
    tune_tell(run, "the run", "ended",
              run->lost         ? "a worker is gone"
              : tune_is_ended() ? "it was stopped"
                                : "all was tried",
              NULL);
    free(run);
    pthread_mutex_lock(&tune_lock);
    tune_is_running = false;
    pthread_mutex_unlock(&tune_lock);
    return NULL;
}

/* The first tunable of the worker that is only measured. */
static void tune_find_objective(const json_t *facts, char *out, size_t room)
{
    size_t i;
    json_t *one;
    json_array_foreach(json_object_get(facts, "tunables"), i, one)
    {
        const char *kind = json_string_value(json_object_get(one, "kind"));
        const char *name = json_string_value(json_object_get(one, "name"));
        if (out[0] == '\0' && name != NULL && kind != NULL && strcmp(kind, "measured") == 0)
            snprintf(out, room, "%s", name);
    }
}

/* Its program and arguments; 0 bytes: nobody knows. */
static size_t tune_command_of(pid_t pid, char *out, size_t room)
{
    char path[40];
    snprintf(path, sizeof path, "/proc/%d/cmdline", (int)pid);
    FILE *file = fopen(path, "re");
    size_t length = file != NULL ? fread(out, 1, room, file) : 0;
    if (file != NULL)
        fclose(file);
    return length;
}

/* A worker that does the same: another process of the same command. */
static pid_t tune_find_control(pid_t worker)
{
    char ours[1000], others[1000];
    size_t length = tune_command_of(worker, ours, sizeof ours), i;
    json_t *list = workers_seen(), *one;
    pid_t found = 0;
    json_array_foreach(list, i, one)
    {
        pid_t pid = (pid_t)json_integer_value(json_object_get(one, "pid"));
        if (pid != worker && length > 0 && tune_command_of(pid, others, sizeof others) == length &&
            memcmp(ours, others, length) == 0)
            found = pid;
    }
    json_decref(list);
    return found;
}

static bool tune_prepare(tune_run *run, char error[200])
{
    json_t *facts = workers_facts(run->worker), *control = NULL;
    if (facts == NULL)
        snprintf(error, 200, "no worker has the number %d", (int)run->worker);
    else {
        tune_find_objective(facts, run->objective, sizeof run->objective);
        run->control = run->control != 0 ? run->control : tune_find_control(run->worker);
        control = run->control != run->worker ? workers_facts(run->control) : NULL;
        if (control == NULL)
            snprintf(error, 200, "there is no other worker of the same command to compare it with");
        else if (run->objective[0] == '\0')
            snprintf(error, 200, "the worker measures nothing");
    }
    bool good = control != NULL && run->objective[0] != '\0';
    json_decref(facts);
    json_decref(control);
    return good;
}

bool tune_begin(pid_t worker, pid_t control, const char *only, const char *objective,
                char error[200])
{
    if ((only != NULL && strlen(only) >= NAME_ROOM) ||
        (objective != NULL && strlen(objective) >= NAME_ROOM)) {
        snprintf(error, 200, "a name is longer than %d bytes", NAME_ROOM - 1);
        return false;
    }
    tune_run *run = calloc(1, sizeof *run);
    if (run == NULL)
        return false;
    run->worker = worker;
    run->control = control;
    snprintf(run->only, sizeof run->only, "%s", only != NULL ? only : "");
    snprintf(run->objective, sizeof run->objective, "%s", objective != NULL ? objective : "");
    bool good = tune_prepare(run, error);
    pthread_mutex_lock(&tune_lock);
    if (good && (tune_is_running || tune_ends)) {
        snprintf(error, 200, "a run is under way");
        good = false;
    }
    if (good && tune_has_thread)
        pthread_join(tune_thread, NULL); /* it has ended */
    if (good)
        good = tune_has_thread = tune_is_running =
            pthread_create(&tune_thread, NULL, tune_work, run) == 0;
    pthread_mutex_unlock(&tune_lock);
    if (!good)
        free(run);
    return good;
}

bool tune_running(void)
{
    pthread_mutex_lock(&tune_lock);
    bool running = tune_is_running;
    pthread_mutex_unlock(&tune_lock);
    return running;
}

void tune_stop(void)
{
    pthread_mutex_lock(&tune_lock);
    tune_ends = true;
    bool joins = tune_has_thread;
    pthread_mutex_unlock(&tune_lock);
    if (joins)
        pthread_join(tune_thread, NULL);
}
