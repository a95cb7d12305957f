/* SPDX-License-Identifier: MIT */
/* Arrays handed out through DLPack: described right, pinned while somebody holds them, and back in
 * their slot when nobody does. */
#define _GNU_SOURCE
#include "arrays_support.h"

#include <pthread.h>

#include <tidepool/array.h>
#include <tidepool/check.h>
#include <tidepool/dlpack.h>
#include <tidepool/upkeep.h>

static tide_dl_managed *export_array(tide_pool *pool, const tide_array *array)
{
    tide_dl_managed *managed = tide_array_export(pool, array);
    if (managed == NULL)
        fail_msg("export: %s", tide_error_message());
    return managed;
}

static void give_back(tide_dl_managed *managed)
{
    managed->deleter(managed);
}

/* Level 2 does not let guarded arrays out; each case says so where it meets one. */
static bool guarded(const scene *s)
{
    return s->kind->check == TIDE_CHECK_GUARD;
}

/* ---- what the consumer sees ---- */

static void expect_description(const tide_dl_managed *managed, const tide_array *array)
{
    int ndim = array->tensor.ndim;
    assert_int_equal(managed->version.major, 1);
    assert_non_null(managed->deleter);
    assert_int_equal(managed->flags, 0);
    assert_int_equal(managed->tensor.device.device_type, 1);
    assert_int_equal(managed->tensor.device.device_id, 0);
    assert_int_equal(managed->tensor.ndim, ndim);
    assert_memory_equal(&managed->tensor.dtype, &array->tensor.dtype, sizeof(tide_dl_type));
    assert_ptr_not_equal(managed->tensor.shape, array->tensor.shape); /* its own: headers change */
    for (int d = 0; d < ndim; d++) {
        assert_int_equal(managed->tensor.shape[d], array->tensor.shape[d]);
        assert_int_equal(managed->tensor.strides[d], array->tensor.strides[d]);
    }
    if (array->length == 0)
        assert_null(managed->tensor.data);
    else
        assert_ptr_equal((char *)managed->tensor.data + managed->tensor.byte_offset,
                         tide_array_data(array));
}

static void export_and_look(tide_pool *pool, const tide_array *array)
{
    tide_dl_managed *managed = export_array(pool, array);
    expect_description(managed, array);
    CHECK_POOL(pool);
    give_back(managed);
    CHECK_POOL(pool);
}

static void export_all_sorts(tide_pool *pool, void *state)
{
    (void)state;
    export_and_look(pool, TAKE(pool, TIDE_F64, 3, 4));
    export_and_look(pool, TAKE_COLUMNS(pool, TIDE_I32, 3, 4, 5));
    export_and_look(pool, take_array(pool, TIDE_U8, TIDE_ROW_MAJOR, 0, NULL));
    export_and_look(pool, TAKE(pool, TIDE_C64, 1, 2, 3, 1, 2, 3, 1, 2));
    export_and_look(pool, TAKE(pool, TIDE_F16, 0));
    export_and_look(pool, TAKE(pool, TIDE_F32, 4, 0, 3));
    tide_array *array = TAKE(pool, TIDE_I64, 4, 6);
    tide_array *view = tide_array_view(pool, array, SHAPE(3, 4), SHAPE(2, 3), SHAPE(-2, -2));
    export_and_look(pool, view);
    export_and_look(pool, tide_array_view(pool, view, SHAPE(1, 0), SHAPE(1, 2), NULL));
    export_and_look(pool, tide_array_view(pool, array, SHAPE(1, 2), SHAPE(0, 2), NULL));
    export_and_look(pool, tide_array_reshape(pool, array, 3, SHAPE(2, 3, 4)));
    export_and_look(pool, array);
}

static void a_consumer_sees_shape_strides_type_device_and_version(const scene *s)
{
    if (guarded(s))
        return;
    form_run(s->form, s->pool, export_all_sorts, NULL);
    form_repeat(s->form, s->pool, 3, export_all_sorts, NULL);
    assert_int_equal(stats_of(s->pool).slots_live, 0);
}

