/* SPDX-License-Identifier: MIT */
/* Call sites, generic functions, profiles in files, and learning, each as a call that can be made
 * to fail. What learning cannot have it does without: the program's own calls go well, and once
 * there is memory again everything is learned after all. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <tidepool/dynamic.h>
#include <tidepool/generic.h>
#include <tidepool/learn.h>
#include <tidepool/profile.h>
#include <tidepool/scope.h>
#include <tidepool/site.h>
#include <tidepool/tune.h>

#include "sweep.h"
#include "tests/hooks.h"

/* ---- generic functions ------------------------------------------------------------------ */

static tide_generic *generic;
static unsigned calls;

static void method(void *args)
{
    *(unsigned *)args += 1;
}

static tide_status generic_create(struct fixture *fixture)
{
    (void)fixture;
    generic = tide_generic_create("faults");
    return status_of(generic);
}

static void prepare_generic(struct fixture *fixture)
{
    need(generic_create(fixture) == TIDE_OK, "generic");
}

static tide_status generic_add(struct fixture *fixture)
{
    (void)fixture;
    tide_status status = tide_generic_add(generic, TIDE_F64, method);
    bool found = tide_generic_find(generic, TIDE_F64) == method;
    if (status != TIDE_OK) /* its message is the one to be looked at */
        return !found ? tide_generic_add(generic, TIDE_F64, method) : TIDE_ERROR_STATE;
    return found ? TIDE_OK : TIDE_ERROR_STATE;
}

static tide_status dispatch_once(void)
{
    calls = 0;
    TIDE_DISPATCH(generic, TIDE_F64, &calls);
    return calls == 1 ? TIDE_OK : TIDE_ERROR_STATE;
}

static void prepare_method(struct fixture *fixture)
{
    prepare_generic(fixture);
    need(generic_add(fixture) == TIDE_OK, "method");
}

/* ---- call sites ------------------------------------------------------------------------- */

static tide_status register_kind(struct fixture *fixture)
{
    fixture->site = tide_site_register_kind("faults: dispatch", TIDE_KIND_DISPATCH);
    return status_of(fixture->site);
}

/* ---- profiles in files ------------------------------------------------------------------ */

static char path[64];

static tide_status observed_scope(tide_pool *pool)
{
    TIDE_SCOPE_NAMED(pool, "faults: observed");
    return status_of(tide_acquire(pool, double, 10));
}

static tide_status save(struct fixture *fixture)
{
    (void)fixture;
    struct {
        char text[4096];
    } before = {{0}}, after = {{0}};
    FILE *file = fopen(path, "r");
    need(file != NULL && fread(before.text, 1, sizeof before.text, file) > 0, "the file before");
    fclose(file);
    tide_status status = tide_profile_save(path);
    file = fopen(path, "r");
    need(file != NULL && fread(after.text, 1, sizeof after.text, file) > 0, "the file after");
    fclose(file);
    bool same = memcmp(&before, &after, sizeof before) == 0;
    return status == TIDE_OK || same ? status : TIDE_ERROR_STATE;
}

static void remove_file(void)
{
    unlink(path);
}

static void prepare_file(struct fixture *fixture)
{
    snprintf(path, sizeof path, "/tmp/tidepool-faults-XXXXXX");
    int file = mkstemp(path);
    need(file >= 0, "a temporary file");
    close(file);
    atexit(remove_file);
    need(tide_profile_observe(true) == TIDE_OK, "observe");
    need(observed_scope(fixture->pool) == TIDE_OK, "scope");
    need(tide_profile_observe(false) == TIDE_OK, "observe");
    need(tide_profile_save(path) == TIDE_OK, "save");
    need(tide_pool_reset(fixture->pool) == TIDE_OK, "reset");
}

static tide_status load(struct fixture *fixture)
{
    (void)fixture;
    return tide_profile_load(path);
}

static tide_status merge(struct fixture *fixture)
{
    (void)fixture;
    return tide_profile_merge(path);
}

/* ---- learning --------------------------------------------------------------------------- */

enum { WINDOW = 60 }; /* shorter than usual: there are many runs */

static void prepare_learn(struct fixture *fixture)
{
    (void)fixture;
    need(tide_tune_set("learn", 1) == TIDE_OK, "learn");
    need(tide_tune_set("trial", 0) == TIDE_OK, "trial");
    set_constant("window_calls", WINDOW);
}

static void prepare_learn_method(struct fixture *fixture)
{
    prepare_method(fixture);
    prepare_learn(fixture);
}

/* One use of a site of each kind. Whether it is observed is learning's own trouble. */
static tide_status use_each(tide_pool *pool)
{
    tide_status status = dispatch_once();
    TIDE_SCOPE_NAMED(pool, "faults: learned");
    if (tide_acquire(pool, double, 10) == NULL || tide_acquire(pool, int32_t, 10) == NULL)
        return tide_error_status();
    return status;
}

