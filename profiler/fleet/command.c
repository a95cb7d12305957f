/* SPDX-License-Identifier: MIT */
/* tidepool-profile push, pull, watch: profiles to and from the fleet's store, by hand. */
#define _GNU_SOURCE
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tidepool/version.h>

#include "jit/tune/fleet.h"
#include "profiler/fleet/store.h"
#include "profiler/tool/profile.h"
#include "runtime/base/assert.h"

enum { WATCH_MS = 2000 };

typedef struct fleet_pulled {
    int texts, refused;
} fleet_pulled;

static void fleet_add(void *user, const char *text, size_t length, double weight)
{
    fleet_pulled *pulled = user;
    bool good = length <= FLEET_TEXT_MAX &&
                tide_fleet_read(text, length, pulled->texts > 0, weight) == TIDE_OK;
    pulled->texts += good;
    pulled->refused += !good;
}

/* The text on the standard input; NULL if that is longer than a profile that is given. */
static char *fleet_read_input(size_t *length)
{
    static char text[FLEET_TEXT_MAX + 1];
    *length = fread(text, 1, sizeof text, stdin);
    return *length <= FLEET_TEXT_MAX ? text : NULL;
}

static int fleet_push_input(const fleet_url *url, const char *id, int ms, const char *member)
{
    char error[FLEET_ERROR_MAX];
    size_t length;
    const char *text = fleet_read_input(&length);
    if (text == NULL || tide_fleet_read(text, length, false, 1) != TIDE_OK)
        return profile_complain(PROFILE_NO, "what was to be given is no profile, or too long");
    return fleet_push(url, id, member, text, length, ms, error)
               ? PROFILE_OK
               : profile_complain(PROFILE_NO, "%s", error);
}

static int fleet_pull_program(const fleet_url *url, const char *id, int ms, fleet_pulled *pulled)
{
    char error[FLEET_ERROR_MAX];
    *pulled = (fleet_pulled){0, 0};
    return fleet_pull(url, id, ms, fleet_add, pulled, error)
               ? PROFILE_OK
               : profile_complain(PROFILE_NO, "%s", error);
}

/* A line whenever it has changed, until the store is gone. */
static int fleet_watch(const fleet_url *url, const char *id, int ms)
{
    fleet_pulled pulled, before = {-1, -1};
    while (fleet_pull_program(url, id, ms, &pulled) == PROFILE_OK) {
        if (pulled.texts != before.texts || pulled.refused != before.refused)
            printf("%d profiles, %d refused\n", pulled.texts, pulled.refused);
        if (fflush(stdout) != 0)
            break;
        before = pulled;
        (void)poll(NULL, 0, WATCH_MS);
    }
    return PROFILE_NO;
}

int profile_share(char **args)
{
    fleet_url url;
    fleet_pulled pulled;
    char error[FLEET_ERROR_MAX], id[FLEET_ID_MAX];
    int ms = atoi(args[3]);
    tide_assert(args[3] != NULL);
    if (!fleet_url_read(args[2], &url, error))
        return profile_complain(PROFILE_USAGE, "the store: %s", error);
    if (!fleet_identity(args[1], tide_version(), &url, id, error))
        return profile_complain(PROFILE_NO, "%s", error);
    if (strcmp(args[0], "push") == 0)
        return fleet_push_input(&url, id, ms, args[4]);
    if (strcmp(args[0], "watch") == 0)
        return fleet_watch(&url, id, ms);
    int code = fleet_pull_program(&url, id, ms, &pulled);
    if (code == PROFILE_OK && pulled.texts == 0)
        return profile_complain(PROFILE_NO, "the store has no profile of '%s'", args[1]);
    return code == PROFILE_OK ? profile_write() : code;
}
