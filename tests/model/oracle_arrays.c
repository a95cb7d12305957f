/* SPDX-License-Identifier: MIT */
/* The oracle's knowledge of arrays: what headers must say, which memory elements are in, and what
 * is with consumers and from producers. */
#include "oracle_parts.h"

#include <stdlib.h>
#include <string.h>

#include <tidepool/array.h>
#include <tidepool/dlpack.h>

/* ---- seats ------------------------------------------------------------------------------ */

void seats_forget(struct row *row, size_t from)
{
    for (size_t i = from; i < row->count; i++) {
        free(row->seats[i]);
        row->seats[i] = NULL;
    }
}

static const struct seat *find_seat(const struct oracle *oracle, unsigned type)
{
    const struct row *row = &oracle->rows[type];
    return row->live < row->count ? row->seats[row->live] : NULL;
}

bool oracle_has_header(const struct oracle *oracle, unsigned type, int ndim)
{
    const struct seat *seat = find_seat(oracle, type);
    return seat != NULL && seat->headers[ndim] != NULL;
}

tide_array *oracle_dead_header(const struct oracle *oracle, unsigned type)
{
    const struct seat *seat = find_seat(oracle, type);
    tide_array *header = NULL;
    for (int rank = 0; seat != NULL && rank <= TIDE_NDIM_MAX && header == NULL; rank++)
        header = seat->headers[rank];
    return header;
}

static struct seat *seat_at(struct row *row, size_t place)
{
    if (row->seats[place] == NULL)
        row->seats[place] = calloc(1, sizeof *row->seats[place]);
    return row->seats[place];
}

/* The same rank in the same place: the same header. */
static void sit(struct oracle *oracle, unsigned type, size_t place, tide_array *array,
                const struct shape *shape)
{
    struct seat *seat = seat_at(&oracle->rows[type], place);
    tide_array **header = &seat->headers[shape->ndim];
    if (*header != NULL && *header != array)
        oracle_wrong(oracle, "%s in place %zu has another header of rank %d",
                     model_types[type].name, place, shape->ndim);
    *header = array;
}

/* ---- headers ---------------------------------------------------------------------------- */

struct place *oracle_memory(struct oracle *oracle, const struct nd *nd)
{
    const struct live *base = &oracle->live[nd->base];
    if (nd->import != NULL)
        return &nd->import->memory;
    return &oracle->rows[base->type].places[base->place];
}

static size_t element_bytes(const struct nd *nd)
{
    return model_types[nd->type].bits / 8;
}

static bool says_type(const tide_dl_type *says, unsigned type)
{
    static const unsigned char codes[MODEL_BUILTIN + 1] = {
        [TIDE_F16] = 2, [TIDE_BF16] = 4, [TIDE_F32] = 2, [TIDE_F64] = 2,
        [TIDE_U8] = 1,  [TIDE_U16] = 1,  [TIDE_U32] = 1, [TIDE_U64] = 1,
        [TIDE_C64] = 5, [TIDE_C128] = 5, [TIDE_BOOL] = 6};
    if (type >= MODEL_BUILTIN)
        return says->code == TIDE_DL_OPAQUE;
    return says->code == codes[type + 1] && says->bits == model_types[type].bits &&
           says->lanes == 1;
}

/* The stride of a dimension without a second element is nobody's business. */
static bool says_shape(const tide_dl_tensor *tensor, const struct shape *shape)
{
    bool same = tensor->ndim == shape->ndim && tensor->device.device_type == TIDE_DL_CPU &&
                tensor->device.device_id == 0;
    for (int d = 0; same && d < shape->ndim; d++)
        same = tensor->shape[d] == shape->extent[d] &&
               (shape->extent[d] < 2 || tensor->strides[d] == shape->stride[d]);
    return same;
}

static void check_header(struct oracle *oracle, size_t number)
{
    const struct nd *nd = oracle->live[number].nd;
    const tide_array *array = nd->header;
    const struct place *memory = oracle_memory(oracle, nd);
    bool owner = nd->base == number;
    const char *name = model_types[nd->type].name;
    if (!says_shape(&array->tensor, &nd->shape) || array->length != shape_length(&nd->shape))
        oracle_wrong(oracle, "the header of live array %zu, of %s, has a wrong shape", number,
                     name);
    if (array->type != model_types[nd->type].id || !says_type(&array->tensor.dtype, nd->type))
        oracle_wrong(oracle, "the header of live array %zu, of %s, has a wrong type", number, name);
    if (nd->import == NULL && array->order != (uint32_t)nd->shape.order)
        oracle_wrong(oracle, "the header of live array %zu, of %s, has order %u", number, name,
                     array->order);
    if ((unsigned char *)tide_array_data(array) !=
        memory->data + nd->offset * (int64_t)element_bytes(nd))
        oracle_wrong(oracle, "the header of live array %zu, of %s, points elsewhere", number, name);
    if (array->base != (owner ? NULL : oracle->live[nd->base].nd->header))
        oracle_wrong(oracle, "the header of live array %zu, of %s, has another's base", number,
                     name);
}

