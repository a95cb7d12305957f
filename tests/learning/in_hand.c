/* SPDX-License-Identifier: MIT */
/* What the keeper has in hand when somebody forks. A round lets go of its lock while it is in code
 * that is not the library's, so a fork may come there, and its child has no keeper. Memory and
 * descriptors that only the keeper's stack knew of would be the child's for ever. So one process
 * finds out at which places the keeper goes outside, and how often; for each of them another one
 * stops it there, and forks; and the child looks for what is lost. Descriptors it counts itself; a
 * leak checker, where there is one, looks at its end. */
#define _GNU_SOURCE
#include "learning.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <tidepool/buffers.h>

#include "jit/cache/cache.h"
#include "jit/cache/test_hooks.h"
#include "jit/learn/round.h"
#include "jit/stager/test_hooks.h"
#include "runtime/base/hooks.h"
#include "runtime/base/lock.h"
#include "runtime/device/device.h"
#include "tests/gate.h"

/* A place of the program at which the keeper goes outside, and how often it came there. */
typedef struct place {
    const void *at;
    unsigned times;
} place;

enum { PLACES = 64 };

static place *seen; /* PLACES of them, shared with the processes that run */
static place visited[PLACES];
static place stop; /* the keeper stops at this place, that time; NULL: nowhere */

static place *find_place(place *places, const void *at)
{
    unsigned i = 0;
    while (i < PLACES && places[i].at != NULL && places[i].at != at)
        i++;
    CHILD_MUST(i < PLACES);
    places[i].at = at;
    return &places[i];
}

static void be_outside(const void *at)
{
    unsigned times = ++find_place(visited, at)->times; /* the keeper's alone */
    if (at == stop.at && times == stop.times)
        gate_pass(0);
}

tide_outside __real_tide_outside_enter(void);
tide_outside __wrap_tide_outside_enter(void);

tide_outside __wrap_tide_outside_enter(void)
{
    tide_outside outside = __real_tide_outside_enter();
    if (tide_round_is_keeper())
        be_outside(__builtin_return_address(0));
    return outside;
}

/* ---- the child of a fork -------------------------------------------------------------------- */

static char cache[] = "/var/tmp/tidepool-cache-XXXXXX";

/* What is lost is told by the status: 1, a descriptor; a leak checker has its own. */
static void look_for_what_is_lost(void)
{
    set("background", 0);
    CHILD_MUST(count_open(cache) == 0);
    for (unsigned i = 0; i < 3; i++)
        CHILD_MUST(tide_step() == TIDE_OK);
    exit(0);
}

/* ---- the process that forks ----------------------------------------------------------------- */

enum { FIRST = TIDE_F64, SECOND = TIDE_I32 };

static bool unloaded; /* atomic: what the site ran before; of the second type */

/* Uses the site until it runs code for that type, and what it ran before is unloaded. False: the
 * keeper stands at the gate. */
static bool use_until_settled(use *u, tide_type type, bool heed_gate)
{
    u->types[0] = type;
    for (;;) {
        if (heed_gate && gate_is_reached())
            return false;
        tide_site_information now = info_of(u->site);
        if (now.tier == TIDE_TIER_COMPILED && now.types[0] == type &&
            (type != SECOND || __atomic_load_n(&unloaded, __ATOMIC_ACQUIRE)))
            return true;
        for (unsigned i = 0; i < 10; i++)
            CHILD_MUST(use_once(u));
        usleep(200);
    }
}

static void hear_event(const tide_event *event, void *heard)
{
    ++*(unsigned *)heard;
    if (event->kind == TIDE_EVENT_RETIRED) /* told when the linker has unloaded it */
        __atomic_store_n(&unloaded, true, __ATOMIC_RELEASE);
}

static void hear_buffer(const tide_buffer_event *event, void *freed)
{
    *(unsigned *)freed += event->happening == TIDE_BUFFER_FREED;
}

/* Three that are cached, and so old after the next round that the keeper gives them back. */
static tide_buffers *cache_old_buffers(unsigned *freed)
{
    enum { BUFFERS = 3, BYTES = 5000 };
    tide_buffer all[BUFFERS];
    tide_buffers *buffers = tide_buffers_create(
        NULL, &(tide_buffers_options){.age_max = 1, .hook = hear_buffer, .user = freed});
    CHILD_MUST(buffers != NULL);
    for (unsigned i = 0; i < BUFFERS; i++)
        all[i] = tide_buffer_acquire(buffers, BYTES);
    for (unsigned i = 0; i < BUFFERS; i++)
        CHILD_MUST(tide_buffer_release(buffers, all[i]) == TIDE_OK);
    return buffers;
}

static unsigned built; /* by the keeper's thread */

/* A driver that is made up, in which the keeper is outside, too. */
static void *load_kernels(tide_device *device, const void *code, size_t bytes, const char *options)
{
    (void)device, (void)code, (void)bytes, (void)options;
    be_outside(&built);
    return &built;
}

static void *find_kernel(tide_device *device, void *module, const char *name)
{
    (void)device, (void)name;
    built++;
    return module;
}

/* A frame wants kernels: the keeper has them built. */
static void want_kernels(void)
{
    static tide_device_methods methods = {.load = load_kernels, .kernel = find_kernel};
    static tide_device device = {.methods = &methods, .dl = {TIDE_DL_OPENCL, 0}, .name = "made up"};
    CHILD_MUST(tide_hooks_policy.help(&(tide_frame_work){
                   .kind = TIDE_FRAME_PACK, .device = &device, .count = 1}) == TIDE_FRAME_ABSENT);
}

