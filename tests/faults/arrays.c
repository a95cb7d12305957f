/* SPDX-License-Identifier: MIT */
/* The public functions of arrays, their exchange, and what watches over them, each as a call that
 * can be made to fail. */
#include <string.h>

#include <tidepool/array.h>
#include <tidepool/bits.h>
#include <tidepool/check.h>
#include <tidepool/dlpack.h>
#include <tidepool/half.h>
#include <tidepool/learn.h>
#include <tidepool/upkeep.h>

#include "sweep.h"

static const int64_t shape[] = {4, 5, 6}, folded[] = {20, 6}, large[] = {40, 50, 60};

/* ---- acquire ---------------------------------------------------------------------------- */

static tide_status acquire_array(struct fixture *fixture)
{
    return status_of(tide_array_acquire(fixture->pool, TIDE_F64, 3, shape));
}

static tide_status acquire_large(struct fixture *fixture)
{
    return status_of(tide_array_acquire(fixture->pool, TIDE_F64, 3, large));
}

static tide_status acquire_columns(struct fixture *fixture)
{
    return status_of(
        tide_array_acquire_order(fixture->pool, TIDE_F64, TIDE_COLUMN_MAJOR, 3, shape));
}

static tide_status acquire_flat(struct fixture *fixture)
{
    return status_of(tide_array_acquire(fixture->pool, TIDE_F64, 2, folded));
}

static tide_status zeros(struct fixture *fixture)
{
    return status_of(tide_array_zeros(fixture->pool, TIDE_F16, 3, shape));
}

static tide_status ones(struct fixture *fixture)
{
    return status_of(tide_array_ones(fixture->pool, TIDE_C64, 3, shape));
}

static tide_status fill(struct fixture *fixture)
{
    const double value = 2.5;
    return status_of(tide_array_fill(fixture->pool, TIDE_F64, 3, shape, &value));
}

static tide_status acquire_bits(struct fixture *fixture)
{
    uint64_t *bits = tide_acquire_bits(fixture->pool, 100);
    if (bits == NULL)
        return tide_error_status();
    memset(bits, 0, 16);
    tide_bit_set(bits, 70);
    tide_bit_put(bits, 3, true);
    tide_bit_clear(bits, 3);
    return tide_bits_count(bits, 100) == 1 && tide_bit_test(bits, 70) ? TIDE_OK : TIDE_ERROR_STATE;
}

/* A live array. */
static void prepare_array(struct fixture *fixture)
{
    fixture->array = tide_array_acquire(fixture->pool, TIDE_F64, 3, shape);
    need(fixture->array != NULL, "array");
}

/* A free slot that was an array of this shape. */
static void prepare_seen(struct fixture *fixture)
{
    tide_mark mark = tide_checkpoint(fixture->pool);
    prepare_array(fixture);
    need(tide_rewind(fixture->pool, mark) == TIDE_OK, "rewind");
}

/* ---- longer ----------------------------------------------------------------------------- */

/* A refusal leaves the array where it is, as it is. */
static tide_status grow(struct fixture *fixture)
{
    double *data = tide_array_data(fixture->array);
    data[119] = 7;
    double *grown = tide_grow(fixture->pool, double, data, 100000);
    tide_status status = status_of(grown);
    return (grown != NULL ? grown : data)[119] == 7 ? status : TIDE_ERROR_STATE;
}

static tide_status grow_array(struct fixture *fixture)
{
    ((double *)tide_array_data(fixture->array))[119] = 7;
    tide_status status = tide_array_grow(fixture->pool, fixture->array, 4000);
    bool right = ((double *)tide_array_data(fixture->array))[119] == 7 &&
                 fixture->array->tensor.shape[0] == (status == TIDE_OK ? 4000 : 4);
    return right ? status : TIDE_ERROR_STATE;
}

/* ---- views ------------------------------------------------------------------------------ */

