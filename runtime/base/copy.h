/* SPDX-License-Identifier: MIT */
/* This copy of the library among those of the process.
 *
 * A process shall have one copy, the shared library. It may have more: one in each program or plugin
 * that the static library was linked into. They share nothing. Each numbers its own types and has
 * pools, buffers and devices of its own, which calls of another copy refuse. */
#ifndef TIDEPOOL_RUNTIME_BASE_COPY_H
#define TIDEPOOL_RUNTIME_BASE_COPY_H

/* Its address is the copy's identity; the odd address after it is not another's. */
extern _Alignas(2) char tide_copy_own;

/* Makes the module of this copy stay loaded, from the first call on: a plugin may be unloaded while
 * a thread, a signal or a foreign library may still call into the copy that it holds. Called when the
 * library is attached and before a thread key is made. */
void tide_copy_stay(void);

#endif
