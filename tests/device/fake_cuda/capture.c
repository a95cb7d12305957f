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

/* What was recorded outside a capture cannot be waited for inside; the legacy stream joins none. */
int capture_wait(lane *on, const event *of)
{
    bool captured = of->capture != NULL && of->capture->active;
    if (captured && on == on->context->legacy) {
        of->capture->spoiled = true;
        return CAPTURE_IMPLICIT;
    }
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

/* Nobody can know when it was passed. */
int capture_asked(const event *of, const char *what)
{
    int result = control_unsafe(what);
    if (of->capture == NULL)
        return result;
    fake_complain("%s of an event in a capture", what);
    of->capture->spoiled = true;
    return CAPTURED_EVENT;
}

int capture_own(const lane *on, const char *what)
{
    if (on->capture == NULL)
        return 0;
    fake_complain("%s of a stream that is captured", what);
    on->capture->spoiled = true;
    return CAPTURE_UNSUPPORTED;
}

static capture **place_of(const capture *of)
{
    for (int i = 0; i < CAPTURES; i++)
        if (fake.captures[i] == of)
            return &fake.captures[i];
    abort();
}

void capture_begin(lane *on, int mode)
{
    on->capture = calloc(1, sizeof *on->capture);
    if (on->capture == NULL)
        abort();
    on->capture->active = true;
    on->capture->number = fake.capture_numbers++;
    on->capture->mode = mode;
    on->capture->thread = control_thread();
    on->captured = (set){{0}};
    *place_of(NULL) = on->capture;
}

/* The legacy stream is ordered with every blocking one of its context. */
static lane *blocking_capture(const lane *on)
{
    for (lane *other = fake.streams; other < fake.streams + STREAMS; other++)
        if (on == on->context->legacy && other->live && other->context == on->context &&
            other->blocking && other->capture != NULL)
            return other;
    return NULL;
}

bool capture_blocks(const lane *on)
{
    return blocking_capture(on) != NULL;
}

int capture_implicit(const lane *on, const char *what)
{
    const lane *captured = blocking_capture(on);
    if (captured == NULL)
        return 0;
    fake_complain("%s on the legacy stream while a blocking stream is captured", what);
    captured->capture->spoiled = true;
    return CAPTURE_IMPLICIT;
}

/* Every stream that joined must have been waited for by the one where it began. */
int capture_finish(lane *on, capture *of)
{
    bool elsewhere = of->mode != TIDE_CU_CAPTURE_RELAXED && of->thread != control_thread();
    int result = of->spoiled ? CAPTURE_INVALIDATED : elsewhere ? CAPTURE_WRONG_THREAD : 0;
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
    *place_of(of) = NULL;
    return result;
}

capture capture_over; /* what an event of a capture that has ended belongs to */
