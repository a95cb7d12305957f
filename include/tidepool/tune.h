/* SPDX-License-Identifier: MIT */
/* Settings: every threshold and default, by name, readable and settable at run time.
 *
 * One table, runtime/base/settings.def, lists them for this API, the environment and the
 * documentation. In the environment a setting is TIDEPOOL_NAME=value. The environment is read once,
 * before the first pool is created, and is ignored in programs that run with raised privileges. */
#ifndef TIDEPOOL_TUNE_H
#define TIDEPOOL_TUNE_H

#include <tidepool/inline/config.h>
#include <tidepool/status.h>

TIDE_BEGIN_DECLS

typedef struct tide_tune_entry {
    const char *name;    /* "check"; in the environment TIDEPOOL_CHECK */
    double value;        /* in force now                               */
    double initial;      /* if neither environment nor a call sets it  */
    double min, max;     /* the range that is accepted                 */
    const char *meaning; /* one line                                   */
} tide_tune_entry;

/* Set or read a setting. TIDE_ERROR_NAME for an unknown name; TIDE_ERROR_SIZE for a value that is
 * out of range or not a number; TIDE_ERROR_ARGUMENT for NULLs. A pool reads its defaults when it is
 * created, a site when it is first entered. Any thread. */
TIDE_API tide_status tide_tune_set(const char *name, double value);
TIDE_API tide_status tide_tune_get(const char *name, double *value);

/* Calls `visit` for each setting, in the table's order, until it returns false. `entry` is valid
 * during the call. Any thread. */
TIDE_API void tide_tune_each(bool (*visit)(const tide_tune_entry *entry, void *user), void *user);

TIDE_END_DECLS

#endif
