/* SPDX-License-Identifier: MIT */
/* Tensors taken from others through DLPack: used without a copy, and given back exactly once,
 * when the scope ends that took them. */
#include "arrays_support.h"

#include <pthread.h>

#include <tidepool/array.h>
#include <tidepool/check.h>
#include <tidepool/dlpack.h>
#include <tidepool/dynamic.h>
#include <tidepool/site.h>
#include <tidepool/upkeep.h>

/* A tensor that counts how often it was given back. */
struct producer {
    tide_dl_managed managed;
    int64_t shape[9], strides[9];
    double numbers[24];
    int deleted, turn; /* how often; as the which of all */
};

static int turns;

static void delete_counted(tide_dl_managed *managed)
{
    struct producer *producer = managed->manager_ctx;
    producer->deleted++;
    producer->turn = ++turns;
}

/* 4 × 6 doubles in row order. */
static tide_dl_managed *produce(struct producer *producer)
{
    *producer = (struct producer){.shape = {4, 6}, .strides = {6, 1}};
    producer->managed = (tide_dl_managed){
        .version = {1, 0},
        .manager_ctx = producer,
        .deleter = delete_counted,
        .tensor = {.data = producer->numbers,
                   .device = {TIDE_DL_CPU, 0},
                   .ndim = 2,
                   .dtype = {TIDE_DL_FLOAT, 64, 1},
                   .shape = producer->shape,
                   .strides = producer->strides},
    };
    fill_bytes(producer->numbers, sizeof producer->numbers, 3);
    return &producer->managed;
}

static tide_array *import(tide_pool *pool, struct producer *producer)
{
    tide_array *array = tide_array_import(pool, produce(producer));
    if (array == NULL)
        fail_msg("import: %s", tide_error_message());
    assert_int_equal(producer->deleted, 0);
    return array;
}

/* ---- used ---- */

static void use_imported(tide_pool *pool, void *state)
{
    struct producer *producer = state;
    tide_array *array = import(pool, producer);
    expect_array(array, TIDE_F64, TIDE_ROW_MAJOR, 2, SHAPE(4, 6));
    assert_ptr_equal(tide_array_data(array), producer->numbers);
    expect_bytes(tide_array_data(array), sizeof producer->numbers, 3);
    *(double *)element(array, SHAPE(2, 3)) = 42;
    assert_true(producer->numbers[15] == 42);
    producer->numbers[16] = 43;
    assert_true(*(double *)element(array, SHAPE(2, 4)) == 43);
    tide_array *view = tide_array_view(pool, array, SHAPE(2, 3), SHAPE(1, 1), NULL);
    assert_ptr_equal(tide_array_data(view), &producer->numbers[15]);
    assert_ptr_equal(tide_array_data(tide_array_reshape(pool, array, 1, SHAPE(24))),
                     producer->numbers);
    tide_pool_trim(pool, TIDE_ALL_TYPES);
    tide_pool_compact(pool, TIDE_ALL_TYPES);
    assert_int_equal(producer->deleted, 0);
    CHECK_POOL(pool);
}

static void it_is_used_without_a_copy_and_given_back_once_at_the_end(const scene *s)
{
    struct producer producer;
    counts before = counts_of(s->pool);
    for (int i = 0; i < 3; i++) {
        form_run(s->form, s->pool, use_imported, &producer);
        assert_int_equal(producer.deleted, 1);
        assert_true(producer.numbers[15] == 42);
        counts_same(before, s->pool);
    }
    expect_ok(tide_pool_reset(s->pool));
    assert_int_equal(producer.deleted, 1);
}

static void import_twenty(tide_pool *pool, void *state)
{
    struct producer *producers = state;
    for (int i = 0; i < 20; i++) {
        import(pool, &producers[i]);
        TAKE(pool, TIDE_F64, 3);
        take(pool, TIDE_I16, 5, 1);
    }
}

static void the_last_taken_is_given_back_first(const scene *s)
{
    struct producer producers[20];
    form_run(s->form, s->pool, import_twenty, producers);
    for (int i = 0; i < 20; i++) {
        assert_int_equal(producers[i].deleted, 1);
        assert_true(i == 0 || producers[i].turn == producers[i - 1].turn - 1);
    }
}

