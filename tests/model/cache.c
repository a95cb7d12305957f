/* SPDX-License-Identifier: MIT */
#include "cache.h"
#include "tests/hooks.h"

#include <string.h>

#include <tidepool/buffers.h>
#include <tidepool/limit.h>

#include "interpret.h"

static uint64_t zeroed_count;

uint64_t cache_zeroed(void)
{
    return zeroed_count;
}

/* Very large ones get new pages where they are to be zero. */
static size_t cache_bytes(const struct operation *op)
{
    enum { VERY_LARGE_FROM = 250, VERY_LARGE = 4 << 20 };
    return op->a < VERY_LARGE_FROM ? operand_count(op->b, 8) : VERY_LARGE + op->b * (size_t)64;
}

static bool is_all(const unsigned char *data, size_t bytes, unsigned char value)
{
    return bytes == 0 || (data[0] == value && memcmp(data, data + 1, bytes - 1) == 0);
}

/* So it is not zero where somebody looks for zeros next. */
static unsigned char salt_of(const struct oracle *oracle)
{
    return (unsigned char)(1 + oracle->step % 255);
}

static void hold(struct cache *cache, struct oracle *oracle, tide_buffer buffer, size_t asked,
                 bool zeroed)
{
    struct held_buffer *held = &cache->held[cache->count++];
    *held = (struct held_buffer){buffer, tide_buffer_pointer(cache->buffers, buffer),
                                 tide_buffer_bytes(cache->buffers, buffer), salt_of(oracle)};
    if (held->data == NULL || held->bytes < asked || (uintptr_t)held->data % 64 != 0) {
        oracle_wrong(oracle, "a buffer for %zu bytes has %zu, at %p", asked, held->bytes,
                     (void *)held->data);
        return;
    }
    if (oracle->plant == PLANT_DIRTY && asked > 99 && cache->count > 1)
        held->data[asked / 2] = 1;
    if (zeroed && !is_all(held->data, asked, 0))
        oracle_wrong(oracle, "a zeroed buffer of %zu bytes is not all zero", asked);
    memset(held->data, held->salt, held->bytes);
}

/* May a buffer for so many bytes be lacking like this? */
static bool may_lack(const struct cache *cache, const struct oracle *oracle, size_t bytes,
                     tide_status status)
{
    tide_limit_statistics process;
    size_t whole = tide_buffers_round_up(cache->buffers, bytes);
    if (tide_limit_stats(&process) != TIDE_OK || status == TIDE_ERROR_MEMORY)
        return oracle->faults > 0;
    return status == TIDE_ERROR_LIMIT && oracle->process &&
           process.bytes_held + whole > process.hard_bytes;
}

static uint64_t cache_hits(const struct cache *cache)
{
    tide_buffers_statistics now;
    return tide_buffers_stats(cache->buffers, &now, NULL, 0) == TIDE_OK ? now.hits : 0;
}

static tide_status cache_acquire(struct cache *cache, struct oracle *oracle,
                                 const struct operation *op, bool zeroed)
{
    size_t bytes = cache_bytes(op);
    uint64_t hits = cache_hits(cache);
    tide_buffer buffer = zeroed ? tide_buffer_acquire_zeroed(cache->buffers, bytes)
                                : tide_buffer_acquire(cache->buffers, bytes);
    set_memory_fault(NULL);
    zeroed_count += zeroed && bytes > 0 && cache_hits(cache) > hits;
    if (buffer.generation != 0) {
        hold(cache, oracle, buffer, bytes, zeroed);
        return TIDE_OK;
    }
    tide_status status = tide_error_status();
    if (!may_lack(cache, oracle, bytes, status))
        oracle_wrong(oracle, "a buffer of %zu bytes: %s", bytes, tide_error_message());
    return status;
}

static void cache_release(struct cache *cache, struct oracle *oracle, size_t number)
{
    struct held_buffer held = cache->held[number];
    if (!is_all(held.data, held.bytes, held.salt))
        oracle_wrong(oracle, "a live buffer of %zu bytes was overwritten", held.bytes);
    cache->held[number] = cache->held[--cache->count];
    if (tide_buffer_release(cache->buffers, held.buffer) != TIDE_OK)
        oracle_wrong(oracle, "tide_buffer_release: %s", tide_error_message());
    if (tide_buffer_release(cache->buffers, held.buffer) != TIDE_ERROR_STALE)
        oracle_wrong(oracle, "a buffer was released twice");
}

bool cache_release_oldest(struct cache *cache, struct oracle *oracle)
{
    if (cache->count == 0)
        return false;
    cache_release(cache, oracle, 0);
    return true;
}

tide_status cache_operate(struct cache *cache, struct soft *soft, const struct operation *op)
{
    enum { PLAIN = 2, ZEROED = 5, RELEASE = 7, WAYS = 8 };
    struct oracle *oracle = soft->oracle;
    unsigned how = op->a % WAYS;
    if (how >= RELEASE) {
        set_memory_fault(NULL);
        tide_buffers_trim(cache->buffers, op->b % 2);
        return TIDE_OK;
    }
    if (how < ZEROED && cache->count < CACHE_HELD) {
        soft->by_cache = true;
        tide_status status = cache_acquire(cache, oracle, op, how >= PLAIN);
        soft->by_cache = false;
        return status;
    }
    set_memory_fault(NULL);
    if (cache->count > 0)
        cache_release(cache, oracle, op->c % cache->count);
    return TIDE_OK;
}

void cache_check(const struct cache *cache, struct oracle *oracle)
{
    for (size_t i = 0; i < cache->count; i++) {
        const struct held_buffer *held = &cache->held[i];
        if (held->bytes > 0 &&
            (held->data[0] != held->salt || held->data[held->bytes - 1] != held->salt))
            oracle_wrong(oracle, "a live buffer of %zu bytes was overwritten at an end",
                         held->bytes);
    }
}

void cache_end(struct cache *cache, struct oracle *oracle)
{
    while (cache_release_oldest(cache, oracle))
        ;
    if (tide_buffers_destroy(cache->buffers) != TIDE_OK)
        oracle_wrong(oracle, "tide_buffers_destroy: %s", tide_error_message());
}
