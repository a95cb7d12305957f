/* SPDX-License-Identifier: MIT */
/* Tunables in the document of facts, and for who asks for one. */
#ifndef TIDEPOOL_JIT_FACTS_TUNABLES_H
#define TIDEPOOL_JIT_FACTS_TUNABLES_H

#include <tidepool/tunable.h>

#include "jit/facts/json.h"

/* One as an object; the registry is locked, or the tunable stays. All as a list "tunables". */
void tide_tunable_write(tide_json *json, const char *key, const tide_tunable *tunable);
void tide_tunables_write(tide_json *json);

#endif
