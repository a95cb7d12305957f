/* SPDX-License-Identifier: MIT */
/* Deferred releases: a list of the device, oldest first. */
#include "runtime/device/deferred.h"

#include "runtime/base/assert.h"
#include "runtime/base/error.h"
#include "runtime/base/lock.h"
#include "runtime/base/os.h"

enum { LOOKS = 8 }; /* of a settle that does not wait */

typedef enum patience { LOOK, WAIT, CLOSE } patience;
typedef void deferred_function(tide_device *device, tide_deferred *deferred);

static tide_lock deferred_lock = TIDE_LOCK(TIDE_FORK_MEMORY); /* of the lists of all devices */

/* Puts a list at the end of the device's, or, if it was taken from there, at the beginning. */
static void deferred_link(tide_device *device, tide_deferred *list, bool back)
{
    if (list == NULL)
        return;
    tide_lock_take(&deferred_lock);
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
    tide_lock_take(&deferred_lock);
    tide_deferred *list = device->deferred, **link = &list;
    for (unsigned i = 0; i < most && *link != NULL; i++)
        link = &(*link)->next;
    __atomic_store_n(&device->deferred, *link, __ATOMIC_RELAXED);
    *link = NULL;
    tide_lock_let_go(&deferred_lock);
    return list;
}

void tide_deferred_put(tide_device *device, void *stream, tide_deferred *deferred,
                       void (*go)(tide_device *device, tide_deferred *deferred))
{
    tide_failure why;
    tide_assert(deferred != NULL && !device->host);
    tide_failure_keep(&why);
    *deferred = (tide_deferred){.stream = stream, .go = go};
    if (stream != TIDE_STREAM_GONE)
        deferred->mark = device->methods->mark(device, stream);
    tide_failure_restore(&why);
    deferred_link(device, deferred, false);
}

/* What was noted of the stream before, out of the list; NULL: nothing. */
static tide_deferred *deferred_take_note(tide_device *device, const void *stream)
{
    tide_lock_take(&deferred_lock);
    tide_deferred **link = &device->deferred, *one = *link;
    while (one != NULL && (one->go != NULL || one->stream != stream)) {
        link = &one->next;
        one = *link;
    }
    if (one != NULL)
        __atomic_store_n(link, one->next, __ATOMIC_RELAXED);
    tide_lock_let_go(&deferred_lock);
    return one;
}

void tide_deferred_note(tide_device *device, void *stream)
{
    tide_deferred *note = deferred_take_note(device, stream);
    tide_assert(stream != TIDE_STREAM_GONE);
    if (note == NULL)
        note = tide_os_resize(NULL, sizeof *note);
    else if (note->mark != NULL)
        device->methods->mark_drop(device, note->mark);
    if (note != NULL)
        tide_deferred_put(device, stream, note, NULL);
}

void tide_deferred_put_marked(tide_device *device, void *mark, tide_deferred *deferred,
                              void (*go)(tide_device *device, tide_deferred *deferred))
{
    tide_assert(mark != NULL && !device->host);
    *deferred = (tide_deferred){.mark = mark, .go = go};
    deferred_link(device, deferred, false);
}

static tide_status deferred_wait(tide_device *device, const tide_deferred *one)
{
    return one->stream != TIDE_STREAM_GONE ? device->methods->wait(device, one->stream)
                                           : device->methods->wait_all(device);
}

/* Has the stream come past it? */
static bool deferred_is_over(tide_device *device, tide_deferred *one, patience how)
{
    if (tide_device_lost(device))
        return true;
    if (one->mark == NULL && one->stream != TIDE_STREAM_GONE && how != CLOSE)
        one->mark = device->methods->mark(device, one->stream);
    if (one->mark == NULL && how == CLOSE) /* an error may pass; nobody waits again */
        return deferred_wait(device, one) == TIDE_OK ||
               deferred_wait(device, one) != TIDE_ERROR_STATE;
    if (one->mark == NULL)
        return false;
    return device->methods->mark_done(device, one->mark) ||
           (how != LOOK && tide_device_mark_over(device, one->mark));
}

static void deferred_go(tide_device *device, tide_deferred *one)
{
    tide_assert(one->next == NULL);
    if (one->mark != NULL)
        device->methods->mark_drop(device, one->mark);
    one->mark = NULL;
    if (one->go != NULL)
        one->go(device, one);
    else
        tide_os_free(one);
}

/* `only`: of those for which this is to be done; NULL: of any. */
static bool deferred_settle(tide_device *device, patience how, deferred_function *only)
{
    tide_failure why;
    tide_deferred *kept = NULL, **last = &kept;
    bool any = false;
    tide_failure_keep(&why);
    const unsigned most = how == LOOK && only == NULL ? LOOKS : UINT32_MAX;
    for (tide_deferred *one = deferred_take(device, most), *next; one != NULL; one = next) {
        next = one->next;
        one->next = NULL;
        if ((only == NULL || only == one->go) && deferred_is_over(device, one, how) &&
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
    return tide_deferred_any(device) && deferred_settle(device, wait ? WAIT : LOOK, NULL);
}

void tide_deferred_settle_of(tide_device *device, deferred_function *go)
{
    if (tide_deferred_any(device))
        (void)deferred_settle(device, LOOK, go);
}

void tide_deferred_end(tide_device *device)
{
    while (tide_deferred_any(device) && deferred_settle(device, CLOSE, NULL)) {
    }
}
