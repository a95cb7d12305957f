/* SPDX-License-Identifier: MIT */
/* Why something was decided, as a code; reasons.def has the words. */
#ifndef TIDEPOOL_JIT_EVENTS_REASON_H
#define TIDEPOOL_JIT_EVENTS_REASON_H

typedef enum tide_reason {
#define TIDE_REASON(code, words) TIDE_REASON_##code,
#include "jit/events/reasons.def"
#undef TIDE_REASON
    TIDE_REASON_COUNT
} tide_reason;

/* Static texts; of no reason they are empty. */
const char *tide_reason_words(tide_reason reason);
const char *tide_reason_code(tide_reason reason);

#endif
