/* SPDX-License-Identifier: MIT */
/* The values of settings and constants. */
#include "runtime/base/settings.h"

#include <string.h>

#include "runtime/base/assert.h"
#include "runtime/base/test_hooks.h"

double tide_setting_values[TIDE_SETTING_COUNT] = {
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

double tide_constant_values[TIDE_CONSTANT_COUNT] = {
#define TIDE_CONSTANT(name, value, meaning) value,
#include "runtime/base/constants.def"
#undef TIDE_CONSTANT
};

void tide_setting_set(tide_setting setting, double value)
{
    tide_assert(setting < TIDE_SETTING_COUNT);
    tide_assert(value >= -1); /* it is a number */
    __atomic_store(&tide_setting_values[setting], &value, __ATOMIC_RELAXED);
}

bool tide_constant_set(const char *name, double value)
{
    for (int i = 0; i < TIDE_CONSTANT_COUNT; i++)
        if (strcmp(constants_table[i].name, name) == 0) {
            __atomic_store(&tide_constant_values[i], &value, __ATOMIC_RELAXED);
            return true;
        }
    return false;
}

void tide_constants_reset(void)
{
    for (int i = 0; i < TIDE_CONSTANT_COUNT; i++) {
        double value = constants_table[i].value;
        __atomic_store(&tide_constant_values[i], &value, __ATOMIC_RELAXED);
    }
}
