/* SPDX-License-Identifier: MIT */
/* Sites that are staged again and again: nothing grows. */
#define _GNU_SOURCE
#include "learning.h"

#include <stdio.h>
#include <unistd.h>

#include <tidepool/learn.h>
#include <tidepool/site.h>

enum { SITES = 48, PHASES = 6 };

/* ---- what may not grow ------------------------------------------------------------------- */

typedef struct measure {
    size_t resident_kib, mappings, objects;
} measure;

static size_t mappings(void)
{
    size_t lines = 0;
    FILE *maps = fopen("/proc/self/maps", "re");
    assert_non_null(maps);
    for (int c; (c = getc(maps)) != EOF;)
        lines += c == '\n';
    fclose(maps);
    return lines;
}

static size_t resident_kib(void)
{
    unsigned long size = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%lu %lu", &size, &resident), 2);
    fclose(file);
    return resident * (size_t)sysconf(_SC_PAGESIZE) / 1024;
}

static measure take_measure(void)
{
    return (measure){resident_kib(), mappings(), (size_t)learned().code_objects};
}

/* ---- re-staging -------------------------------------------------------------------------- */

static use sites[SITES];

static const tide_type phase_types[PHASES] = {TIDE_F64, TIDE_I32, TIDE_F32,
                                              TIDE_U8,  TIDE_I64, TIDE_U16};

static void make_sites(const char *purpose)
{
    for (unsigned i = 0; i < SITES; i++) {
        char name[64];
        snprintf(name, sizeof name, "%s %u", purpose, i);
        sites[i] = use_of(name, TIDE_KIND_SCOPE, learning_pool, 1, TIDE_F64);
    }
}

static bool staged(const use *u)
{
    tide_site_information info = info_of(u->site);
    return info.tier == TIDE_TIER_COMPILED && info.types[0] == u->types[0];
}

/* All sites change to the phase's type; returns how many of them were staged for it. */
static unsigned change(unsigned phase)
{
    unsigned reached = 0;
    for (unsigned i = 0; i < SITES; i++)
        sites[i].types[0] = phase_types[phase % PHASES];
    for (unsigned i = 0; i < 30 && reached < SITES; i++) {
        reached = 0;
        for (unsigned s = 0; s < SITES; s++) {
            use_times(&sites[s], 12);
            reached += staged(&sites[s]);
        }
        settle();
        expect_ok(tide_step());
    }
    return reached;
}

static void quicken(void)
{
    set_quick();
    set("batch_max", 64);
}

/* The sites are restaged for the same types: they share code, which is made once. */
static void ten_thousand_restagings_compile_each_plan_once(void **state)
{
    (void)state;
    need_stager();
    quicken();
    make_sites("58: restaged");
    unsigned phases = (unsigned)scaled(200, 20);
    tide_learning_statistics before = learned();
    for (unsigned phase = 0; phase < PHASES; phase++)
        assert_int_equal(change(phase), SITES);
    measure early = take_measure();
    uint64_t ordered = learned().ordered;
    assert_in_range(ordered - before.ordered, PHASES, PHASES * SITES);
    for (unsigned phase = 0; phase < phases; phase++)
        assert_int_equal(change(phase), SITES);
    measure late = take_measure();
    assert_int_equal(learned().ordered, ordered);
    assert_int_equal(late.objects, early.objects);
    assert_in_range(late.mappings, 1, early.mappings + SITES);
    if (!under_sanitizer() && !under_valgrind())
        assert_in_range(late.resident_kib, 1, early.resident_kib + 8 * 1024);
    for (unsigned i = 0; i < SITES; i++)
        expect_ok(tide_site_pin(sites[i].site, TIDE_TIER_COMPILED));
    settle();
    for (unsigned i = 0; i < SITES; i++)
        expect_executed(&sites[i], 20);
}

/* A site whose types never come back gets as many plans as are remembered, and keeps those. */
static void plans_of_one_site_are_bounded_and_it_says_so(void **state)
{
    (void)state;
    need_stager();
    quicken();
    set("plans_max", 5);
    set("misses", 1e9); /* the reason shall be the last word */
    use u = use_of("58: ever new", TIDE_KIND_SCOPE, learning_pool, 1, TIDE_F64);
    for (unsigned n = 1; n < 40; n++) {
        char name[32];
        snprintf(name, sizeof name, "58: new %u", n);
        u.types[0] = tide_type_register(name, 8, 8);
        for (unsigned i = 0; i < 4; i++) {
            use_times(&u, 12);
            settle();
            expect_ok(tide_step());
        }
    }
    assert_in_range(info_of(u.site).compiles, 1, 40);
    assert_string_equal(reason_of(u.site),
                        "as many plans as are remembered; those are all it gets");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LEARNING_TEST(plans_of_one_site_are_bounded_and_it_says_so),
        LEARNING_TEST(ten_thousand_restagings_compile_each_plan_once),
    };
    return cmocka_run_group_tests_name("learning: restaging", tests, learning_make_pool,
                                       learning_drop_pool);
}
