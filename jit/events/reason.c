/* SPDX-License-Identifier: MIT */
/* The words of each reason: a table made from jit/events/reasons.def. */
#include "jit/events/reason.h"

#include <tidepool/learn.h>

#include "runtime/base/assert.h"

static const struct {
    const char *code, *words;
} reasons[TIDE_REASON_COUNT] = {
#define TIDE_REASON(code, words) {#code, words},
#include "jit/events/reasons.def"
#undef TIDE_REASON
};

_Static_assert(TIDE_REASON_none == 0, "a reason that nobody set is none");

const char *tide_reason_words(tide_reason reason)
{
    tide_assert(reason < TIDE_REASON_COUNT);
    return reasons[reason].words;
}

const char *tide_reason_code(tide_reason reason)
{
    tide_assert(reason < TIDE_REASON_COUNT);
    return reason != TIDE_REASON_none ? reasons[reason].code : "";
}

void tide_reason_each(bool (*visit)(const char *code, const char *words, void *user), void *user)
{
    for (int i = TIDE_REASON_none + 1; i < TIDE_REASON_COUNT; i++)
        if (!visit(reasons[i].code, reasons[i].words, user))
            return;
}
