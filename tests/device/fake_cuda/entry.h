/* SPDX-License-Identifier: MIT */
/* How an entry point begins: it counts, may fail on demand, and knows contexts. All have the parameters of
 * runtime/device/cuda/api.h. */
#ifndef FAKE_ENTRY_H
#define FAKE_ENTRY_H

#include "model.h"

#define X(name, version, arguments) tide_cu_result fake_##name arguments;
TIDE_CU_ENTRIES(X)
#undef X

#define ENTRY(name, ...) tide_cu_result fake_##name(__VA_ARGS__)
#define START(name)                           \
    int result = control_enter(ENTRY_##name); \
    if (result != 0)                          \
    return control_leave(result)
#define START_CURRENT(name)                           \
    int result = control_enter_current(ENTRY_##name); \
    if (result != 0)                                  \
    return control_leave(result)
#define START_SAFE(name) /* what a capture may forbid */   \
    int result = control_enter_current(ENTRY_##name);      \
    result = result != 0 ? result : control_unsafe(#name); \
    if (result != 0)                                       \
    return control_leave(result)

#endif
