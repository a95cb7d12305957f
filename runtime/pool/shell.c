/* SPDX-License-Identifier: MIT */
/* How a pool lies in memory; empty pools kept for the next one. */
#include "runtime/pool/shell.h"

#include <string.h>

#include "runtime/base/assert.h"
#include "runtime/base/registry.h"
#include "runtime/pool/level.h"
#include "runtime/pool/row.h"

enum { PAGE = 4096 };

#define ROUND_TO_PAGE(bytes) (((bytes) + PAGE - 1) / PAGE * PAGE)

/* The reservation, part by part; see runtime/pool/core.h. */
enum {
    CORE_AT = ROUND_TO_PAGE(sizeof(tide_pool)),
    ROWS_AT = ROUND_TO_PAGE(CORE_AT + sizeof(tide_pool_core)),
    USED_AT = ROUND_TO_PAGE(ROWS_AT + TIDE_TYPE_LIMIT * sizeof(tide_row)),
    LOG_AT = ROUND_TO_PAGE(USED_AT + TIDE_TYPE_LIMIT * sizeof(tide_row *)) + TIDE_LOG_IN_PAGE,
    RESERVED = ROUND_TO_PAGE(LOG_AT + TIDE_LOG_ENTRIES * sizeof(tide_entry))
};

_Static_assert(CORE_AT >= sizeof(tide_pool), "the log's own shelves lie behind those of the types");
_Static_assert(CORE_AT % PAGE == 0, "each part begins a page");

/* What a kept shell may have touched: a dozen pages or two. */
enum {
    SMALL_TYPES = TIDE_ROWS_SPARE,
    SMALL_SLOTS = 128,  /* of one type, ever */
    SMALL_ENTRIES = 256 /* of the log, ever  */
};

enum { SHELLS = 16 }; /* that are kept */

/* Guarded by the registry. */
static struct {
    tide_pool *kept[SHELLS]; /* the one given last is the first to be taken */
    uint32_t count;
} shells;

/* ---- laid out ---------------------------------------------------------------------------- */

static void shell_lay_out(tide_pool *pool)
{
    char *start = (char *)pool;
    tide_pool_core *core = pool->core = (tide_pool_core *)(void *)(start + CORE_AT);
    core->rows.by_type = (tide_row *)(void *)(start + ROWS_AT);
    core->rows.used = (tide_row **)(void *)(start + USED_AT);
    core->log.start = (tide_entry *)(void *)(start + LOG_AT);
    core->log.end = core->log.start + TIDE_LOG_ENTRIES;
}

static void shell_unreserve(tide_pool *pool)
{
    tide_pool_core *core = pool->core;
    for (uint32_t i = 0; i < TIDE_ROWS_SPARE; i++)
        if (core->rows.spare[i] != NULL)
            tide_row_unreserve_slots(core->rows.spare[i]);
    for (uint32_t i = 0; i < core->rows.used_count; i++)
        tide_row_unreserve_slots(core->rows.used[i]->slots);
    tide_os_unreserve(pool, RESERVED);
}

/* ---- wiped ------------------------------------------------------------------------------- */

/* No slot of the row has anything, and few ever were there: their records never become fewer. */
static bool shell_row_is_small(const tide_row *row)
{
    return row->count == 0 && row->records_room <= SMALL_SLOTS;
}

/* An entry is never zero once it was written, and none is skipped. */
static bool shell_is_small(const tide_pool *pool)
{
    const tide_pool_core *core = pool->core;
    bool small =
        core->rows.used_count <= SMALL_TYPES && core->log.start[SMALL_ENTRIES].shelf == NULL;
    for (uint32_t i = 0; small && i < core->rows.used_count; i++)
        small = shell_row_is_small(core->rows.used[i]);
    return small;
}

static void shell_wipe_row(tide_row *row)
{
    tide_assert(row->shelf->next == row->slots && row->count == 0);
    for (uint32_t i = 0; i <= row->records_room; i++)
        tide_assert(row->slots[i].data == NULL && row->slots[i].limit == 0 &&
                    row->slots[i].array == NULL && row->slots[i].form == 0);
    *row->shelf = (tide_shelf){0};
    *row = (tide_row){0};
}

/* The log stays, and the slots. */
static void shell_wipe(tide_pool *pool)
{
    tide_pool_core *core = pool->core;
    tide_slot *spare[TIDE_ROWS_SPARE];
    memcpy(spare, core->rows.spare, sizeof spare);
    for (uint32_t i = 0; i < core->rows.used_count; i++) {
        tide_assert(spare[i] == NULL);
        spare[i] = core->rows.used[i]->slots;
        shell_wipe_row(core->rows.used[i]);
    }
    memset(core, 0, sizeof *core);
    memset(pool, 0, offsetof(tide_pool, shelves));
    memcpy(core->rows.spare, spare, sizeof spare);
}

/* ---- kept -------------------------------------------------------------------------------- */

/* The one given last, or NULL. */
static tide_pool *shell_take_kept(void)
{
    tide_registry_lock();
    tide_pool *pool = shells.count > 0 ? shells.kept[--shells.count] : NULL;
    tide_registry_unlock();
    return pool;
}

tide_pool *tide_shell_take(void)
{
    tide_pool *pool = shell_take_kept();
    if (pool == NULL)
        pool = tide_os_reserve(RESERVED);
    if (pool == NULL)
        return NULL;
    tide_assert(pool->core == NULL && pool->tag == 0 && pool->copy == 0);
    shell_lay_out(pool);
    return pool;
}

static bool shell_keep(tide_pool *pool)
{
    tide_registry_lock();
    bool kept = shells.count < SHELLS;
    if (kept)
        shells.kept[shells.count++] = pool;
    tide_registry_unlock();
    return kept;
}

static void shell_give_back(tide_pool *pool)
{
    shell_lay_out(pool);
    shell_unreserve(pool);
}

void tide_shell_give(tide_pool *pool)
{
    if (pool->core->careful || !shell_is_small(pool)) {
        shell_unreserve(pool);
        return;
    }
    shell_wipe(pool);
    if (!shell_keep(pool))
        shell_give_back(pool);
}

void tide_shells_trim(void)
{
    for (tide_pool *pool; (pool = shell_take_kept()) != NULL;)
        shell_give_back(pool);
}
