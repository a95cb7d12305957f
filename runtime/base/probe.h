/* SPDX-License-Identifier: MIT */
/* Probes for tracers from outside (USDT: bpftrace, perf, SystemTap, gdb), of the provider tidepool.
 * A probe is one instruction that does nothing, and a note beside the code that says where it
 * stands and where its arguments are. So it stands in cold code only, and its arguments are what is
 * at hand there. profiler/README.md lists all probes with their arguments, which stay as they are.
 *
 * Without <sys/sdt.h> when the library is built there are none. */
#ifndef TIDEPOOL_RUNTIME_BASE_PROBE_H
#define TIDEPOOL_RUNTIME_BASE_PROBE_H

#ifdef TIDE_HAVE_SDT
#define SDT_USE_VARIADIC
#include <sys/sdt.h>
/* Two to twelve arguments: integers and pointers. */
#define TIDE_USDT(name, ...) STAP_PROBEV(tidepool, name, __VA_ARGS__)
#else
#define TIDE_USDT(name, ...) ((void)0)
#endif

#endif
