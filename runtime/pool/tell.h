/* SPDX-License-Identifier: MIT */
/* The program's hook is told of each change of the memory that a pool holds, and so is who traces
 * it. The pool is shut meanwhile, and no lock is held. */
#ifndef TIDEPOOL_RUNTIME_POOL_TELL_H
#define TIDEPOOL_RUNTIME_POOL_TELL_H

#include "runtime/base/lock.h"
#include "runtime/base/probe.h"
#include "runtime/pool/shut.h"

/* The books say already what is told. The place is that of the acquire, or nowhere. */
static inline void tide_pool_tell(tide_pool *pool, tide_pool_happening happening,
                                  const tide_row *row, size_t bytes, size_t elements,
                                  tide_place place)
{
    const tide_pool_core *core = pool->core;
    if (happening == TIDE_POOL_ALLOCATED)
        TIDE_USDT(pool_grow, pool, (const char *)core->name, row->type, bytes,
                  core->memory.bytes_held);
    if (TIDE_LIKELY(core->hook == NULL))
        return;
    bool known = place.file != NULL;
    const tide_pool_event event = {.happening = happening,
                                   .pool = pool,
                                   .name = core->name,
                                   .type = row->type,
                                   .bytes = bytes,
                                   .elements = elements,
                                   .held = core->memory.bytes_held,
                                   .file = place.file,
                                   .function = known ? place.function : NULL,
                                   .line = place.line,
                                   .caller = known ? NULL : (const void *)place.function};
    tide_shut was = tide_pool_shut(pool);
    tide_lock_assert_none();
    core->hook(&event, core->user);
    tide_pool_open_again(pool, was);
}

#endif
