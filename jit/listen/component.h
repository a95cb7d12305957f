/* SPDX-License-Identifier: MIT */
/* What the library and the component that listens know of each other: two tables of functions. The
 * component is loaded at run time and links nothing of the library, for a program with the static
 * one would get a second copy. So it is given the functions of the copy that loads it. */
#ifndef TIDEPOOL_JIT_LISTEN_COMPONENT_H
#define TIDEPOOL_JIT_LISTEN_COMPONENT_H

#include <stdio.h>

#include <tidepool/learn.h>
#include <tidepool/site.h>
#include <tidepool/status.h>

enum { TIDE_LISTEN_INTERFACE = 1 }; /* raised whenever anything below changes */

/* What a client wants done. */
typedef enum tide_listen_verb {
    TIDE_LISTEN_PIN,
    TIDE_LISTEN_UNPIN,
    TIDE_LISTEN_RESET,
    TIDE_LISTEN_DECLARE,
    TIDE_LISTEN_COMPILE,
    TIDE_LISTEN_SET,
    TIDE_LISTEN_SAVE,
    TIDE_LISTEN_TRIM
} tide_listen_verb;

typedef struct tide_listen_order {
    tide_listen_verb verb;
    uint64_t id;      /* of the site or pool; 0: see `name` */
    const char *name; /* of the site                        */
    const char *kind; /* NULL: any                          */
    const char *tier; /* to pin it to                       */
    const char *const *types;
    size_t type_count;
    const char *key; /* of a setting */
    double value;
    const char *path; /* of a profile */
} tide_listen_order;

/* The library. Any thread, but nothing with `lock` held; `lock` is held across fork. */
typedef struct tide_listen_host {
    void (*lock)(void);
    void (*unlock)(void);
    tide_status (*write_facts)(FILE *out);
    tide_status (*write_event)(FILE *out, const tide_event *event);
    tide_status (*write_profile)(FILE *out);
    tide_status (*write_spec)(const tide_listen_order *site,
                              FILE *out); /* what is or would be compiled */
    tide_status (*obey)(const tide_listen_order *order);
    const char *(*message)(void); /* of the last of these that failed */
    const char *(*status_name)(tide_status status);
} tide_listen_host;

/* The component. There is one table, by the name `tide_listen_table`. */
typedef struct tide_listen_component {
    uint32_t interface;
    /* Makes the socket; false with a line in `error`. One thread at a time does this, `serve` or
     * `close`. */
    bool (*open)(const tide_listen_host *host, const char *folder, char *error, size_t room);
    void (*serve)(void); /* until it is told to stop */
    void (*stop)(void);  /* takes the name away and has `serve` return. Any thread */
    void (*close)(void); /* closes what `serve` has left */
    void (*hear)(const tide_event *event); /* any thread, one at a time, at any time after `open` */
    void (*forget)(void);                  /* in a forked child, the lock held: closes everything */
} tide_listen_component;

#endif
