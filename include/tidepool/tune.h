/* SPDX-License-Identifier: MIT */
/* Settings: every threshold and default, by name, readable and settable at run time.
 *
 * One table (runtime/base/settings.def) drives this API, the environment (TIDEPOOL_NAME=value, read once
 * before the first pool is created; ignored in programs that run with raised privileges), the
 * printout and the documentation. */
#ifndef TIDEPOOL_TUNE_H
#define TIDEPOOL_TUNE_H

#include <tidepool/config.h>
#include <tidepool/status.h>

TIDE_BEGIN_DECLS

typedef struct tide_tune_entry {
    const char *name;    /* "check"; in the environment TIDEPOOL_CHECK */
    double value;        /* in force now                               */
    double initial;      /* without environment or calls               */
    double least, most;  /* what is accepted                           */
    const char *meaning; /* one line                                   */
} tide_tune_entry;

/* TIDE_ERROR_NAME for an unknown name; TIDE_ERROR_SIZE for a value out of range or not a
 * number. Pools take their defaults when they are created; sites when they are first entered.
 * Any thread. */
TIDE_API tide_status tide_tune_set(const char *name, double value);
TIDE_API tide_status tide_tune_get(const char *name, double *value);

/* Calls visit for each setting, in the table's order, until it returns false. */
TIDE_API void tide_tune_each(bool (*visit)(const tide_tune_entry *entry, void *user), void *user);

TIDE_END_DECLS

#endif
