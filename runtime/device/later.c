/* SPDX-License-Identifier: MIT */
/* What was put off until the host may wait for a device: a list that any thread pushes to, and that
 * whoever settles takes as a whole. */
#include "runtime/device/later.h"

#include "runtime/base/assert.h"

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

/* Taken before the wait: what is pushed meanwhile is not covered by it. */
bool tide_later_settle(tide_device *device)
{
    if (__atomic_load_n(&device->later, __ATOMIC_RELAXED) == NULL)
        return false;
    tide_later *list = __atomic_exchange_n(&device->later, NULL, __ATOMIC_ACQUIRE), *next;
    bool over = list == NULL || device->methods->wait_all(device) != TIDE_ERROR_STATE;
    for (tide_later *one = list; one != NULL; one = next) {
        next = one->next;
        if (!over) {
            later_push(device, one);
            continue;
        }
        one->go(device, one);
        tide_device_drop(device);
    }
    return over && list != NULL;
}
