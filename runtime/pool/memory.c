/* SPDX-License-Identifier: MIT */
/* How a slot gets memory and gives it back: how much, from where, and with what it starts. */
#include "runtime/pool/memory.h"

#include "runtime/base/error.h"
#include "runtime/base/probe.h"
#include "runtime/base/ring.h"
#include "runtime/base/shim.h"
#include "runtime/buffers/buffers.h"
#include "runtime/check/guard.h"
#include "runtime/device/budget.h"
#include "runtime/device/lender.h"
#include "runtime/device/limit.h"
#include "runtime/pool/export.h"
#include "runtime/pool/header.h"
#include "runtime/pool/press.h"
#include "runtime/pool/row.h"
#include "runtime/pool/shut.h"
#include "runtime/pool/streams.h"

enum { MIN_ALIGN = 64, TRIES_MAX = 64 };

static size_t memory_align(const tide_type_facts *facts)
{
    return facts->align > MIN_ALIGN ? facts->align : MIN_ALIGN;
}

static size_t memory_round_up(size_t bytes, size_t to)
{
    tide_assert(to > 0 && bytes <= SIZE_MAX - to);
    return (bytes + to - 1) / to * to;
}

/* What a graph may use goes with it. Without memory for a descriptor it is leaked. */
static void memory_set_aside(tide_pool *pool, const tide_row *row, const tide_slot *slot,
                             const tide_slot_record *record)
{
    tide_capture *capture = pool->core->capture;
    tide_export *given_up =
        tide_capture_make_room(capture, 1) ? tide_export_make(pool, row, slot->data, record) : NULL;
    if (given_up != NULL)
        (void)tide_capture_keep(capture, given_up);
}

static void memory_give_back(tide_pool *pool, const tide_row *row, const tide_slot *slot,
                             const tide_slot_record *record)
{
    void *stream = row->device->host ? NULL : tide_streams_last(pool);
    tide_assert(slot->data != NULL && record->bytes > 0);
    if (!row->device->host && pool->core->capture != NULL) {
        memory_set_aside(pool, row, slot, record);
        return;
    }
    if (record->buffer.generation == 0) {
        tide_budget_release(row->device, stream, TIDE_MEMORY_DEVICE, slot->data, record->bytes);
        return;
    }
    tide_shut was = tide_pool_shut(pool); /* a hook may be told */
    tide_lend->give_back(pool->core->buffers, record->buffer, stream);
    tide_pool_open_again(pool, was);
}

/* The memory is the pool's no more. */
static void memory_let_go(tide_pool_core *core, const tide_slot_record *record)
{
    tide_assert(core->memory.bytes_held >= record->bytes && !record->live);
    tide_figure_take(&core->memory.bytes_held, record->bytes);
    tide_figure_add(&core->memory.releases, 1);
}

void tide_slot_hollow(tide_pool *pool, tide_row *row, tide_slot *slot)
{
    tide_slot_record *record = tide_slot_record_of(row, slot);
    tide_pool_core *core = pool->core;
    size_t freed = 0;
    if (record->exported != NULL) {
        tide_assert(slot->data == NULL && core->memory.bytes_exported >= record->exported->bytes);
        tide_figure_take(&core->memory.bytes_exported, record->exported->bytes);
        tide_export_drop_of_pool(pool, record->exported);
    } else if (record->guard != NULL) {
        tide_guard_retire(record->guard, core->levels.closing);
        memory_let_go(core, record);
        freed = record->bytes;
    } else if (slot->data != NULL) {
        if (core->careful && row->device->host)
            tide_shim_release(slot->data, record->bytes);
        memory_give_back(pool, row, slot, record);
        memory_let_go(core, record);
        freed = record->bytes;
    }
    slot->data = NULL; /* its array headers stay: the next memory may be used the same way */
    tide_slot_admit(slot, 0);
    *record = (tide_slot_record){0};
    if (freed != 0)
        tide_pool_tell(pool, TIDE_POOL_FREED, row, freed, 0, (tide_place){TIDE_NOWHERE});
}

/* Grows geometrically, so that sizes that creep upward do not allocate each time; exactly to the request
 * for a new slot, after a guard, which is whole pages, or where the pool's limit leaves no room for more. */
