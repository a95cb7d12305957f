/* SPDX-License-Identifier: MIT */
/* Settings: every threshold and default, by name, readable and settable at run time; and lock-down.
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
 * created, a site when it is first entered. When `learn` and `background` are both 1 again, the
 * background thread starts, unless tide_background_stop was called. Any thread. */
TIDE_API tide_status tide_tune_set(const char *name, double value);
TIDE_API tide_status tide_tune_get(const char *name, double *value);

/* Calls `visit` for each setting, in the table's order, until it returns false. `entry` is valid
 * during the call. Any thread. */
TIDE_API void tide_tune_each(bool (*visit)(const tide_tune_entry *entry, void *user), void *user);

/* For programs that give up system calls (seccomp), before the filter is installed. From then on the
 * library starts no thread and no process and opens no file: the background thread, the compiler
 * process and the socket have ended when this returns, and .github/SECURITY.md lists the calls that are
 * left. Pools and buffers work as before. Scopes go on learning in the threads that use them; nothing
 * more is compiled, and code that is loaded stays. tide_background_start, tide_listen and
 * tide_device_open say TIDE_ERROR_STATE; what the driver of an open device calls, the library does not
 * know. TIDEPOOL_LOCKED=1 says the same from the beginning. TIDE_ERROR_STATE from the `visit` of
 * tide_site_each. Any thread. */
TIDE_API tide_status tide_lock_down(void);

TIDE_END_DECLS

#endif