static void learn_quickly(void)
{
    tide_round_fork_patience_ms = 1; /* more would be in vain */
    set_quick();
    set("artefact_cache", 1);
    set("keeper_period", 1);
    set("background", 1);
}

typedef enum outcome { NOT_COME_TO = 41, NOTHING_LOST, LOST } outcome;

static outcome fork_here(void)
{
    pid_t child = fork_child(60);
    if (child == 0)
        look_for_what_is_lost();
    int status = wait_for_child(child);
    if (status != 0)
        fprintf(stderr, "the child of a fork at place %p, time %u, ended with %d\n", stop.at,
                stop.times, status);
    return status == 0 ? NOTHING_LOST : LOST;
}

/* Learns one type, then another in its place; and has what the keeper does beside that. */
static outcome learn_and_fork(void)
{
    tide_artefact_cache_figures figures;
    outcome out = NOT_COME_TO;
    unsigned heard = 0, freed = 0;
    static const tide_type types[] = {FIRST, SECOND};
    gate_close(0);
    learn_quickly();
    tide_event_set_handler(hear_event, &heard);
    tide_buffers *buffers = cache_old_buffers(&freed);
    want_kernels();
    tide_pool *pool = pool_of(TIDE_CHECK_NONE);
    use u = use_of("in hand", TIDE_KIND_SCOPE, pool, 1, TIDE_F64);
    CHILD_MUST(tide_background_start() == TIDE_OK);
    for (unsigned i = 0; i < 2; i++) {
        if (use_until_settled(&u, types[i], out == NOT_COME_TO))
            continue;
        out = fork_here();
        gate_let_pass();
        (void)use_until_settled(&u, types[i], false);
    }
    gate_let_pass(); /* it may have come there since */
    CHILD_MUST(tide_background_stop() == TIDE_OK);
    tide_artefact_cache_figures_get(&figures);
    CHILD_MUST(figures.found + figures.stored == 2 && figures.refused + figures.failed == 0);
    CHILD_MUST(learned().retired != 0 && heard != 0 && freed != 0 && built != 0);
    CHILD_MUST(tide_buffers_destroy(buffers) == TIDE_OK);
    CHILD_MUST(tide_pool_destroy(pool) == TIDE_OK);
    return out;
}

/* In a process of its own, which knows nothing yet. Without a place to stop at it tells all. */
static outcome outcome_of(place where)
{
    pid_t child = fork_child(100);
    if (child == 0) {
        stop = where;
        outcome out = learn_and_fork();
        if (where.at == NULL)
            memcpy(seen, visited, sizeof visited);
        exit((int)out);
    }
    int status = wait_for_child(child);
    assert_in_range(status, NOT_COME_TO, LOST);
    return (outcome)status;
}

/* ---- the tests ------------------------------------------------------------------------------ */

static void empty_cache(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s/tidepool", cache);
    assert_int_equal(system(command), 0);
}

/* Each time that it is come to, but for events and the like, of which each is as the other. How
 * often something was lost. */
static unsigned fork_at_place(place where, bool kept)
{
    enum { TIMES_MAX = 4 };
    unsigned lost = 0, most = where.times < TIMES_MAX ? where.times : TIMES_MAX;
    for (where.times = 1; where.times <= most; where.times++) {
        if (!kept)
            empty_cache();
        outcome out = outcome_of(where);
        assert_true(out != NOT_COME_TO || where.times > 1);
        lost += out == LOST;
    }
    return lost;
}

static void fork_at_each_place(bool kept)
{
    unsigned places = 0, lost = 0;
    need_stager();
    if (under_thread_sanitizer()) {
        print_message("ThreadSanitizer wants no threads in a child\n");
        skip();
    }
    if (under_valgrind()) {
        print_message(
            "a minute and a half, for what another leak checker has seen in ten seconds\n");
        skip();
    }
    empty_cache();
    assert_int_equal(outcome_of((place){0}), NOT_COME_TO); /* but all is in the cache, now */
    if (kept)
        assert_int_equal(outcome_of((place){0}), NOT_COME_TO);
    for (; places < PLACES && seen[places].at != NULL; places++)
        lost += fork_at_place(seen[places], kept);
    print_message("%u places\n", places);
    assert_in_range(places, 8, PLACES);
    assert_int_equal(lost, 0);
}

static void a_child_loses_nothing_of_what_the_keeper_compiles(void **state)
{
    (void)state;
    fork_at_each_place(false);
}

static void a_child_loses_nothing_of_what_the_keeper_finds_in_the_cache(void **state)
{
    (void)state;
    fork_at_each_place(true);
}

static int make_cache(void **state)
{
    (void)state;
    settings_of_tests();
    tide_store_start = mkdtemp(cache); /* what lies above it is everybody's */
    seen = mmap(NULL, sizeof visited, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (seen == MAP_FAILED || tide_store_start == NULL || setenv("XDG_CACHE_HOME", cache, 1) != 0)
        return 1;
    tide_locate_environment_forget();
    return 0;
}

static int drop_cache(void **state)
{
    (void)state;
    empty_cache();
    return rmdir(cache);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LEARNING_TEST(a_child_loses_nothing_of_what_the_keeper_compiles),
        LEARNING_TEST(a_child_loses_nothing_of_what_the_keeper_finds_in_the_cache),
    };
    return cmocka_run_group_tests_name("learning: in hand", tests, make_cache, drop_cache);
}
