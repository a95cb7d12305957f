/* SPDX-License-Identifier: MIT */
/* How an entry point begins: it counts, may fail on demand, and knows contexts. All have the parameters of
 * runtime/device/cuda/api.h. */
#ifndef FAKE_ENTRY_H
#define FAKE_ENTRY_H

#include "model.h"

#define X(name, version, arguments) tide_cu_result fake_##name arguments;
TIDE_CU_ENTRIES(X)
#undef X

/* ENTRY(name, ANY, (parameters), (their names)) { … the driver's result }. CURRENT: it needs a context that works;
 * UNCAPTURED: a capture may forbid it; SAFE: both. */
#define ANY        control_enter
#define CURRENT    control_enter_current
#define UNCAPTURED control_enter_uncaptured
#define SAFE       control_enter_safe
#define ENTRY(name, enter, parameters, arguments)                             \
    static int name##_inside parameters;                                      \
    tide_cu_result fake_##name parameters                                     \
    {                                                                         \
        int result = enter(ENTRY_##name);                                     \
        return control_leave(result != 0 ? result : name##_inside arguments); \
    }                                                                         \
    static int name##_inside parameters

/* In a line: one that returns a result of others, and one that gives something, and succeeds. */
#define RETURNS(name, enter, parameters, arguments, ...) \
    ENTRY(name, enter, parameters, arguments)            \
    {                                                    \
        return __VA_ARGS__;                              \
    }
#define GIVES(name, enter, parameters, arguments, ...) \
    ENTRY(name, enter, parameters, arguments)          \
    {                                                  \
        __VA_ARGS__;                                   \
        return 0;                                      \
    }

#endif