static void every_type_has_its_name_in_dlpack(void **state)
{
    (void)state;
    static const struct {
        tide_type type;
        uint8_t code, bits;
    } names[] = {
        {TIDE_I8, 0, 8},   {TIDE_I16, 0, 16},   {TIDE_I32, 0, 32}, {TIDE_I64, 0, 64},
        {TIDE_U8, 1, 8},   {TIDE_U16, 1, 16},   {TIDE_U32, 1, 32}, {TIDE_U64, 1, 64},
        {TIDE_F16, 2, 16}, {TIDE_F32, 2, 32},   {TIDE_F64, 2, 64}, {TIDE_BF16, 4, 16},
        {TIDE_C64, 5, 64}, {TIDE_C128, 5, 128}, {TIDE_BOOL, 6, 8},
    };
    tide_pool *pool = pool_of(TIDE_CHECK_NONE);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        tide_dl_managed *managed = export_array(pool, TAKE(pool, names[i].type, 3));
        assert_int_equal(managed->tensor.dtype.code, names[i].code);
        assert_int_equal(managed->tensor.dtype.bits, names[i].bits);
        assert_int_equal(managed->tensor.dtype.lanes, 1);
        give_back(managed);
    }
    expect_ok(tide_pool_destroy(pool));
}

/* The structures that consumers compile against. */
static void the_layout_is_that_of_the_specification(void **state)
{
    (void)state;
    assert_int_equal(sizeof(tide_dl_tensor), 48);
    assert_int_equal(offsetof(tide_dl_tensor, device), 8);
    assert_int_equal(offsetof(tide_dl_tensor, ndim), 16);
    assert_int_equal(offsetof(tide_dl_tensor, dtype), 20);
    assert_int_equal(offsetof(tide_dl_tensor, shape), 24);
    assert_int_equal(offsetof(tide_dl_tensor, strides), 32);
    assert_int_equal(offsetof(tide_dl_tensor, byte_offset), 40);
    assert_int_equal(offsetof(tide_dl_managed, manager_ctx), 8);
    assert_int_equal(offsetof(tide_dl_managed, deleter), 16);
    assert_int_equal(offsetof(tide_dl_managed, flags), 24);
    assert_int_equal(offsetof(tide_dl_managed, tensor), 32);
    assert_int_equal(offsetof(tide_array, tensor), 0);
}

/* ---- pinned ---- */

enum { BYTES = 24 * sizeof(int64_t) };

struct holding {
    size_t want; /* exports of the array */
    tide_dl_managed *held[4];
    void *data;
};

static void export_one(tide_pool *pool, void *state)
{
    struct holding *holding = state;
    tide_array *array = TAKE(pool, TIDE_I64, 4, 6);
    holding->data = tide_array_data(array);
    fill_bytes(holding->data, BYTES, 5);
    for (size_t i = 0; i < holding->want; i++)
        holding->held[i] = export_array(pool, array);
    expect_bytes(holding->data, BYTES, 5); /* live, as before */
    TAKE(pool, TIDE_I64, 4, 6);
    CHECK_POOL(pool);
}

static void take_over(tide_pool *pool, void *state)
{
    struct holding *holding = state;
    for (int i = 0; i < 3; i++) {
        tide_array *array = TAKE(pool, TIDE_I64, 4, 6);
        assert_ptr_not_equal(tide_array_data(array), holding->data);
        fill_bytes(tide_array_data(array), BYTES, 7);
    }
    take(pool, TIDE_I64, 24, 8);
    CHECK_POOL(pool);
}

static void exported_memory_is_nobody_elses_until_it_is_given_back(const scene *s)
{
    if (guarded(s))
        return;
    struct holding holding = {.want = 1};
    form_run(s->form, s->pool, export_one, &holding);
    tide_dl_managed *held = holding.held[0];
    for (int i = 0; i < 3; i++)
        form_run(s->form, s->pool, take_over, &holding);
    form_run(s->form, s->pool, export_all_sorts, NULL); /* some come back where others stay */
    tide_pool_trim(s->pool, TIDE_ALL_TYPES);
    assert_int_equal(stats_of(s->pool).bytes_held, 0);
    assert_int_equal(stats_of(s->pool).bytes_exported, 0);
    form_repeat(s->form, s->pool, 3, take_over, &holding);
    expect_ok(tide_pool_reset(s->pool));
    expect_ok(tide_pool_empty(s->pool));
    form_run(s->form, s->pool, take_over, &holding);
    assert_ptr_equal(held->tensor.data, holding.data);
    expect_bytes(held->tensor.data, BYTES, 5);
    assert_int_equal(held->tensor.shape[0], 4);
    assert_int_equal(held->tensor.strides[0], 6);
    fill_bytes(held->tensor.data, BYTES, 9); /* the consumer may write */
    give_back(held);
    form_run(s->form, s->pool, export_all_sorts, NULL);
}

static void exchange_steadily(tide_pool *pool, void *state)
{
    (void)state;
    tide_array *array = TAKE(pool, TIDE_I64, 4, 6);
    give_back(export_array(pool, array));
    TAKE(pool, TIDE_I64, 4, 6);
}