static size_t memory_grown_bytes(const tide_pool_core *core, const tide_slot_record *record,
                                 const tide_slot_request *request, size_t wanted, size_t room)
{
    size_t generous = record->bytes + record->bytes / 4;
    bool grows = !core->disabled && !request->shrink && record->guard == NULL;
    return grows && generous > wanted && generous <= room ? generous : wanted;
}

/* What the pool's limit leaves for a slot whose present memory goes back. */
static size_t memory_room_beside(const tide_pool_core *core, const tide_slot_record *record)
{
    tide_assert(core->memory.bytes_held - record->bytes <= core->memory.limit_bytes);
    return core->memory.limit_bytes - (core->memory.bytes_held - record->bytes);
}

/* Does the row draw from buffers? They are aligned to MIN_ALIGN, and hold no headers. */
static bool memory_draws_buffers(const tide_pool_core *core, const tide_row *row, size_t align)
{
    return core->buffers != NULL && row->device == core->device && align <= MIN_ALIGN;
}

/* The whole size of a buffer for so many bytes, where the limit has room for that. */
static size_t memory_whole_buffer(const tide_pool_core *core, size_t bytes, size_t room)
{
    size_t whole = tide_lend->round_up(core->buffers, bytes);
    return whole > bytes && whole <= room ? whole : bytes;
}

/* What a request takes at least. */
static size_t memory_least_bytes(const tide_slot_request *request, size_t align)
{
    return request->bytes == 0 ? align : memory_round_up(request->bytes, align);
}

static size_t memory_live_bytes(const tide_pool_core *core)
{
    size_t bytes = 0;
    for (uint32_t i = 0; i < core->rows.used_count; i++)
        for (uint32_t j = 0; j < tide_row_live(core->rows.used[i]); j++)
            bytes += core->rows.used[i]->records[j].bytes;
    return bytes;
}

static tide_status memory_refuse_limit(const tide_pool *pool, const tide_row *row, size_t wanted,
                                       size_t missing, const char *call)
{
    const tide_pool_core *core = pool->core;
    TIDE_USDT(pool_limit, pool, (const char *)core->name, row->type, wanted,
              core->memory.limit_bytes);
    return tide_fail(TIDE_ERROR_LIMIT, call,
                     "%zu bytes of %s would take pool '%s' from %zu past its limit of %zu bytes: "
                     "%zu are missing; %zu are live",
                     wanted, tide_type_facts_of(row->type)->name, core->name,
                     core->memory.bytes_held, core->memory.limit_bytes, missing,
                     memory_live_bytes(core));
}

/* The pool's own limit: free slots go until there is room for so many bytes, first the one that is
 * replaced. None goes where all would be too little, or a capture may have used them. */
static tide_status memory_make_own_room(tide_pool *pool, tide_row *row, tide_slot *slot,
                                        size_t wanted, const char *call)
{
    const tide_slot_record *record = tide_slot_record_of(row, slot);
    const tide_pool_core *core = pool->core;
    size_t room = memory_room_beside(core, record);
    if (wanted <= room)
        return TIDE_OK;
    bool live = slot < row->shelf->next;
    size_t stays = memory_live_bytes(core) - (live ? record->bytes : 0);
    size_t most = core->memory.limit_bytes - stays;
    if (wanted > most)
        return memory_refuse_limit(pool, row, wanted, wanted - most, call);
    (void)tide_pool_press(pool, row, slot, wanted - room + (live ? 0 : record->bytes));
    room = memory_room_beside(core, record);
    return wanted <= room ? TIDE_OK : memory_refuse_limit(pool, row, wanted, wanted - room, call);
}

/* How many bytes to allocate for the request; refuses what cannot be. */
static tide_status memory_size(tide_pool *pool, tide_row *row, tide_slot *slot,
                               const tide_slot_request *request, size_t align, size_t *bytes)
{
    const tide_pool_core *core = pool->core;
    const tide_slot_record *record = tide_slot_record_of(row, slot);
    if (request->bytes > SIZE_MAX / 2)
        return tide_fail(TIDE_ERROR_SIZE, request->call, "%zu bytes of %s exceed the address space",
                         request->bytes, tide_type_facts_of(row->type)->name);
    size_t wanted = memory_least_bytes(request, align);
    TIDE_FORWARD(memory_make_own_room(pool, row, slot, wanted, request->call));
    size_t room = memory_room_beside(core, record);
    *bytes = memory_round_up(
        memory_grown_bytes(core, record, request, wanted, room / align * align), align);
    if (memory_draws_buffers(core, row, align) && !core->disabled)
        *bytes = memory_whole_buffer(core, *bytes, room);
    tide_assert(*bytes >= request->bytes && *bytes > 0 && *bytes <= room);
    return TIDE_OK;
}