/* The live array on top gets a header. */
static void attach(struct oracle *oracle, const struct nd *nd)
{
    struct live *live = &oracle->live[oracle->live_count - 1];
    live->nd = malloc(sizeof *live->nd);
    *live->nd = *nd;
    check_header(oracle, oracle->live_count - 1);
}

void oracle_array(struct oracle *oracle, unsigned type, tide_array *array,
                  const struct shape *shape, enum content content)
{
    size_t place = oracle->rows[type].live;
    if (oracle_sees_slot(oracle, type, array) != place)
        oracle_wrong(oracle, "the header of %s is of place %zu, must be %zu",
                     model_types[type].name, oracle_sees_slot(oracle, type, array), place);
    oracle_acquired(oracle, type, array->tensor.data, shape_length(shape), content);
    if (oracle->wrong[0] != '\0')
        return;
    sit(oracle, type, place, array, shape);
    attach(oracle, &(struct nd){array, type, *shape, 0, oracle->live_count - 1, NULL});
}

void oracle_viewed(struct oracle *oracle, tide_array *view, size_t of, const struct shape *shape,
                   int64_t offset)
{
    const struct nd *nd = oracle->live[of].nd;
    struct nd made = {view, nd->type, *shape, nd->offset + offset, nd->base, nd->import};
    oracle_acquired(oracle, MODEL_HEADER, view, 1, CONTENT_KEPT);
    if (oracle->wrong[0] == '\0')
        attach(oracle, &made);
}

void oracle_imported(struct oracle *oracle, tide_array *array, struct import *import)
{
    bool real = import->managed.tensor.dtype.code == TIDE_DL_FLOAT;
    unsigned type = real ? TIDE_F64 - 1 : TIDE_U16 - 1;
    oracle_acquired(oracle, MODEL_HEADER, array, 1, CONTENT_KEPT);
    if (oracle->wrong[0] != '\0')
        return;
    int64_t skipped = (int64_t)import->managed.tensor.byte_offset;
    int64_t size = (int64_t)model_types[type].bits / 8;
    struct nd made = {array, type, import->shape, skipped / size, oracle->live_count - 1, import};
    made.shape.order = (tide_order)array->order;
    attach(oracle, &made);
}

void nd_release(struct oracle *oracle, struct live *live)
{
    if (live->nd == NULL)
        return;
    if (live->nd->import != NULL && live->nd->base == oracle->live_count)
        live->nd->import->due++;
    free(live->nd);
    live->nd = NULL;
}

bool oracle_choose(const struct oracle *oracle, unsigned which, size_t *number)
{
    size_t count = 0;
    for (size_t i = 0; i < oracle->live_count; i++)
        count += oracle->live[i].nd != NULL;
    if (count == 0)
        return false;
    size_t skip = which % count;
    for (size_t i = oracle->live_count; i-- > 0;)
        if (oracle->live[i].nd != NULL && skip-- == 0) {
            *number = i;
            return true;
        }
    return false;
}

/* ---- elements --------------------------------------------------------------------------- */

/* The library's header says where the element is, the oracle's shape what must be there. */
void oracle_write_element(struct oracle *oracle, const struct nd *nd, size_t number, uint64_t salt)
{
    struct shape theirs = {.ndim = nd->header->tensor.ndim};
    size_t size = element_bytes(nd);
    struct place *memory = oracle_memory(oracle, nd);
    for (int d = 0; d < theirs.ndim; d++) {
        theirs.extent[d] = nd->header->tensor.shape[d];
        theirs.stride[d] = nd->header->tensor.strides[d];
    }
    unsigned char *bytes = (unsigned char *)tide_array_data(nd->header) +
                           shape_offset(&theirs, number) * (int64_t)size;
    size_t first = (size_t)(nd->offset + shape_offset(&nd->shape, number)) * size;
    for (size_t i = 0; i < size && i < 64; i++) {
        unsigned char *copy = place_copy_of(memory, first + i);
        if (copy != NULL && bytes[i] != *copy)
            oracle_wrong(oracle, "element %zu of a %s of rank %d is another's", number,
                         model_types[nd->type].name, nd->shape.ndim);
        bytes[i] = (unsigned char)(salt * 0x9e3779b97f4a7c15u >> 40 >> i % 8);
        if (copy != NULL)
            *copy = bytes[i];
    }
}

