/* SPDX-License-Identifier: MIT */
/* The profile: what the scopes of each site were seen to acquire.
 *
 * Observing swaps a site's plan for one that reads the undo log when the scope ends; a site
 * that is not observed pays nothing. */
#ifndef TIDEPOOL_PROFILE_H
#define TIDEPOOL_PROFILE_H

#include <stdio.h>
#include <tidepool/site.h>

TIDE_BEGIN_DECLS

enum { TIDE_PROFILE_TYPES = 32, TIDE_PROFILE_PATTERNS = 16, TIDE_PATTERN_WORDS = 10 };

/* What the observed uses of one site did with one type. */
typedef struct tide_profile_type {
    tide_type type;
    uint32_t slots_max; /* most slots one scope took; else 1    */
    uint64_t scopes;    /* uses that touched it                 */
    uint64_t slots;     /* slots they took, added up            */
} tide_profile_type;

/* Something that recurs from use to use. Of a scope: the set of types it touched, ascending. Of a
 * frame: its types in the order of its arrays. Of an array: type, rank, extents. Of a dispatch:
 * the address of its generic function (which files leave out). A longer one has no place here and
 * counts among the others. */
typedef struct tide_profile_pattern {
    uint64_t scopes; /* uses that showed it */
    uint32_t length;
    int64_t words[TIDE_PATTERN_WORDS];
} tide_profile_pattern;

typedef struct tide_site_profile {
    uint64_t scopes;        /* uses observed                                                  */
    uint64_t other;         /* touches of types for which the profile had no place            */
    uint64_t pattern_other; /* uses whose pattern had no place                                */
    uint64_t nested;        /* scopes that touched a type which the level around had not saved */
    uint32_t type_count, pattern_count;
    tide_profile_type types[TIDE_PROFILE_TYPES];          /* the most frequent first */
    tide_profile_pattern patterns[TIDE_PROFILE_PATTERNS]; /* the most frequent first */
} tide_site_profile;

/* Observes every site, known now or later, until switched off, whatever windows learning opens. Any
 * thread. TIDE_ERROR_MEMORY when a site's profile cannot be allocated (that site is then not
 * observed). */
TIDE_API tide_status tide_profile_observe(bool on);

/* What was observed of one site, by tide_profile_observe or in the windows that learning opens
 * (tidepool/learn.h); all zero if nothing was. Any thread; while scopes run, the
 * figures are each exact but not of one moment. */
TIDE_API tide_status tide_profile_site(const tide_site *site, tide_site_profile *out);

/* Prints, for each site that was observed: place, kind, tier, uses seen, misses, a line for each
 * type, and the most frequent patterns: {a set}, (a sequence), f64[100,200]. Any thread. */
TIDE_API tide_status tide_profile_print(FILE *out);

/* ---- files ---- */

/* Writes what is known of every site, as text: places, types by name, size and alignment,
 * patterns. Of sites that were observed, what was seen; of others, what was loaded. Written beside
 * and renamed, so that a reader sees all of it or the file before. TIDE_ERROR_FILE with the
 * system's words; TIDE_ERROR_LIMIT for more than 16384 observed sites, 8192 types or 32 MiB. (A
 * site with a name of more than 4096 bytes is left out; so is what was loaded beyond the 16384.)
 * Any thread. */
TIDE_API tide_status tide_profile_save(const char *path);

/* Takes what a file says as the profile of the sites it names, known now or later: the next round
 * decides from it, before any window. tide_profile_load forgets earlier such knowledge;
 * tide_profile_merge adds to it. A site is found by its strict key (kind, name, file, line,
 * function), or else by its loose key (without the line, and of the file the last part only) if
 * that names one site alone. What is known from the running program counts before what was loaded.
 * Bad text, from another format, cut short, too long or with figures that cannot be:
 * TIDE_ERROR_FILE, with line and reason; too many sites or types: TIDE_ERROR_LIMIT; nothing
 * changed. A type that is not registered stays so; of a site with such a type nothing is known
 * until it is. A file that lies costs speed, never safety. Any thread. */
TIDE_API tide_status tide_profile_load(const char *path);
TIDE_API tide_status tide_profile_merge(const char *path);

TIDE_END_DECLS

#endif