/* Slots of a device are its own memory: its pools', managed, or for other processes. */
static uint32_t memory_flags_of(const tide_buffers *buffers)
{
    uint32_t kind = buffers->flags & 0xFF;
    return kind == TIDE_BUFFER_MANAGED || kind == TIDE_BUFFER_IPC
               ? buffers->flags
               : buffers->flags - kind + TIDE_BUFFER_DEVICE;
}

/* A buffer of at least so many bytes, held until it is released. The message is the buffers'. */
static tide_status memory_draw_buffer(tide_pool *pool, const tide_memory_want *want,
                                      tide_yield yield, void **data)
{
    tide_buffers *buffers = pool->core->buffers;
    tide_shut was = tide_pool_shut(pool); /* a hook may be told */
    *want->buffer = tide_lend->acquire(buffers, want->bytes, memory_flags_of(buffers),
                                       pool->core->streams.own, yield);
    tide_pool_open_again(pool, was);
    if (want->buffer->generation == 0)
        return tide_error_status();
    *data = tide_lend->pointer(buffers, *want->buffer);
    tide_assert(*data != NULL);
    return TIDE_OK;
}

/* The program may have memory to give before the process holds more than its soft limit. Beyond what a
 * control group wants it to hold, the pool's own goes first. */
static void memory_ask_program(tide_pool *pool, const tide_memory_want *want)
{
    if (want->device != &tide_device_host || !tide_limit_asks(want->bytes))
        return;
    size_t beyond = tide_limit_beyond_group(want->bytes);
    if (beyond != 0 && want->device == pool->core->device)
        (void)tide_pool_press(pool, want->row, want->slot, beyond);
    tide_shut was = tide_pool_shut(pool);
    tide_limit_ask(want->bytes);
    tide_pool_open_again(pool, was);
}

/* `yield`: what may go for a buffer; nothing goes for other memory. */
static tide_status memory_try(tide_pool *pool, const tide_memory_want *want, tide_yield yield,
                              void **data)
{
    return want->buffer != NULL
               ? memory_draw_buffer(pool, want, yield, data)
               : tide_budget_allocate(want->device, pool->core->streams.own, want->memory,
                                      want->bytes, want->align, data);
}

/* The pool's own free slots go. Where a limit says no, it is known how much is missing. Where the system
 * does, the pool gives nothing up unless that may be enough; where a driver does, what the pool has free
 * may be what is missing beside what others have given back. */
static bool memory_press_own(tide_pool *pool, const tide_memory_want *want, tide_status status,
                             size_t missing)
{
    const tide_pool_core *core = pool->core;
    bool enough = status == TIDE_ERROR_LIMIT || !want->device->host ||
                  core->memory.bytes_held - memory_live_bytes(core) >= want->bytes;
    return missing != 0 && enough && want->slot != NULL && want->device == core->device &&
           tide_pool_press(pool, want->row, want->slot, missing) != 0;
}

/* Others who do not use memory of the device give it back, or whoever is asked does. */
static bool memory_press_others(tide_pool *pool, const tide_memory_want *want, size_t missing,
                                unsigned *asked)
{
    tide_device *device = want->device;
    tide_shut was = tide_pool_shut(pool); /* functions of the program are called */
    bool any = (missing != 0 && tide_press(device, want->memory, missing) != 0) ||
               tide_budget_ask(device, want->bytes, asked);
    tide_pool_open_again(pool, was);
    return any;
}

static bool memory_is_short(const tide_memory_want *want, tide_status status)
{
    return (status == TIDE_ERROR_MEMORY || status == TIDE_ERROR_LIMIT) &&
           !tide_budget_never(want->device, want->memory, want->bytes);
}

/* As often as there is more to be had; not for ever, because other threads may take it. Buffers press the
 * others themselves, in the last try. */