/* ---- out: consumers --------------------------------------------------------------------- */

static void free_pin(struct oracle *oracle, struct pin *pin)
{
    if (pin->seated || pin->consumers > 0)
        return;
    for (size_t i = 0; i < oracle->pin_count; i++)
        if (oracle->pins[i] == pin)
            oracle->pins[i--] = oracle->pins[--oracle->pin_count];
    free(pin->memory.copy);
    free(pin);
}

static struct pin *make_pin(struct oracle *oracle, struct place *place)
{
    struct pin *pin = calloc(1, sizeof *pin);
    tide_pool_statistics now;
    tide_pool_stats(oracle->pool, &now);
    pin->live = pin->seated = true;
    pin->held = oracle->now.bytes_held - now.bytes_held;
    pin->memory = *place;
    pin->memory.copy = NULL;
    oracle->bytes_exported += pin->held;
    oracle->pins[oracle->pin_count++] = pin;
    return pin;
}

void oracle_exported(struct oracle *oracle, size_t of, tide_dl_managed *managed)
{
    const struct nd *nd = oracle->live[of].nd;
    struct place *place = oracle_memory(oracle, nd);
    if (place->pin == NULL)
        place->pin = make_pin(oracle, place);
    place->pin->consumers++;
    oracle->exports[oracle->export_count++] =
        (struct export){managed, place->pin, nd->shape, model_types[nd->type].id,
                        (size_t)nd->offset * element_bytes(nd)};
}

bool pins_release(struct oracle *oracle, struct place *place)
{
    (void)oracle;
    struct pin *pin = place->pin;
    if (pin == NULL)
        return false;
    pin->memory.copy = place->copy;
    pin->live = false;
    place->copy = NULL;
    place->data = NULL;
    place->stained = 0;
    return true;
}

/* The position lets go of what it had exported. */
static struct pin *unseat(struct oracle *oracle, struct place *place)
{
    struct pin *pin = place->pin;
    place->pin = NULL;
    pin->seated = false;
    oracle->bytes_exported -= pin->held;
    return pin;
}

/* The last holder gets the memory back. */
void pins_settle(struct oracle *oracle, struct place *place)
{
    struct pin *pin = unseat(oracle, place);
    size_t limit = oracle->limit_bytes;
    bool fits = limit == 0 || oracle->now.bytes_held + pin->held <= limit;
    if (pin->consumers == 0 && fits) {
        place->data = pin->memory.data;
        place->bytes = pin->memory.bytes;
        place->copy = pin->memory.copy;
        pin->memory.copy = NULL;
        oracle->now.bytes_held += pin->held;
    } else {
        place->bytes = place->room = place->peak = place->recent = place->since = place->less = 0;
        oracle->now.slots--;
        oracle->gone++;
    }
    free_pin(oracle, pin);
}

/* The same in a trim, which then gives it away for good. */
void pins_forget(struct oracle *oracle, struct place *place)
{
    struct pin *pin = unseat(oracle, place);
    bool sure = oracle->limit_bytes == 0;
    oracle->gone += pin->consumers > 0 || !sure;
    if (pin->consumers == 0) {
        oracle->back_max += pin->held;
        oracle->back_min += sure ? pin->held : 0;
        oracle->slots_unsure += !sure;
        oracle->releases += sure;
    }
    free_pin(oracle, pin);
}

/* Both write to the same memory while the array is live. */
void oracle_consumer_writes(struct oracle *oracle, size_t number)
{
    struct pin *pin = oracle->exports[number].pin;
    if (!pin->live)
        place_scramble(&pin->memory, oracle->step * 64 + 63);
}

void oracle_dropped(struct oracle *oracle, size_t number)
{
    struct pin *pin = oracle->exports[number].pin;
    oracle->exports[number] = oracle->exports[--oracle->export_count];
    pin->consumers--;
    free_pin(oracle, pin);
}

