/* SPDX-License-Identifier: MIT */
/* Buffers as numbers and as a page: one moment of all threads, added up while none is
 * in its magazine. */
#include <string.h>

#include "runtime/base/error.h"
#include "runtime/base/os.h"
#include "runtime/buffers/store/depot.h"

/* ---- adding up; stopped --------------------------------------------------------------------- */

static void stats_add_counts(tide_bucket_statistics *out, const tide_buffer_counts *counts)
{
    out->hits += counts->hits;
    out->releases += counts->releases;
    out->bytes_asked += counts->asked;
}

static tide_bucket_statistics stats_of_bucket(const tide_buffers *buffers, unsigned key,
                                              unsigned bucket)
{
    tide_assert(buffers->stopped == 1);
    const tide_depot_bucket *depot = &buffers->depot[key][bucket];
    tide_bucket_statistics out = {.bytes = tide_bucket_bytes(bucket),
                                  .flags = tide_buffer_flags(key),
                                  .cached = tide_depot_cached(depot, buffers->nodes),
                                  .misses = depot->misses,
                                  .dropped = depot->dropped};
    stats_add_counts(&out, &depot->counts);
    for (const tide_magazine *m = key == buffers->key ? buffers->magazines : NULL; m != NULL;
         m = m->next) {
        stats_add_counts(&out, &m->cells[bucket].counts);
        out.cached += m->cells[bucket].held;
    }
    tide_assert(out.hits + out.misses >= out.releases && out.dropped <= out.releases);
    tide_assert(tide_depot_cached(depot, buffers->nodes) <= buffers->count_max);
    out.live = (size_t)(out.hits + out.misses - out.releases);
    return out;
}

static void stats_add_total(tide_buffers_statistics *out, const tide_bucket_statistics *bucket)
{
    out->hits += bucket->hits;
    out->misses += bucket->misses;
    out->releases += bucket->releases;
    out->dropped += bucket->dropped;
    out->live += bucket->live;
    out->cached += bucket->cached;
    out->bytes_live += bucket->live * bucket->bytes;
    out->bytes_cached += bucket->cached * bucket->bytes;
    out->bytes_asked += bucket->bytes_asked;
    out->bytes_given += (bucket->hits + bucket->misses) * bucket->bytes;
}

/* Into `out` all buckets in use, into `buckets` (or NULL) as many as there is room for. */
static void stats_add_all(const tide_buffers *buffers, tide_buffers_statistics *out,
                          tide_bucket_statistics *buckets, size_t room)
{
    for (unsigned key = 0; key < TIDE_BUFFER_KEYS; key++) {
        for (unsigned b = 0; buffers->depot[key] != NULL && b < TIDE_BUCKETS; b++) {
            tide_bucket_statistics bucket = stats_of_bucket(buffers, key, b);
            if (bucket.hits + bucket.misses == 0)
                continue;
            if (buckets != NULL && out->buckets < room)
                buckets[out->buckets] = bucket;
            out->buckets++;
            stats_add_total(out, &bucket);
        }
    }
}

/* 0: there are none. */
static double stats_ratio(uint64_t of, uint64_t all)
{
    tide_assert(of <= all);
    return all == 0 ? 0 : (double)of / (double)all;
}

tide_status tide_buffers_stats(tide_buffers *buffers, tide_buffers_statistics *out,
                               tide_bucket_statistics *buckets, size_t room)
{
    if (buffers == NULL || out == NULL)
        return tide_fail(TIDE_ERROR_ARGUMENT, "tide_buffers_stats", "the %s NULL",
                         buffers == NULL ? "buffers are" : "result is");
    *out =
        (tide_buffers_statistics){.bytes_max = buffers->bytes_max, .count_max = buffers->count_max};
    tide_lock_take(&buffers->mutex);
    tide_magazines_stop(buffers);
    out->refused = buffers->refused;
    out->trimmed = buffers->trimmed;
    out->pressed = buffers->pressed;
    out->failed = buffers->failed;
    out->bytes_high = buffers->bytes_high;
    stats_add_all(buffers, out, buckets, room);
    tide_assert(buffers->bytes_cached <= out->bytes_cached &&
                buffers->bytes_cached <= buffers->bytes_max);
    tide_magazines_resume(buffers);
    tide_lock_let_go(&buffers->mutex);
    out->hit_rate = stats_ratio(out->hits, out->hits + out->misses);
    out->waste = stats_ratio(out->bytes_given - out->bytes_asked, out->bytes_given);
    return TIDE_OK;
}

/* What is told of one buffer, once the mutex is free. */
typedef struct stats_memory {
    void *data;
    size_t bytes;
    bool live;
} stats_memory;

