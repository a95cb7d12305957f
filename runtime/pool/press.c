/* SPDX-License-Identifier: MIT */
/* Free slots given back where memory is short: the pool's own, and those of idle pools. */
#include "runtime/pool/press.h"

#include <stdio.h>

#include "runtime/base/assert.h"
#include "runtime/base/lock.h"
#include "runtime/base/probe.h"
#include "runtime/base/registry.h"
#include "runtime/base/settings.h"
#include "runtime/base/shim.h"
#include "runtime/device/budget.h"
#include "runtime/pool/level.h"
#include "runtime/pool/row.h"

/* ---- one pool ------------------------------------------------------------------------------ */

static void press_slot(tide_pool *pool, tide_row *row, tide_slot *slot, tide_trim_summary *gone)
{
    tide_assert(slot >= row->shelf->next && slot < row->slots + row->count && slot->data != NULL);
    gone->bytes += tide_slot_record_of(row, slot)->bytes;
    gone->slots++;
    tide_slot_hollow(pool, row, slot);
}

/* What there is to take of the row's free slot; 0: nothing. */
static size_t press_has(const tide_pool_core *core, const tide_row *row, const tide_slot *slot)
{
    bool ours = row->device == core->device; /* headers of a device's pool lie on the host */
    return ours && slot->data != NULL ? tide_slot_record_of(row, slot)->bytes : 0;
}

/* The smallest free slot that has so many bytes, of equal ones the last of the lowest type; NULL: none
 * has. */
static tide_slot *press_find_enough(const tide_pool_core *core, size_t bytes, tide_row **of)
{
    tide_slot *found = NULL;
    size_t least = SIZE_MAX;
    tide_assert(bytes > 0);
    if (bytes > tide_figure(&core->memory.bytes_held))
        return NULL;
    uint32_t used = __atomic_load_n(&core->rows.used_count, __ATOMIC_ACQUIRE);
    for (uint32_t i = 0; i < used; i++) {
        tide_row *row = core->rows.used[i];
        for (tide_slot *slot = row->shelf->next; slot < row->slots + row->count; slot++) {
            size_t has = press_has(core, row, slot);
            if (has < bytes || has > least || (has == least && row->type > (*of)->type))
                continue;
            least = has;
            found = slot;
            *of = row;
        }
    }
    return found;
}

/* The row in use of the lowest type above this one; NULL: none. (Which slots go must not depend on the
 * order in which a pool came to its types: it differs between sites that run alike.) */
static tide_row *press_row_above(const tide_pool_core *core, tide_type type)
{
    tide_row *above = NULL;
    uint32_t used = __atomic_load_n(&core->rows.used_count, __ATOMIC_ACQUIRE);
    for (uint32_t i = 0; i < used; i++) {
        tide_row *row = core->rows.used[i];
        if (row->type > type && (above == NULL || row->type < above->type))
            above = row;
    }
    return above;
}

/* Type by type, from the last position on, until so many bytes are gone. */
static void press_free(tide_pool *pool, size_t bytes, tide_trim_summary *gone)
{
    tide_row *row = press_row_above(pool->core, TIDE_NO_TYPE);
    for (; row != NULL && gone->bytes < bytes; row = press_row_above(pool->core, row->type))
        for (tide_slot *slot = row->slots + row->count;
             gone->bytes < bytes && slot-- > row->shelf->next;)
            if (press_has(pool->core, row, slot) != 0)
                press_slot(pool, row, slot, gone);
}

/* While a capture runs nothing goes: the graph may use what is free (tide_capture_end takes it). */
size_t tide_pool_press(tide_pool *pool, tide_row *row, tide_slot *slot, size_t bytes)
{
    tide_pool_core *core = pool->core;
    tide_trim_summary gone = {0};
    if (core->capture != NULL)
        return 0;
    if (slot != NULL && slot >= row->shelf->next && slot->data != NULL)
        press_slot(pool, row, slot, &gone);
    if (gone.bytes < bytes) {
        tide_slot *enough = press_find_enough(core, bytes - gone.bytes, &row);
        if (enough != NULL)
            press_slot(pool, row, enough, &gone);
        else
            press_free(pool, bytes, &gone);
    }
    if (gone.slots != 0) {
        tide_figure_add(&core->memory.pressed, gone.slots);
        TIDE_USDT(pool_trim, pool, (const char *)core->name, gone.slots, gone.bytes,
                  core->memory.bytes_held);
    }
    return gone.bytes;
}