static void a_steady_exchange_allocates_no_slots(const scene *s)
{
    form_repeat(s->form, s->pool, 3, exchange_steadily, NULL);
    tide_pool_statistics before = stats_of(s->pool);
    form_repeat(s->form, s->pool, 50, exchange_steadily, NULL);
    tide_pool_statistics after = stats_of(s->pool);
    assert_int_equal(after.allocations, before.allocations);
    assert_int_equal(after.bytes_held + after.bytes_exported,
                     before.bytes_held + before.bytes_exported);
    assert_int_equal(after.slots_live, 0);
}

static void export_view_of_two_rows(tide_pool *pool, void *state)
{
    struct holding *holding = state;
    tide_array *array = TAKE(pool, TIDE_I64, 4, 6);
    fill_bytes(tide_array_data(array), BYTES, 5);
    holding->data = tide_array_data(array);
    holding->held[0] =
        export_array(pool, tide_array_view(pool, array, SHAPE(1, 0), SHAPE(2, 6), NULL));
}

static void a_view_pins_the_whole_array(const scene *s)
{
    if (guarded(s))
        return;
    struct holding holding = {.want = 1};
    form_run(s->form, s->pool, export_view_of_two_rows, &holding);
    form_run(s->form, s->pool, take_over, &holding);
    expect_bytes(holding.data, BYTES, 5);
    const tide_dl_tensor *tensor = &holding.held[0]->tensor;
    assert_ptr_equal((char *)tensor->data + tensor->byte_offset, (char *)holding.data + 48);
    assert_int_equal(tensor->shape[0], 2);
    give_back(holding.held[0]);
}

static void give_back_inside(tide_pool *pool, void *state)
{
    (void)state;
    tide_array *array = TAKE(pool, TIDE_I64, 4, 6);
    fill_bytes(tide_array_data(array), BYTES, 5);
    void *data = tide_array_data(array);
    give_back(export_array(pool, array));
    tide_array *next = TAKE(pool, TIDE_I64, 4, 6); /* the array itself is still live */
    assert_ptr_not_equal(tide_array_data(next), data);
    fill_bytes(tide_array_data(next), BYTES, 6);
    tide_pool_trim(pool, TIDE_I64);
    tide_pool_compact(pool, TIDE_I64);
    expect_bytes(data, BYTES, 5);
    expect_array(array, TIDE_I64, TIDE_ROW_MAJOR, 2, SHAPE(4, 6));
    assert_ptr_equal(tide_array_data(array), data);
    give_back(export_array(pool, array)); /* and may be handed out again */
    expect_bytes(data, BYTES, 5);
}

static void given_back_early_the_array_lives_on_until_its_scope_ends(const scene *s)
{
    if (!guarded(s))
        form_repeat(s->form, s->pool, 3, give_back_inside, NULL);
}

/* ---- elsewhere, and later ---- */

static void *give_back_there(void *managed)
{
    expect_bytes(((tide_dl_managed *)managed)->tensor.data, BYTES, 5);
    give_back(managed);
    return NULL;
}

static void any_thread_may_give_it_back(const scene *s)
{
    pthread_t threads[4];
    for (int round = 0; round < 5 && !guarded(s); round++) {
        struct holding holding = {.want = 4};
        form_run(s->form, s->pool, export_one, &holding);
        for (int i = 0; i < 4; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, give_back_there, holding.held[i]),
                             0);
        form_run(s->form, s->pool, exchange_steadily, NULL); /* while they do */
        for (int i = 0; i < 4; i++)
            assert_int_equal(pthread_join(threads[i], NULL), 0);
        form_run(s->form, s->pool, exchange_steadily, NULL);
    }
}

static void it_outlives_the_pool(void **state)
{
    (void)state;
    EACH_FORM(f)
    {
        EACH_CHECK_LEVEL(check, TIDE_CHECK_POISON)
        {
            tide_pool *pool = pool_of(check);
            struct holding holding = {.want = 4};
            form_run(f, pool, export_one, &holding);
            give_back(holding.held[2]);
            expect_ok(tide_pool_destroy(pool));
            for (int i = 0; i < 4; i++)
                if (i != 2)
                    give_back_there(holding.held[i]);
        }
    }
}

/* ---- refused ---- */

static void keep_headers(tide_pool *pool, void *state)
{
    tide_array **kept = state;
    TAKE(pool, TIDE_I64, 2, 2);
    kept[0] = TAKE(pool, TIDE_I64, 4, 6);
}

