/* SPDX-License-Identifier: MIT */
/* A scope in an inline function of a header that several plugins include. */
#ifndef TIDEPOOL_TESTS_PLUGIN_INLINE_H
#define TIDEPOOL_TESTS_PLUGIN_INLINE_H

#include <tidepool/scope.h>
#include <tidepool/tidepool.h>

static inline size_t plugin_inline_scope(tide_pool *pool)
{
    TIDE_SCOPE_NAMED(pool, "plugin: inline");
    return tide_acquire(pool, long, 10) != NULL;
}

#endif
