/* SPDX-License-Identifier: MIT */
/* The host's side of memory that kernels allocate from: an array of the pool with a head that tells
 * how far it is used. Only when the stream has come to the end is it known whether the memory was
 * enough; so leaving waits. */
#include <stddef.h>

#include <tidepool/acquire.h>
#include <tidepool/device.h>
#include <tidepool/device_bump.h>

#include "runtime/base/assert.h"
#include "runtime/base/error.h"
#include "runtime/pool/streams.h"
#include "runtime/scope/mark.h"
#include "runtime/transfer/copy.h"

_Static_assert(sizeof(tide_bump) <= TIDE_BUMP_HEAD && TIDE_BUMP_HEAD % TIDE_BUMP_ALIGN == 0,
               "the memory follows the head");
_Static_assert(sizeof(tide_bump_word) == sizeof(uint64_t), "kernels add to words of 64 bits");
_Static_assert((TIDE_BUMP_ALIGN & (TIDE_BUMP_ALIGN - 1)) == 0, "an alignment is a power of two");

/* The text of the header, as it is installed. */
__asm__(".pushsection .rodata\n"
        ".global tide_bump_text\n"
        ".hidden tide_bump_text\n"
        "tide_bump_text:\n"
        ".incbin \"" TIDE_BUMP_HEADER "\"\n"
        ".byte 0\n"
        ".popsection\n");
extern const char tide_bump_text[];

const char *tide_bump_source(void)
{
    return tide_bump_text;
}

/* The array, with its head on the way to it. Nothing is rewound when that fails. */
static tide_status bump_prepare(tide_pool *pool, size_t bytes, tide_bump_scope *scope,
                                const char *call)
{
    tide_assert(scope->bump == NULL && scope->mark.pool == pool);
    size_t capacity, all;
    if (__builtin_add_overflow(bytes, (size_t)TIDE_BUMP_ALIGN - 1, &capacity) ||
        __builtin_add_overflow(capacity, (size_t)TIDE_BUMP_HEAD, &all))
        return tide_fail(TIDE_ERROR_SIZE, call, "%zu bytes overflow size_t", bytes);
    capacity -= capacity % TIDE_BUMP_ALIGN;
    tide_assert(capacity >= bytes && capacity % TIDE_BUMP_ALIGN == 0 && capacity < all);
    const tide_bump head = {.capacity = capacity};
    tide_bump *bump = tide_acquire_type(pool, TIDE_U64, all / sizeof(uint64_t) + 1);
    if (bump == NULL)
        return tide_error_status();
    TIDE_FORWARD(tide_upload(pool, bump, &head, sizeof head));
    scope->bump = bump;
    return TIDE_OK;
}

tide_status tide_bump_enter(tide_pool *pool, size_t bytes, tide_bump_scope *scope)
{
    const char *call = "tide_bump_enter";
    if (scope == NULL)
        return tide_fail(TIDE_ERROR_ARGUMENT, call, "the scope is NULL");
    TIDE_FORWARD(tide_pool_use(pool, call));
    *scope = (tide_bump_scope){.pool = pool, .mark = tide_checkpoint(pool)};
    if (scope->mark.pool == NULL)
        return tide_error_status();
    tide_assert(tide_mark_open(pool, scope->mark.position, scope->mark.serial));
    tide_status status = bump_prepare(pool, bytes, scope, call);
    if (status == TIDE_OK)
        return TIDE_OK;
    status = tide_rewind_after(pool, scope->mark, status);
    *scope = (tide_bump_scope){0};
    return status;
}

/* What kernels asked for, into the scope; refused if it was more than there was. */
static tide_status bump_report(tide_bump_scope *scope, const tide_bump *head, const char *call)
{
    scope->asked = (size_t)(head->used + head->too_much);
    scope->refused = (size_t)head->refused;
    if (head->refused == 0)
        return TIDE_OK;
    return tide_fail(TIDE_ERROR_SIZE, call,
                     "kernels asked for %zu bytes in all, of %zu: %zu allocations were refused",
                     scope->asked, (size_t)head->capacity, scope->refused);
}

/* Can the figures be read? A lost device is no reason to keep the level, nor is a driver that does
 * not tell the stream. */
static tide_status bump_check_read(const tide_pool *pool, const char *call)
{
    tide_status own = tide_streams_own(pool, call);
    return own == TIDE_ERROR_STATE ? own : tide_copy_check_capture(pool, call);
}

tide_status tide_bump_leave(tide_bump_scope *scope)
{
    const char *call = "tide_bump_leave";
    if (scope == NULL || scope->bump == NULL)
        return tide_fail(TIDE_ERROR_ARGUMENT, call, "the scope was not entered");
    tide_pool *pool = scope->pool;
    TIDE_FORWARD(tide_pool_use(pool, call));
    if (!tide_mark_open(pool, scope->mark.position, scope->mark.serial))
        return tide_fail(TIDE_ERROR_STATE, call, "the scope's level has been rewound already");
    TIDE_FORWARD(bump_check_read(pool, call));
    tide_bump head;
    tide_status status = tide_download(pool, &head, scope->bump, sizeof head);
    status = tide_rewind_after(pool, scope->mark, status);
    scope->bump = NULL;
    return status == TIDE_OK ? bump_report(scope, &head, call) : status;
}
