/* SPDX-License-Identifier: MIT */
/* A process that listens: the command `tidepool` looks into it and steers its sites.
 *
 * The socket is $XDG_RUNTIME_DIR/tidepool/PID.sock, or /tmp/tidepool-UID/PID.sock where that variable
 * is not set. It speaks JSON lines (profiler/listen/README.md), with processes of the same user and
 * root's only. A thread of a component of its own, libtidepool-listen, serves it, in which signals are
 * blocked and which calls nothing of the program; no thread of the program waits for a client. The
 * setting `listen` (TIDEPOOL_LISTEN=1) begins it with the first pool; failures are then one line on the
 * standard error. A forked child does not listen. The socket goes when the process exits. */
#ifndef TIDEPOOL_LISTEN_H
#define TIDEPOOL_LISTEN_H

#include <tidepool/inline/config.h>
#include <tidepool/status.h>

TIDE_BEGIN_DECLS

/* Listens from now on. `folder` is where the socket will be: made (mode 0700) if it is not there, this
 * user's and closed to others, its path shorter than 80 bytes. NULL: where the command looks. Again:
 * nothing happens. TIDE_ERROR_FILE with the reason when the component cannot be loaded, or the socket or
 * the thread made; TIDE_ERROR_STATE while another thread begins or ends this, in a forked child, once
 * exit has been called, and from a visitor of sites. Any thread. */
TIDE_API tide_status tide_listen(const char *folder);

/* Ends that, and waits for the end of the thread. The setting does not begin it again. Errors as above.
 * Any thread. */
TIDE_API tide_status tide_listen_end(void);

TIDE_END_DECLS

#endif
