/* SPDX-License-Identifier: MIT */
/* The facts' member that says who took the memory that is held. */
#ifndef TIDEPOOL_JIT_FACTS_SAMPLES_H
#define TIDEPOOL_JIT_FACTS_SAMPLES_H

#include "jit/facts/json.h"

/* Nothing locked: the dynamic linker is asked for names. */
void tide_samples_write(tide_json *json);

#endif
