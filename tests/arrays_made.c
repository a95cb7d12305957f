/* SPDX-License-Identifier: MIT */
/* Arrays made from arrays and from values: zeros, ones, fill, view, reshape. */
#include <tidepool/array.h>

#include "arrays_support.h"
#include "random.h"

/* ---- filled ---- */

static const int64_t fill_shapes[][3] = {{3, 5, 7}, {1, 1, 1}, {64, 2, 33}, {4, 0, 6}};
enum { FILL_SHAPES = sizeof fill_shapes / sizeof fill_shapes[0] };

static void expect_elements(const tide_array *array, tide_type type, int ndim, const int64_t *shape,
                            const void *element_bytes)
{
    expect_array(array, type, TIDE_ROW_MAJOR, ndim, shape);
    const char *data = tide_array_data(array);
    size_t size = tide_type_size(type);
    for (size_t i = 0; i < array->length; i++)
        assert_memory_equal(data + i * size, element_bytes, size);
}

static void fill_every_way(tide_pool *pool, tide_type type, const void *one, const void *value)
{
    static const char zero[16] = {0};
    for (size_t i = 0; i < FILL_SHAPES; i++) {
        const int64_t *shape = fill_shapes[i];
        expect_elements(tide_array_zeros(pool, type, 3, shape), type, 3, shape, zero);
        expect_elements(tide_array_ones(pool, type, 3, shape), type, 3, shape, one);
        expect_elements(tide_array_fill(pool, type, 3, shape, value), type, 3, shape, value);
    }
    expect_elements(tide_array_zeros(pool, type, 0, NULL), type, 0, NULL, zero);
    expect_elements(tide_array_ones(pool, type, 0, NULL), type, 0, NULL, one);
    expect_elements(tide_array_fill(pool, type, 0, NULL, value), type, 0, NULL, value);
}

/* One, in the C language's own words where it has the type. */
static void fill_every_type(tide_pool *pool, void *state)
{
    (void)state;
#define INTEGER(constant, T) fill_every_way(pool, constant, &(T){1}, &(T){(T)0x9142634587u})
    INTEGER(TIDE_I8, int8_t);
    INTEGER(TIDE_I16, int16_t);
    INTEGER(TIDE_I32, int32_t);
    INTEGER(TIDE_I64, int64_t);
    INTEGER(TIDE_U8, uint8_t);
    INTEGER(TIDE_U16, uint16_t);
    INTEGER(TIDE_U32, uint32_t);
    INTEGER(TIDE_U64, uint64_t);
    fill_every_way(pool, TIDE_F32, &(float){1}, &(float){-2.5e-7f});
    fill_every_way(pool, TIDE_F64, &(double){1}, &(double){-2.5e-77});
    fill_every_way(pool, TIDE_BOOL, &(bool){true}, &(bool){true});
    fill_every_way(pool, TIDE_F16, &(tide_f16){0x3c00}, &(tide_f16){0x1234});
    fill_every_way(pool, TIDE_BF16, &(tide_bf16){0x3f80}, &(tide_bf16){0xc321});
    fill_every_way(pool, TIDE_C64, &(tide_c64){1}, &(tide_c64){2.5f + 7.25fi});
    fill_every_way(pool, TIDE_C128, &(tide_c128){1}, &(tide_c128){-2.5 + 1e300i});
}

static void dirty_every_type(tide_pool *pool, void *state)
{
    (void)state;
    for (tide_type type = 1; type <= TIDE_BUILTIN_COUNT; type++)
        for (unsigned i = 0; i < 3 * (FILL_SHAPES + 1); i++)
            if (type != TIDE_BIT)
                take(pool, type, 5000, i + 1);
}

static void every_type_is_filled_whatever_was_there(const scene *s)
{
    form_run(s->form, s->pool, dirty_every_type, NULL);
    form_run(s->form, s->pool, fill_every_type, NULL);
    form_repeat(s->form, s->pool, 2, fill_every_type, NULL);
}

