/* SPDX-License-Identifier: MIT */
/* CUDA C on the host: the very text that NVRTC gets, compiled as C++ with the words of CUDA
 * explained, and run group by group. Each thread of a group is a context of its own that gives way
 * wherever it meets others of its warp, so that what lanes exchange is exchanged as a warp would.
 * It shows that the code is right, not that it is fast, nor anything about ordering between groups:
 * those run one after another. */
#ifndef TIDEPOOL_TESTS_EMULATION_H
#define TIDEPOOL_TESTS_EMULATION_H

#ifdef __cplusplus
extern "C" {
#endif

/* One thread's work. */
typedef void emulation_body(const void *user);

/* Runs it for so many groups of so many threads. */
void emulation_run(unsigned groups, unsigned group, emulation_body *body, const void *user);

/* What the text can ask for. */
unsigned emulation_thread(void);
unsigned emulation_group(void);
unsigned emulation_active(void); /* lanes of the warp that are here now, too */
unsigned long long emulation_exchange(unsigned mask, unsigned long long value, unsigned lane);

#ifdef __cplusplus
}
#endif

#endif
