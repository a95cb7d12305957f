/* SPDX-License-Identifier: MIT */
/* The profile: what each site was seen to acquire.
 *
 * To observe a site, its plan is swapped for one that counts; a scope's reads the undo log when the
 * scope ends. A site that is not observed pays nothing. Any thread, all functions. */
#ifndef TIDEPOOL_PROFILE_H
#define TIDEPOOL_PROFILE_H

#include <stdio.h>
#include <tidepool/site.h>

TIDE_BEGIN_DECLS

enum { TIDE_PROFILE_TYPES = 32 };

/* What the observed uses of one site did with one type. */
typedef struct tide_profile_type {
    tide_type type;     /* of a dispatch by keys: TIDE_KEY_FIRST and the key     */
    uint32_t slots_max; /* most slots that one scope took; 1 for dispatches      */
    uint64_t scopes;    /* uses that touched the type                            */
    uint64_t slots;     /* slots that all these uses took together               */
} tide_profile_type;

/* Bytes of a scope are an upper bound: the most that its slots were asked for lately (at a check level:
 * what was asked for). Files leave them out. */
typedef struct tide_site_profile {
    uint64_t scopes;                    /* uses observed                                         */
    uint64_t other;                     /* touches of types for which the profile had no room    */
    uint64_t bytes;                     /* that the uses acquired, all together                  */
    const struct tide_generic *generic; /* of a dispatch: that of all its uses; NULL: several */
    uint32_t type_count;
    tide_profile_type types[TIDE_PROFILE_TYPES]; /* the most frequent first */
    TIDE_GROWTH;
} tide_site_profile;

/* Observes every site, known now or later, until it is switched off. TIDE_ERROR_MEMORY if a site's
 * profile cannot be allocated: that site is not observed, nor, untold, a later one without memory.
 * While it is on no compiled code is tried. */
TIDE_API tide_status tide_profile_observe(bool on);

/* What was observed of one site, so far; all zero: nothing. While scopes run, each figure is exact, but
 * not all are of one moment. */
TIDE_API tide_status tide_profile_site(const tide_site *site, tide_site_profile *out);

/* Prints each observed site: place, kind, tier, uses, misses, why it runs what it runs, its last trial,
 * and types; flushes. TIDE_ERROR_MEMORY: nothing is printed. TIDE_ERROR_FILE with the system's message. */
TIDE_API tide_status tide_profile_print(FILE *out);

/* ---- files ---- */

/* Writes the profiles of all scopes to a file, as text: what was seen, or else what was loaded; and
 * what tunables have found. Dispatches stay out: nothing names their functions in another process. The
 * file is replaced as a whole. TIDE_ERROR_FILE with the system's message; TIDE_ERROR_LIMIT for more
 * than 16384 observed scopes, 8192 types, 32 MiB, or a type's name of 16000 bytes; TIDE_ERROR_MEMORY.
 * Left out are scopes with names of more than 4096 bytes and loaded profiles beyond the 16384. */
TIDE_API tide_status tide_profile_save(const char *path);

/* Reads profiles from a file, for scopes that are known now or later; the next round decides from them.
 * tide_profile_load forgets what was loaded before, tide_profile_merge adds to it. A scope is found by
 * name, file, line and function; else without the line and with the last part of the file's path only,
 * if that names one scope. What the running program has shown counts first. A profile waits until its
 * types are registered. Nothing changed: TIDE_ERROR_FILE, with line and reason, for text of another
 * format or version, cut short, too long or with impossible figures; TIDE_ERROR_LIMIT for too many
 * scopes or types; TIDE_ERROR_MEMORY. Wrong figures cost speed, never safety. */
TIDE_API tide_status tide_profile_load(const char *path);
TIDE_API tide_status tide_profile_merge(const char *path);

/* The same text to a stream, which is flushed (on TIDE_ERROR_FILE part of it may be written), and from
 * `length` bytes, which stay the caller's, as tide_profile_merge if `merge`, else as tide_profile_load.
 * TIDE_ERROR_LIMIT for more than 32 MiB, TIDE_ERROR_ARGUMENT for NULL. */
TIDE_API tide_status tide_profile_write(FILE *out);
TIDE_API tide_status tide_profile_read(const char *bytes, size_t length, bool merge);

TIDE_END_DECLS

#endif
