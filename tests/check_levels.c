/* SPDX-License-Identifier: MIT */
/* What is left of an array after its rewind: its content at level 0, poison at level 1; and what
 * is reported, by whom, to whom. Dead memory is read by the kernel, so that sanitizers may watch
 * this program too. */
#define _GNU_SOURCE
#include "forms.h"
#include "reports.h"

#include <math.h>
#include <pthread.h>
#include <unistd.h>

#include <tidepool/array.h>
#include <tidepool/bits.h>
#include <tidepool/check.h>
#include <tidepool/device.h>
#include <tidepool/device_bump.h>
#include <tidepool/dlpack.h>
#include <tidepool/dynamic.h>
#include <tidepool/scope.h>
#include <tidepool/site.h>
#include <tidepool/tune.h>
#include <tidepool/upkeep.h>

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

/* ---- leaked scopes ---- */

static heard all;
static jmp_buf out;

static void listen(void)
{
    all = (heard){0};
    tide_report_set_handler(hear, &all);
}

static void jump_out(tide_pool *pool, void *state)
{
    (void)state;
    take(pool, TIDE_F64, N, 1);
    longjmp(out, 1);
}

static void leak_one(tide_pool *pool, void *state)
{
    const form *inner = state;
    tide_mark around = tide_checkpoint(pool); /* else a loop around could not tell when to end */
    if (setjmp(out) == 0)
        inner->run(pool, jump_out, NULL);
    expect_ok(tide_rewind(pool, around));
}

static void a_leaked_scope_is_reported_once_at_level_1_and_never_at_level_0(const scene *s)
{
    size_t expected = s->kind->check >= TIDE_CHECK_POISON ? 1 : 0;
    listen();
    EACH_FORM(inner)
    {
        note("%s", inner->name);
        all.count = 0;
        form_run(s->form, s->pool, leak_one, (void *)(uintptr_t)inner);
        assert_int_equal(all.count, expected);
        if (expected == 1) {
            assert_int_equal(all.kind, TIDE_REPORT_LEAK);
            assert_non_null(strstr(all.text, "was left open"));
        }
    }
    tide_report_set_handler(NULL, NULL);
}

static void leak_three(tide_pool *pool)
{
    TIDE_SCOPE(pool);
    TIDE_SCOPE_TYPES(pool, double);
    TIDE_SCOPE(pool);
    take(pool, TIDE_F64, N, 1);
    longjmp(out, 1);
}

static void each_of_several_leaked_scopes_is_reported(void **state)
{
    (void)state;
    tide_pool *pool = pool_of(TIDE_CHECK_POISON);
    listen();
    for (int i = 1; i <= 3; i++) {
        TIDE_SCOPE(pool);
        if (setjmp(out) == 0)
            leak_three(pool);
        assert_int_equal(tide_pool_depth(pool), 4);
        assert_int_equal(all.count, 3 * (i - 1)); /* not before the scope around it ends */
    }
    assert_int_equal(all.count, 9);
    expect_ok(tide_pool_destroy(pool));
    tide_report_set_handler(NULL, NULL);
}

/* ---- what a report handler sees, and stderr ---- */

static bool say_on(tide_report_kind kind, const char *text, void *user)
{
    hear(kind, text, user);
    return true;
}

/* A misuse of a call that has no status. */
static tide_dl_managed *export_of_a_dead_array(tide_pool *pool)
{
    tide_mark mark = tide_checkpoint(pool);
    tide_array *array = tide_array_acquire(pool, TIDE_F64, 1, (int64_t[]){3});
    assert_non_null(array);
    expect_ok(tide_rewind(pool, mark));
    return tide_array_export(pool, array);
}

/* What it puts on stderr. */
static size_t on_stderr(tide_pool *pool, char *text, size_t bytes)
{
    int ends[2], saved = dup(STDERR_FILENO);
    assert_true(saved >= 0);
    assert_int_equal(pipe(ends), 0);
    assert_true(dup2(ends[1], STDERR_FILENO) >= 0);
    assert_null(export_of_a_dead_array(pool));
    assert_true(dup2(saved, STDERR_FILENO) >= 0);
    close(saved);
    close(ends[1]);
    ssize_t got = read(ends[0], text, bytes - 1);
    close(ends[0]);
    assert_true(got >= 0);
    text[got] = 0;
    return (size_t)got;
}