static void check_export(struct oracle *oracle, const struct export *export)
{
    const tide_dl_tensor *tensor = &export->managed->tensor;
    const struct pin *pin = export->pin;
    bool empty = shape_length(&export->shape) == 0;
    const unsigned char *data = tensor->data;
    if (!says_shape(tensor, &export->shape) || !says_type(&tensor->dtype, export->type - 1))
        oracle_wrong(oracle, "an exported array has a wrong shape or type");
    if (empty ? data != NULL : data + tensor->byte_offset != pin->memory.data + export->offset)
        oracle_wrong(oracle, "an exported array points elsewhere");
    if (export->managed->version.major != TIDE_DL_MAJOR || export->managed->deleter == NULL)
        oracle_wrong(oracle, "an exported array is of version %u", export->managed->version.major);
}

void oracle_outlived(struct oracle *oracle)
{
    for (size_t i = 0; i < oracle->pin_count; i++)
        oracle->pins[i]->seated = false;
    for (size_t i = oracle->pin_count; i-- > 0;)
        free_pin(oracle, oracle->pins[i]);
    arrays_check(oracle, true);
    while (oracle->export_count > 0) {
        tide_dl_managed *managed = oracle->exports[oracle->export_count - 1].managed;
        managed->deleter(managed);
        oracle_dropped(oracle, oracle->export_count - 1);
    }
    if (oracle->pin_count != 0)
        oracle_wrong(oracle, "the oracle lost count of what was exported");
}

/* ---- in: producers ---------------------------------------------------------------------- */

static void count_call(tide_dl_managed *managed)
{
    struct import *import = managed->manager_ctx;
    import->calls++;
}

struct import *oracle_produce(struct oracle *oracle, unsigned type, const struct shape *shape)
{
    enum { FRONT = 16 };
    struct import *import = calloc(1, sizeof *import);
    size_t bytes = FRONT + model_bytes(type, shape_length(shape));
    import->shape = *shape;
    import->memory = (struct place){.data = malloc(bytes), .bytes = bytes};
    place_witness(&import->memory, oracle->step * 64 + 1);
    tide_dl_managed *managed = &import->managed;
    managed->version.major = TIDE_DL_MAJOR;
    managed->version.minor = TIDE_DL_MINOR;
    managed->manager_ctx = import;
    managed->deleter = count_call;
    managed->tensor.data = import->memory.data;
    managed->tensor.byte_offset = FRONT;
    managed->tensor.device.device_type = TIDE_DL_CPU;
    managed->tensor.ndim = shape->ndim;
    managed->tensor.shape = import->shape.extent;
    managed->tensor.strides = import->shape.stride;
    bool real = type == TIDE_F64 - 1;
    managed->tensor.dtype =
        real ? (tide_dl_type){TIDE_DL_FLOAT, 64, 1} : (tide_dl_type){TIDE_DL_UINT, 16, 1};
    oracle->imports[oracle->import_count++] = import;
    return import;
}

static void check_import(struct oracle *oracle, const struct import *import, bool whole)
{
    if (import->calls != import->due)
        oracle_wrong(oracle, "a producer's deleter ran %u times, must be %u", import->calls,
                     import->due);
    if (whole && !place_intact(&import->memory))
        oracle_wrong(oracle, "a producer's memory was overwritten");
}

/* ---- all -------------------------------------------------------------------------------- */

/* `whole`: content too, perhaps in the middle of a step, or of a pool that is gone. */
void arrays_check(struct oracle *oracle, bool whole)
{
    for (size_t i = 0; i < oracle->live_count && whole; i++)
        if (oracle->live[i].nd != NULL)
            check_header(oracle, i);
    for (size_t i = 0; i < oracle->export_count; i++)
        check_export(oracle, &oracle->exports[i]);
    for (size_t i = 0; i < oracle->pin_count; i++)
        if (oracle->pins[i]->consumers > 0 && !oracle->pins[i]->live &&
            (whole || oracle->pins[i]->memory.bytes > 0) && !place_intact(&oracle->pins[i]->memory))
            oracle_wrong(oracle, "an exported array was overwritten");
    for (size_t i = 0; i < oracle->import_count; i++)
        if (!whole)
            check_import(oracle, oracle->imports[i], oracle->imports[i]->calls == 0);
}

void arrays_end(struct oracle *oracle)
{
    for (size_t i = 0; i < oracle->pin_count; i++) {
        free(oracle->pins[i]->memory.copy);
        free(oracle->pins[i]);
    }
    for (size_t i = 0; i < oracle->import_count; i++) {
        free(oracle->imports[i]->memory.data);
        free(oracle->imports[i]->memory.copy);
        free(oracle->imports[i]);
    }
}
