/* SPDX-License-Identifier: MIT */
/* What operations on N-D arrays do: acquire, view, reshape, export, import. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <tidepool/array.h>
#include <tidepool/check.h>
#include <tidepool/dlpack.h>

#include "interpret.h"
#include "tests/hooks.h"

static void must_be(struct machine *machine, tide_status status, const char *call)
{
    machine->status = tide_error_status();
    if (machine->status != status)
        oracle_wrong(&machine->oracle, "%s: %s, must be %s (%s)", call,
                     tide_status_name(machine->status), tide_status_name(status),
                     tide_error_message());
}

/* ---- acquire ---------------------------------------------------------------------------- */

static tide_array *acquire_as(tide_pool *pool, tide_type id, const struct shape *shape,
                              enum mode mode)
{
    switch (mode) {
    case MODE_INLINE: return tide_array_acquire(pool, id, shape->ndim, shape->extent);
    case MODE_ZEROS: return tide_array_zeros(pool, id, shape->ndim, shape->extent);
    case MODE_ONES: return tide_array_ones(pool, id, shape->ndim, shape->extent);
    case MODE_FILL: return tide_array_fill(pool, id, shape->ndim, shape->extent, model_fill_value);
    case MODE_COLD:
        return tide_array_acquire_slow(pool, id, shape->order, shape->ndim, shape->extent,
                                       TIDE_NOWHERE);
    default: return tide_array_acquire_order(pool, id, shape->order, shape->ndim, shape->extent);
    }
}

/* The oracle has no addresses of bits, so bytes stand for them here. */
static unsigned array_type(const struct machine *machine, uint8_t a)
{
    unsigned type = machine_type(machine, a);
    return model_types[type].id == TIDE_BIT ? TIDE_U8 - 1 : type;
}

/* What an array like `of` is, by default the same; `b` and `c` say what else it should be. */
static tide_array *acquire_similar(struct machine *machine, const struct operation *op,
                                   const struct nd *of, unsigned *type, struct shape *shape)
{
    bool other_type = (op->c & 8) != 0, other_shape = (op->c & 16) != 0;
    *type = other_type ? array_type(machine, op->a) : of->type;
    *shape = of->shape;
    shape->order = (tide_order)of->header->order;
    if (other_shape)
        *shape = shape_operand(op->b, shape->order, model_types[*type].bits);
    if (shape_length(shape) * model_types[*type].bits > (size_t)8 * (4 << 20))
        return NULL;
    shape_stride(shape);
    machine_faults(machine, op->c);
    return tide_array_acquire_order(machine->pool, model_types[*type].id, shape->order, shape->ndim,
                                    other_shape ? shape->extent : of->header->tensor.shape);
}

static enum fill fill_of(enum mode mode)
{
    return mode == MODE_ZEROS  ? FILL_ZEROS
           : mode == MODE_ONES ? FILL_ONES
           : mode == MODE_FILL ? FILL_VALUE
                               : FILL_PLAIN;
}

/* Some types have no 1, which is known before anything is done. */
static bool is_refused(unsigned type, enum mode mode)
{
    return mode == MODE_ONES && model_types[type].id > TIDE_BOOL;
}

static void judge_failure(struct machine *machine, unsigned type, const struct shape *shape)
{
    struct oracle *oracle = &machine->oracle;
    size_t n = shape_length(shape);
    machine->status = tide_error_status();
    oracle_reached(oracle, type);
    bool header = !oracle_has_header(oracle, type, shape->ndim);
    bool allowed = machine_may_fail(machine, type, n, machine->status) ||
                   (header && oracle->faults > 0 && machine->status == TIDE_ERROR_MEMORY);
    oracle_array_refused(oracle, type, n);
    oracle_refused(oracle, "an array");
    if (!allowed)
        oracle_wrong(oracle, "an array: %s", tide_error_message());
}

static void judge(struct machine *machine, unsigned type, const struct shape *shape, enum mode mode,
                  tide_array *array)
{
    struct oracle *oracle = &machine->oracle;
    enum fill fill = fill_of(mode);
    set_memory_fault(NULL);
    if (is_refused(type, mode)) {
        if (array != NULL)
            oracle_wrong(oracle, "an array of %s was not refused", model_types[type].name);
        must_be(machine, TIDE_ERROR_TYPE, "an array without elements of their own");
        oracle_refused(oracle, "an array");
        return;
    }
    if (array == NULL) {
        judge_failure(machine, type, shape);
        return;
    }
    machine_check_filled(machine, type, tide_array_data(array), shape_length(shape), fill);
    oracle_array(oracle, type, array, shape, fill < FILL_ZEROS ? CONTENT_LEFT : CONTENT_FILLED);
}