static void a_report_goes_to_the_handler_and_to_stderr_unless_told_otherwise(void **state)
{
    (void)state;
    char text[1024], line[1100];
    tide_pool *pool = pool_of(TIDE_CHECK_POISON), *unchecked = pool_of(TIDE_CHECK_NONE);
    listen();
    assert_int_equal(on_stderr(pool, text, sizeof text), 0);
    assert_int_equal(all.count, 1);
    tide_report_set_handler(say_on, &all);
    assert_true(on_stderr(pool, text, sizeof text) > 0);
    assert_int_equal(all.count, 2);
    assert_int_equal(all.kind, TIDE_REPORT_MISUSE);
    snprintf(line, sizeof line, "tidepool: %s\n", all.text);
    assert_string_equal(text, line);
    assert_int_equal(on_stderr(unchecked, text, sizeof text), 0);
    assert_int_equal(all.count, 2);
    tide_report_set_handler(NULL, NULL);
    assert_true(on_stderr(pool, text, sizeof text) > 0);
    assert_string_equal(text, line);
    assert_int_equal(all.count, 2);
    expect_ok(tide_pool_destroy(pool));
    expect_ok(tide_pool_destroy(unchecked));
}

/* ---- misuse, by status and by report ---- */

static void expect_said(const char *words)
{
    assert_int_equal(all.count, 0);
    if (strstr(tide_error_message(), words) == NULL)
        fail_msg("'%s' is not in '%s'", words, tide_error_message());
}

static void a_call_with_a_status_says_misuse_by_it_and_reports_nothing(void **state)
{
    (void)state;
    EACH_CHECK_LEVEL(level, TIDE_CHECK_GUARD)
    {
        tide_pool *pool = pool_of(level), *another = pool_of(level);
        tide_scope scope, inner;
        char bytes[16] = {0};
        listen();
        tide_mark mark = tide_checkpoint(pool);
        char *array = tide_acquire(pool, char, 10);
        expect_status(tide_rewind(another, mark), TIDE_ERROR_ARGUMENT);
        expect_said("of another pool");
        expect_status(tide_pool_destroy(pool), TIDE_ERROR_STATE);
        expect_said("open scopes");
        if (level == TIDE_CHECK_POISON) {
            expect_status(tide_upload(pool, array, bytes, 11), TIDE_ERROR_SIZE);
            expect_said("11 bytes from byte 0 on of an array of 10 bytes");
        }
        expect_ok(tide_rewind(pool, mark));
        if (level == TIDE_CHECK_POISON) {
            expect_status(tide_upload(pool, array, bytes, 10), TIDE_ERROR_STALE);
            expect_said("in no live array");
        }
        expect_status(tide_rewind(pool, mark), TIDE_ERROR_STALE);
        expect_said("rewound already");
        expect_ok(tide_scope_enter(pool, NULL, &scope));
        expect_ok(tide_scope_enter(pool, NULL, &inner));
        expect_ok(tide_pool_reset(pool));
        expect_status(tide_scope_leave(&inner), TIDE_ERROR_STALE);
        expect_said("rewound already");
        expect_status(tide_scope_leave(&scope), TIDE_ERROR_STALE);
        expect_said("rewound already");
        expect_status(tide_pool_destroy(tide_pool_local()), TIDE_ERROR_STATE);
        expect_said("ends with its thread");
        expect_ok(tide_pool_destroy(pool));
        expect_ok(tide_pool_destroy(another));
        tide_report_set_handler(NULL, NULL);
    }
}

/* Every public call that a thread other than the owner may not make. Those that return a status:
 * how many were refused by it. */
static size_t refused_by_status(tide_pool *pool, tide_mark mark)
{
    char bytes[8] = {0};
    tide_scope scope;
    tide_bump_scope bump;
    tide_pool_statistics stats;
    const tide_part part = {.data = bytes, .host = bytes, .type = TIDE_U8, .count = 1};
    const tide_status got[] = {
        tide_pool_reset(pool),
        tide_pool_empty(pool),
        tide_pool_destroy(pool),
        tide_pool_check(pool),
        tide_pool_stats(pool, &stats),
        tide_pool_print(pool, stderr),
        tide_pool_wait(pool),
        tide_pool_use_on(pool, NULL),
        tide_rewind(pool, mark),
        tide_scope_enter(pool, NULL, &scope),
        tide_upload(pool, bytes, bytes + 4, 4),
        tide_download(pool, bytes, bytes + 4, 4),
        tide_copy(pool, bytes, bytes + 4, 4),
        tide_upload_frame(pool, &part, 1),
        tide_download_frame(pool, &part, 1),
        tide_fill_frame(pool, &part, 1),
        tide_bump_enter(pool, 100, &bump),
    };
    size_t refused = 0;
    for (size_t i = 0; i < sizeof got / sizeof *got; i++) {
        if (got[i] != TIDE_ERROR_THREAD)
            fprintf(stderr, "call %zu: %s\n", i, tide_status_name(got[i]));
        refused += got[i] == TIDE_ERROR_THREAD;
    }
    return refused;
}

