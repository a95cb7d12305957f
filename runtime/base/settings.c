/* SPDX-License-Identifier: MIT */
/* The values of the settings, each atomic by itself. Who sets one has checked its range. */
#include "runtime/base/settings.h"

#include <stdatomic.h>

#include "runtime/base/assert.h"

static _Atomic double settings_values[TIDE_SETTING_COUNT] = {
#define TIDE_SETTING(name, initial, min, max, meaning) initial,
#include "runtime/base/settings.def"
#undef TIDE_SETTING
};

double tide_setting_get(tide_setting setting)
{
    tide_assert(setting < TIDE_SETTING_COUNT);
    return atomic_load_explicit(&settings_values[setting], memory_order_relaxed);
}

void tide_setting_set(tide_setting setting, double value)
{
    tide_assert(setting < TIDE_SETTING_COUNT);
    tide_assert(value >= 0); /* no setting may be negative, or no number */
    atomic_store_explicit(&settings_values[setting], value, memory_order_relaxed);
}