void machine_array(struct machine *machine, const struct operation *op)
{
    enum mode mode = operand_mode(op->c);
    size_t number = 0;
    if (machine->oracle.live_count == ORACLE_LIVE)
        return;
    if (mode == MODE_SIMILAR && oracle_choose(&machine->oracle, op->b, &number)) {
        unsigned type;
        struct shape shape;
        struct nd of = *machine->oracle.live[number].nd;
        tide_array *array = acquire_similar(machine, op, &of, &type, &shape);
        if (array != NULL || get_memory_fault() != NULL || is_refused(type, mode) ||
            shape_length(&shape) * model_types[type].bits <= (size_t)8 * (4 << 20))
            judge(machine, type, &shape, mode, array);
        return;
    }
    unsigned type = array_type(machine, op->a);
    tide_order order = mode == MODE_COLUMN ? TIDE_COLUMN_MAJOR : TIDE_ROW_MAJOR;
    struct shape shape = shape_operand(op->b, order, model_types[type].bits);
    machine_faults(machine, op->c);
    tide_array *array = acquire_as(machine->pool, model_types[type].id, &shape, mode);
    judge(machine, type, &shape, mode, array);
}

/* ---- views ------------------------------------------------------------------------------ */

/* A header could not be had. */
static void judge_header_failure(struct machine *machine)
{
    struct oracle *oracle = &machine->oracle;
    machine->status = tide_error_status();
    oracle_reached(oracle, MODEL_HEADER);
    oracle_refused(oracle, "a header");
    if (!machine_may_fail(machine, MODEL_HEADER, 1, machine->status))
        oracle_wrong(oracle, "a header: %s", tide_error_message());
}

static void judge_view(struct machine *machine, size_t of, tide_array *view,
                       const struct shape *shape, int64_t offset, tide_status expected)
{
    set_memory_fault(NULL);
    if (expected != TIDE_OK) {
        if (view != NULL)
            oracle_wrong(&machine->oracle, "a view was not refused");
        must_be(machine, expected, "a view that must be refused");
        oracle_refused(&machine->oracle, "a view");
    } else if (view == NULL) {
        judge_header_failure(machine);
    } else {
        oracle_viewed(&machine->oracle, view, of, shape, offset);
    }
}

static void take_part(struct machine *machine, const struct operation *op, size_t of)
{
    const struct nd *nd = machine->oracle.live[of].nd;
    struct part part = part_operand(&nd->shape, op->b, op->c);
    int64_t offset = 0;
    struct shape shape = {0};
    bool inside = part_inside(&nd->shape, &part);
    bool ones = true;
    if (inside)
        shape = part_shape(&nd->shape, &part, &offset);
    for (int d = 0; d < nd->shape.ndim; d++)
        ones = ones && part.step[d] == 1;
    machine_faults(machine, op->c);
    tide_array *view = tide_array_view(machine->pool, nd->header, part.start, part.extent,
                                       ones ? NULL : part.step);
    judge_view(machine, of, view, &shape, offset, inside ? TIDE_OK : TIDE_ERROR_SIZE);
}

static void refold(struct machine *machine, const struct operation *op, size_t of)
{
    const struct nd *nd = machine->oracle.live[of].nd;
    struct shape was = nd->shape;
    was.order = (tide_order)nd->header->order;
    struct shape shape = shape_refolded(&was, op->b);
    tide_status expected = shape_length(&shape) != shape_length(&was) ? TIDE_ERROR_SIZE
                           : !shape_dense(&was)                       ? TIDE_ERROR_STATE
                                                                      : TIDE_OK;
    machine_faults(machine, op->c);
    tide_array *view = tide_array_reshape(machine->pool, nd->header, shape.ndim, shape.extent);
    judge_view(machine, of, view, &shape, 0, expected);
}

void machine_view(struct machine *machine, const struct operation *op)
{
    size_t of = 0;
    if (machine->oracle.live_count == ORACLE_LIVE || !oracle_choose(&machine->oracle, op->a, &of))
        return;
    if (op->c % 4 == 1)
        refold(machine, op, of);
    else
        take_part(machine, op, of);
}

/* ---- out -------------------------------------------------------------------------------- */

/* Where an array has two faults, which is named does not matter. */
static tide_status export_status(struct machine *machine, const struct nd *nd)
{
    const struct place *memory = oracle_memory(&machine->oracle, nd);
    bool bad_type = nd->type >= MODEL_BUILTIN, bad_state = nd->import != NULL || memory->guarded;
    if (bad_type && bad_state && tide_error_status() == TIDE_ERROR_STATE)
        return TIDE_ERROR_STATE;
    return bad_type ? TIDE_ERROR_TYPE : bad_state ? TIDE_ERROR_STATE : TIDE_OK;
}

static void export_dead(struct machine *machine, const struct operation *op)
{
    unsigned type = op->a % TIDE_BOOL;
    tide_array *header = oracle_dead_header(&machine->oracle, type);
    if (header == NULL)
        return;
    if (tide_array_export(machine->pool, header) != NULL)
        oracle_wrong(&machine->oracle, "a dead array was exported");
    must_be(machine, TIDE_ERROR_STALE, "the export of a dead array");
    oracle_refused(&machine->oracle, "an export");
}

