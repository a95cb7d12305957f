/* SPDX-License-Identifier: MIT */
/* Samples as facts: addresses become names. */
#define _GNU_SOURCE
#include "jit/facts/samples.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include <tidepool/type.h>

#include "profiler/samples/samples.h"
#include "runtime/base/assert.h"
#include "runtime/base/lock.h"
#include "runtime/base/settings.h"

enum { PLACES_TOLD = 16, NAME_BYTES = 80 };

/* Of the library itself, where that is a module of its own? It is told by its functions' callers. */
static bool samples_is_ours(const Dl_info *info)
{
#ifdef TIDEPOOL_STATIC
    (void)info;
    return false;
#else
    static const char here;
    Dl_info own;
    return dladdr(&here, &own) != 0 && own.dli_fbase == info->dli_fbase;
#endif
}

/* The call, not what it returns to. */
static void samples_write_frame(tide_json *json, const Dl_info *info, const char *code)
{
    char text[NAME_BYTES + 24];
    const char *name = info->dli_sname, *from = info->dli_saddr;
    if (name == NULL) {
        const char *last = info->dli_fname != NULL ? strrchr(info->dli_fname, '/') : NULL;
        name = last != NULL ? last + 1 : info->dli_fname;
        from = info->dli_fbase;
    }
    snprintf(text, sizeof text, "%.*s+%#tx", (int)NAME_BYTES, name != NULL ? name : "?",
             code - from);
    tide_json_text(json, NULL, text);
}

static void samples_write_stack(tide_json *json, const tide_sampled *place)
{
    bool inside = true;
    tide_json_open(json, "stack", '[');
    for (int i = 0; i < TIDE_SAMPLE_FRAMES && place->frames[i] != NULL; i++) {
        const char *code = (const char *)place->frames[i] - 1;
        Dl_info info = {0};
        if (dladdr(code, &info) == 0)
            info = (Dl_info){0}; /* code made at run time, or unloaded since */
        inside = inside && samples_is_ours(&info);
        if (!inside)
            samples_write_frame(json, &info, code);
    }
    tide_json_close(json, ']');
}

static void samples_write_place(tide_json *json, const tide_sampled *place)
{
    tide_json_open(json, NULL, '{');
    tide_json_text(json, "type", place->type != 0 ? tide_type_name(place->type) : "");
    tide_json_text(json, "place", place->place);
    tide_json_number(json, "taken", place->taken);
    tide_json_number(json, "taken_bytes", place->taken_bytes);
    tide_json_number(json, "held", place->held);
    tide_json_number(json, "held_bytes", place->held_bytes);
    samples_write_stack(json, place);
    tide_json_close(json, '}');
}

void tide_samples_write(tide_json *json)
{
    tide_sampled places[PLACES_TOLD];
    uint64_t lost;
    tide_lock_assert_none();
    size_t count = tide_samples_most(places, PLACES_TOLD, &lost);
    tide_json_open(json, "samples", '{');
    tide_json_count(json, "every_bytes", tide_constant_whole(TIDE_CONSTANT_sample_bytes));
    tide_json_count(json, "lost", lost);
    tide_json_open(json, "places", '[');
    for (size_t i = 0; i < count; i++)
        samples_write_place(json, &places[i]);
    tide_json_close(json, ']');
    tide_json_close(json, '}');
}
