/* SPDX-License-Identifier: MIT */
/* Events, and what a capture makes of them: a stream that waits for an event of a capture joins
 * it. */
#include <stdlib.h>

#include "model.h"

void capture_record(event *to, lane *on)
{
    to->capture = on->capture;
    to->captured = on->captured;
    to->before = model_tail(on);
}

/* What was recorded outside a capture cannot be waited for inside. */
int capture_wait(lane *on, const event *of)
{
    bool captured = of->capture != NULL && of->capture->active;
    if (on->capture != NULL && (!captured || of->capture != on->capture)) {
        on->capture->spoiled = true;
        return CAPTURE_ISOLATION;
    }
    if (captured) {
        on->capture = of->capture;
        set_join(&on->captured, &of->captured);
        return 0;
    }
    set_join(&on->tail, &of->before);
    return 0;
}

void capture_begin(lane *on)
{
    on->capture = calloc(1, sizeof *on->capture);
    if (on->capture == NULL)
        abort();
    on->capture->active = true;
    on->captured = (set){{0}};
    fake.captures++;
}

/* Every stream that joined must have been waited for by the one where it began. */
int capture_finish(lane *on, capture *of)
{
    int result = of->spoiled ? CAPTURE_INVALIDATED : 0;
    const set all = on->captured;
    for (int i = 0; i < STREAMS; i++) {
        lane *other = &fake.streams[i];
        if (other->capture != of)
            continue;
        if (result == 0 && !set_within(&other->captured, &all))
            result = CAPTURE_UNJOINED;
        other->capture = NULL;
        other->captured = (set){{0}};
    }
    for (int i = 0; i < EVENTS; i++)
        if (fake.events[i].capture == of)
            fake.events[i].capture = &capture_over;
    of->active = false;
    fake.captures--;
    return result;
}

capture capture_over; /* what an event of a capture that has ended belongs to */
