/* SPDX-License-Identifier: MIT */
/* Memory from outside as an array: used in place, and its deleter run once when the scope ends. */
#include <tidepool/array.h>

#include "arrays_support.h"

struct outside {
    double numbers[24];
    int deleted, turn;
};

static int turns;
static const int64_t four_by_six[] = {4, 6};

static void delete_counted(void *data, void *context)
{
    struct outside *outside = context;
    assert_ptr_equal(data, outside->numbers);
    outside->deleted++;
    outside->turn = ++turns;
}

static tide_array_source source_of(struct outside *outside)
{
    *outside = (struct outside){.deleted = 0};
    fill_bytes(outside->numbers, sizeof outside->numbers, 3);
    return (tide_array_source){.data = outside->numbers,
                               .type = TIDE_F64,
                               .ndim = 2,
                               .shape = four_by_six,
                               .deleter = delete_counted,
                               .context = outside};
}

static void use_wrapped(tide_pool *pool, void *state)
{
    struct outside *outside = state;
    tide_array_source source = source_of(outside);
    tide_array *array = tide_array_wrap(pool, &source);
    if (array == NULL)
        fail_msg("wrap: %s", tide_error_message());
    expect_array(array, TIDE_F64, TIDE_ROW_MAJOR, 2, SHAPE(4, 6));
    assert_ptr_equal(tide_array_data(array), outside->numbers);
    *(double *)element(array, SHAPE(2, 3)) = 42;
    assert_true(outside->numbers[15] == 42);
    tide_array *view = tide_array_view(pool, array, SHAPE(2, 3), SHAPE(1, 1), NULL);
    assert_ptr_equal(tide_array_data(view), &outside->numbers[15]);
    assert_null(tide_array_export(pool, array));
    assert_int_equal(tide_array_grow(pool, array, 9), TIDE_ERROR_STATE);
    take(pool, TIDE_F64, 100, 1);
    tide_pool_trim(pool, TIDE_ALL_TYPES);
    assert_int_equal(outside->deleted, 0);
    CHECK_POOL(pool);
}

static void it_is_used_in_place_and_given_back_once_at_the_end(const scene *s)
{
    struct outside outside;
    counts before = counts_of(s->pool);
    for (int i = 0; i < 3; i++) {
        form_run(s->form, s->pool, use_wrapped, &outside);
        assert_int_equal(outside.deleted, 1);
        assert_true(outside.numbers[15] == 42);
        counts_same(before, s->pool);
    }
}

struct mine {
    char name[24];
};

/* Without a deleter, of a registered type, with strides of its own, of no elements. */
static void wrap_the_rest(tide_pool *pool, void *state)
{
    static struct mine rows[6];
    tide_type type = tide_type_of(struct mine);
    (void)state;
    tide_array *array = tide_array_wrap(
        pool, &(tide_array_source){.data = rows, .type = type, .ndim = 1, .shape = SHAPE(6)});
    expect_array(array, type, TIDE_ROW_MAJOR, 1, SHAPE(6));
    assert_ptr_equal(element(array, SHAPE(4)), &rows[4]);
    array = tide_array_wrap(pool, &(tide_array_source){.data = &rows[5],
                                                       .type = type,
                                                       .ndim = 2,
                                                       .shape = SHAPE(2, 3),
                                                       .strides = SHAPE(-1, -2)});
    assert_ptr_equal(element(array, SHAPE(1, 2)), &rows[0]);
    assert_false(tide_array_contiguous(array, TIDE_ROW_MAJOR));
    array = tide_array_wrap(
        pool,
        &(tide_array_source){
            .data = rows, .type = type, .ndim = 2, .shape = SHAPE(2, 3), .strides = SHAPE(1, 2)});
    assert_int_equal(array->order, TIDE_COLUMN_MAJOR);
    array = tide_array_wrap(
        pool, &(tide_array_source){.type = TIDE_F32, .ndim = 2, .shape = SHAPE(0, 7)});
    assert_non_null(array);
    assert_int_equal(array->length, 0);
}

static void any_type_and_strides_with_a_deleter_or_without(const scene *s)
{
    counts before = counts_of(s->pool);
    form_run(s->form, s->pool, wrap_the_rest, NULL);
    counts_same(before, s->pool);
}

/* What is refused is given back at once. */
static void refuse(tide_pool *pool, void *state)
{
    struct outside *outside = state;
    tide_array_source good = source_of(outside), bad = good;
    bad.type = 60000;
    assert_null(tide_array_wrap(pool, &bad));
    assert_int_equal(tide_error_status(), TIDE_ERROR_TYPE);
    bad = good;
    bad.ndim = 9;
    assert_null(tide_array_wrap(pool, &bad));
    expect_error(TIDE_ERROR_SIZE, "9 dimensions");
    bad = good;
    bad.shape = SHAPE(4, -6);
    assert_null(tide_array_wrap(pool, &bad));
    expect_error(TIDE_ERROR_SIZE, "-6");
    assert_null(tide_array_wrap(NULL, &good));
    expect_error(TIDE_ERROR_ARGUMENT, "pool");
    assert_int_equal(outside->deleted, 4);
    bad = good;
    bad.deleter = NULL;
    bad.data = NULL;
    assert_null(tide_array_wrap(pool, &bad));
    expect_error(TIDE_ERROR_ARGUMENT, "NULL");
    bad.data = (char *)outside->numbers + 4;
    assert_null(tide_array_wrap(pool, &bad));
    expect_error(TIDE_ERROR_ARGUMENT, "aligned");
    assert_null(tide_array_wrap(pool, NULL));
    expect_error(TIDE_ERROR_ARGUMENT, "source");
    assert_int_equal(outside->deleted, 4);
}

static void what_is_refused_is_given_back_at_once(const scene *s)
{
    struct outside outside;
    form_run(s->form, s->pool, refuse, &outside);
    assert_int_equal(outside.deleted, 4);
}

static tide_pool *busy;

static void use_the_pool(void *data, void *context)
{
    (void)data;
    ++*(int *)context;
    assert_null(tide_acquire(busy, double, 1));
    assert_int_equal(tide_error_status(), TIDE_ERROR_STATE);
    assert_non_null(tide_acquire(tide_pool_local(), double, 1));
}

static void wrap_one_that_uses_the_pool(tide_pool *pool, void *state)
{
    busy = pool;
    tide_array_source source = {.data = state,
                                .type = TIDE_I32,
                                .ndim = 1,
                                .shape = SHAPE(1),
                                .deleter = use_the_pool,
                                .context = state};
    assert_non_null(tide_array_wrap(pool, &source));
}

static void a_deleter_may_use_any_pool_but_this_one(const scene *s)
{
    int calls = 0;
    form_run(s->form, s->pool, wrap_one_that_uses_the_pool, &calls);
    assert_int_equal(calls, 1);
    expect_ok(tide_pool_reset(tide_pool_local()));
}

static const form_case cases[] = {
    CASE(it_is_used_in_place_and_given_back_once_at_the_end),
    CASE(any_type_and_strides_with_a_deleter_or_without),
    CASE(what_is_refused_is_given_back_at_once),
    CASE(a_deleter_may_use_any_pool_but_this_one),
};

int main(void)
{
    return forms_main("wrap", cases, sizeof cases / sizeof *cases, NULL, 0);
}
