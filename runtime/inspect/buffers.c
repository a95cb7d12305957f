/* SPDX-License-Identifier: MIT */
/* Every instance of buffers of the process, seen from any thread. */
#include <tidepool/facts.h>

#include <string.h>

#include "runtime/base/assert.h"
#include "runtime/base/error.h"
#include "runtime/base/os.h"
#include "runtime/buffers/store/instance.h"

typedef struct copied_buffers {
    tide_buffers_information *buffers; /* the youngest first, as the list is */
    size_t count, room;
    bool failed;
} copied_buffers;

/* No lock is held: a visitor is counted, and the instance stays. */
static void buffers_copy(tide_buffers *buffers, void *user)
{
    copied_buffers *copied = user;
    if (copied->count == copied->room) {
        size_t room = copied->room == 0 ? 8 : copied->room * 2;
        tide_buffers_information *more = tide_os_resize(copied->buffers, room * sizeof *more);
        copied->failed |= more == NULL;
        if (more == NULL)
            return;
        copied->buffers = more;
        copied->room = room;
    }
    tide_assert(copied->count < copied->room);
    tide_buffers_information *out = &copied->buffers[copied->count++];
    _Static_assert(sizeof out->name == sizeof buffers->name &&
                       sizeof out->device == sizeof buffers->device->name,
                   "names are copied whole");
    *out = (tide_buffers_information){.id = buffers->number & TIDE_INSTANCE_MASK};
    memcpy(out->name, buffers->name, sizeof out->name);
    memcpy(out->device, buffers->device->name, sizeof out->device);
    tide_status status = tide_buffers_stats(buffers, &out->statistics, NULL, 0);
    tide_assert(status == TIDE_OK);
    (void)status;
}

tide_status tide_buffers_each(bool (*visit)(const tide_buffers_information *buffers, void *user),
                              void *user)
{
    const char *call = "tide_buffers_each";
    copied_buffers copied = {0};
    if (visit == NULL)
        return tide_fail(TIDE_ERROR_ARGUMENT, call, "the function is NULL");
    tide_buffers_visit(buffers_copy, &copied);
    for (size_t i = copied.count; !copied.failed && i > 0 && visit(&copied.buffers[i - 1], user);
         i--)
        continue;
    tide_os_free(copied.buffers);
    return copied.failed ? tide_fail(TIDE_ERROR_MEMORY, call, "no memory to copy the figures")
                         : TIDE_OK;
}