static void expect_no_export(tide_pool *pool, const tide_array *array, tide_status why)
{
    tide_pool_statistics before = stats_of(pool);
    assert_null(tide_array_export(pool, array));
    expect_error(why, "tide_array_export");
    tide_pool_statistics after = stats_of(pool);
    assert_memory_equal(&after, &before, sizeof after);
}

static bool be_quiet(tide_report_kind kind, const char *text, void *user)
{
    (void)kind, (void)text, (void)user;
    return false;
}

static void an_array_no_longer_live_is_refused(const scene *s)
{
    tide_array *kept = NULL;
    tide_report_set_handler(be_quiet, NULL);
    form_run(s->form, s->pool, keep_headers, &kept);
    expect_no_export(s->pool, kept, TIDE_ERROR_STALE);
    tide_array *live = TAKE(s->pool, TIDE_I64, 4, 6);
    expect_no_export(s->pool, kept, TIDE_ERROR_STALE); /* the slot before it is live again */
    if (!guarded(s))
        give_back(export_array(s->pool, live));
    expect_ok(tide_pool_reset(s->pool));
    expect_no_export(s->pool, live, TIDE_ERROR_STALE);
    tide_report_set_handler(NULL, NULL);
}

/* The header has been rewound and may be anybody's; that its memory is live does not help. */
static void a_rewound_view_of_a_live_array_is_refused(void **state)
{
    (void)state;
    tide_pool *pool = pool_of(TIDE_CHECK_NONE);
    tide_array *array = TAKE(pool, TIDE_I64, 4, 6);
    tide_array *outer = tide_array_view(pool, array, SHAPE(1, 1), SHAPE(2, 2), NULL);
    tide_mark mark = tide_checkpoint(pool);
    tide_array *inner = tide_array_view(pool, array, SHAPE(0, 0), SHAPE(2, 2), NULL);
    give_back(export_array(pool, outer));
    give_back(export_array(pool, inner));
    expect_ok(tide_rewind(pool, mark));
    expect_no_export(pool, inner, TIDE_ERROR_STALE);
    give_back(export_array(pool, outer));
    expect_ok(tide_pool_destroy(pool));
}

static void export_badly(tide_pool *pool, void *state)
{
    tide_type structure = *(const tide_type *)state;
    expect_no_export(pool, NULL, TIDE_ERROR_ARGUMENT);
    tide_array *array = TAKE(pool, structure, 3);
    expect_no_export(pool, array, TIDE_ERROR_TYPE);
    expect_no_export(pool, tide_array_view(pool, array, SHAPE(0), SHAPE(2), NULL), TIDE_ERROR_TYPE);
    assert_null(tide_array_export(NULL, TAKE(pool, TIDE_F64, 3)));
    expect_error(TIDE_ERROR_ARGUMENT, "tide_array_export");
}

static void what_dlpack_has_no_name_for_is_refused(const scene *s)
{
    tide_type structure = fresh_type();
    if (!guarded(s))
        form_run(s->form, s->pool, export_badly, &structure);
}

static void a_guarded_array_stays_with_its_scope(void **state)
{
    (void)state;
    tide_pool *pool = pool_of(TIDE_CHECK_GUARD);
    tide_array *array = TAKE(pool, TIDE_F64, 3, 4);
    expect_no_export(pool, array, TIDE_ERROR_STATE);
    expect_no_export(pool, tide_array_view(pool, array, SHAPE(0, 0), SHAPE(1, 1), NULL),
                     TIDE_ERROR_STATE);
    expect_ok(tide_pool_destroy(pool));
}

static const form_case cases[] = {
    CASE(a_consumer_sees_shape_strides_type_device_and_version),
    CASE(exported_memory_is_nobody_elses_until_it_is_given_back),
    CASE_SLOTS(a_steady_exchange_allocates_no_slots),
    CASE(a_view_pins_the_whole_array),
    CASE(given_back_early_the_array_lives_on_until_its_scope_ends),
    CASE(any_thread_may_give_it_back),
    CASE(an_array_no_longer_live_is_refused),
    CASE(what_dlpack_has_no_name_for_is_refused),
};

static const struct CMUnitTest others[] = {
    cmocka_unit_test(every_type_has_its_name_in_dlpack),
    cmocka_unit_test(the_layout_is_that_of_the_specification),
    cmocka_unit_test(it_outlives_the_pool),
    cmocka_unit_test(a_rewound_view_of_a_live_array_is_refused),
    cmocka_unit_test(a_guarded_array_stays_with_its_scope),
};

int main(void)
{
    return FORMS_MAIN("dlpack export", cases, others);
}
