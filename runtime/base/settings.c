/* SPDX-License-Identifier: MIT */
/* The values of settings and constants, each atomic by itself. Who sets one has checked its range. */
#include "runtime/base/settings.h"

#include <stdatomic.h>
#include <string.h>

#include "runtime/base/assert.h"
#include "runtime/base/test_hooks.h"

static _Atomic double settings_values[TIDE_SETTING_COUNT] = {
#define TIDE_SETTING(name, initial, min, max, meaning) initial,
#include "runtime/base/settings.def"
#undef TIDE_SETTING
};

static const struct {
    const char *name;
    double value;
} constants_table[TIDE_CONSTANT_COUNT] = {
#define TIDE_CONSTANT(name, value, meaning) {#name, value},
#include "runtime/base/constants.def"
#undef TIDE_CONSTANT
};

static _Atomic double constants_values[TIDE_CONSTANT_COUNT] = {
#define TIDE_CONSTANT(name, value, meaning) value,
#include "runtime/base/constants.def"
#undef TIDE_CONSTANT
};

double tide_setting_get(tide_setting setting)
{
    tide_assert(setting < TIDE_SETTING_COUNT);
    return atomic_load_explicit(&settings_values[setting], memory_order_relaxed);
}

double tide_constant_get(tide_constant constant)
{
    tide_assert(constant < TIDE_CONSTANT_COUNT);
    return atomic_load_explicit(&constants_values[constant], memory_order_relaxed);
}

void tide_setting_set(tide_setting setting, double value)
{
    tide_assert(setting < TIDE_SETTING_COUNT);
    tide_assert(value >= -1); /* it is a number */
    atomic_store_explicit(&settings_values[setting], value, memory_order_relaxed);
}

bool tide_constant_set(const char *name, double value)
{
    for (int i = 0; i < TIDE_CONSTANT_COUNT; i++)
        if (strcmp(constants_table[i].name, name) == 0) {
            atomic_store_explicit(&constants_values[i], value, memory_order_relaxed);
            return true;
        }
    return false;
}

void tide_constants_reset(void)
{
    for (int i = 0; i < TIDE_CONSTANT_COUNT; i++)
        atomic_store_explicit(&constants_values[i], constants_table[i].value, memory_order_relaxed);
}
