/* SPDX-License-Identifier: MIT */
/* How a site is found again in another run. The strict key names the place in the source; the loose
 * one is what is left of it when lines move and builds happen in other folders. */
#ifndef TIDEPOOL_PROFILER_KEY_H
#define TIDEPOOL_PROFILER_KEY_H

#include <tidepool/site.h>

/* Longest string of a key: sites with longer ones are not kept. */
enum { TIDE_KEY_STRING_MAX = 4096 };

typedef struct tide_key {
    tide_kind kind;
    uint32_t line;
    const char *name, *file, *function; /* never NULL; "" if there is none */
} tide_key;

/* Its strings are the site's own. */
tide_key tide_key_of(const tide_site *site);

/* The order of loose keys: kind, function, name, last part of the file. */
int tide_key_compare_loosely(const tide_key *left, const tide_key *right);

/* The order of strict keys: first that of loose ones, so that those of one loose
 * key are neighbours. */
int tide_key_compare(const tide_key *left, const tide_key *right);

#endif