static tide_status use_first(struct fixture *fixture)
{
    tide_mark mark = tide_checkpoint(fixture->pool);
    tide_status status = use_each(fixture->pool);
    return tide_rewind(fixture->pool, mark) == TIDE_OK ? status : TIDE_ERROR_STATE;
}

static tide_status use_often(struct fixture *fixture)
{
    tide_status status = TIDE_OK;
    for (int i = 0; i < WINDOW + 5 && status == TIDE_OK; i++)
        status = use_first(fixture);
    return status;
}

/* Windows are full: a round decides. */
static void prepare_observed_sites(struct fixture *fixture)
{
    prepare_learn_method(fixture);
    need(use_often(fixture) == TIDE_OK, "uses");
}

struct learned {
    unsigned of[TIDE_KIND_COUNT], sites[TIDE_KIND_COUNT];
};

/* A dispatch needs no code. */
static tide_tier best_tier(tide_kind kind)
{
    return kind == TIDE_KIND_DISPATCH ? TIDE_TIER_TABLE : TIDE_TIER_COMPILED;
}

static bool count_learned(tide_site *site, void *user)
{
    struct learned *learned = user;
    tide_site_information info;
    need(tide_site_info(site, &info) == TIDE_OK, "info");
    if (strcmp(info.name, "faults: learned") == 0 || strcmp(info.function, "use_each") == 0 ||
        strcmp(info.function, "dispatch_once") == 0) {
        learned->sites[info.kind]++;
        learned->of[info.kind] += info.tier == best_tier(info.kind);
    }
    return true;
}

static bool all_learned(void)
{
    struct learned learned = {{0}, {0}};
    bool all = true;
    tide_site_each(count_learned, &learned);
    for (int kind = 0; kind < TIDE_KIND_COUNT; kind++)
        all = all && learned.sites[kind] == 1 && learned.of[kind] == 1;
    return all;
}

/* With memory again, everything has its best plan in the end, however long it was to be left alone. */
static bool learns_after_all(struct fixture *fixture)
{
    if (!stager_is_there())
        return true;
    for (int i = 0; i < 400 && !all_learned(); i++)
        if (use_often(fixture) != TIDE_OK || tide_settle(60000) != TIDE_OK)
            return false;
    return all_learned();
}

/* What it rests on is put aside for a while. */
static tide_status learn(struct fixture *fixture, tide_status status)
{
    memory_fault *fault = get_memory_fault();
    set_memory_fault(NULL);
    bool learned = learns_after_all(fixture);
    set_memory_fault(fault);
    return learned ? status : TIDE_ERROR_STATE;
}

static tide_status step(struct fixture *fixture)
{
    return learn(fixture, tide_step());
}

static tide_status settle(struct fixture *fixture)
{
    return learn(fixture, tide_settle(60000));
}

static tide_status use_and_learn(struct fixture *fixture)
{
    tide_status status = use_first(fixture);
    return status != TIDE_OK ? status : learn(fixture, status);
}

static void prepare_warm_learn(struct fixture *fixture)
{
    prepare_method(fixture);
    need(tide_acquire(fixture->pool, double, 1000) != NULL, "acquire");
    prepare_learn(fixture);
}

static void prepare_site(struct fixture *fixture)
{
    prepare_learn(fixture);
    fixture->site = tide_site_register("faults: steered");
    need(fixture->site != NULL, "site");
}

/* A plan of no types may be needed; learning may not. */
static tide_status steer(struct fixture *fixture)
{
    static const tide_type type = TIDE_F64;
    tide_status status = tide_site_pin(fixture->site, TIDE_TIER_FULL);
    if (status == TIDE_OK)
        status = tide_site_unpin(fixture->site);
    if (status == TIDE_OK)
        status = tide_site_reset(fixture->site);
    return status == TIDE_OK ? tide_site_declare(fixture->site, &type, 1) : status;
}

/* ---- the table -------------------------------------------------------------------------- */

static const struct fault_case cases[] = {
    {"tide_generic_create", NULL, generic_create, ASKS, "tide_generic_create", 0},
    {"tide_generic_add, find", prepare_generic, generic_add, ASKS, "tide_generic_add", 0},

    {"tide_site_register_kind", NULL, register_kind, ASKS, "tide_site_register_kind", 0},

    {"tide_profile_save", prepare_file, save, ASKS, "tide_profile_save", 0},
    {"tide_profile_load", prepare_file, load, ASKS, "tide_profile_load", 0},
    {"tide_profile_merge", prepare_file, merge, ASKS, "tide_profile_merge", 0},

    {"first uses, observed", prepare_learn_method, use_first, ASKS, NULL, 0},
    {"first uses, observed and learned", prepare_warm_learn, use_and_learn, ASKS, NULL, 0},
    {"tide_site_pin, unpin, reset, declare, learned", prepare_site, steer, ASKS,
     "tide_site_declare", 0},
    {"tide_step, deciding", prepare_observed_sites, step, ASKS, NULL, 0},
    {"tide_settle, compiling", prepare_observed_sites, settle, ASKS, NULL, 0},
};

const struct fault_list fault_learning = {cases, sizeof cases / sizeof *cases};
