/* SPDX-License-Identifier: MIT */
/* Deferred releases: a list of the device, oldest first. */
#include "runtime/device/deferred.h"

#include "runtime/base/assert.h"
#include "runtime/base/error.h"
#include "runtime/base/fork.h"
#include "runtime/base/lock.h"
#include "runtime/base/os.h"

enum { LOOKS = 8 }; /* of a settle that does not wait */

typedef void deferred_function(tide_device *device, tide_deferred *deferred);

static tide_lock deferred_lock = TIDE_LOCK(TIDE_FORK_DEFERRED); /* of the lists of all devices */

static void deferred_take_lock(void)
{
    static const tide_fork_handlers handlers = {.lock = &deferred_lock};
    tide_fork_register(TIDE_FORK_DEFERRED, &handlers);
    tide_lock_take(&deferred_lock);
}

/* Puts a list at the end of the device's, or, if it was taken from there, at the beginning. */
static void deferred_link(tide_device *device, tide_deferred *list, bool back)
{
    if (list == NULL)
        return;
    deferred_take_lock();
    tide_deferred *other = device->deferred, *first = back ? list : other;
    tide_deferred *second = back ? other : list;
    tide_deferred **link = &first;
    while (*link != NULL)
        link = &(*link)->next;
    *link = second;
    __atomic_store_n(&device->deferred, first, __ATOMIC_RELAXED);
    tide_lock_let_go(&deferred_lock);
}

/* The oldest, so many at most. */
static tide_deferred *deferred_take(tide_device *device, unsigned most)
{
    deferred_take_lock();
    tide_deferred *list = device->deferred, **link = &list;
    for (unsigned i = 0; i < most && *link != NULL; i++)
        link = &(*link)->next;
    __atomic_store_n(&device->deferred, *link, __ATOMIC_RELAXED);
    *link = NULL;
    tide_lock_let_go(&deferred_lock);
    return list;
}

/* NULL: there is none yet. */
static void *deferred_mark(tide_device *device, void *stream)
{
    tide_failure why;
    tide_failure_keep(&why);
    void *mark = device->methods->mark(device, stream);
    tide_failure_restore(&why);
    return mark;
}

void tide_deferred_put(tide_device *device, void *stream, tide_deferred *deferred,
                       void (*go)(tide_device *device, tide_deferred *deferred))
{
    tide_assert(deferred != NULL && !device->host);
    *deferred = (tide_deferred){.stream = stream, .mark = deferred_mark(device, stream), .go = go};
    deferred_link(device, deferred, false);
}

void tide_deferred_put_marked(tide_device *device, void *mark, tide_deferred *deferred,
                              void (*go)(tide_device *device, tide_deferred *deferred))
{
    tide_assert(mark != NULL && !device->host);
    *deferred = (tide_deferred){.mark = mark, .go = go};
    deferred_link(device, deferred, false);
}

/* Has the stream come past it? */
static bool deferred_is_over(tide_device *device, tide_deferred *one, bool wait)
{
    if (tide_device_lost(device))
        return true;
    if (one->mark == NULL)
        one->mark = device->methods->mark(device, one->stream);
    if (one->mark == NULL)
        return wait && tide_device_stream_over(device, one->stream);
    return device->methods->mark_done(device, one->mark) ||
           (wait && tide_device_mark_over(device, one->mark));
}

static void deferred_go(tide_device *device, tide_deferred *one)
{
    tide_assert(one->next == NULL);
    if (one->mark != NULL)
        device->methods->mark_drop(device, one->mark);
    one->mark = NULL;
    one->go(device, one);
}

/* ---- settled ------------------------------------------------------------------------------ */

/* Of the oldest, so many at most. `only`: of those for which this is to be done; NULL: of any. */
static bool deferred_settle(tide_device *device, bool wait, deferred_function *only, unsigned most)
{
    tide_failure why;
    tide_deferred *kept = NULL, **last = &kept;
    bool any = false;
    tide_failure_keep(&why);
    for (tide_deferred *one = deferred_take(device, most), *next; one != NULL; one = next) {
        next = one->next;
        one->next = NULL;
        if ((only == NULL || only == one->go) && deferred_is_over(device, one, wait) &&
            !tide_device_unwatched(device)) {
            deferred_go(device, one);
            any = true;
        } else {
            *last = one;
            last = &one->next;
        }
    }
    deferred_link(device, kept, true);
    tide_failure_restore(&why);
    return any;
}

bool tide_deferred_settle(tide_device *device, bool wait)
{
    return tide_deferred_any(device) &&
           deferred_settle(device, wait, NULL, wait ? UINT32_MAX : LOOKS);
}

void tide_deferred_settle_of(tide_device *device, deferred_function *go)
{
    if (tide_deferred_any(device))
        (void)deferred_settle(device, false, go, UINT32_MAX);
}

/* ---- notes -------------------------------------------------------------------------------- */

static void deferred_forget(tide_device *device, tide_deferred *deferred)
{
    (void)device;
    tide_os_free(deferred);
}

/* The note at the end, and the one that there was of its stream out, or NULL. Somebody may be short of memory at any
 * moment: one of the two is always there. */
static tide_deferred *deferred_replace(tide_device *device, tide_deferred *note)
{
    deferred_take_lock();
    tide_deferred *first = device->deferred, **link = &first, *older = NULL;
    while (*link != NULL)
        if (older == NULL && (*link)->go == deferred_forget && (*link)->stream == note->stream) {
            older = *link;
            *link = older->next;
            older->next = NULL;
        } else {
            link = &(*link)->next;
        }
    *link = note;
    __atomic_store_n(&device->deferred, first, __ATOMIC_RELAXED);
    tide_lock_let_go(&deferred_lock);
    return older;
}

/* One without a mark would be of no use. It has the stream's number in its place: a handle may be another stream in
 * each thread. With a stream's first note some go that are over, of others. */
void tide_deferred_note(tide_device *device, void *stream)
{
    void *mark = deferred_mark(device, stream);
    tide_deferred *note = mark != NULL ? tide_os_resize(NULL, sizeof *note) : NULL;
    if (note == NULL) {
        if (mark != NULL)
            device->methods->mark_drop(device, mark);
        return;
    }
    *note =
        (tide_deferred){.stream = (void *)(uintptr_t)device->methods->stream_number(device, stream),
                        .mark = mark,
                        .go = deferred_forget};
    tide_deferred *older = deferred_replace(device, note);
    if (older != NULL)
        deferred_go(device, older);
    else
        (void)deferred_settle(device, false, deferred_forget, LOOKS);
}

void tide_deferred_end(tide_device *device)
{
    while (tide_deferred_settle(device, true)) {
    }
}
