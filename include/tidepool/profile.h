/* SPDX-License-Identifier: MIT */
/* The profile: what each site was seen to acquire.
 *
 * To observe a site, its plan is swapped for one that counts; a scope's reads the undo log when the
 * scope ends. A site that is not observed pays nothing. */
#ifndef TIDEPOOL_PROFILE_H
#define TIDEPOOL_PROFILE_H

#include <stdio.h>
#include <tidepool/site.h>
#ifdef TIDE_LANGUAGE_OK

TIDE_BEGIN_DECLS

enum { TIDE_PROFILE_TYPES = 32, TIDE_PROFILE_PATTERNS = 16, TIDE_PATTERN_WORDS = 10 };

/* What the observed uses of one site did with one type. */
typedef struct tide_profile_type {
    tide_type type;     /* of a dispatch by keys: TIDE_KEY_FIRST and the key        */
    uint32_t slots_max; /* most slots that one scope took; 1 for other kinds of site */
    uint64_t scopes;    /* uses that touched the type                                */
    uint64_t slots;     /* slots that all these uses took together                   */
} tide_profile_type;

/* A pattern: something that may recur from use to use. For a scope it is the set of types that it
 * touched, ascending; for a frame its types in the order of its arrays; for an array its type, rank
 * and extents; for a dispatch the address of its generic function (files leave it out). A pattern
 * of more than TIDE_PATTERN_WORDS words is not kept; `pattern_other` counts it. */
typedef struct tide_profile_pattern {
    uint64_t scopes; /* uses that showed it */
    uint32_t length;
    int64_t words[TIDE_PATTERN_WORDS];
} tide_profile_pattern;

/* Bytes: of a frame, an acquire and an array what was asked for; of a scope an upper bound: the
 * most that each of its slots was asked for since the pool last gave memory back, the only length
 * that is kept of them (at a check level: what was asked for). Files leave them out. */
typedef struct tide_site_profile {
    uint64_t scopes;        /* uses observed                                                  */
    uint64_t other;         /* touches of types for which the profile had no room             */
    uint64_t pattern_other; /* uses whose pattern found no room                               */
    uint32_t type_count, pattern_count;
    tide_profile_type types[TIDE_PROFILE_TYPES];          /* the most frequent first */
    tide_profile_pattern patterns[TIDE_PROFILE_PATTERNS]; /* the most frequent first */
    uint64_t bytes;                                       /* that the uses acquired, all together */
    TIDE_GROWTH;
} tide_site_profile;

/* Observes every site, known now or later, until it is switched off. It does not depend on the
 * windows that learning opens. TIDE_ERROR_MEMORY if a site's profile cannot be allocated; that site
 * is then not observed. A site that becomes known later and has no memory then is not observed
 * either, and nobody is told. While it is on, no compiled code is tried: trials wait. Any thread. */
TIDE_API tide_status tide_profile_observe(bool on);

/* What was observed of one site, by tide_profile_observe or in the windows that learning opens
 * (tidepool/learn.h). All zero if nothing was. While scopes run, each figure is exact, but not all
 * are of one moment. Any thread. */
TIDE_API tide_status tide_profile_site(const tide_site *site, tide_site_profile *out);

/* Prints, for each site that was observed: place, kind, tier, uses seen, misses, why it runs what
 * it runs, what its last trial measured, a line for each type, and the most frequent patterns,
 * written as {a set}, (a sequence) or f64[100,200]. TIDE_ERROR_MEMORY if there is none for the
 * page, of which nothing is printed then. Any thread. */
TIDE_API tide_status tide_profile_print(FILE *out);

/* ---- files ---- */

/* Writes the profiles of all sites to a file, as text: places, patterns, and types by name, size
 * and alignment. For a site that was observed it writes what was seen; for any other, what was
 * loaded. The text is written to a new file, which is then renamed, so a reader sees the whole new
 * file or the whole old one. TIDE_ERROR_FILE with the system's message; TIDE_ERROR_LIMIT for more
 * than 16384 observed sites, 8192 types or 32 MiB, or a type's name of more than 16000 bytes;
 * TIDE_ERROR_MEMORY. A site whose name has more than 4096 bytes is left out; so are loaded profiles
 * beyond the 16384. Any thread. */
TIDE_API tide_status tide_profile_save(const char *path);

/* Reads profiles from a file, for sites that are known now or later. The next round decides from
 * them, before any window. tide_profile_load forgets what was loaded before; tide_profile_merge
 * adds to it.
 *
 * A site is found by its strict key: kind, name, file, line and function. If there is none, it is
 * found by its loose key, which has no line and only the last part of the file's path, if that
 * names one site only. What the running program has shown counts before what was loaded. Loading
 * registers no type; the profile of a site with an unregistered type is not used until the type is
 * registered.
 *
 * TIDE_ERROR_FILE, with line and reason, for text that is of another format, cut short, too long or
 * has impossible figures; TIDE_ERROR_LIMIT for too many sites or types; TIDE_ERROR_MEMORY. Nothing
 * is changed then. A file with wrong figures costs speed, never safety. Any thread. */
TIDE_API tide_status tide_profile_load(const char *path);
TIDE_API tide_status tide_profile_merge(const char *path);

/* The same text to and from the program, which may keep it where it likes: in a database, or in a
 * message to another machine. tide_profile_write writes what tide_profile_save would, to a stream,
 * and flushes it: TIDE_ERROR_FILE if that fails; part of the text may be written then.
 * tide_profile_read reads a text of so many bytes, which stays the caller's: as tide_profile_merge
 * if `merge`, else as tide_profile_load, with their errors, and TIDE_ERROR_LIMIT for more than
 * 32 MiB. TIDE_ERROR_ARGUMENT for NULL. Any thread. */
TIDE_API tide_status tide_profile_write(FILE *out);
TIDE_API tide_status tide_profile_read(const char *bytes, size_t length, bool merge);

TIDE_END_DECLS

#endif
#endif