tide_status tide_memory_allocate(tide_pool *pool, const tide_memory_want *want, void **data)
{
    unsigned asked = 0;
    bool calm = want->buffer != NULL; /* its own slots go to the cache of buffers */
    for (unsigned tries = 1;; tries++) {
        tide_status status =
            memory_try(pool, want, calm ? TIDE_YIELD_CACHED : TIDE_YIELD_ALL, data);
        bool last = tries == TRIES_MAX || (want->buffer != NULL && !calm);
        if (last || !memory_is_short(want, status))
            return status;
        size_t missing = tide_budget_missing(want->device, status, want->bytes, tries > 1);
        if (memory_press_own(pool, want, status, missing))
            continue;
        if (!calm && !memory_press_others(pool, want, missing, &asked))
            return status;
        calm = false;
    }
}

/* The message for memory of a row that could not be had. Buffers and other devices have set one. */
static tide_status memory_refuse(const tide_pool *pool, const tide_memory_want *want,
                                 tide_status status, const char *call)
{
    const char *type = tide_type_facts_of(want->row->type)->name;
    bool counted = !want->device->host || want->device == &tide_device_host;
    if (want->buffer != NULL)
        return tide_fail(status, call, "%s", tide_error_message());
    if (status == TIDE_ERROR_LIMIT) /* that others share */
        TIDE_USDT(pool_limit, pool, (const char *)pool->core->name, want->row->type, want->bytes,
                  0);
    if (status == TIDE_ERROR_LIMIT && counted)
        return tide_budget_refuse(want->device, want->bytes, call);
    if (status == TIDE_ERROR_MEMORY)
        return tide_budget_fail(want->device, status, call,
                                "device %s has no %zu bytes for %s in pool '%s'",
                                want->device->name, want->bytes, type, pool->core->name);
    return tide_fail(status, call, "%s", tide_error_message());
}

/* For a slot that shrinks nobody gives anything up, or is asked. It fails without a message of its own. */
static tide_status memory_allocate_less(tide_pool *pool, const tide_memory_want *want, void **data)
{
    bool asks = want->device == &tide_device_host && tide_limit_asks(want->bytes);
    return asks ? TIDE_ERROR_LIMIT : memory_try(pool, want, TIDE_YIELD_NOTHING, data);
}

/* Memory of the row's device: the bytes wanted, or `least` where a limit that others share leaves no
 * more. What nobody uses is given back for the least alone. */
static tide_status memory_allocate(tide_pool *pool, tide_memory_want *want, size_t least,
                                   const char *call, void **data)
{
    if (!want->device->host)
        TIDE_FORWARD(tide_streams_own(pool, call));
    if (want->slot == NULL)
        return memory_allocate_less(pool, want, data);
    if (want->buffer == NULL)
        memory_ask_program(pool, want);
    if (want->bytes > least) {
        tide_status status = memory_try(pool, want, TIDE_YIELD_NOTHING, data);
        if (status == TIDE_OK)
            return status;
        want->bytes = least;
    }
    tide_status status = tide_memory_allocate(pool, want, data);
    return status == TIDE_OK ? status : memory_refuse(pool, want, status, call);
}

/* What is to be kept goes to the new memory. */
static tide_status memory_move_content(const tide_pool *pool, const tide_row *row,
                                       const tide_slot *slot, const tide_slot_request *request,
                                       void *data)
{
    if (request->keep == 0)
        return TIDE_OK;
    tide_device *device = row->device;
    tide_assert(slot->data != NULL);
    tide_status status = device->methods->copy(device, pool->core->streams.own, data, slot->data,
                                               request->keep, TIDE_COPY_WITHIN);
    return status == TIDE_OK ? status
                             : tide_fail(status, request->call, "%s", tide_error_message());
}

/* Makes new memory ready for the pool's stream and those declared. What fails gives it back; the
 * slot has its old memory still. */
static tide_status memory_make_ready(tide_pool *pool, const tide_row *row, const tide_slot *slot,
                                     const tide_slot_request *request, const tide_slot_record *made,
                                     void *data)
{
    tide_assert(made->bytes >= request->keep);
    tide_status status = memory_move_content(pool, row, slot, request, data);
    if (!row->device->host)
        status = tide_streams_finish(pool, status, request->call);
    if (status == TIDE_OK)
        return TIDE_OK;
    tide_assert(made->guard == NULL); /* guards are the host's, where no copy fails */
    tide_slot refused = {.data = data};
    tide_failure why;
    tide_failure_keep(&why);
    memory_give_back(pool, row, &refused, made);
    tide_failure_restore(&why);
    return status;
}

/* What is to be kept is copied after all that may still write to it. */
static tide_status memory_gather_writers(tide_pool *pool, const char *call)
{
    TIDE_FORWARD(tide_streams_own(pool, call));
    return tide_streams_gather(pool, call);
}

