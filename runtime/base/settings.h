/* SPDX-License-Identifier: MIT */
/* The values of the settings and of constants. Mechanism reads them here; learning writes settings
 * (environment, API). Two tables say what exists: settings.def and constants.def. Any thread. */
#ifndef TIDEPOOL_RUNTIME_BASE_SETTINGS_H
#define TIDEPOOL_RUNTIME_BASE_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

typedef enum tide_setting {
#define TIDE_SETTING(name, initial, min, max, meaning) TIDE_SETTING_##name,
#include "runtime/base/settings.def"
#undef TIDE_SETTING
    TIDE_SETTING_COUNT
} tide_setting;

typedef enum tide_constant {
#define TIDE_CONSTANT(name, value, meaning) TIDE_CONSTANT_##name,
#include "runtime/base/constants.def"
#undef TIDE_CONSTANT
    TIDE_CONSTANT_COUNT
} tide_constant;

/* Each value is atomic. Who sets one has checked its range. */
extern double tide_setting_values[TIDE_SETTING_COUNT], tide_constant_values[TIDE_CONSTANT_COUNT];

static inline double tide_setting_get(tide_setting setting)
{
    double value;
    __atomic_load(&tide_setting_values[setting], &value, __ATOMIC_RELAXED);
    return value;
}

static inline double tide_constant_get(tide_constant constant)
{
    double value;
    __atomic_load(&tide_constant_values[constant], &value, __ATOMIC_RELAXED);
    return value;
}

/* Of what counts: it is a whole number of 0 or more, or what is behind the point is dropped. */
static inline uint64_t tide_setting_whole(tide_setting setting)
{
    return (uint64_t)tide_setting_get(setting);
}

static inline uint64_t tide_constant_whole(tide_constant constant)
{
    return (uint64_t)tide_constant_get(constant);
}

/* Are threads, processes and files given up (tide_lock_down)? */
static inline bool tide_locked_down(void)
{
    return tide_setting_get(TIDE_SETTING_locked) != 0;
}

void tide_setting_set(tide_setting setting, double value);

#endif
