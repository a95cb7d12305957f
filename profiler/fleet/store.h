/* SPDX-License-Identifier: MIT */
/* The fleet's store, a Redis server: the last profiles of each program, by who contributed them.
 *
 * Three keys of a program: a hash of texts by contributor, a sorted set of when each came, and a hash
 * of the contributors' own times. A push replaces the contributor's own text, so it may be repeated,
 * and one that comes late changes nothing; a script does all of it at once, drops the oldest beyond
 * FLEET_MEMBERS, and sets when all expire. Who pulls gets the newest first, with their ages by the
 * store's clock, and adds them up, the older ones by less weight, by the library's reader, which
 * refuses what is no profile. */
#ifndef TIDEPOOL_PROFILER_FLEET_STORE_H
#define TIDEPOOL_PROFILER_FLEET_STORE_H

#include <stdbool.h>
#include <stddef.h>

enum {
    FLEET_MEMBERS = 32,         /* contributors of a program that are kept */
    FLEET_TEXT_MAX = 256 << 10, /* bytes of one's profile                  */
    FLEET_DAYS = 30,            /* until what nobody adds to expires       */
    FLEET_HALF_DAYS = 7,        /* until a contribution counts half        */
    FLEET_ID_MAX = 128,
    FLEET_ERROR_MAX = 200
};

/* redis://[[USER]:PASSWORD@]HOST[:PORT][/DATABASE][#PROGRAM]: what an interpreter runs is a program
 * of its own by such a name. */
typedef struct fleet_url {
    char host[128], user[64], password[128], program[41];
    int port, database;
} fleet_url;

/* False with a line in `error`, as all of these. */
bool fleet_url_read(const char *text, fleet_url *out, char error[FLEET_ERROR_MAX]);

/* Each makes a connection of its own, and takes `ms` milliseconds at most once the name of the host
 * is known. */
bool fleet_push(const fleet_url *url, const char *id, const char *member, const char *text,
                size_t length, int ms, char error[FLEET_ERROR_MAX]);

/* Gets a text, which may be anything, and ends with a zero; how much it counts, above 0, 1 at most. */
typedef void fleet_take(void *user, const char *text, size_t length, double weight);

/* Calls `take` with each text, the newest first. */
bool fleet_pull(const fleet_url *url, const char *id, int ms, fleet_take *take, void *user,
                char error[FLEET_ERROR_MAX]);

/* By the monotonic clock. */
struct timespec fleet_in(int ms);

/* What a program is in the store: the build id of its file (without: its name and size), the
 * library's version, a hash of what its processor can do, the name in the URL. */
bool fleet_identity(const char *path, const char *version, const fleet_url *url,
                    char out[FLEET_ID_MAX], char error[FLEET_ERROR_MAX]);

#endif
