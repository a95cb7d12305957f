/* SPDX-License-Identifier: MIT */
/* The facts of the process as one JSON document; an event as another. */
#define _GNU_SOURCE
#include <tidepool/facts.h>

#include <errno.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include <tidepool/generic.h>
#include <tidepool/limit.h>
#include <tidepool/tune.h>
#include <tidepool/version.h>

#include "jit/facts/samples.h"
#include "jit/facts/tunables.h"
#include "runtime/base/assert.h"
#include "runtime/base/document.h"
#include "runtime/base/error.h"
#include "runtime/base/os.h"
#include "runtime/base/ring.h"
#include "runtime/base/settings.h"
#include "runtime/scope/site.h"

enum { FORMAT_VERSION = 1 };

static uint64_t facts_clock(clockid_t clock)
{
    struct timespec now = {0};
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* When it was asked first. A forked child has its parent's, and another number as a process. */
static uint64_t facts_since(void)
{
    static uint64_t since;
    uint64_t none = 0, now = facts_clock(CLOCK_MONOTONIC);
    tide_assert(now > 0);
    return __atomic_compare_exchange_n(&since, &none, now, false, __ATOMIC_RELAXED,
                                       __ATOMIC_RELAXED)
               ? now
               : none;
}

static void facts_write_head(tide_json *json)
{
    tide_json_text(json, "format", "tidepool-facts");
    tide_json_count(json, "format_version", FORMAT_VERSION);
    tide_json_text(json, "version", tide_version());
    tide_json_count(json, "pid", (uint64_t)getpid());
    tide_json_text(json, "program", program_invocation_short_name);
    tide_json_count(json, "since_ns", facts_since());
    tide_json_count(json, "time_ns", facts_clock(CLOCK_MONOTONIC));
    tide_json_count(json, "wall_ns", facts_clock(CLOCK_REALTIME));
    tide_json_count(json, "process_cpu_ns", facts_clock(CLOCK_PROCESS_CPUTIME_ID));
}

/* ---- pools ------------------------------------------------------------------------------ */

static bool facts_write_pool(const tide_pool_information *pool, void *user)
{
    tide_json *json = user;
    const tide_pool_statistics *s = &pool->statistics;
    tide_json_open(json, NULL, '{');
    tide_json_count(json, "id", pool->id);
    tide_json_text(json, "name", pool->name);
    tide_json_count(json, "thread", (uint64_t)pool->thread);
    tide_json_text(json, "thread_name", pool->thread_name);
    tide_json_text(json, "device", pool->device);
    tide_json_flag(json, "local", pool->local);
    tide_json_flag(json, "disabled", pool->disabled);
    tide_json_count(json, "check", (uint64_t)pool->check);
    tide_json_count(json, "held_bytes", s->bytes_held);
    tide_json_count(json, "live_bytes", s->bytes_live);
    tide_json_count(json, "peak_bytes", s->bytes_peak);
    tide_json_count(json, "limit_bytes", s->bytes_limit);
    tide_json_count(json, "exported_bytes", s->bytes_exported);
    tide_json_count(json, "slots", s->slots);
    tide_json_count(json, "slots_live", s->slots_live);
    tide_json_count(json, "types", s->shelves);
    tide_json_count(json, "depth", s->depth);
    tide_json_count(json, "allocations", s->allocations);
    tide_json_count(json, "releases", s->releases);
    tide_json_count(json, "exchanges", s->exchanges);
    tide_json_close(json, '}');
    return true;
}

/* ---- sites ------------------------------------------------------------------------------ */

static void facts_write_types(tide_json *json, const tide_site_information *site)
{
    char key[32];
    tide_json_open(json, "types", '[');
    for (uint32_t i = 0; i < site->type_count && i < TIDE_SITE_TYPES; i++) {
        tide_type type = site->types[i];
        snprintf(key, sizeof key, "key %u", type - TIDE_KEY_FIRST);
        tide_json_text(json, NULL, type >= TIDE_KEY_FIRST ? key : tide_type_name(type));
    }
    tide_json_close(json, ']');
}

static void facts_write_costs(tide_json *json, const tide_site_information *site)
{
    tide_json_number(json, "lost_ns", site->lost_ns);
    tide_json_number(json, "compile_ns", site->compile_ns);
    tide_json_number(json, "saved_ns", site->saved_ns);
    tide_json_open(json, "trial", '{');
    tide_json_count(json, "uses", site->trial_uses);
    tide_json_number(json, "ns", site->trial_ns);
    tide_json_number(json, "code_ns", site->trial_code_ns);
    tide_json_number(json, "error_ns", site->trial_error_ns);
    tide_json_close(json, '}');
    tide_json_number(json, "use_ns", site->use_ns);
    tide_json_flag(json, "use_measured", site->use_measured);
    tide_json_number(json, "use_bytes", site->use_bytes);
    tide_json_number(json, "use_arrays", site->use_arrays);
    tide_json_open(json, "rivals", '[');
    for (uint32_t i = 0; i < site->rival_count; i++) {
        tide_json_open(json, NULL, '{');
        tide_json_text(json, "tier", tide_tier_name(site->rivals[i].tier));
        tide_json_number(json, "ns", site->rivals[i].ns);
        tide_json_flag(json, "measured", site->rivals[i].measured);
        tide_json_close(json, '}');
    }
    tide_json_close(json, ']');
}

static void facts_write_place(tide_json *json, const tide_site_information *site)
{
    tide_json_count(json, "id", site->id);
    tide_json_text(json, "name", site->name);
    tide_json_text(json, "function", site->function);
    tide_json_text(json, "file", site->file);
    tide_json_count(json, "line", site->line);
    tide_json_text(json, "kind", tide_kind_name(site->kind));
}

/* The registry is locked: the texts are the program's, and go with the site's module. */
static bool facts_write_site(tide_site *site, void *user)
{
    tide_json *json = user;
    tide_site_information info;
    if (tide_site_info(site, &info) != TIDE_OK)
        return true;
    tide_json_open(json, NULL, '{');
    facts_write_place(json, &info);
    tide_json_text(json, "tier", tide_tier_name(info.tier));
    tide_json_flag(json, "pinned", info.pinned);
    tide_json_flag(json, "observed", info.observed);
    tide_json_flag(json, "declared", info.declared);
    tide_json_count(json, "generation", info.generation);
    facts_write_types(json, &info);
    tide_json_count(json, "uses", info.uses);
    tide_json_flag(json, "uses_counted", info.uses_counted);
    tide_json_count(json, "samples", info.samples);
    tide_json_count(json, "misses", info.misses);
    tide_json_count(json, "runs", info.runs);
    tide_json_count(json, "compiles", info.compiles);
    facts_write_costs(json, &info);
    tide_json_text(json, "reason", info.reason);
    tide_json_text(json, "reason_code", info.reason_code);
    tide_json_close(json, '}');
    return true;
}

/* ---- buffers ---------------------------------------------------------------------------- */

static bool facts_write_buffers(const tide_buffers_information *buffers, void *user)
{
    tide_json *json = user;
    const tide_buffers_statistics *s = &buffers->statistics;
    tide_json_open(json, NULL, '{');
    tide_json_count(json, "id", buffers->id);
    tide_json_text(json, "name", buffers->name);
    tide_json_text(json, "device", buffers->device);
    tide_json_count(json, "hits", s->hits);
    tide_json_count(json, "misses", s->misses);
    tide_json_count(json, "releases", s->releases);
    tide_json_count(json, "refused", s->refused);
    tide_json_count(json, "dropped", s->dropped);
    tide_json_count(json, "trimmed", s->trimmed);
    tide_json_count(json, "pressed", s->pressed);
    tide_json_count(json, "failed", s->failed);
    tide_json_count(json, "live", s->live);
    tide_json_count(json, "cached", s->cached);
    tide_json_count(json, "live_bytes", s->bytes_live);
    tide_json_count(json, "cached_bytes", s->bytes_cached);
    tide_json_count(json, "high_bytes", s->bytes_high);
    tide_json_count(json, "max_bytes", s->bytes_max);
    tide_json_count(json, "asked_bytes", s->bytes_asked);
    tide_json_count(json, "given_bytes", s->bytes_given);
    tide_json_close(json, '}');
    return true;
}

/* ---- the process ------------------------------------------------------------------------ */

static void facts_write_learning(tide_json *json)
{
    tide_learning_statistics s = {0};
    (void)tide_learning_stats(&s);
    tide_json_open(json, "learning", '{');
#define MEMBER(name) tide_json_count(json, #name, s.name)
    MEMBER(rounds), MEMBER(windows), MEMBER(decisions), MEMBER(ordered), MEMBER(compiled);
    MEMBER(failed), MEMBER(reused), MEMBER(won), MEMBER(lost);
    MEMBER(code_objects), MEMBER(code_bytes), MEMBER(stagers), MEMBER(untold), MEMBER(spent_us);
#undef MEMBER
    tide_json_flag(json, "enabled", tide_setting_get(TIDE_SETTING_learn) != 0);
    tide_json_flag(json, "background", tide_background_running());
    tide_json_close(json, '}');
}

static void facts_write_process(tide_json *json)
{
    tide_limit_statistics limit = {0};
    (void)tide_limit_stats(&limit);
    tide_json_open(json, "process", '{');
    tide_json_count(json, "limit_bytes", limit.hard_bytes);
    tide_json_count(json, "held_bytes", limit.bytes_held);
    tide_json_count(json, "peak_bytes", limit.bytes_peak);
    tide_json_close(json, '}');
}

static bool facts_write_setting(const tide_tune_entry *entry, void *user)
{
    tide_json_number(user, entry->name, entry->value);
    return true;
}

/* ---- documents -------------------------------------------------------------------------- */

/* What fails here has said why. */
static tide_status facts_write_all(tide_json *json)
{
    tide_json_open(json, NULL, '{');
    facts_write_head(json);
    tide_json_open(json, "pools", '[');
    TIDE_FORWARD(tide_pool_each(facts_write_pool, json));
    tide_json_close(json, ']');
    tide_json_open(json, "sites", '[');
    tide_site_each(facts_write_site, json);
    tide_json_close(json, ']');
    tide_tunables_write(json);
    tide_json_open(json, "buffers", '[');
    TIDE_FORWARD(tide_buffers_each(facts_write_buffers, json));
    tide_json_close(json, ']');
    facts_write_learning(json);
    facts_write_process(json);
    tide_samples_write(json);
    tide_json_open(json, "settings", '{');
    tide_tune_each(facts_write_setting, json);
    tide_json_close(json, '}');
    tide_json_close(json, '}');
    putc('\n', json->out);
    return TIDE_OK;
}

tide_status tide_facts_write(FILE *out)
{
    const char *call = "tide_facts_write";
    tide_document document;
    if (out == NULL)
        return tide_fail(TIDE_ERROR_ARGUMENT, call, "the file is NULL");
    tide_attach(); /* so that settings are what the environment says */
    TIDE_FORWARD(tide_document_begin(&document, call));
    tide_status status = facts_write_all(&(tide_json){.out = document.page});
    if (status == TIDE_OK)
        return tide_document_end(&document, out, call);
    tide_document_drop(&document);
    return status;
}

static void facts_write_event(tide_json *json, const tide_event *event)
{
    tide_json_open(json, NULL, '{');
    tide_json_text(json, "format", "tidepool-event");
    tide_json_count(json, "serial", event->serial);
    tide_json_count(json, "time_ns", event->time_ns);
    tide_json_text(json, "kind", tide_event_name(event->kind));
    tide_json_count(json, "site", event->site_id);
    tide_json_text(json, "name", event->name);
    tide_json_text(json, "tier", tide_tier_name(event->tier));
    tide_json_text(json, "reason", event->reason);
    tide_json_text(json, "reason_code", event->reason_code);
    tide_json_text(json, "detail", event->detail);
    tide_json_count(json, "round", event->round);
    tide_json_close(json, '}');
    putc('\n', json->out);
}

tide_status tide_event_write(FILE *out, const tide_event *event)
{
    const char *call = "tide_event_write";
    tide_document document;
    if (out == NULL || event == NULL)
        return tide_fail(TIDE_ERROR_ARGUMENT, call, "the %s is NULL",
                         out == NULL ? "file" : "event");
    TIDE_FORWARD(tide_document_begin(&document, call));
    facts_write_event(&(tide_json){.out = document.page}, event);
    return tide_document_end(&document, out, call);
}