static void fill_badly(tide_pool *pool, void *state)
{
    tide_type structure = *(const tide_type *)state;
    char value[24];
    fill_bytes(value, sizeof value, 7);
    expect_elements(tide_array_fill(pool, structure, 2, SHAPE(3, 4), value), structure, 2,
                    SHAPE(3, 4), value);
    size_t live = stats_of(pool).slots_live;
    assert_null(tide_array_ones(pool, structure, 1, SHAPE(3)));
    expect_error(TIDE_ERROR_TYPE, "tide_array_ones");
    assert_null(tide_array_fill(pool, TIDE_F64, 1, SHAPE(3), NULL));
    expect_error(TIDE_ERROR_ARGUMENT, "tide_array_fill");
    assert_null(tide_array_zeros(pool, TIDE_F64, 2, SHAPE(3, -1)));
    expect_error(TIDE_ERROR_SIZE, "-1");
    assert_null(tide_array_ones(pool, TIDE_F64, 9, SHAPE(1, 1, 1, 1, 1, 1, 1, 1, 1)));
    expect_error(TIDE_ERROR_SIZE, "9");
    assert_null(tide_array_zeros(pool, TIDE_F64, 1, NULL));
    expect_error(TIDE_ERROR_ARGUMENT, "NULL");
    assert_null(tide_array_ones(pool, UINT32_MAX, 1, SHAPE(3)));
    expect_error(TIDE_ERROR_TYPE, "");
    assert_null(tide_array_zeros(NULL, TIDE_F64, 1, SHAPE(3)));
    expect_error(TIDE_ERROR_ARGUMENT, "pool");
    assert_int_equal(stats_of(pool).slots_live, live);
}

static void what_cannot_be_filled_is_refused(const scene *s)
{
    tide_type structure = fresh_type();
    form_run(s->form, s->pool, fill_badly, &structure);
}

/* ---- views: each element against its place in the array ---- */

enum { PLACES = TIDE_NDIM_MAX };

static void expect_view(const tide_array *view, const tide_array *array, const int64_t *start,
                        const int64_t *extent, const int64_t *step)
{
    if (view == NULL)
        fail_msg("%s", tide_error_message());
    int ndim = array->tensor.ndim;
    size_t length = 1;
    assert_int_equal(view->tensor.ndim, ndim);
    for (int d = 0; d < ndim; d++) {
        assert_int_equal(view->tensor.shape[d], extent[d]);
        length *= (size_t)extent[d];
    }
    assert_int_equal(view->length, length);
    assert_int_equal(view->type, array->type);
    assert_memory_equal(&view->tensor.dtype, &array->tensor.dtype, sizeof view->tensor.dtype);
    assert_ptr_equal(view->base, array->base != NULL ? array->base : array);
    assert_null(view->slot);
    int64_t index[PLACES] = {0}, place[PLACES];
    if (length == 0) { /* of no element, but of the array all the same */
        const char *data = tide_array_data(array);
        assert_in_range((uintptr_t)tide_array_data(view), (uintptr_t)data,
                        (uintptr_t)data + bytes_of(array));
        return;
    }
    do {
        for (int d = 0; d < ndim; d++)
            place[d] = start[d] + index[d] * (step != NULL ? step[d] : 1);
        assert_ptr_equal(element(view, index), element(array, place));
    } while (next_index(view, index));
}

#define VIEW(pool, array, start, extent, step) \
    expect_view(tide_array_view((pool), (array), start, extent, step), (array), start, extent, step)

static void view_this(tide_pool *pool, tide_array *array)
{
    VIEW(pool, array, SHAPE(0, 0), SHAPE(4, 6), NULL);          /* all  */
    VIEW(pool, array, SHAPE(1, 2), SHAPE(2, 3), NULL);          /* part */
    VIEW(pool, array, SHAPE(0, 1), SHAPE(2, 3), SHAPE(2, 2));   /* every other */
    VIEW(pool, array, SHAPE(3, 5), SHAPE(4, 6), SHAPE(-1, -1)); /* backwards */
    VIEW(pool, array, SHAPE(3, 4), SHAPE(2, 3), SHAPE(-2, -2));
    VIEW(pool, array, SHAPE(2, 3), SHAPE(5, 7), SHAPE(0, 0)); /* one, many times */
    VIEW(pool, array, SHAPE(2, 0), SHAPE(9, 6), SHAPE(0, 1)); /* a row, repeated */
    VIEW(pool, array, SHAPE(3, 5), SHAPE(1, 1), NULL);        /* the last */
    VIEW(pool, array, SHAPE(0, 0), SHAPE(0, 0), NULL);        /* none */
    VIEW(pool, array, SHAPE(4, 6), SHAPE(0, 0), NULL);        /* none, past the last */
    VIEW(pool, array, SHAPE(1, 6), SHAPE(2, 0), NULL);
    VIEW(pool, array, SHAPE(1, 1), SHAPE(1, 1), SHAPE(INT64_MAX, INT64_MIN)); /* never taken */
    VIEW(pool, array, SHAPE(1, 1), SHAPE(0, 2), SHAPE(INT64_MIN, 1));
}

