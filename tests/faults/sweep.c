/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "sweep.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <tidepool/dynamic.h>
#include <tidepool/site.h>
#include <tidepool/tune.h>
#include <tidepool/upkeep.h>

#include <cmocka.h>

#include "tests/hooks.h"
#include "tests/support.h"

enum { ONCE, FOR_EVER, MODES, RUNS_MAX = 200 };

/* ---- faults ----------------------------------------------------------------------------- */

/* Shared by all processes: what this run failed, and all of them. */
struct injected {
    unsigned run, total;
    char wrong[512];
};

static struct injected *injected;
static unsigned asked, nth, mode;

static bool inject(size_t bytes)
{
    (void)bytes;
    bool fails = ++asked == nth || (mode == FOR_EVER && asked > nth);
    injected->run += fails;
    injected->total += fails;
    return fails;
}

static tide_status call_with_faults(const struct fault_case *one, struct fixture *fixture)
{
    asked = 0;
    injected->run = 0;
    set_memory_fault(inject);
    tide_status status = one->call(fixture);
    set_memory_fault(NULL);
    return status;
}

/* ---- one run, in its own process --------------------------------------------------------- */

#define MUST(holds, ...)                                                    \
    do {                                                                    \
        if (!(holds)) {                                                     \
            snprintf(injected->wrong, sizeof injected->wrong, __VA_ARGS__); \
            exit(EXIT_FAILURE);                                             \
        }                                                                   \
    } while (0)

/* What a failed call must leave as it was. */
struct counts {
    size_t depth, slots_live, bytes_live, sites, types;
};

static struct counts count(const struct fixture *fixture)
{
    tide_pool_statistics stats;
    MUST(tide_pool_stats(fixture->pool, &stats) == TIDE_OK, "stats: %s", tide_error_message());
    return (struct counts){.depth = stats.depth,
                           .slots_live = stats.slots_live,
                           .bytes_live = stats.bytes_live,
                           .sites = tide_site_count(),
                           .types = tide_type_count()};
}

static void expect_failure(const struct fault_case *one, const struct fixture *fixture,
                           tide_status status, struct counts before)
{
    struct counts after = count(fixture);
    const char *says = one->says != NULL ? one->says : "tide_";
    if ((one->also & REGISTERS) != 0)
        before.types = after.types; /* what was registered on the way stays */
    MUST(injected->run > 0, "failed by itself: %s", tide_error_message());
    MUST(status == TIDE_ERROR_MEMORY || (one->also >> status & 1) != 0, "failed with %s: %s",
         tide_status_name(status), tide_error_message());
    MUST(strstr(tide_error_message(), says) != NULL, "the message lacks '%s': %s", says,
         tide_error_message());
    MUST(memcmp(&before, &after, sizeof before) == 0,
         "failed, but changed: depth %zu to %zu, live %zu to %zu, sites %zu to %zu, "
         "types %zu to %zu",
         before.depth, after.depth, before.slots_live, after.slots_live, before.sites, after.sites,
         before.types, after.types);
}

static void expect_valid(const struct fixture *fixture)
{
    MUST(tide_pool_check(fixture->pool) == TIDE_OK, "%s", tide_error_message());
}

static size_t address_space(void)
{
    size_t pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file != NULL && fscanf(file, "%zu", &pages) != 1)
        pages = 0;
    if (file != NULL)
        fclose(file);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

/* Leak checkers do not see mappings; but a pool's is large, and those of four failures larger. */
static tide_status fail_repeatedly(const struct fault_case *one, struct fixture *fixture,
                                   tide_status status)
{
    enum { TIMES = 4, LEAST_LEAK = 64 << 20 };
    struct injected counted = *injected;
    size_t before = address_space();
    for (unsigned i = 0; i < TIMES && status != TIDE_OK; i++)
        status = call_with_faults(one, fixture);
    size_t after = address_space();
    MUST(after < before + LEAST_LEAK, "failures took address space: %zu to %zu", before, after);
    *injected = counted;
    return status;
}

