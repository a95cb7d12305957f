/* SPDX-License-Identifier: MIT */
/* The profile of all workers. The file belongs to the service: a worker, which saves its own profile
 * when it ends, has a copy, so that it never overwrites what a client was told is kept. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <tidepool/profile.h>
#include <tidepool/status.h>

#include "service.h"

/* Over the profile that the library has loaded, in which texts are merged and checked. */
static pthread_mutex_t profile_lock = PTHREAD_MUTEX_INITIALIZER;
static const char *profile_path;
static bool profile_is_put;
static char *profile_text;  /* what was learned, when it was last asked for */
static time_t profile_time; /* then */

bool profile_start(const char *path)
{
    char copy[4096];
    profile_path = path;
    if (path == NULL)
        return true;
    if (snprintf(copy, sizeof copy, "%s.workers", path) >= (int)sizeof copy)
        return false;
    setenv("TIDEPOOL_PROFILE", copy, 1);
    if (access(path, F_OK) == 0)
        return tide_profile_load(path) == TIDE_OK && tide_profile_save(copy) == TIDE_OK;
    return unlink(copy) == 0 || errno == ENOENT;
}

/* Loads what all workers have learned, merged by the library: of two that set a knob the first stands.
 * `own`: without what they have loaded themselves. False: they have none. */
static bool profile_load_learned(bool own)
{
    json_t *list = workers_seen(), *facts;
    char error[200];
    size_t i;
    bool gone, some = false;
    json_array_foreach(list, i, facts)
    {
        json_t *answer =
            workers_ask((pid_t)json_integer_value(json_object_get(facts, "pid")),
                        json_pack("{s:s, s:b}", "get", "profile", "own", own), error, &gone);
        const char *text = json_string_value(json_object_get(answer, "profile"));
        some = (text != NULL && tide_profile_read(text, strlen(text), some) == TIDE_OK) || some;
        json_decref(answer);
    }
    json_decref(list);
    return some;
}

/* Readers need no token: they shall not make the workers write their profiles more than once a
 * second. */
char *profile_learned(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    pthread_mutex_lock(&profile_lock);
    if (profile_text == NULL || now.tv_sec != profile_time) {
        size_t length;
        free(profile_text);
        profile_text = NULL;
        profile_time = now.tv_sec;
        FILE *out = profile_load_learned(false) ? open_memstream(&profile_text, &length) : NULL;
        bool good = out != NULL && tide_profile_write(out) == TIDE_OK;
        if (out != NULL && (fclose(out) != 0 || !good)) {
            free(profile_text);
            profile_text = NULL;
        }
    }
    char *text = profile_text != NULL ? strdup(profile_text) : NULL;
    pthread_mutex_unlock(&profile_lock);
    return text;
}

bool profile_put(const char *bytes, size_t count)
{
    pthread_mutex_lock(&profile_lock);
    bool good = tide_profile_read(bytes, count, false) == TIDE_OK &&
                tide_profile_save(profile_path) == TIDE_OK;
    profile_is_put = profile_is_put || good;
    pthread_mutex_unlock(&profile_lock);
    return good;
}

/* What this session has learned comes first, then what the file had. */
bool profile_stop(void)
{
    free(profile_text);
    return profile_path == NULL || profile_is_put || !profile_load_learned(true) ||
           ((access(profile_path, F_OK) != 0 || tide_profile_merge(profile_path) == TIDE_OK) &&
            tide_profile_save(profile_path) == TIDE_OK);
}