/* A guard for the request, where it is its turn and the limit leaves room for one; or NULL. */
static tide_guard *memory_guard(const tide_pool_core *core, const tide_row *row,
                                const tide_slot_record *record, const tide_slot_request *request,
                                size_t align, void **data)
{
    if (!request->guarded ||
        tide_guard_size(request->bytes, align) > memory_room_beside(core, record))
        return NULL;
    return tide_guard_create(core->name, row->type, request->n, request->bytes, align,
                             request->place, data);
}

/* A device may have memory behind the slot's: then it stays where it is, with what it holds. What a
 * capture has handed out is the graph's. */
static bool memory_extend(tide_pool *pool, tide_row *row, tide_slot *slot,
                          const tide_slot_request *request, const tide_memory_want *want)
{
    tide_pool_core *core = pool->core;
    tide_slot_record *record = tide_slot_record_of(row, slot);
    const size_t had = record->bytes;
    if (row->device->host || want->buffer != NULL || slot->data == NULL || want->bytes <= had ||
        core->capture != NULL || tide_streams_own(pool, request->call) != TIDE_OK ||
        tide_budget_extend(row->device, slot->data, had, want->bytes) != TIDE_OK)
        return false;
    tide_assert(record->buffer.generation == 0 && record->guard == NULL);
    record->bytes = want->bytes;
    record->capacity = tide_type_fit(request->facts, want->bytes);
    tide_memory_hold(&core->memory, want->bytes - had);
    TIDE_RINGS_CALL(gave, slot->data);
    TIDE_RINGS_CALL(took, slot->data, want->bytes, row->type, request->place);
    tide_pool_tell(pool, TIDE_POOL_ALLOCATED, row, want->bytes - had, request->n, request->place);
    return true;
}

tide_status tide_slot_allocate(tide_pool *pool, tide_row *row, tide_slot *slot,
                               const tide_slot_request *request)
{
    tide_pool_core *core = pool->core;
    const size_t align = memory_align(request->facts);
    tide_slot_record *record = tide_slot_record_of(row, slot), made = {.shrunk = record->shrunk};
    tide_memory_want want = {
        .device = row->device,
        .memory = TIDE_MEMORY_DEVICE,
        .align = align,
        .row = row,
        .slot = request->shrink ? NULL : slot, /* can be done without: nobody gives any up */
        .buffer = memory_draws_buffers(core, row, align) ? &made.buffer : NULL};
    void *data = NULL;
    if (want.buffer != NULL && (core->buffers->flags & 0xFF) == TIDE_BUFFER_MANAGED)
        want.memory = TIDE_MEMORY_MANAGED;
    TIDE_FORWARD(memory_size(pool, row, slot, request, align, &want.bytes));
    made.guard = memory_guard(core, row, record, request, align, &data);
    if (made.guard == NULL && ((!request->shrink && tide_slot_fits(slot, record, request)) ||
                               memory_extend(pool, row, slot, request, &want)))
        return TIDE_OK;
    if (request->keep != 0 && !row->device->host)
        TIDE_FORWARD(memory_gather_writers(pool, request->call));
    if (made.guard != NULL)
        want.bytes = tide_guard_bytes(made.guard);
    else
        TIDE_FORWARD(
            memory_allocate(pool, &want, memory_least_bytes(request, align), request->call, &data));
    tide_assert((uintptr_t)data % align == 0 && data != NULL && want.bytes >= request->bytes);
    made.bytes = want.bytes;
    made.capacity = made.guard != NULL ? request->n : tide_type_fit(request->facts, want.bytes);
    TIDE_FORWARD(memory_make_ready(pool, row, slot, request, &made, data));
    if (slot->data != NULL || record->exported != NULL) /* else it is new */
        tide_slot_hollow(pool, row, slot);
    slot->data = data;
    *record = made;
    tide_assert(record->capacity >= request->n);
    tide_memory_hold(&core->memory, want.bytes);
    tide_figure_add(&core->memory.allocations, 1);
    if (want.buffer == NULL && made.guard == NULL)
        TIDE_RINGS_CALL(took, data, want.bytes, row->type, request->place);
    tide_pool_tell(pool, TIDE_POOL_ALLOCATED, row, want.bytes, request->n, request->place);
    return TIDE_OK;
}
