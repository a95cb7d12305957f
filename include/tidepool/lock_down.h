/* SPDX-License-Identifier: MIT */
/* For programs that give up system calls (seccomp) once they have started. */
#ifndef TIDEPOOL_LOCK_DOWN_H
#define TIDEPOOL_LOCK_DOWN_H

#include <tidepool/status.h>

TIDE_BEGIN_DECLS

/* Call it before the filter is installed. From then on the library starts no thread and no process
 * and opens no file: the background thread, the compiler process and the socket have ended when this
 * returns, and .github/SECURITY.md lists the calls that are left. Pools and buffers work as before.
 * Scopes go on learning in the threads that use them; nothing more is compiled, and code that is
 * loaded stays. tide_background_start, tide_listen and tide_device_open say TIDE_ERROR_STATE; what
 * the driver of a device calls that is open already, the library does not know.
 *
 * TIDEPOOL_LOCKED=1 in the environment says the same from the beginning.
 * TIDE_ERROR_STATE from the `visit` of tide_site_each. Any thread. */
TIDE_API tide_status tide_lock_down(void);

TIDE_END_DECLS

#endif
