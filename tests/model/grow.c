/* SPDX-License-Identifier: MIT */
/* What it does to make a live array longer: its elements stay, it moves only if it must, and what
 * has no memory of its own in the pool is refused. */
#include <stdlib.h>
#include <string.h>

#include <tidepool/array.h>

#include "interpret.h"
#include "oracle_parts.h"
#include "tests/hooks.h"

enum { BYTES_MAX = 4 << 20 };

/* Views of it would be invalid. */
static bool has_views(const struct oracle *oracle, size_t number)
{
    for (size_t i = 0; i < oracle->live_count; i++)
        if (i != number && oracle->live[i].nd != NULL && oracle->live[i].nd->base == number)
            return true;
    return false;
}

/* The old memory is there until the array has moved. */
static bool may_fail(const struct machine *machine, const struct place *place, size_t bytes,
                     tide_status status)
{
    const struct oracle *oracle = &machine->oracle;
    if (!place->guarded && place->room >= bytes)
        return false;
    return oracle_may_lack(oracle, bytes, status);
}

static void judge_refusal(struct machine *machine, const struct place *place, size_t bytes,
                          tide_status expected)
{
    struct oracle *oracle = &machine->oracle;
    machine->status = tide_error_status();
    oracle_refused(oracle, "growing");
    bool allowed = expected != TIDE_OK ? machine->status == expected
                                       : may_fail(machine, place, bytes, machine->status);
    if (!allowed)
        oracle_wrong(oracle, "growing failed: %s", tide_error_message());
}

/* A guarded array always moves; another one only if its memory is not known to be large enough. */
static void judge_place(struct machine *machine, const struct live *live, unsigned char *data,
                        size_t n)
{
    const size_t bytes = model_bytes(live->type, n);
    struct oracle *oracle = &machine->oracle;
    struct place *place = &oracle->rows[live->type].places[live->place];
    bool moved = data != place->data;
    oracle_pressed(oracle, MODEL_TYPES);
    if (moved && !place->guarded && place->room >= bytes)
        oracle_wrong(oracle, "%s moved to grow to %zu bytes and has room for %zu",
                     model_types[live->type].name, bytes, place->room);
    place->data = data;
    if (!place_intact(place))
        oracle_wrong(oracle, "a grown %s lost its elements", model_types[live->type].name);
    place->guarded = oracle_sees_guard(oracle, live->type, live->place);
    oracle->allocations += moved;
    oracle->releases += moved;
    if (moved || bytes > place->room)
        place->room = bytes;
    if (n > place->peak)
        place->peak = n;
    place->stained = moved ? 0 : place->stained;
    place->bytes = bytes;
    oracle_check_apart(oracle, live);
    place_witness(place, oracle->step * 64 + 7);
}

static void grow_raw(struct machine *machine, const struct operation *op, const struct live *live)
{
    const struct place *place = &machine->oracle.rows[live->type].places[live->place];
    const struct model_type *type = &model_types[live->type];
    size_t n = place->bytes / (type->bits / 8) + operand_count(op->b, type->bits);
    size_t bytes = model_bytes(live->type, n);
    if (bytes > BYTES_MAX)
        return;
    machine_faults(machine, op->c);
    unsigned char *data = tide_grow_type(machine->pool, type->id, place->data, n);
    set_memory_fault(NULL);
    if (data == NULL)
        judge_refusal(machine, place, bytes, TIDE_OK);
    else
        judge_place(machine, live, data, n);
}

/* Along the slowest dimension, where what there is stays in place. */
static bool grown_shape(const struct nd *nd, uint8_t b, struct shape *shape)
{
    *shape = nd->shape;
    if (shape->ndim == 0)
        return false;
    int slowest = shape->order == TIDE_ROW_MAJOR ? 0 : shape->ndim - 1;
    shape->extent[slowest] += b % 16;
    shape_stride(shape);
    return model_bytes(nd->type, shape_length(shape)) <= BYTES_MAX;
}

static tide_status expected_of(const struct machine *machine, const struct live *live,
                               size_t number)
{
    const struct place *place = &machine->oracle.rows[live->type].places[live->place];
    bool own = live->nd->base == number && live->nd->import == NULL;
    return own && place->pin == NULL ? TIDE_OK : TIDE_ERROR_STATE;
}

static void grow_array(struct machine *machine, const struct operation *op, size_t number)
{
    struct oracle *oracle = &machine->oracle;
    struct live *live = &oracle->live[number];
    struct nd *nd = live->nd;
    struct shape shape;
    if (!grown_shape(nd, op->b, &shape))
        return;
    const struct place *place = &oracle->rows[live->type].places[live->place];
    size_t bytes = model_bytes(nd->type, shape_length(&shape));
    int slowest = shape.order == TIDE_ROW_MAJOR ? 0 : shape.ndim - 1;
    tide_status expected = expected_of(machine, live, number);
    machine_faults(machine, op->c);
    tide_status status = tide_array_grow(machine->pool, nd->header, shape.extent[slowest]);
    set_memory_fault(NULL);
    if (status != TIDE_OK) {
        judge_refusal(machine, place, bytes, expected);
        return;
    }
    if (expected != TIDE_OK)
        oracle_wrong(oracle, "an array was grown that has no memory of its own");
    nd->shape = shape;
    judge_place(machine, live, tide_array_data(nd->header), shape_length(&shape));
}

/* A raw address that is no longer live, or a consumer's. */
static void grow_what_is_away(struct machine *machine, const struct live *live)
{
    const struct place *place = &machine->oracle.rows[live->type].places[live->place];
    if (tide_grow_type(machine->pool, model_types[live->type].id, place->data, 1) != NULL)
        oracle_wrong(&machine->oracle, "an exported array was grown by its address");
    judge_refusal(machine, place, 0, TIDE_ERROR_STALE);
}

void machine_grow(struct machine *machine, const struct operation *op)
{
    struct oracle *oracle = &machine->oracle;
    if (oracle->live_count == 0)
        return;
    size_t number = op->a % oracle->live_count;
    struct live *live = &oracle->live[number];
    const struct place *place = &oracle->rows[live->type].places[live->place];
    if (live->nd != NULL) {
        if (!has_views(oracle, number))
            grow_array(machine, op, number);
    } else if (live->type == MODEL_HEADER || model_types[live->type].id == TIDE_BIT) {
        return; /* the library's own; the oracle has no addresses of bits */
    } else if (place->pin != NULL) {
        grow_what_is_away(machine, live);
    } else {
        grow_raw(machine, op, live);
    }
}
