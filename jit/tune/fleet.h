/* SPDX-License-Identifier: MIT */
/* TIDEPOOL_FLEET=redis://…: profiles of many processes in a store. The component that speaks to the
 * store, libtidepool-fleet, is loaded at run time and links nothing of the library; the two know of
 * each other what stands here. */
#ifndef TIDEPOOL_JIT_TUNE_FLEET_H
#define TIDEPOOL_JIT_TUNE_FLEET_H

#include <pthread.h>
#include <stdio.h>

#include <tidepool/status.h>

enum { TIDE_FLEET_INTERFACE = 3 }; /* raised whenever anything below changes */

/* The library, as the component's thread calls it. */
typedef struct tide_fleet_host {
    const char *version;
    int (*create_thread)(pthread_t *thread, void *(*run)(void *)); /* an error number */
    tide_status (*write_own)(FILE *out);                           /* tide_profile_write_own */
    tide_status (*read)(const char *bytes, size_t length, bool merge, double weight);
    const char *(*error_message)(void); /* of the call that failed last in this thread */
} tide_fleet_host;

/* The component. There is one table, by the name `tide_fleet_table`. */
typedef struct tide_fleet_component {
    uint32_t interface;
    /* Makes the thread, and waits a moment (100 ms at most) for what the store has; false with a
     * line in `error`. */
    bool (*begin)(const tide_fleet_host *host, const char *url, char *error, size_t room);
    void (*end)(void); /* at exit: waits a moment (250 ms at most) for a store that has answered */
} tide_fleet_component;

/* The host's `read`, and the command's: tide_profile_read of a text that counts so much, above 0,
 * 1 at most. */
tide_status tide_fleet_read(const char *bytes, size_t length, bool merge, double weight);

/* Begins, the first time in the process, if the environment says so. Nothing locked. */
void tide_fleet_begin(void);

#endif