/* Returns how many there are; the first `room` are noted. */
static uint32_t stats_note_memory(tide_buffers *buffers, stats_memory *out, uint32_t room)
{
    uint32_t count = 0;
    tide_lock_take(&buffers->mutex);
    for (uint32_t slot = 0; slot < buffers->record_count; slot++) {
        const tide_buffer_record *record = tide_handle_at(buffers, slot);
        void *data = __atomic_load_n(&record->data, __ATOMIC_RELAXED);
        if (data != NULL && count++ < room)
            out[count - 1] =
                (stats_memory){data, tide_handle_bytes(record), tide_handle_live(record)};
    }
    tide_lock_let_go(&buffers->mutex);
    return count;
}

tide_status tide_buffer_each(tide_buffers *buffers, tide_buffer_function each, void *user)
{
    const char *call = "tide_buffer_each";
    if (buffers == NULL || each == NULL)
        return tide_fail(TIDE_ERROR_ARGUMENT, call, "the %s NULL",
                         buffers == NULL ? "buffers are" : "function is");
    stats_memory *all = NULL;
    uint32_t room = 0, count;
    while ((count = stats_note_memory(buffers, all, room)) > room) { /* some came meanwhile */
        room = count + count / 4;
        stats_memory *more = tide_os_resize(all, room * sizeof *all);
        if (more == NULL) {
            tide_os_free(all);
            return tide_fail(TIDE_ERROR_MEMORY, call, "no memory to note %u buffers", count);
        }
        all = more;
    }
    for (uint32_t i = 0; i < count; i++)
        each(user, all[i].data, all[i].bytes, all[i].live);
    tide_os_free(all);
    return TIDE_OK;
}

/* ---- a page --------------------------------------------------------------------------------- */

static void stats_print_bytes(FILE *out, size_t bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    unsigned unit = 0;
    double value = (double)bytes;
    for (; value >= 1024 && unit < 4; unit++)
        value /= 1024;
    fprintf(out, unit == 0 ? "%8.0f %-3s" : "%8.1f %-3s", value, units[unit]);
}

static void stats_print_bucket(FILE *out, const tide_bucket_statistics *b)
{
    static const char *const kinds[] = {"device", "pinned", "host", "managed", "ipc"};
    _Static_assert(sizeof kinds / sizeof *kinds == TIDE_BUFFER_KINDS, "each kind has a name");
    tide_assert((b->flags & 0xFF) < TIDE_BUFFER_KINDS);
    uint64_t acquires = b->hits + b->misses;
    stats_print_bytes(out, b->bytes);
    fprintf(out, "  %-7s %3u %9zu %9zu %11llu %11llu %9llu %7.2f%% %6.1f%%\n",
            kinds[b->flags & 0xFF], b->flags >> 8 & 0xFF, b->live, b->cached,
            (unsigned long long)b->hits, (unsigned long long)b->misses,
            (unsigned long long)b->dropped, 100 * stats_ratio(b->hits, acquires),
            100 * stats_ratio(acquires * b->bytes - b->bytes_asked, acquires * b->bytes));
}

static void stats_print_totals(const tide_buffers *buffers, const tide_buffers_statistics *s,
                               FILE *out)
{
    fprintf(out, "buffers '%s' on %s: %zu live,", buffers->name, buffers->device->name, s->live);
    stats_print_bytes(out, s->bytes_live);
    fprintf(out, "; %zu cached,", s->cached);
    stats_print_bytes(out, s->bytes_cached);
    fprintf(out, "; most held");
    stats_print_bytes(out, s->bytes_high);
    fprintf(
        out,
        "\n%.2f%% of %llu acquires hit; %.1f%% wasted; %llu dropped, %llu trimmed, %llu refused, "
        "%llu failed\n",
        100 * s->hit_rate, (unsigned long long)(s->hits + s->misses), 100 * s->waste,
        (unsigned long long)s->dropped, (unsigned long long)s->trimmed,
        (unsigned long long)s->refused, (unsigned long long)s->failed);
}

enum { LINES = 512 };

tide_status tide_buffers_print(tide_buffers *buffers, FILE *out)
{
    tide_buffers_statistics s;
    tide_bucket_statistics buckets[LINES];
    if (out == NULL)
        return tide_fail(TIDE_ERROR_ARGUMENT, "tide_buffers_print", "the file is NULL");
    TIDE_FORWARD(tide_buffers_stats(buffers, &s, buckets, LINES));
    stats_print_totals(buffers, &s, out);
    fprintf(out, "      bucket  memory tag      live    cached        hits      misses   dropped "
                 "hit rate  waste\n");
    for (size_t i = 0; i < s.buckets && i < LINES; i++)
        stats_print_bucket(out, &buckets[i]);
    return TIDE_OK;
}