/* Those that return something else: how many of them returned nothing. */
static size_t refused_by_report(tide_pool *pool, const tide_array *array)
{
    const int64_t shape[] = {1};
    const uint8_t value = 0;
    tide_dl_managed *exported = tide_array_export(pool, array);
    size_t offset;
    const bool refused[] = {
        tide_acquire(pool, double, 1) == NULL,
        tide_acquire_type(pool, TIDE_F64, 1) == NULL,
        tide_zeros(pool, double, 1) == NULL,
        tide_ones(pool, double, 1) == NULL,
        tide_fill(pool, double, 1, 1) == NULL,
        tide_zeros_type(pool, TIDE_U8, 1) == NULL,
        tide_ones_type(pool, TIDE_U8, 1) == NULL,
        tide_fill_type(pool, TIDE_U8, 1, &value) == NULL,
        tide_acquire_bits(pool, 1) == NULL,
        tide_array_acquire(pool, TIDE_F64, 0, NULL) == NULL,
        tide_array_acquire(pool, TIDE_F64, 1, shape) == NULL,
        tide_array_zeros(pool, TIDE_F64, 1, shape) == NULL,
        tide_array_ones(pool, TIDE_F64, 1, shape) == NULL,
        tide_array_fill(pool, TIDE_U8, 1, shape, &value) == NULL,
        tide_array_view(pool, array, (int64_t[]){0}, shape, NULL) == NULL,
        tide_array_reshape(pool, array, 1, shape) == NULL,
        exported == NULL,
        tide_device_buffer(pool, array, &offset) == NULL,
        tide_checkpoint(pool).pool == NULL,
        tide_pool_trim(pool, TIDE_ALL_TYPES).slots == 0,
        tide_pool_compact(pool, TIDE_ALL_TYPES).slots == 0,
        tide_pool_depth(pool) == 0,
        tide_pool_active(pool, TIDE_F64) == 0,
    };
    size_t count = 0;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        count += refused[i];
    assert_int_equal(tide_error_status(), TIDE_ERROR_THREAD);
    {
        TIDE_SCOPE(pool); /* these have no result at all */
        TIDE_SCOPE_TYPES(pool, double);
        TIDE_LOOP(pool, i, 1) continue;
    }
    return count == sizeof refused / sizeof *refused ? count + 3 : 0;
}

struct stranger {
    tide_pool *pool;
    tide_mark mark;
    tide_array *array;
    size_t by_status, by_report, reports_of_status, reports;
};

static void *misuse_everything(void *user)
{
    struct stranger *stranger = user;
    stranger->by_status = refused_by_status(stranger->pool, stranger->mark);
    stranger->reports_of_status = all.count;
    stranger->by_report = refused_by_report(stranger->pool, stranger->array);
    stranger->reports = all.count;
    return NULL;
}

static void a_foreign_thread_is_refused_in_every_call_by_status_or_by_report(void **state)
{
    (void)state;
    pthread_t thread;
    tide_pool *pool = pool_of(TIDE_CHECK_POISON);
    struct stranger stranger = {.pool = pool, .mark = tide_checkpoint(pool)};
    stranger.array = tide_array_acquire(pool, TIDE_F64, 1, (int64_t[]){1});
    double *array = take(pool, TIDE_F64, N, 1);
    counts before = counts_of(pool);
    listen();
    assert_int_equal(pthread_create(&thread, NULL, misuse_everything, &stranger), 0);
    pthread_join(thread, NULL);
    assert_int_equal(stranger.by_status, 17);
    assert_int_equal(stranger.reports_of_status, 0);
    assert_int_equal(stranger.by_report, 26);
    assert_int_equal(stranger.reports, 26);
    assert_int_equal(all.kind, TIDE_REPORT_MISUSE);
    tide_report_set_handler(NULL, NULL);
    counts_same(before, pool);
    expect_bytes(array, N * sizeof *array, 1);
    expect_ok(tide_pool_reset(pool));
    expect_ok(tide_pool_destroy(pool));
}

static const form_case cases[] = {
    CASE_SLOTS(a_rewind_poisons_at_level_1_and_keeps_content_at_level_0),
    CASE_SLOTS(a_reset_poisons_at_level_1_and_keeps_content_at_level_0),
    CASE_SLOTS(poison_stays_off_the_arrays_of_outer_scopes),
    CASE(a_leaked_scope_is_reported_once_at_level_1_and_never_at_level_0),
};

static const struct CMUnitTest others[] = {
    cmocka_unit_test(a_pool_takes_its_level_from_its_options_or_the_setting),
    cmocka_unit_test(a_bad_level_is_refused),
    cmocka_unit_test(each_of_several_leaked_scopes_is_reported),
    cmocka_unit_test(a_report_goes_to_the_handler_and_to_stderr_unless_told_otherwise),
    cmocka_unit_test(a_call_with_a_status_says_misuse_by_it_and_reports_nothing),
    cmocka_unit_test(a_foreign_thread_is_refused_in_every_call_by_status_or_by_report),
};

int main(void)
{
    return FORMS_MAIN("check levels", cases, others);
}