struct nest {
    const form *inner;
    struct producer outer, held[20];
};

static void import_outside_and_inside(tide_pool *pool, void *state)
{
    struct nest *nest = state;
    tide_array *outer = import(pool, &nest->outer);
    form_run(nest->inner, pool, import_twenty, nest->held);
    for (int i = 0; i < 20; i++)
        assert_int_equal(nest->held[i].deleted, 1);
    assert_int_equal(nest->outer.deleted, 0);
    expect_array(outer, TIDE_F64, TIDE_ROW_MAJOR, 2, SHAPE(4, 6));
    expect_bytes(tide_array_data(outer), sizeof nest->outer.numbers, 3);
}

static void an_inner_scope_gives_back_its_own_only(const scene *s)
{
    struct nest nest;
    EACH_FORM(inner)
    {
        nest.inner = inner;
        form_run(s->form, s->pool, import_outside_and_inside, &nest);
        assert_int_equal(nest.outer.deleted, 1);
        for (int i = 0; i < 20; i++)
            assert_int_equal(nest.held[i].deleted, 1);
    }
}

static bool be_quiet(tide_report_kind kind, const char *text, void *user)
{
    (void)kind, (void)text, (void)user;
    return false;
}

static void import_and_reset(tide_pool *pool, void *state)
{
    struct producer *producers = state;
    import(pool, &producers[0]);
    import(pool, &producers[1]);
    expect_ok(tide_pool_reset(pool));
    assert_int_equal(producers[0].deleted, 1);
    assert_int_equal(producers[1].deleted, 1);
    import(pool, &producers[2]);
}

static void a_reset_gives_everything_back(const scene *s)
{
    struct producer producers[3];
    tide_report_set_handler(be_quiet, NULL);
    s->form->run(s->pool, import_and_reset, producers);
    tide_report_set_handler(NULL, NULL);
    expect_ok(tide_pool_reset(s->pool));
    for (int i = 0; i < 3; i++)
        assert_int_equal(producers[i].deleted, 1);
    import(s->pool, &producers[0]);
    form_run(s->form, s->pool, use_imported, &producers[1]);
    assert_int_equal(producers[0].deleted, 0);
    expect_ok(tide_pool_empty(s->pool));
    assert_int_equal(producers[0].deleted, 1);
}

static void import_one(tide_pool *pool, void *state)
{
    import(pool, state);
}

static void a_steady_exchange_allocates_nothing(const scene *s)
{
    struct producer producer;
    form_repeat(s->form, s->pool, 2, import_one, &producer);
    form_run(s->form, s->pool, import_one, &producer);
    if (s->kind->check == TIDE_CHECK_GUARD || s->kind->disabled)
        return;
    count_allocations();
    form_repeat(s->form, s->pool, 50, import_one, &producer);
    assert_int_equal(allocations_counted(), 0);
    assert_int_equal(producer.deleted, 1);
}

static void destroying_the_pool_gives_back(void **state)
{
    (void)state;
    EACH_CHECK_LEVEL(check, TIDE_CHECK_GUARD)
    {
        tide_pool *pool = pool_of(check);
        struct producer producers[2];
        import(pool, &producers[0]);
        import(pool, &producers[1]);
        expect_ok(tide_pool_destroy(pool));
        assert_int_equal(producers[0].deleted, 1);
        assert_int_equal(producers[1].deleted, 1);
    }
}

static void *import_and_end(void *state)
{
    tide_array_import(tide_pool_local(), produce(state));
    return NULL;
}

static void the_end_of_a_thread_gives_back(void **state)
{
    (void)state;
    struct producer producer;
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, import_and_end, &producer), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(producer.deleted, 1);
}

/* ---- from one pool to another ---- */

static void pass_on(tide_pool *pool, void *state)
{
    tide_pool *other = state;
    tide_array *array = TAKE(pool, TIDE_F64, 4, 6);
    fill_bytes(tide_array_data(array), bytes_of(array), 6);
    tide_array *there = tide_array_import(other, tide_array_export(pool, array));
    expect_array(there, TIDE_F64, TIDE_ROW_MAJOR, 2, SHAPE(4, 6));
    assert_ptr_equal(tide_array_data(there), tide_array_data(array));
}

