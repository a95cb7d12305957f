/* SPDX-License-Identifier: MIT */
/* What a pool holds, as numbers and as a page for a person. All derived when asked for. */
#include <inttypes.h>
#include <tidepool/upkeep.h>

#include "runtime/base/assert.h"
#include "runtime/base/error.h"
#include "runtime/inspect/stats.h"
#include "runtime/pool/row.h"

/* ---- read by any thread ---------------------------------------------------------------------- */

/* What the owner changes in cold code is written so that others may read it (tide_pool_memory,
 * tide_row). Where its fast paths stand, the next free slot of each shelf and the level, they store
 * with plain stores, which must stay plain: so these words are sampled. The thread sanitizer shall not
 * report what is meant: each is read once, whole, and only compared or added up, never followed.
 * (Atomic loads are seen by it even here.) */
#define STATS_SAMPLES    __attribute__((no_sanitize("thread")))
#define STATS_WORD(word) (*(const volatile __typeof__(word) *)&(word))

/* Records move with the registry locked, and there are at least `count`. */
typedef struct row_totals {
    size_t slots, live, bytes, bytes_live;
} row_totals;

STATS_SAMPLES static row_totals stats_read_row(const tide_row *row)
{
    uint32_t count = __atomic_load_n(&row->count, __ATOMIC_ACQUIRE);
    const tide_slot *next = STATS_WORD(row->shelf->next);
    row_totals out = {.live = (size_t)(next - row->slots)};
    if (out.live > count)
        out.live = count; /* it grows just now */
    for (uint32_t i = 0; i < count; i++) {
        size_t bytes = STATS_WORD(row->records[i].bytes);
        out.slots +=
            STATS_WORD(row->slots[i].data) != NULL || STATS_WORD(row->records[i].exported) != NULL;
        out.bytes += bytes;
        out.bytes_live += i < out.live ? bytes : 0;
    }
    return out;
}

STATS_SAMPLES void tide_pool_read(const tide_pool *pool, tide_pool_statistics *out)
{
    const tide_pool_core *core = pool->core;
    const tide_pool_memory *memory = &core->memory;
    uint32_t used = __atomic_load_n(&core->rows.used_count, __ATOMIC_ACQUIRE);
    uint32_t level = tide_level(STATS_WORD(pool->tag));
    tide_assert(level >= TIDE_LEVEL_ROOT);
    *out = (tide_pool_statistics){
        .bytes_held = tide_figure(&memory->bytes_held),
        .bytes_peak = tide_figure(&memory->bytes_peak),
        .bytes_limit = memory->limit_bytes == SIZE_MAX ? 0 : memory->limit_bytes,
        .bytes_exported = tide_figure(&memory->bytes_exported),
        .shelves = used,
        .log_entries = (size_t)(STATS_WORD(pool->log_top) - core->log.start),
        .depth = level - TIDE_LEVEL_ROOT,
        .allocations = tide_figure(&memory->allocations),
        .releases = tide_figure(&memory->releases),
        .exchanges = tide_figure(&memory->exchanges),
        .pressed = tide_figure(&memory->pressed),
        .requests = STATS_WORD(core->requests.served),
    };
    for (uint32_t i = 0; i < used; i++) {
        row_totals totals = stats_read_row(core->rows.used[i]);
        out->slots += totals.slots;
        out->slots_live += totals.live;
        out->bytes_live += totals.bytes_live;
    }
}

/* ---- by the owner ---------------------------------------------------------------------------- */

size_t tide_pool_depth(const tide_pool *pool)
{
    if (tide_pool_use_or_report(pool, "tide_pool_depth") != TIDE_OK)
        return 0;
    return tide_level(pool->tag) - TIDE_LEVEL_ROOT;
}

size_t tide_pool_active(const tide_pool *pool, tide_type type)
{
    const char *call = "tide_pool_active";
    if (tide_pool_use_or_report(pool, call) != TIDE_OK)
        return 0;
    if (tide_type_facts_of(type) == NULL) {
        tide_type_refuse(type, call);
        return 0;
    }
    const tide_row *row = &pool->core->rows.by_type[type];
    return row->shelf != NULL ? tide_row_live(row) : 0;
}

tide_status tide_pool_stats(const tide_pool *pool, tide_pool_statistics *out)
{
    const char *call = "tide_pool_stats";
    TIDE_FORWARD(tide_pool_use(pool, call));
    if (out == NULL)
        return tide_fail(TIDE_ERROR_ARGUMENT, call, "the result is NULL");
    tide_pool_read(pool, out);
    return TIDE_OK;
}

static void stats_print_bytes(FILE *out, size_t bytes)
{
    if (bytes < 10240)
        fprintf(out, "%8zu B  ", bytes);
    else if (bytes < (size_t)10240 * 1024)
        fprintf(out, "%8.1f KiB", (double)bytes / 1024);
    else
        fprintf(out, "%8.1f MiB", (double)bytes / 1048576);
}

static void stats_print_head(const tide_pool *pool, const tide_pool_statistics *stats, FILE *out)
{
    const tide_pool_core *core = pool->core;
    fprintf(out, "pool '%s' of thread '%s' on %s, depth %zu\n", core->name, core->owner.name,
            core->device->name, stats->depth);
    if (core->streams.foreign_count != 0)
        fprintf(out, "  used on %u streams beside its own\n", core->streams.foreign_count);
    fprintf(out, "  holds ");
    stats_print_bytes(out, stats->bytes_held);
    fprintf(out, " in %zu slots, most so far ", stats->slots);
    stats_print_bytes(out, stats->bytes_peak);
    if (stats->bytes_limit != 0) {
        fprintf(out, ", limit ");
        stats_print_bytes(out, stats->bytes_limit);
    }
    if (stats->bytes_exported != 0) {
        fprintf(out, "\n  exported ");
        stats_print_bytes(out, stats->bytes_exported);
    }
    fprintf(out, "\n  allocated %" PRIu64 " times, released %" PRIu64 ", exchanged %" PRIu64 "\n",
            stats->allocations, stats->releases, stats->exchanges);
    if (stats->pressed != 0)
        fprintf(out, "  gave %" PRIu64 " free slots back where memory was short\n", stats->pressed);
}

tide_status tide_pool_print(const tide_pool *pool, FILE *out)
{
    tide_pool_statistics stats;
    if (out == NULL)
        return tide_fail(TIDE_ERROR_ARGUMENT, "tide_pool_print", "the file is NULL");
    TIDE_FORWARD(tide_pool_stats(pool, &stats));
    stats_print_head(pool, &stats, out);
    for (uint32_t i = 0; i < pool->core->rows.used_count; i++) {
        const tide_row *row = pool->core->rows.used[i];
        row_totals totals = stats_read_row(row);
        fprintf(out, "  %-16s %6zu of %6zu slots live, ", tide_type_facts_of(row->type)->name,
                totals.live, totals.slots);
        stats_print_bytes(out, totals.bytes_live);
        fprintf(out, " of ");
        stats_print_bytes(out, totals.bytes);
        fputc('\n', out);
    }
    return TIDE_OK;
}