static void view_both_orders(tide_pool *pool, void *state)
{
    (void)state;
    view_this(pool, TAKE(pool, TIDE_I32, 4, 6));
    view_this(pool, TAKE_COLUMNS(pool, TIDE_C128, 4, 6));
    view_this(pool, TAKE(pool, TIDE_U8, 4, 6));
    tide_array *point = take_array(pool, TIDE_F64, TIDE_ROW_MAJOR, 0, NULL);
    VIEW(pool, point, SHAPE(0), SHAPE(0), NULL); /* of no dimension, so of one element */
}

static void views_show_the_elements_named(const scene *s)
{
    form_run(s->form, s->pool, view_both_orders, NULL);
    form_repeat(s->form, s->pool, 3, view_both_orders, NULL);
}

struct bad_view {
    int64_t start[2], extent[2], step[2];
};

static void view_badly(tide_pool *pool, void *state)
{
    (void)state;
    static const struct bad_view all[] = {
        {{-1, 0}, {1, 1}, {1, 1}},
        {{4, 0}, {1, 1}, {1, 1}},
        {{5, 0}, {0, 1}, {1, 1}},
        {{-1, 0}, {0, 1}, {1, 1}},
        {{0, 0}, {5, 1}, {1, 1}},
        {{0, 3}, {1, 4}, {1, 1}},
        {{0, 0}, {-1, 1}, {1, 1}},
        {{0, 0}, {3, 1}, {2, 1}},
        {{0, 0}, {2, 1}, {-1, 1}},
        {{3, 5}, {1, 4}, {1, -2}},
        {{0, 0}, {2, 1}, {INT64_MAX, 1}},
        {{0, 0}, {2, 1}, {INT64_MIN, 1}},
        {{1, 1}, {1, INT64_MAX}, {1, INT64_MAX}},
        {{1, 1}, {INT64_MAX, INT64_MAX}, {0, 0}},
        {{INT64_MAX, 0}, {1, 1}, {1, 1}},
        {{INT64_MIN, 0}, {1, 1}, {1, 1}},
    };
    tide_array *array = TAKE(pool, TIDE_F64, 4, 6);
    tide_pool_statistics before = stats_of(pool);
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        note("bad view %zu", i);
        assert_null(tide_array_view(pool, array, all[i].start, all[i].extent, all[i].step));
        expect_error(TIDE_ERROR_SIZE, "tide_array_view");
    }
    assert_null(tide_array_view(pool, NULL, SHAPE(0, 0), SHAPE(1, 1), NULL));
    expect_error(TIDE_ERROR_ARGUMENT, "array");
    assert_null(tide_array_view(pool, array, NULL, SHAPE(1, 1), NULL));
    expect_error(TIDE_ERROR_ARGUMENT, "start");
    assert_null(tide_array_view(pool, array, SHAPE(0, 0), NULL, NULL));
    expect_error(TIDE_ERROR_ARGUMENT, "extent");
    assert_null(tide_array_view(NULL, array, SHAPE(0, 0), SHAPE(1, 1), NULL));
    expect_error(TIDE_ERROR_ARGUMENT, "tide_array_view");
    tide_pool_statistics after = stats_of(pool);
    assert_memory_equal(&after, &before, sizeof after);
}

static void parts_that_lie_outside_are_refused(const scene *s)
{
    form_run(s->form, s->pool, view_badly, NULL);
}

/* ---- reshape ---- */