static void expect_still_there(tide_pool *pool, void *state)
{
    const void *data = state;
    tide_array *array = TAKE(pool, TIDE_F64, 4, 6);
    fill_bytes(tide_array_data(array), bytes_of(array), 9);
    expect_bytes(data, 24 * sizeof(double), 6);
}

static void one_pools_export_is_anothers_import(const scene *s)
{
    if (s->kind->check == TIDE_CHECK_GUARD)
        return; /* what is guarded is not handed out */
    tide_pool *other = pool_of(TIDE_CHECK_NONE);
    tide_pool *pools[] = {other, s->pool};
    for (int i = 0; i < 2; i++) {
        form_run(s->form, s->pool, pass_on, pools[i]);
        if (i == 0) {
            tide_pool_statistics stats = stats_of(other);
            assert_int_equal(stats.slots_live, 1);
            expect_ok(tide_pool_reset(other));
        }
        form_run(s->form, s->pool, pass_on, pools[i]);
        expect_ok(tide_pool_reset(other));
    }
    struct producer producer;
    tide_array *array = import(other, &producer);
    fill_bytes(producer.numbers, sizeof producer.numbers, 6);
    form_run(s->form, s->pool, expect_still_there, tide_array_data(array));
    expect_ok(tide_pool_destroy(other));
    expect_ok(tide_pool_reset(s->pool));
    if (!s->kind->disabled)
        form_run(s->form, s->pool, pass_on, s->pool);
}

static void export_imported(tide_pool *pool, void *state)
{
    tide_array *array = import(pool, state);
    assert_null(tide_array_export(pool, array));
    expect_error(TIDE_ERROR_STATE, "imported");
    tide_array *view = tide_array_view(pool, array, SHAPE(1, 1), SHAPE(2, 2), NULL);
    assert_null(tide_array_export(pool, view));
    expect_error(TIDE_ERROR_STATE, "imported");
}

static void an_imported_array_is_not_exported_again(const scene *s)
{
    struct producer producer;
    form_run(s->form, s->pool, export_imported, &producer);
    assert_int_equal(producer.deleted, 1);
}

/* ---- all sorts of tensors ---- */

static void import_all_sorts(tide_pool *pool, void *state)
{
    struct producer *p = state;
    produce(p)->tensor.strides = NULL; /* means row order */
    expect_array(tide_array_import(pool, &p->managed), TIDE_F64, TIDE_ROW_MAJOR, 2, SHAPE(4, 6));
    produce(++p)->tensor.strides = (int64_t[]){1, 4};
    expect_array(tide_array_import(pool, &p->managed), TIDE_F64, TIDE_COLUMN_MAJOR, 2, SHAPE(4, 6));
    produce(++p)->tensor.byte_offset = 16;
    p->shape[0] = 3;
    tide_array *array = tide_array_import(pool, &p->managed);
    assert_ptr_equal(tide_array_data(array), p->numbers + 2);
    produce(++p)->version.minor = 99; /* newer, but compatible */
    assert_non_null(tide_array_import(pool, &p->managed));
    produce(++p)->flags = TIDE_DL_READ_ONLY;
    assert_non_null(tide_array_import(pool, &p->managed));
    produce(++p)->tensor.ndim = 0;
    p->managed.tensor.shape = p->managed.tensor.strides = NULL;
    expect_array(tide_array_import(pool, &p->managed), TIDE_F64, TIDE_ROW_MAJOR, 0, NULL);
    produce(++p)->tensor.data = NULL;
    p->shape[1] = 0;
    array = tide_array_import(pool, &p->managed);
    assert_int_equal(array->length, 0);
    produce(++p);
    p->managed.tensor.data = p->numbers + 23;
    p->strides[0] = -6;
    p->strides[1] = -1;
    array = tide_array_import(pool, &p->managed);
    assert_ptr_equal(element(array, SHAPE(3, 5)), p->numbers);
    assert_false(tide_array_contiguous(array, TIDE_ROW_MAJOR));
    produce(++p)->deleter = NULL; /* allowed by the specification */
    assert_non_null(tide_array_import(pool, &p->managed));
}
enum { SORTS = 9 };

