/* SPDX-License-Identifier: MIT */
/* Scenes, and the whole run of a test: each case in each of them. */
#include "forms.h"
#include "hooks.h"

#include <stdio.h>

#include <tidepool/upkeep.h>

static const pool_kind kinds[] = {
    {"unchecked", TIDE_CHECK_NONE, false, false}, {"warm", TIDE_CHECK_NONE, false, true},
    {"poison", TIDE_CHECK_POISON, false, false},  {"disabled", TIDE_CHECK_NONE, true, false},
    {"guarded", TIDE_CHECK_GUARD, false, false},
};
enum { KIND_COUNT = sizeof(kinds) / sizeof(kinds[0]) };

static char noted[256];

void note(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(noted, sizeof noted, format, arguments);
    va_end(arguments);
}

/* ---- scenes ---- */

struct planned {
    const form_case *what;
    scene scene;
    char name[160];
};

static bool warm_up(tide_pool *pool)
{
    return tide_acquire(pool, double, 10) != NULL && tide_acquire(pool, int32_t, 10) != NULL &&
           tide_pool_reset(pool) == TIDE_OK;
}

static int scene_setup(void **state)
{
    struct planned *planned = *state;
    const tide_pool_options options = {.name = planned->name,
                                       .check = planned->scene.kind->check,
                                       .disabled = planned->scene.kind->disabled};
    planned->scene.pool = tide_pool_create(&options);
    noted[0] = 0;
    if (planned->scene.pool == NULL || (planned->scene.kind->warm && !warm_up(planned->scene.pool)))
        return -1;
    return 0;
}

static void scene_run(void **state)
{
    struct planned *planned = *state;
    planned->what->run(&planned->scene);
    CHECK_POOL(planned->scene.pool);
    assert_int_equal(tide_pool_depth(planned->scene.pool), 0);
    noted[0] = 0;
}

static int scene_teardown(void **state)
{
    struct planned *planned = *state;
    if (noted[0] != 0)
        print_error("%s: at %s\n", planned->name, noted);
    set_memory_fault(NULL); /* what follows is for tests that failed half-way */
    tide_pool_reset(planned->scene.pool);
    return tide_pool_destroy(planned->scene.pool) == TIDE_OK ? 0 : -1;
}

static bool is_scene(const form_case *what, const form *f, const pool_kind *kind)
{
    if (kind->warm && f->tier != TIDE_TIER_COMPILED)
        return false;
    return !what->slots_stay || !(kind->disabled || kind->check == TIDE_CHECK_GUARD);
}

static struct CMUnitTest plan_scene(struct planned *planned, const form_case *what, const form *f,
                                    const pool_kind *kind)
{
    planned->what = what;
    planned->scene.form = f;
    planned->scene.kind = kind;
    snprintf(planned->name, sizeof planned->name, "%s [%s, %s]", what->name, f->name, kind->name);
    const struct CMUnitTest test = {planned->name, scene_run, scene_setup, scene_teardown, planned};
    return test;
}

/* ---- the whole run ---- */

enum { COMPILED_MAX = 16 };

static uint64_t runs_before[COMPILED_MAX];

static void note_runs(void)
{
    size_t i = 0;
    EACH_FORM(f)
    if (f->tier == TIDE_TIER_COMPILED && i < COMPILED_MAX)
        runs_before[i++] = form_info(f).runs;
}

/* In warm pools its guards hold. */
static void compiled_code_was_run(void **state)
{
    (void)state;
    size_t i = 0;
    EACH_FORM(f)
    {
        if (f->tier != TIDE_TIER_COMPILED || i == COMPILED_MAX)
            continue;
        note("%s", f->name);
        assert_true(form_info(f).runs > runs_before[i++]);
    }
    assert_int_equal(i > 0, have_stager());
    noted[0] = 0;
}

int forms_main(const char *group, const form_case *cases, size_t case_count,
               const struct CMUnitTest *others, size_t other_count)
{
    size_t most = case_count * form_count() * KIND_COUNT, count = 0;
    struct planned *planned = calloc(most, sizeof *planned);
    struct CMUnitTest *tests = calloc(most + other_count + 1, sizeof *tests);
    if (planned == NULL || tests == NULL)
        return EXIT_FAILURE;
    forms_prepare_all();
    note_runs();
    if (!have_stager())
        print_message("no stager: the forms of the compiled tier are left out\n");
    for (size_t c = 0; c < case_count; c++) {
        for (size_t i = 0; i < form_count() * KIND_COUNT; i++) {
            const pool_kind *kind = &kinds[i % KIND_COUNT];
            const form *f = form_at(i / KIND_COUNT);
            if (is_scene(&cases[c], f, kind)) {
                tests[count] = plan_scene(&planned[count], &cases[c], f, kind);
                count++;
            }
        }
    }
    if (other_count > 0)
        memcpy(tests + count, others, other_count * sizeof *tests);
    count += other_count;
    tests[count++] = (struct CMUnitTest)cmocka_unit_test(compiled_code_was_run);
    int failed = _cmocka_run_group_tests(group, tests, count, NULL, NULL);
    free(tests);
    free(planned);
    return failed;
}
