/* SPDX-License-Identifier: MIT */
/* What the library and the component that listens know of each other: two tables of functions. The
 * component is loaded at run time and links nothing of the library, for a program with the static
 * one would get a second copy. So it is given the functions of the copy that loads it. */
#ifndef TIDEPOOL_JIT_LISTEN_COMPONENT_H
#define TIDEPOOL_JIT_LISTEN_COMPONENT_H

#include <pthread.h>
#include <stdio.h>

#include <tidepool/learn.h>
#include <tidepool/site.h>
#include <tidepool/status.h>

enum { TIDE_LISTEN_INTERFACE = 5 }; /* raised whenever anything below changes */

/* What a client wants done; what it did not say is 0 or NULL. */
typedef struct tide_listen_order {
    const char *verb; /* "pin"; profiler/listen/README.md has them all */
    uint64_t id;      /* of the site or pool                           */
    const char *name, *kind, *tier, *key;
    double value;
    const char *types[TIDE_SITE_TYPES + 1]; /* one more than a site may have, to tell too many */
    size_t type_count;
    const char *tunable, *variant; /* of a tunable, and `value` or `variant` for it   */
    uint64_t row;                  /* the key that is meant                           */
} tide_listen_order;

/* The library, as the component's thread calls it. Nothing of this calls the program: a trim is
 * done by the pool's owner, an event is handed to the program's listener by its own threads. */
typedef struct tide_listen_host {
    int (*create_thread)(pthread_t *thread, void *(*run)(void *)); /* an error number */
    tide_status (*write_facts)(FILE *out);
    tide_status (*write_event)(FILE *out, const tide_event *event);
    tide_status (*write_profile)(FILE *out);
    tide_status (*write_own)(FILE *out); /* without what was loaded */
    tide_status (*write_spec)(const tide_listen_order *site,
                              FILE *out); /* what is or would be compiled */
    tide_status (*write_tunable)(const tide_listen_order *order, FILE *out); /* as in facts */
    tide_status (*obey)(const tide_listen_order *order);
    const char *(*message)(void); /* of the last of these that failed */
} tide_listen_host;

/* The component. There is one table, by the name `tide_listen_table`. */
typedef struct tide_listen_component {
    uint32_t interface;
    /* Makes the socket and the thread; false with a line in `error`. One thread at a time is in this
     * or the next. */
    bool (*begin)(const tide_listen_host *host, const char *folder, char *error, size_t room);
    void (*end)(bool waits);               /* for the end of the thread */
    void (*hear)(const tide_event *event); /* any thread, one at a time, at any time */
    void (*forget)(void);                  /* in a forked child: closes everything   */
} tide_listen_component;

#endif