static tide_status view(struct fixture *fixture)
{
    const int64_t start[] = {1, 4, 0}, extent[] = {2, 2, 3}, step[] = {1, -2, 2};
    return status_of(tide_array_view(fixture->pool, fixture->array, start, extent, step));
}

static tide_status reshape(struct fixture *fixture)
{
    return status_of(tide_array_reshape(fixture->pool, fixture->array, 2, folded));
}

/* A live array that has been viewed before. */
static void prepare_viewed(struct fixture *fixture)
{
    prepare_array(fixture);
    tide_mark mark = tide_checkpoint(fixture->pool);
    need(view(fixture) == TIDE_OK, "view");
    need(tide_rewind(fixture->pool, mark) == TIDE_OK, "rewind");
}

/* ---- exchange --------------------------------------------------------------------------- */

/* The consumer is done at once: the pool gets its memory back when it next needs it. */
static tide_status export_array(struct fixture *fixture)
{
    tide_dl_managed *managed = tide_array_export(fixture->pool, fixture->array);
    if (managed == NULL)
        return tide_error_status();
    managed->deleter(managed);
    return TIDE_OK;
}

static void prepare_exported(struct fixture *fixture)
{
    prepare_array(fixture);
    fixture->managed = tide_array_export(fixture->pool, fixture->array);
    need(fixture->managed != NULL, "export");
}

/* Letting go asks for nothing, wherever the array and its pool are by then. */
static tide_status drop(struct fixture *fixture)
{
    tide_status status = tide_pool_reset(fixture->pool);
    if (fixture->managed != NULL)
        fixture->managed->deleter(fixture->managed);
    fixture->managed = NULL;
    return status;
}

/* What a consumer still has is not waited for. */
static tide_status acquire_beside(struct fixture *fixture)
{
    if (tide_array_acquire(fixture->pool, TIDE_F64, 3, shape) == NULL)
        return tide_error_status();
    fixture->managed->deleter(fixture->managed);
    return TIDE_OK;
}

/* A free slot whose memory a consumer has. */
static void prepare_away(struct fixture *fixture)
{
    prepare_exported(fixture);
    need(tide_pool_reset(fixture->pool) == TIDE_OK, "reset");
}

static unsigned given_back;

static void give_back(tide_dl_managed *managed)
{
    (void)managed;
    given_back++;
}

/* A tensor is consumed whether it can be taken or not: once. */
static tide_status import_array(struct fixture *fixture)
{
    static float values[6] = {1, 2, 3, 4, 5, 6};
    static int64_t extents[] = {2, 3};
    static tide_dl_managed managed = {.version = {TIDE_DL_MAJOR, TIDE_DL_MINOR},
                                      .deleter = give_back,
                                      .tensor = {.data = values,
                                                 .device = {TIDE_DL_CPU, 0},
                                                 .ndim = 2,
                                                 .dtype = {TIDE_DL_FLOAT, 32, 1},
                                                 .shape = extents}};
    given_back = 0;
    tide_mark mark = tide_checkpoint(fixture->pool);
    tide_array *array = tide_array_import(fixture->pool, &managed);
    tide_status status = status_of(array);
    bool right = given_back == (array == NULL);
    right = right && (array == NULL || ((float *)tide_array_data(array))[5] == 6);
    need(tide_rewind(fixture->pool, mark) == TIDE_OK, "rewind");
    return right && given_back == 1 ? status : TIDE_ERROR_STATE;
}

static void give_memory_back(void *data, void *context)
{
    (void)data, (void)context;
    given_back++;
}

static tide_status wrap(struct fixture *fixture)
{
    static float values[6] = {1, 2, 3, 4, 5, 6};
    const tide_array_source source = {.data = values,
                                      .type = TIDE_F32,
                                      .ndim = 2,
                                      .shape = (const int64_t[]){2, 3},
                                      .deleter = give_memory_back};
    given_back = 0;
    tide_mark mark = tide_checkpoint(fixture->pool);
    tide_array *array = tide_array_wrap(fixture->pool, &source);
    tide_status status = status_of(array);
    bool right = given_back == (array == NULL);
    need(tide_rewind(fixture->pool, mark) == TIDE_OK, "rewind");
    return right && given_back == 1 ? status : TIDE_ERROR_STATE;
}

