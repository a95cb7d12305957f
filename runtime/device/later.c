/* SPDX-License-Identifier: MIT */
/* What was put off until the host may wait for a device: a list that any thread pushes to, and that
 * whoever settles takes as a whole. */
#define _GNU_SOURCE
#include "runtime/device/later.h"

#include <sched.h>

#include "runtime/base/assert.h"
#include "runtime/base/lock.h"
#include "runtime/base/os.h"

static _Thread_local bool later_inside; /* this thread is inside of a settle */

static void later_push(tide_device *device, tide_later *later)
{
    later->next = __atomic_load_n(&device->later, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(&device->later, &later->next, later, true, __ATOMIC_RELEASE,
                                        __ATOMIC_RELAXED)) {
    }
}

void tide_later_put_off(tide_device *device, tide_later *later,
                        void (*go)(tide_device *device, tide_later *later))
{
    tide_assert(go != NULL && !device->host);
    tide_device_hold_again(device);
    later->go = go;
    later_push(device, later);
}

/* All of it goes, or is put off again. */
static void later_go(tide_device *device, tide_later *list, bool over)
{
    for (tide_later *one = list, *next; one != NULL; one = next) {
        next = one->next;
        if (!over) {
            later_push(device, one);
            continue;
        }
        one->go(device, one);
        tide_device_drop(device);
    }
}

/* Taken before the wait: what is pushed meanwhile is not covered by it. Whoever finds the list
 * empty because it was taken here finds this thread counted. */
bool tide_later_settle(tide_device *device)
{
    if (__atomic_load_n(&device->later, __ATOMIC_RELAXED) == NULL)
        return false;
    __atomic_fetch_add(&device->settling, 1, __ATOMIC_SEQ_CST);
    tide_later *list = __atomic_exchange_n(&device->later, NULL, __ATOMIC_SEQ_CST);
    bool over = list != NULL && tide_device_all_over(device) && !tide_device_unwatched(device);
    bool outer = later_inside;
    later_inside = true;
    later_go(device, list, over);
    later_inside = outer;
    if (over)
        __atomic_fetch_add(&device->settled, 1, __ATOMIC_SEQ_CST);
    uint32_t before = __atomic_fetch_sub(&device->settling, 1, __ATOMIC_SEQ_CST);
    tide_assert(before > 0);
    (void)before;
    return over;
}

/* What they do once the device is idle is short, but they may have lost their processors. Functions
 * of the program run in it, too, which may wait for the caller: so not for ever, but for some
 * seconds. On a lost device nothing comes of it; in the child of a fork, where every device is
 * lost, they are not there either. */
static void later_wait_for_others(const tide_device *device)
{
    enum { YIELDS = 100, NAPS_MAX = 50000 };
    for (unsigned i = 0; i < YIELDS + NAPS_MAX; i++) {
        if (__atomic_load_n(&device->settling, __ATOMIC_SEQ_CST) == 0 || tide_device_lost(device))
            break;
        if (i < YIELDS)
            sched_yield();
        else
            tide_os_nap();
    }
}

/* They wait for the device, and so does the caller. A thread that is inside of a function of the
 * program which it called there does not wait for itself; nor does one wait that has a lock, as a
 * visitor of sites has the registry's, which they may want. */
bool tide_later_others(tide_device *device, uint32_t seen)
{
    if (!later_inside && !tide_lock_held_any() &&
        __atomic_load_n(&device->settling, __ATOMIC_SEQ_CST) != 0 && tide_device_all_over(device) &&
        !tide_device_unwatched(device))
        later_wait_for_others(device);
    return __atomic_load_n(&device->settled, __ATOMIC_SEQ_CST) != seen;
}