static void reshape_both_ways(tide_pool *pool, void *state)
{
    tide_order order = *(const tide_order *)state;
    tide_array *array = take_array(pool, TIDE_I32, order, 2, SHAPE(4, 6));
    int32_t *data = tide_array_data(array);
    for (int32_t i = 0; i < 24; i++)
        data[i] = i;
    tide_array *flat = tide_array_reshape(pool, array, 1, SHAPE(24));
    expect_array(flat, TIDE_I32, order, 1, SHAPE(24));
    tide_array *cube = tide_array_reshape(pool, flat, 3, SHAPE(2, 3, 4));
    expect_array(cube, TIDE_I32, order, 3, SHAPE(2, 3, 4));
    assert_true(tide_array_data(flat) == data && tide_array_data(cube) == data);
    assert_true(flat->base == array && cube->base == array);
    assert_int_equal(*(int32_t *)element(cube, SHAPE(1, 2, 3)), 23);
    assert_int_equal(*(int32_t *)element(cube, SHAPE(1, 0, 0)), order == TIDE_ROW_MAJOR ? 12 : 1);
    *(int32_t *)element(cube, SHAPE(0, 1, 0)) = -7;
    assert_int_equal(data[order == TIDE_ROW_MAJOR ? 4 : 2], -7);
    *(int32_t *)element(array, SHAPE(3, 5)) = -9;
    assert_int_equal(*(int32_t *)element(cube, SHAPE(1, 2, 3)), -9);
    assert_int_equal(*(int32_t *)element(flat, SHAPE(23)), -9);
    expect_array(tide_array_reshape(pool, array, 8, SHAPE(1, 2, 1, 3, 1, 2, 2, 1)), TIDE_I32, order,
                 8, SHAPE(1, 2, 1, 3, 1, 2, 2, 1));
    expect_array(array, TIDE_I32, order, 2, SHAPE(4, 6)); /* itself as before */
}

static void reshape_writes_through_both_ways_in_both_orders(const scene *s)
{
    for (tide_order order = TIDE_ROW_MAJOR; order <= TIDE_COLUMN_MAJOR; order++)
        form_repeat(s->form, s->pool, 2, reshape_both_ways, &order);
}

static void expect_no_reshape(tide_pool *pool, const tide_array *array, int ndim,
                              const int64_t *shape, tide_status why, const char *words)
{
    tide_pool_statistics before = stats_of(pool);
    assert_null(tide_array_reshape(pool, array, ndim, shape));
    expect_error(why, words);
    expect_error(why, "tide_array_reshape");
    tide_pool_statistics after = stats_of(pool);
    assert_memory_equal(&after, &before, sizeof after);
}

static void reshape_badly(tide_pool *pool, void *state)
{
    (void)state;
    tide_array *array = TAKE(pool, TIDE_F64, 4, 6);
    expect_no_reshape(pool, array, 2, SHAPE(5, 5), TIDE_ERROR_SIZE, "24");
    expect_no_reshape(pool, array, 1, SHAPE(23), TIDE_ERROR_SIZE, "23");
    expect_no_reshape(pool, array, 2, SHAPE(24, 0), TIDE_ERROR_SIZE, "24");
    expect_no_reshape(pool, array, 0, NULL, TIDE_ERROR_SIZE, "24");
    expect_no_reshape(pool, array, 2, SHAPE(-4, -6), TIDE_ERROR_SIZE, "-4");
    expect_no_reshape(pool, array, 2, SHAPE(24, -1), TIDE_ERROR_SIZE, "-1");
    expect_no_reshape(pool, array, 2, SHAPE(INT64_MAX, 3), TIDE_ERROR_SIZE, "overflow");
    expect_no_reshape(pool, array, 9, SHAPE(24, 1, 1, 1, 1, 1, 1, 1, 1), TIDE_ERROR_SIZE, "9");
    expect_no_reshape(pool, array, -1, SHAPE(24), TIDE_ERROR_SIZE, "-1");
    expect_no_reshape(pool, array, 1, NULL, TIDE_ERROR_ARGUMENT, "NULL");
    expect_no_reshape(pool, NULL, 1, SHAPE(24), TIDE_ERROR_ARGUMENT, "NULL");
    tide_array *gaps = tide_array_view(pool, array, SHAPE(0, 0), SHAPE(4, 3), NULL);
    tide_array *backwards = tide_array_view(pool, array, SHAPE(3, 0), SHAPE(4, 6), SHAPE(-1, 1));
    tide_array *repeated = tide_array_view(pool, array, SHAPE(1, 1), SHAPE(3, 4), SHAPE(0, 0));
    expect_no_reshape(pool, gaps, 1, SHAPE(12), TIDE_ERROR_STATE, "contiguous");
    expect_no_reshape(pool, backwards, 1, SHAPE(24), TIDE_ERROR_STATE, "contiguous");
    expect_no_reshape(pool, repeated, 1, SHAPE(12), TIDE_ERROR_STATE, "contiguous");
    assert_null(tide_array_reshape(NULL, array, 1, SHAPE(24)));
    expect_error(TIDE_ERROR_ARGUMENT, "tide_array_reshape");
}

