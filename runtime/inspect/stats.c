/* SPDX-License-Identifier: MIT */
/* What a pool holds, as numbers and as a page for a person. All derived when asked for. */
#include <inttypes.h>
#include <tidepool/upkeep.h>

#include "runtime/base/assert.h"
#include "runtime/base/error.h"
#include "runtime/base/os.h"
#include "runtime/pool/row.h"

typedef struct row_totals {
    size_t slots, live, bytes, bytes_live;
} row_totals;

static row_totals stats_of_row(const tide_row *row)
{
    row_totals totals = {.live = tide_row_live(row)};
    for (uint32_t i = 0; i < row->count; i++) {
        totals.slots += row->slots[i].data != NULL || row->records[i].exported != NULL;
        totals.bytes += row->records[i].bytes;
        totals.bytes_live += i < totals.live ? row->records[i].bytes : 0;
    }
    tide_assert(totals.live <= totals.slots && totals.bytes_live <= totals.bytes);
    return totals;
}

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
    const tide_pool_core *core = pool->core;
    *out = (tide_pool_statistics){
        .bytes_held = core->memory.bytes_held,
        .bytes_peak = core->memory.bytes_peak,
        .bytes_limit = core->memory.limit_bytes == SIZE_MAX ? 0 : core->memory.limit_bytes,
        .shelves = core->rows.used_count,
        .log_entries = (size_t)(pool->log_top - core->log.start),
        .depth = tide_pool_depth(pool),
        .allocations = core->memory.allocations,
        .releases = core->memory.releases,
        .exchanges = core->memory.exchanges,
        .pressed = core->memory.pressed,
        .requests = core->requests.served,
        .bytes_exported = core->memory.bytes_exported,
    };
    for (uint32_t i = 0; i < core->rows.used_count; i++) {
        row_totals totals = stats_of_row(core->rows.used[i]);
        out->slots += totals.slots;
        out->slots_live += totals.live;
        out->bytes_live += totals.bytes_live;
    }
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
        row_totals totals = stats_of_row(row);
        fprintf(out, "  %-16s %6zu of %6zu slots live, ", tide_type_facts_of(row->type)->name,
                totals.live, totals.slots);
        stats_print_bytes(out, totals.bytes_live);
        fprintf(out, " of ");
        stats_print_bytes(out, totals.bytes);
        fputc('\n', out);
    }
    return TIDE_OK;
}
