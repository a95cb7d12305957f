/* SPDX-License-Identifier: MIT */
/* Writes the document of facts, then what the API says of the same, a line for each; then events.
 */
#define _GNU_SOURCE
#include <inttypes.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tidepool/buffers.h>
#include <tidepool/dynamic.h>
#include <tidepool/facts.h>
#include <tidepool/learn.h>
#include <tidepool/site.h>
#include <tidepool/tidepool.h>
#include <tidepool/tune.h>

static FILE *events;

static void write_event(const tide_event *event, void *user)
{
    (void)user;
    if (tide_event_write(events, event) != TIDE_OK)
        exit(3);
}

static bool write_setting(const tide_tune_entry *entry, void *user)
{
    (void)user;
    printf("setting %s %.17g\n", entry->name, entry->value);
    return true;
}

static bool write_site(tide_site *site, void *user)
{
    tide_site_information info;
    (void)user;
    if (tide_site_info(site, &info) != TIDE_OK)
        exit(4);
    printf("site %" PRIu64 " %s %s %u %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", info.id,
           tide_kind_name(info.kind), tide_tier_name(info.tier), info.type_count, info.samples,
           info.uses, info.trial_uses);
    return true;
}

static bool write_pool(const tide_pool_information *pool, void *user)
{
    const tide_pool_statistics *s = &pool->statistics;
    (void)user;
    printf("pool %" PRIu64 " %zu %zu %zu %zu %zu %" PRIu64 "\n", pool->id, s->bytes_held,
           s->bytes_live, s->bytes_limit, s->slots_live, s->depth, s->allocations);
    return true;
}

static bool write_buffers(const tide_buffers_information *buffers, void *user)
{
    (void)user;
    printf("buffers %" PRIu64 " %" PRIu64 " %" PRIu64 " %zu %" PRIu64 "\n", buffers->id,
           buffers->statistics.hits, buffers->statistics.misses, buffers->statistics.bytes_live,
           buffers->statistics.bytes_given);
    return true;
}

static void use_sites(tide_pool *pool)
{
    tide_site *odd =
        tide_site_register("quote \" back\\slash \t bell \a \xff\xc3\xa9 \xed\xa0\x80");
    for (size_t i = 0; i < 200; i++) {
        tide_scope scope;
        {
            TIDE_SCOPE(pool);
            (void)tide_acquire(pool, double, 10);
            (void)tide_acquire(pool, int32_t, 10);
        }
        if (tide_scope_enter(pool, odd, &scope) != TIDE_OK)
            exit(5);
        (void)tide_acquire(pool, float, 3);
        tide_scope_leave(&scope);
        tide_step();
    }
}

int main(int count, char **arguments)
{
    if (count > 1 && setlocale(LC_ALL, arguments[1]) == NULL)
        fprintf(stderr, "no locale %s here (Debian: locales): numbers as in C\n", arguments[1]);
    events = tmpfile();
    tide_tune_set("background", 0);
    tide_pool *pool = tide_pool_create(
        &(tide_pool_options){.name = "p\"1\x1f\xc3", .limit_bytes = (size_t)1 << 62});
    tide_buffers *buffers = tide_buffers_create(NULL, &(tide_buffers_options){.name = "b"});
    if (events == NULL || pool == NULL || buffers == NULL)
        return 1;
    tide_event_set_handler(write_event, NULL);
    use_sites(pool);
    TIDE_SCOPE_TYPES(pool, double);
    (void)tide_acquire(pool, double, 1000);
    tide_buffer held = tide_buffer_acquire(buffers, 5000);
    tide_event_set_handler(NULL, NULL);
    if (tide_facts_write(stdout) != TIDE_OK)
        return 2;
    tide_pool_each(write_pool, NULL);
    tide_site_each(write_site, NULL);
    tide_buffers_each(write_buffers, NULL);
    setlocale(LC_ALL, "C");
    tide_tune_each(write_setting, NULL);
    tide_buffer_release(buffers, held);
    rewind(events);
    for (int byte; (byte = getc(events)) != EOF;)
        putchar(byte);
    return 0;
}
