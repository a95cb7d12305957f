/* SPDX-License-Identifier: MIT */
/* The hooks through which the runtime meets what stands above it: two tables of functions, one of
 * the profiler and one of policy. One call attaches them, and lets policy set the defaults, before
 * anything is made.
 *
 * Each site has one hook more, its plan pointer (tidepool/site.h). Beyond these the runtime knows
 * no profile, no policy and no environment. */
#ifndef TIDEPOOL_RUNTIME_BASE_HOOKS_H
#define TIDEPOOL_RUNTIME_BASE_HOOKS_H

#include <tidepool/device.h>
#include <tidepool/site.h>

/* ---- kernels for frames, which policy has made ------------------------------------------- */

typedef enum tide_frame_work_kind {
    TIDE_FRAME_FILL_PARTS, /* each part with copies of the value at its `host`, NULL: zero */
    TIDE_FRAME_PACK,       /* the parts into the block, each at its offset                 */
    TIDE_FRAME_UNPACK,     /* the other way round                                          */
    TIDE_FRAME_KINDS
} tide_frame_work_kind;

typedef struct tide_frame_work {
    tide_frame_work_kind kind;
    tide_device *device;
    void *stream;
    const tide_part *parts; /* sizes have been checked; parts of no elements may be among them    */
    size_t count;           /* at least 1                                                         */
    void *block;            /* device memory, aligned to 64 bytes; fills: NULL                    */
    const size_t *offsets;  /* packing: of each part in the block, multiples of 64; others: NULL  */
} tide_frame_work;

typedef enum tide_frame_result {
    TIDE_FRAME_ABSENT, /* there are no kernels for it: nothing was queued, the caller has a plain way */
    TIDE_FRAME_QUEUED, /* one launch on the stream; the host's values have been read              */
    TIDE_FRAME_FAILED  /* the message says why                                                    */
} tide_frame_result;

typedef struct tide_hooks {
    /* Helps with a frame. The first one of a device has the kernels compiled and loaded, on this
     * thread. Nothing locked. Policy only. */
    tide_frame_result (*help)(const tide_frame_work *help);
    /* The device has been closed; nothing is on it, and its methods still work: what has been made
     * for it goes. Nothing locked. Policy only. */
    void (*close)(tide_device *device);
    /* Something is cached that has to go by age, or is to be looked after in the background. Quick;
     * locks of outer ranks than BACKGROUND may be held. Policy only. */
    void (*need)(void);
    /* A pool was made: where a thread that is at work may be put to what has to wait for one.
     * Nothing locked; quick. Policy only. */
    void (*made)(void);
    /* A scope that is about to end has acquired what its plan did not save, and with it the plan's
     * misses have come to its `alarm`. Nothing locked; quick. Policy only. */
    void (*missed)(const tide_scope *scope);
    /* The plan to publish where the runtime would publish `plan`; may return `plan` itself.
     * Called with the registry locked. */
    const tide_plan *(*publish)(tide_site *site, const tide_plan *plan);
    /* Forget what was observed and learned. `going`: the site's module is being unloaded, so no
     * scope can be inside it; else scopes may be. Called with the registry locked. */
    void (*forget)(tide_site *site, bool going);
    /* Fills in what profile and policy know of a site. Called with the registry locked. */
    void (*describe)(const tide_site *site, tide_site_information *out);
} tide_hooks;

/* What the profiler and policy want to hear; each may leave members NULL. Set by attaching, before
 * any site is published, and not changed again. */
extern tide_hooks tide_hooks_profile, tide_hooks_policy;

/* Has the background thread look after what ages, if there may be one. Any thread. */
static inline void tide_need_background(void)
{
    if (tide_hooks_policy.need != NULL)
        tide_hooks_policy.need();
}

/* Attaches the hooks and all else that the runtime is told from above. Policy defines it
 * (jit/attach.c). Called once, before the first pool, setting or published site of the process. */
void tide_attach_all(void);

/* Runs tide_attach_all, once in the process: a second caller waits until the first has attached.
 * A plugin that holds this copy of the library stays loaded from here on. Any thread. */
void tide_attach(void);

#endif