static void run(const struct fault_case *one)
{
    MUST(tide_tune_set("learn", 0) == TIDE_OK && tide_tune_set("background", 0) == TIDE_OK,
         "settings: %s", tide_error_message());
    struct fixture fixture = {.pool = tide_pool_create(&(tide_pool_options){.name = "faults"})};
    MUST(fixture.pool != NULL, "no pool: %s", tide_error_message());
    if (one->prepare != NULL)
        one->prepare(&fixture);
    struct counts before = count(&fixture);
    tide_status status = call_with_faults(one, &fixture);
    if (status != TIDE_OK) {
        expect_failure(one, &fixture, status, before);
        expect_valid(&fixture);
        status = fail_repeatedly(one, &fixture, status);
    }
    if (status != TIDE_OK) {
        status = one->call(&fixture);
        MUST(status == TIDE_OK, "failed again without faults: %s", tide_error_message());
    }
    expect_valid(&fixture);
    MUST(tide_pool_reset(fixture.pool) == TIDE_OK, "reset: %s", tide_error_message());
    MUST(tide_pool_destroy(fixture.pool) == TIDE_OK, "destroy: %s", tide_error_message());
    exit(EXIT_SUCCESS);
}

/* ---- all of them ------------------------------------------------------------------------ */

static void run_apart(const struct fault_case *one)
{
    injected->run = 0;
    injected->wrong[0] = '\0';
    pid_t child = fork_child(0);
    if (child == 0) {
        learn_in_a_child();
        run(one);
    }
    int status = wait_for_child(child);
    if (status != 0)
        fail_msg("%s, allocation %u fails %s: status %d: %s", one->name, nth,
                 mode == ONCE ? "once" : "for ever", status, injected->wrong);
}

/* Where tests are to be much shorter each allocation fails once, and not for ever as well. */
static unsigned modes(void)
{
    return scaled(20, 1) >= 4 ? MODES : FOR_EVER;
}

/* Where they are to be shorter still every third allocation fails. */
static unsigned step(void)
{
    return scaled(20, 1) >= 2 ? 1 : 3;
}

static void sweep(void **state)
{
    const struct fault_case *one = *state;
    for (mode = 0; mode < modes(); mode++) {
        unsigned runs = 0;
        for (nth = 1; nth == 1 || injected->run > 0; nth += step(), runs++) {
            assert_in_range(nth, 1, RUNS_MAX);
            run_apart(one);
        }
        if (one->allocates)
            assert_in_range(runs, 2, RUNS_MAX);
        else
            assert_int_equal(runs, 1);
    }
}

static const struct fault_list *const lists[] = {&fault_basics, &fault_arrays, &fault_buffers,
                                                 &fault_learning};
enum { LISTS = sizeof lists / sizeof *lists };

static unsigned case_count(void)
{
    unsigned count = 0;
    for (unsigned list = 0; list < LISTS; list++)
        count += lists[list]->count;
    return count;
}

static const struct fault_case *case_at(unsigned i)
{
    unsigned list = 0;
    for (; i >= lists[list]->count; list++)
        i -= lists[list]->count;
    return &lists[list]->cases[i];
}

/* What the whole sweep rests on. */
static void faults_were_injected(void **state)
{
    (void)state;
    unsigned allocating = 0;
    for (unsigned i = 0; i < case_count(); i++)
        allocating += case_at(i)->allocates;
    print_message("%u faults were injected into %u of %u cases\n", injected->total, allocating,
                  case_count());
    unsigned least = modes() == MODES ? 3 : 1; /* once, and for ever one and more */
    assert_true(injected->total >= least * allocating);
}

int main(void)
{
    enum { MOST = 256 };
    static struct CMUnitTest tests[MOST];
    injected =
        mmap(NULL, sizeof *injected, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (injected == MAP_FAILED || case_count() >= MOST)
        return EXIT_FAILURE;
    for (unsigned i = 0; i < case_count(); i++)
        tests[i] = (struct CMUnitTest){
            .name = case_at(i)->name, .test_func = sweep, .initial_state = (void *)case_at(i)};
    tests[case_count()] = (struct CMUnitTest)cmocka_unit_test(faults_were_injected);
    return _cmocka_run_group_tests("faults", tests, case_count() + 1, NULL, NULL);
}
