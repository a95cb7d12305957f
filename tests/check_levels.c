/* SPDX-License-Identifier: MIT */
/* What is left of an array after its rewind: its content at level 0, poison at level 1. The
 * memory is read by the kernel, so that sanitizers may watch this program too. */
#include "forms.h"

#include <math.h>

enum { N = 50 };

struct dead_arrays {
    double *reals;
    float *floats;
    int32_t *integers;
    uint64_t *words;
    uint8_t *records;
    tide_type record;
};

static void leave_five_arrays_behind(tide_pool *pool, void *state)
{
    struct dead_arrays *dead = state;
    dead->reals = take(pool, TIDE_F64, N, 1);
    dead->floats = take(pool, TIDE_F32, N, 2);
    dead->integers = take(pool, TIDE_I32, N, 3);
    dead->words = take(pool, TIDE_U64, N, 4);
    dead->records = take(pool, dead->record, N, 5);
}

static void expect_ones(const void *from, size_t bytes)
{
    uint8_t content[N * 24];
    assert_true(bytes <= sizeof content);
    read_behind(from, content, bytes);
    for (size_t i = 0; i < bytes; i++)
        assert_int_equal(content[i], 0xff);
}

static void expect_poison(const struct dead_arrays *dead)
{
    double reals[N];
    float floats[N];
    int32_t integers[N];
    read_behind(dead->reals, reals, sizeof reals);
    read_behind(dead->floats, floats, sizeof floats);
    read_behind(dead->integers, integers, sizeof integers);
    for (size_t i = 0; i < N; i++) {
        assert_true(isnan(reals[i]));
        assert_true(isnan(floats[i]));
        assert_int_equal(integers[i], -1);
    }
    expect_ones(dead->reals, sizeof reals);
    expect_ones(dead->words, N * sizeof(uint64_t));
    expect_ones(dead->records, N * tide_type_size(dead->record));
}

static void expect_old_content(const struct dead_arrays *dead)
{
    expect_bytes(dead->reals, N * sizeof(double), 1);
    expect_bytes(dead->floats, N * sizeof(float), 2);
    expect_bytes(dead->integers, N * sizeof(int32_t), 3);
    expect_bytes(dead->words, N * sizeof(uint64_t), 4);
    expect_bytes(dead->records, N * tide_type_size(dead->record), 5);
}

static void expect_as_the_level_says(const scene *s, const struct dead_arrays *dead)
{
    if (s->kind->check == TIDE_CHECK_POISON)
        expect_poison(dead);
    else
        expect_old_content(dead);
}

static void a_rewind_poisons_at_level_1_and_keeps_content_at_level_0(const scene *s)
{
    struct dead_arrays dead = {.record = fresh_type()};
    form_run(s->form, s->pool, leave_five_arrays_behind, &dead);
    expect_as_the_level_says(s, &dead);
    form_run(s->form, s->pool, leave_five_arrays_behind, &dead);
    expect_as_the_level_says(s, &dead);
    form_repeat(s->form, s->pool, 3, leave_five_arrays_behind, &dead);
    expect_as_the_level_says(s, &dead);
}

static void reset_them(tide_pool *pool, void *state)
{
    leave_five_arrays_behind(pool, state);
    expect_ok(tide_pool_reset(pool));
}

static void a_reset_poisons_at_level_1_and_keeps_content_at_level_0(const scene *s)
{
    struct dead_arrays dead = {.record = fresh_type()};
    s->form->run(s->pool, reset_them, &dead);
    expect_as_the_level_says(s, &dead);
    leave_five_arrays_behind(s->pool, &dead);
    expect_ok(tide_pool_reset(s->pool));
    expect_as_the_level_says(s, &dead);
}


static void end_an_inner_one(tide_pool *pool, void *state)
{
    struct dead_arrays *dead = state;
    double *reals = take(pool, TIDE_F64, N, 7);
    uint8_t *records = take(pool, dead->record, N, 8);
    tide_mark mark = tide_checkpoint(pool);
    leave_five_arrays_behind(pool, dead);
    expect_ok(tide_rewind(pool, mark));
    expect_bytes(reals, N * sizeof *reals, 7);
    expect_bytes(records, N * tide_type_size(dead->record), 8);
    take(pool, TIDE_F64, N, 9);
    expect_bytes(reals, N * sizeof *reals, 7);
}

static void poison_stays_off_the_arrays_of_outer_scopes(const scene *s)
{
    struct dead_arrays dead = {.record = fresh_type()};
    double *root = take(s->pool, TIDE_F64, N, 6);
    form_run(s->form, s->pool, end_an_inner_one, &dead);
    form_repeat(s->form, s->pool, 3, end_an_inner_one, &dead);
    expect_bytes(root, N * sizeof *root, 6);
    expect_ok(tide_pool_reset(s->pool));
}

/* ---- which level a pool gets ---- */

static double *rewound(const tide_pool_options *options, tide_pool **pool)
{
    *pool = tide_pool_create(options);
    assert_non_null(*pool);
    tide_mark mark = tide_checkpoint(*pool);
    double *reals = take(*pool, TIDE_F64, N, 1);
    expect_ok(tide_rewind(*pool, mark));
    return reals;
}

static void expect_level(const tide_pool_options *options, int level)
{
    tide_pool *pool;
    double *reals = rewound(options, &pool), content[N];
    read_behind(reals, content, sizeof content);
    if (level == 1)
        assert_true(isnan(content[N - 1]));
    else
        expect_bytes(content, sizeof content, 1);
    expect_ok(tide_pool_destroy(pool));
}

static void a_pool_takes_its_level_from_its_options_or_the_setting(void **state)
{
    const tide_pool_options none = {.check = TIDE_CHECK_NONE}, some = {.check = TIDE_CHECK_POISON};
    double before;
    (void)state;
    expect_ok(tide_tune_get("check", &before));
    for (int level = 0; level <= 1; level++) {
        expect_ok(tide_tune_set("check", level));
        expect_level(NULL, level);
        expect_level(&none, 0);
        expect_level(&some, 1);
    }
    expect_ok(tide_tune_set("check", before));
}

static void a_bad_level_is_refused(void **state)
{
    const tide_pool_options options = {.check = (tide_check)77};
    (void)state;
    assert_null(tide_pool_create(&options));
    assert_int_equal(tide_error_status(), TIDE_ERROR_ARGUMENT);
    assert_non_null(strstr(tide_error_message(), "77"));
    assert_int_not_equal(tide_tune_set("check", -1), TIDE_OK);
}

static const form_case cases[] = {
    CASE_SLOTS(a_rewind_poisons_at_level_1_and_keeps_content_at_level_0),
    CASE_SLOTS(a_reset_poisons_at_level_1_and_keeps_content_at_level_0),
    CASE_SLOTS(poison_stays_off_the_arrays_of_outer_scopes),
};

static const struct CMUnitTest others[] = {
    cmocka_unit_test(a_pool_takes_its_level_from_its_options_or_the_setting),
    cmocka_unit_test(a_bad_level_is_refused),
};

int main(void)
{
    return FORMS_MAIN("check levels", cases, others);
}