static void strides_offsets_and_flags_mean_what_the_specification_says(const scene *s)
{
    struct producer producers[SORTS];
    form_run(s->form, s->pool, import_all_sorts, producers);
    for (int i = 0; i < SORTS - 1; i++)
        assert_int_equal(producers[i].deleted, 1);
    assert_int_equal(producers[SORTS - 1].deleted, 0);
}

/* ---- refused: given back at once ---- */

static void expect_no_import(tide_pool *pool, struct producer *producer, tide_status why,
                             const char *words)
{
    note("refusing for '%s'", words);
    tide_pool_statistics before = pool != NULL ? stats_of(pool) : (tide_pool_statistics){0};
    assert_null(tide_array_import(pool, &producer->managed));
    expect_error(why, words);
    expect_error(why, "tide_array_import");
    assert_int_equal(producer->deleted, 1);
    if (pool == NULL)
        return;
    tide_pool_statistics after = stats_of(pool);
    assert_memory_equal(&after, &before, sizeof after);
}

static void import_badly(tide_pool *pool, void *state)
{
    struct producer *p = state;
    for (uint32_t major = 0; major < 4; major++)
        if (major != 1) {
            produce(p)->version.major = major;
            memset(&p->managed.tensor, 0xEE, sizeof p->managed.tensor); /* not to be looked at */
            p->managed.flags = UINT64_MAX;
            expect_no_import(pool, p, TIDE_ERROR_ARGUMENT, "major");
        }
    for (int32_t device = 2; device < 18; device++) {
        produce(p)->tensor.device.device_type = device;
        expect_no_import(pool, p, TIDE_ERROR_DEVICE, "device");
    }
    produce(p)->tensor.device.device_id = 1;
    expect_no_import(pool, p, TIDE_ERROR_DEVICE, "1:1");
    static const tide_dl_type unknown[] = {{2, 64, 2}, {2, 64, 0}, {2, 8, 1},
                                           {0, 4, 1},  {3, 8, 1},  {5, 32, 1},
                                           {6, 1, 1},  {7, 8, 1},  {255, 255, 1}};
    for (size_t i = 0; i < sizeof unknown / sizeof unknown[0]; i++) {
        produce(p)->tensor.dtype = unknown[i];
        expect_no_import(pool, p, TIDE_ERROR_TYPE, "lanes");
    }
    produce(p)->tensor.ndim = 9;
    expect_no_import(pool, p, TIDE_ERROR_SIZE, "9 dimensions");
    produce(p)->tensor.ndim = -1;
    expect_no_import(pool, p, TIDE_ERROR_SIZE, "-1 dimensions");
    produce(p)->tensor.shape = NULL;
    expect_no_import(pool, p, TIDE_ERROR_ARGUMENT, "NULL");
    produce(p)->tensor.shape[1] = -6;
    expect_no_import(pool, p, TIDE_ERROR_SIZE, "-6");
    produce(p)->tensor.shape[1] = INT64_MAX;
    expect_no_import(pool, p, TIDE_ERROR_SIZE, "overflow");
    produce(p);
    expect_no_import(NULL, p, TIDE_ERROR_ARGUMENT, "pool");
    assert_null(tide_array_import(pool, NULL));
    expect_error(TIDE_ERROR_ARGUMENT, "tide_array_import");
    produce(p)->version.major = 2;
    p->managed.deleter = NULL;
    assert_null(tide_array_import(pool, &p->managed));
    assert_int_equal(p->deleted, 0);
    p->deleted = 1;
}

static void what_we_cannot_use_is_given_back_at_once_and_only_then(const scene *s)
{
    struct producer producer;
    form_run(s->form, s->pool, import_badly, &producer);
    assert_int_equal(producer.deleted, 1);
}

/* ---- a deleter that meddles with the pool that calls it ---- */

struct meddler {
    struct producer producer, second;
    tide_pool *pool, *other;
    tide_mark mark; /* older than the tensor */
    tide_scope scope;
    unsigned refused, calls;
};