/* ---- of idle threads ----------------------------------------------------------------------- */

/* Words that the owner stores with plain stores, read and written by somebody else: each at once. */
#define PRESS_SAMPLES    __attribute__((no_sanitize("thread")))
#define PRESS_WORD(word) (*(volatile __typeof__(word) *)&(word))

/* Steps 2 and 5 of the proof, and who comes later is to have seen it. */
PRESS_SAMPLES static void press_close(tide_pool *pool)
{
    tide_log_set_room(pool, pool->core->log.start);
    uint32_t used = __atomic_load_n(&pool->core->rows.used_count, __ATOMIC_ACQUIRE);
    for (uint32_t i = 0; i < used; i++) {
        tide_row *row = pool->core->rows.used[i];
        tide_slot *end = row->slots + __atomic_load_n(&row->count, __ATOMIC_ACQUIRE);
        for (tide_slot *slot = PRESS_WORD(row->shelf->next); slot < end; slot++) {
            PRESS_WORD(slot->limit) = 0;
            PRESS_WORD(slot->form) = 0;
        }
    }
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

/* Is nobody at work in the pool, as far as its words say? */
PRESS_SAMPLES static bool press_is_left_alone(tide_pool *pool)
{
    tide_pool_core *core = pool->core;
    return !__atomic_load_n(&core->working, __ATOMIC_SEQ_CST) && !PRESS_WORD(core->shut) &&
           tide_level(PRESS_WORD(pool->tag)) == TIDE_LEVEL_ROOT;
}

/* The words are asked before and after, for who sleeps in cold code may have left it when they are. */
PRESS_SAMPLES static bool press_is_idle(tide_pool *pool)
{
    return press_is_left_alone(pool) && tide_os_thread_sleeps(pool->core->owner.number) &&
           press_is_left_alone(pool);
}

/* Cold code that began before the pool was seized opens it again when it ends. */
PRESS_SAMPLES static bool press_is_closed(tide_pool *pool)
{
    return PRESS_WORD(pool->copy) == tide_pool_copy(true) && tide_log_is_closed(pool);
}

/* The pool is `seized` for as long as its `copy` is odd, and a moment longer: an owner that finds it
 * odd and not seized finds it even again. */
PRESS_SAMPLES static void press_set_seized(tide_pool *pool, bool seized)
{
    if (seized)
        __atomic_store_n(&pool->core->seized, true, __ATOMIC_SEQ_CST);
    __atomic_thread_fence(__ATOMIC_SEQ_CST); /* the owner acquires by either: tide_pool_use */
    PRESS_WORD(pool->copy) = tide_pool_copy(seized);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    if (!seized)
        __atomic_store_n(&pool->core->seized, false, __ATOMIC_SEQ_CST);
}

/* Has the pool something to take, and may it be taken for others? */
static bool press_may(const tide_pool_core *core)
{
    return core->hook == NULL && core->buffers == NULL && !core->careful && !core->lost &&
           tide_figure(&core->memory.bytes_held) + tide_figure(&core->memory.bytes_exported) != 0;
}

/* Can the system be asked, and does its answer mean something? */
static bool press_can_ask(void)
{
    return tide_setting_get(TIDE_SETTING_locked) == 0 && !tide_shim_schedules();
}

/* Steps 2 to 6. */
static bool press_proves(tide_pool *pool)
{
    press_close(pool);
    if (!press_is_idle(pool) || !press_is_closed(pool))
        return false;
    press_close(pool);
    return press_is_idle(pool) && press_is_closed(pool);
}

static size_t press_other(tide_pool *pool, size_t bytes)
{
    size_t gone = 0;
    tide_assert(tide_registry_held());
    if (pool->core->device != &tide_device_host || !press_may(pool->core) || !press_can_ask() ||
        !press_is_idle(pool)) /* busy ones stay open */
        return 0;
    press_set_seized(pool, true);
    if (press_proves(pool)) {
        tide_shim_trust_begin();
        gone = tide_pool_press(pool, NULL, NULL, bytes);
        tide_shim_trust_end();
    }
    press_set_seized(pool, false);
    return gone;
}

/* May the calling thread, its owner, take from the pool for others? */
static bool press_is_mine(const tide_pool *pool)
{
    const tide_pool_core *core = pool->core;
    return tide_pool_owner(core) == tide_os_thread() && press_may(core) && !core->working &&
           !core->shut;
}

typedef struct pressing {
    const tide_device *device;
    size_t missing, gone;
    uint64_t after;  /* a number of pools: those up to it have been asked */
    tide_pool *next; /* the first one behind it; NULL: none               */
} pressing;

static void press_visit(tide_pool *pool, void *user)
{
    pressing *by = user;
    size_t bytes = by->missing - by->gone;
    if (by->gone >= by->missing || pool->core->device != by->device)
        return;
    if (tide_pool_owner(pool->core) != tide_os_thread())
        by->gone += press_other(pool, bytes);
    else if (press_is_mine(pool))
        by->gone += tide_pool_press(pool, NULL, NULL, bytes);
}

static void press_look(tide_pool *pool, void *user)
{
    pressing *by = user;
    uint64_t number = pool->core->list.number;
    if (pool->core->device != by->device || number <= by->after || !press_is_mine(pool) ||
        (by->next != NULL && number > by->next->core->list.number))
        return;
    if (by->next != NULL)
        tide_pool_worked(by->next->core);
    by->next = pool;
    tide_pool_working(pool->core);
}

/* The next pool of the calling thread, `working`: who adopts it meanwhile waits. */
static tide_pool *press_next(pressing *by)
{
    by->next = NULL;
    tide_pools_visit(press_look, by);
    if (by->next != NULL)
        by->after = by->next->core->list.number;
    return by->next;
}

/* What goes while the stream is captured is not to be had before that is over. */
static size_t press_own(tide_pool *pool, size_t bytes)
{
    tide_pool_core *core = pool->core;
    tide_lock_assert_none();
    size_t gone = tide_device_capturing(core->device, core->streams.own)
                      ? 0
                      : tide_pool_press(pool, NULL, NULL, bytes);
    tide_pool_worked(core);
    return gone;
}

/* Of a device only the calling thread's own: drivers are called with nothing locked, and no other thread
 * goes away with them. */
size_t tide_pools_press(tide_device *device, int memory, size_t bytes)
{
    pressing by = {.device = device, .missing = bytes};
    if (device == &tide_device_host)
        tide_pools_visit(press_visit, &by);
    else if (tide_budget_is_own(device, memory))
        while (by.gone < bytes && press_next(&by) != NULL)
            by.gone += press_own(by.next, bytes - by.gone);
    return by.gone;
}

void tide_pool_press_idle(tide_pool *pool)
{
    if (tide_pool_owner(pool->core) != tide_os_thread())
        (void)press_other(pool, SIZE_MAX);
}

bool tide_pool_is_own_and_idle(const tide_pool *pool)
{
    return pool->core->device == &tide_device_host && press_is_mine(pool) && tide_at_root(pool);
}

/* ---- who holds how much -------------------------------------------------------------------- */

typedef struct telling {
    const tide_device *device;
    size_t held, most;
    char name[sizeof((tide_pool_core *)NULL)->name];
} telling;

static void press_count(tide_pool *pool, void *user)
{
    telling *by = user;
    if (pool->core->device != by->device)
        return;
    size_t held = tide_figure(&pool->core->memory.bytes_held);
    by->held += held;
    if (held <= by->most)
        return;
    by->most = held;
    snprintf(by->name, sizeof by->name, "%s", pool->core->name);
}

void tide_pools_tell(const tide_device *device, char *text, size_t room)
{
    telling by = {.device = device};
    tide_pools_visit(press_count, &by);
    int length = snprintf(text, room, "pools hold %zu bytes", by.held);
    if (by.held != 0 && length > 0 && (size_t)length < room)
        snprintf(text + length, room - (size_t)length, ", '%s' most: %zu", by.name, by.most);
}
