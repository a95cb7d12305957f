/* SPDX-License-Identifier: MIT */
#include "runtime/base/settings.h"

#include <stdatomic.h>

#include "runtime/base/assert.h"

static _Atomic double values[TIDE_SETTING_COUNT] = {
#define TIDE_SETTING(name, initial, least, most, meaning) initial,
#include "runtime/base/settings.def"
#undef TIDE_SETTING
};

double tide_setting_get(tide_setting setting)
{
    tide_assert(setting < TIDE_SETTING_COUNT);
    return atomic_load_explicit(&values[setting], memory_order_relaxed);
}

void tide_setting_set(tide_setting setting, double value)
{
    tide_assert(setting < TIDE_SETTING_COUNT);
    atomic_store_explicit(&values[setting], value, memory_order_relaxed);
}