static void reshape_refuses_what_would_not_be_the_same_elements(const scene *s)
{
    form_run(s->form, s->pool, reshape_badly, NULL);
}

/* ---- contiguous ---- */

static void expect_contiguous(const tide_array *array, bool rows, bool columns)
{
    assert_non_null(array);
    assert_int_equal(tide_array_contiguous(array, TIDE_ROW_MAJOR), rows);
    assert_int_equal(tide_array_contiguous(array, TIDE_COLUMN_MAJOR), columns);
}

static void look_for_gaps(tide_pool *pool, void *state)
{
    (void)state;
    tide_array *array = TAKE(pool, TIDE_F64, 4, 6), *columns = TAKE_COLUMNS(pool, TIDE_F64, 4, 6);
    expect_contiguous(array, true, false);
    expect_contiguous(columns, false, true);
    expect_contiguous(take_array(pool, TIDE_F64, TIDE_ROW_MAJOR, 0, NULL), true, true);
    expect_contiguous(TAKE(pool, TIDE_F64, 9), true, true);
    expect_contiguous(TAKE(pool, TIDE_F64, 1, 9, 1), true, true);
    expect_contiguous(TAKE_COLUMNS(pool, TIDE_F64, 1, 9, 1), true, true);
    expect_contiguous(TAKE(pool, TIDE_F64, 4, 0, 6), true, true);
    expect_contiguous(tide_array_view(pool, array, SHAPE(1, 0), SHAPE(2, 6), NULL), true, false);
    expect_contiguous(tide_array_view(pool, array, SHAPE(1, 2), SHAPE(1, 3), NULL), true, true);
    expect_contiguous(tide_array_view(pool, array, SHAPE(1, 2), SHAPE(3, 1), NULL), false, false);
    expect_contiguous(tide_array_view(pool, columns, SHAPE(1, 2), SHAPE(3, 1), NULL), true, true);
    expect_contiguous(tide_array_view(pool, array, SHAPE(0, 0), SHAPE(1, 3), SHAPE(1, 2)), false,
                      false);
    expect_contiguous(tide_array_view(pool, array, SHAPE(0, 5), SHAPE(1, 6), SHAPE(1, -1)), false,
                      false);
    expect_contiguous(tide_array_view(pool, array, SHAPE(0, 5), SHAPE(1, 1), SHAPE(3, -9)), true,
                      true);
    expect_contiguous(tide_array_view(pool, array, SHAPE(0, 0), SHAPE(0, 3), SHAPE(1, 2)), true,
                      true);
}

static void contiguous_in_which_order(const scene *s)
{
    form_run(s->form, s->pool, look_for_gaps, NULL);
}

static const form_case cases[] = {
    CASE(every_type_is_filled_whatever_was_there),
    CASE(what_cannot_be_filled_is_refused),
    CASE(views_show_the_elements_named),
    CASE(parts_that_lie_outside_are_refused),
    CASE(reshape_writes_through_both_ways_in_both_orders),
    CASE(reshape_refuses_what_would_not_be_the_same_elements),
    CASE(contiguous_in_which_order),
};

static const struct CMUnitTest others[] = {};

int main(void)
{
    return FORMS_MAIN("arrays made", cases, others);
}
