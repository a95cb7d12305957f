/* SPDX-License-Identifier: MIT */
/* Every instance of buffers of the process, seen from any thread. */
#include <tidepool/facts.h>

#include <string.h>

#include "runtime/base/assert.h"
#include "runtime/base/error.h"
#include "runtime/buffers/store/instance.h"

typedef struct buffers_visit {
    bool (*visit)(const tide_buffers_information *buffers, void *user);
    void *user;
    bool over;
} buffers_visit;

/* No lock is held: a visitor is counted, and the instance stays. */
static void buffers_tell(tide_buffers *buffers, void *user)
{
    buffers_visit *to = user;
    tide_buffers_information out = {.id = buffers->number & TIDE_INSTANCE_MASK};
    if (to->over)
        return;
    _Static_assert(sizeof out.name == sizeof buffers->name &&
                       sizeof out.device == sizeof buffers->device->name,
                   "names are copied whole");
    memcpy(out.name, buffers->name, sizeof out.name);
    memcpy(out.device, buffers->device->name, sizeof out.device);
    tide_status status = tide_buffers_stats(buffers, &out.statistics, NULL, 0);
    tide_assert(status == TIDE_OK);
    (void)status;
    to->over = !to->visit(&out, to->user);
}

tide_status tide_buffers_each(bool (*visit)(const tide_buffers_information *buffers, void *user),
                              void *user)
{
    if (visit == NULL)
        return tide_fail(TIDE_ERROR_ARGUMENT, "tide_buffers_each", "the function is NULL");
    tide_buffers_visit(buffers_tell, &(buffers_visit){visit, user, false});
    return TIDE_OK;
}
