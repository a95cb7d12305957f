/* SPDX-License-Identifier: MIT */
/* Views: the facts of workers as clients see them. They are made once for each look at the workers,
 * so that a thousand readers cost no more than one. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "service.h"

/* A site or tunable with the name by which it is asked for, PID:ID, of tunables PID:NAME; and when it
 * was so, on the worker's monotonic clock. */
static void views_add_entries(json_t *out, const json_t *facts, const char *member, const char *key)
{
    size_t i;
    json_t *one, *pid = json_object_get(facts, "pid");
    json_array_foreach(json_object_get(facts, member), i, one)
    {
        const json_t *name = json_object_get(one, key);
        json_t *copy = json_copy(one);
        json_object_set_new(
            copy, "id",
            json_is_integer(name)
                ? json_sprintf("%lld:%lld", (long long)json_integer_value(pid),
                               (long long)json_integer_value(name))
                : json_sprintf("%lld:%s", (long long)json_integer_value(pid),
                               json_is_string(name) ? json_string_value(name) : ""));
        json_object_set(copy, "worker", pid);
        json_object_set(copy, "seen_ns", json_object_get(facts, "time_ns"));
        json_array_append_new(out, copy);
    }
}

json_t *views_make(view which, const json_t *list)
{
    json_t *out = which == VIEW_SETTINGS ? json_object() : json_array(), *facts;
    size_t i;
    json_array_foreach(list, i, facts)
    {
        char pid[24];
        snprintf(pid, sizeof pid, "%lld",
                 (long long)json_integer_value(json_object_get(facts, "pid")));
        if (which == VIEW_SETTINGS)
            json_object_set(out, pid, json_object_get(facts, "settings"));
        else if (which == VIEW_WORKERS)
            json_array_append_new(
                out, json_pack("{s:O, s:O*, s:O*, s:O*}", "pid", json_object_get(facts, "pid"),
                               "program", json_object_get(facts, "program"), "version",
                               json_object_get(facts, "version"), "process_cpu_ns",
                               json_object_get(facts, "process_cpu_ns")));
        else {
            views_add_entries(out, facts, "tunables", "name");
            views_add_entries(out, facts, "sites", "id");
        }
    }
    return out;
}

json_t *views_site(const char *id)
{
    json_t *facts = workers_facts((pid_t)strtol(id, NULL, 10)), *found = NULL, *one;
    json_t *list = facts != NULL ? json_pack("[o]", facts) : NULL;
    json_t *sites = views_make(VIEW_SITES, list);
    size_t i;
    json_array_foreach(sites, i, one)
    {
        if (found == NULL && strcmp(json_string_value(json_object_get(one, "id")), id) == 0)
            found = json_incref(one);
    }
    json_decref(sites);
    json_decref(list);
    return found;
}