void machine_export(struct machine *machine, const struct operation *op)
{
    struct oracle *oracle = &machine->oracle;
    size_t of = 0;
    if (op->b % 4 == 3) {
        export_dead(machine, op);
        return;
    }
    if (oracle->export_count == ORACLE_EXPORTS || oracle->pin_count == ORACLE_PINS ||
        !oracle_choose(oracle, op->a, &of))
        return;
    machine_faults(machine, op->c);
    tide_dl_managed *managed = tide_array_export(machine->pool, oracle->live[of].nd->header);
    set_memory_fault(NULL);
    tide_status expected = export_status(machine, oracle->live[of].nd);
    if (managed != NULL && expected == TIDE_OK) {
        oracle_exported(oracle, of, managed);
        return;
    }
    if (managed != NULL)
        oracle_wrong(oracle, "an export was not refused");
    must_be(machine, oracle->faults > 0 ? TIDE_ERROR_MEMORY : expected, "an export");
    oracle_refused(oracle, "an export");
}

static void *call_deleter(void *user)
{
    tide_dl_managed *managed = user;
    managed->deleter(managed);
    return NULL;
}

void machine_drop(struct machine *machine, const struct operation *op)
{
    struct oracle *oracle = &machine->oracle;
    if (oracle->export_count == 0)
        return;
    size_t number = op->a % oracle->export_count;
    pthread_t thread;
    if (op->b % 4 == 1) {
        oracle_consumer_writes(oracle, number);
        return;
    }
    tide_dl_managed *managed = oracle->exports[number].managed;
    if (op->b % 8 != 7)
        call_deleter(managed);
    else if (pthread_create(&thread, NULL, call_deleter, managed) == 0)
        pthread_join(thread, NULL);
    else
        abort();
    oracle_dropped(oracle, number);
}

/* ---- in --------------------------------------------------------------------------------- */

enum { WAYS_TO_REFUSE = 5 };

static tide_status spoil(struct import *import, unsigned how)
{
    tide_dl_managed *managed = &import->managed;
    switch (how) {
    case 0: managed->version.major = 2; return TIDE_ERROR_ARGUMENT;
    case 1: managed->tensor.device.device_type = TIDE_DL_CUDA; return TIDE_ERROR_DEVICE;
    case 2: managed->tensor.dtype.lanes = 4; return TIDE_ERROR_TYPE;
    case 3: managed->tensor.ndim = TIDE_NDIM_MAX + 1; return TIDE_ERROR_SIZE;
    default: managed->tensor.dtype = (tide_dl_type){TIDE_DL_OPAQUE, 8, 1}; return TIDE_ERROR_TYPE;
    }
}

/* With strides of its own, or none, which means row-major. */
static struct shape produced_shape(const struct operation *op, unsigned type)
{
    tide_order order = op->a % 4 >= 2 ? TIDE_COLUMN_MAJOR : TIDE_ROW_MAJOR;
    struct shape shape = shape_operand(op->b % 200, order, model_types[type].bits);
    return shape;
}

void machine_import(struct machine *machine, const struct operation *op)
{
    struct oracle *oracle = &machine->oracle;
    if (oracle->live_count == ORACLE_LIVE || oracle->import_count == ORACLE_IMPORTS)
        return;
    unsigned type = op->a % 2 != 0 ? TIDE_F64 - 1 : TIDE_U16 - 1;
    struct shape shape = produced_shape(op, type);
    struct import *import = oracle_produce(oracle, type, &shape);
    if (shape.order == TIDE_ROW_MAJOR && op->a % 8 >= 4)
        import->managed.tensor.strides = NULL;
    bool spoilt = op->c % 8 == 7;
    tide_status expected = spoilt ? spoil(import, op->c / 8 % WAYS_TO_REFUSE) : TIDE_OK;
    machine_faults(machine, op->c);
    tide_array *array = tide_array_import(machine->pool, &import->managed);
    set_memory_fault(NULL);
    if (array != NULL && !spoilt) {
        oracle_imported(oracle, array, import);
        return;
    }
    import->due = 1;
    if (array != NULL)
        oracle_wrong(oracle, "a bad tensor was not refused");
    if (!spoilt) {
        judge_header_failure(machine);
        return;
    }
    must_be(machine, expected, "a bad tensor");
    oracle_refused(oracle, "a bad tensor");
}

/* ---- escapes ---------------------------------------------------------------------------- */

static void expect_escape(struct machine *machine, const void *pointer, bool escapes)
{
    if (tide_escape_check(pointer) == escapes)
        oracle_wrong(&machine->oracle, "a pointer was said to %s", escapes ? "stay" : "escape");
}

/* What the innermost level acquired does not survive it; exported memory does. */
void machine_escape(struct machine *machine, const struct operation *op)
{
    struct oracle *oracle = &machine->oracle;
    expect_escape(machine, oracle, false);
    if (oracle->live_count == 0)
        return;
    size_t number = op->a % oracle->live_count;
    const struct live *live = &oracle->live[number];
    const struct place *place = &oracle->rows[live->type].places[live->place];
    bool inner = oracle->checked && oracle->level_count > 0 &&
                 number >= oracle->levels[oracle->level_count - 1].live;
    expect_escape(machine, place->data, inner && place->pin == NULL);
    if (live->nd != NULL)
        expect_escape(machine, live->nd->header, inner);
}