/* ---- requests --------------------------------------------------------------------------- */

static bool quiet(tide_report_kind kind, const char *text, void *user)
{
    (void)kind, (void)text, (void)user;
    return false;
}

/* ---- checks and conversions --------------------------------------------------------------- */

static void prepare_poisoned_array(struct fixture *fixture)
{
    prepare_poison(fixture);
    prepare_array(fixture);
}

static void prepare_guarded_array(struct fixture *fixture)
{
    tide_report_set_handler(quiet, NULL);
    prepare_guard(fixture);
    prepare_array(fixture);
}

/* ---- the table -------------------------------------------------------------------------- */

static const struct fault_case cases[] = {
    {"tide_array_acquire", NULL, acquire_array, ASKS, "tide_array_acquire", 0},
    {"tide_array_acquire, poison", prepare_poison, acquire_array, ASKS, NULL, 0},
    {"tide_array_acquire, disabled", prepare_disabled, acquire_array, ASKS, NULL, 0},
    {"tide_array_acquire, guard", prepare_guard, acquire_array, ASKS, NULL, 0},
    {"tide_array_acquire, seen shape", prepare_seen, acquire_array, NEVER, NULL, 0},
    {"tide_array_acquire, seen rank", prepare_seen, acquire_columns, NEVER, NULL, 0},
    {"tide_array_acquire, new rank", prepare_seen, acquire_flat, ASKS, "tide_array_acquire", 0},
    {"tide_array_acquire, grow", prepare_seen, acquire_large, ASKS, "tide_array_acquire", 0},
    {"tide_array_zeros", NULL, zeros, ASKS, NULL, 0},
    {"tide_array_ones", NULL, ones, ASKS, NULL, 0},
    {"tide_array_fill", NULL, fill, ASKS, NULL, 0},
    {"tide_acquire_bits", NULL, acquire_bits, ASKS, "tide_acquire", 0},

    {"tide_grow", prepare_array, grow, ASKS, "tide_grow", 0},
    {"tide_grow, poison", prepare_poisoned_array, grow, ASKS, "tide_grow", 0},
    {"tide_grow, guard", prepare_guarded_array, grow, ASKS, NULL, 0},
    {"tide_array_grow", prepare_array, grow_array, ASKS, "tide_array_grow", 0},

    {"tide_array_view", prepare_array, view, ASKS, NULL, REGISTERS},
    {"tide_array_view, again", prepare_viewed, view, NEVER, NULL, 0},
    {"tide_array_view, guard", prepare_guarded_array, view, ASKS, NULL, REGISTERS},
    {"tide_array_reshape", prepare_array, reshape, ASKS, NULL, REGISTERS},
    {"tide_array_reshape, after a view", prepare_viewed, reshape, NEVER, NULL, 0},

    {"tide_array_export", prepare_array, export_array, ASKS, "tide_array_export", REGISTERS},
    {"a deleter", prepare_exported, drop, NEVER, NULL, 0},
    {"tide_array_acquire beside an export", prepare_away, acquire_beside, ASKS, NULL, 0},
    {"tide_array_import", NULL, import_array, ASKS, NULL, REGISTERS},
    {"tide_array_import, poison", prepare_poison, import_array, ASKS, NULL, REGISTERS},

    {"tide_array_wrap", NULL, wrap, ASKS, NULL, REGISTERS},
    {"tide_array_wrap, poison", prepare_poison, wrap, ASKS, NULL, REGISTERS},

};

const struct fault_list fault_arrays = {cases, sizeof cases / sizeof *cases};
