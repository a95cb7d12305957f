/* SPDX-License-Identifier: MIT */
/* Why something was decided, as a code; reasons.def has the words. */
#ifndef TIDEPOOL_JIT_LEARN_REASON_H
#define TIDEPOOL_JIT_LEARN_REASON_H

typedef enum tide_reason {
#define TIDE_REASON(code, words) TIDE_REASON_##code,
#include "jit/learn/reasons.def"
#undef TIDE_REASON
    TIDE_REASON_COUNT
} tide_reason;

/* Static text. */
const char *tide_reason_words(tide_reason reason);

#endif