static void expect_refused(struct meddler *m, bool refused)
{
    m->calls++;
    m->refused += refused && tide_error_status() == TIDE_ERROR_STATE;
    (void)tide_type_register("", 0, 0); /* another error: each call must set its own */
}

static void delete_and_meddle(tide_dl_managed *managed)
{
    struct meddler *m = managed->manager_ctx;
    m->producer.deleted++;
    expect_refused(m, tide_pool_reset(m->pool) != TIDE_OK);
    expect_refused(m, tide_pool_empty(m->pool) != TIDE_OK);
    expect_refused(m, tide_rewind(m->pool, m->mark) != TIDE_OK);
    expect_refused(m, tide_scope_leave(&m->scope) != TIDE_OK);
    expect_refused(m, tide_pool_destroy(m->pool) != TIDE_OK);
    expect_refused(m, tide_acquire(m->pool, double, 3) == NULL);
    expect_refused(m, tide_acquire(m->pool, struct meddler, 3) == NULL);
    expect_refused(m, tide_array_acquire(m->pool, TIDE_F32, 2, SHAPE(2, 3)) == NULL);
    expect_refused(m, tide_checkpoint(m->pool).pool == NULL);
    expect_refused(m, tide_array_import(m->pool, produce(&m->second)) == NULL);
    assert_int_equal(m->second.deleted, 1);
    expect_refused(m, tide_pool_trim(m->pool, TIDE_ALL_TYPES).slots == 0);
    TIDE_SCOPE(m->other);
    assert_non_null(tide_acquire(m->other, double, 3));
}

static void import_from_a_meddler(tide_pool *pool, void *state)
{
    struct meddler *m = state;
    produce(&m->producer);
    m->producer.managed.manager_ctx = m;
    m->producer.managed.deleter = delete_and_meddle;
    m->pool = pool;
    take(pool, TIDE_F64, 3, 1);
    m->mark = tide_checkpoint(pool);
    expect_ok(tide_scope_enter(pool, NULL, &m->scope));
    take(pool, TIDE_I32, 3, 1);
    assert_non_null(tide_array_import(pool, &m->producer.managed));
    take(pool, TIDE_F32, 3, 1);
    assert_non_null(tide_array_acquire(pool, TIDE_F32, 2, SHAPE(2, 3))); /* a shape it remembers */
}

static void a_deleter_may_not_use_the_pool_that_calls_it(const scene *s)
{
    struct meddler m = {.other = pool_of(TIDE_CHECK_NONE)};
    counts before = counts_of(s->pool);
    for (int i = 0; i < 3; i++) {
        m.calls = m.refused = 0;
        form_run(s->form, s->pool, import_from_a_meddler, &m);
        assert_int_equal(m.producer.deleted, 1);
        assert_int_equal(m.calls, 11);
        assert_int_equal(m.refused, m.calls);
        counts_same(before, s->pool);
    }
    CHECK_POOL(s->pool);
    assert_non_null(tide_acquire(s->pool, double, 3));
    expect_ok(tide_pool_reset(s->pool));
    expect_ok(tide_pool_destroy(m.other));
}

static const form_case cases[] = {
    CASE(it_is_used_without_a_copy_and_given_back_once_at_the_end),
    CASE(the_last_taken_is_given_back_first),
    CASE(an_inner_scope_gives_back_its_own_only),
    CASE(a_reset_gives_everything_back),
    CASE(a_steady_exchange_allocates_nothing),
    CASE(one_pools_export_is_anothers_import),
    CASE(an_imported_array_is_not_exported_again),
    CASE(strides_offsets_and_flags_mean_what_the_specification_says),
    CASE(what_we_cannot_use_is_given_back_at_once_and_only_then),
    CASE(a_deleter_may_not_use_the_pool_that_calls_it),
};

static const struct CMUnitTest others[] = {
    cmocka_unit_test(destroying_the_pool_gives_back),
    cmocka_unit_test(the_end_of_a_thread_gives_back),
};

int main(void)
{
    return FORMS_MAIN("dlpack import", cases, others);
}
