/* SPDX-License-Identifier: MIT */
/* The values of the settings. Mechanism reads them here; policy writes them (environment, API).
 * One table, settings.def, says what exists. Any thread; each value is atomic. */
#ifndef TIDEPOOL_RUNTIME_BASE_SETTINGS_H
#define TIDEPOOL_RUNTIME_BASE_SETTINGS_H

#include <stdint.h>

typedef enum tide_setting {
#define TIDE_SETTING(name, initial, min, max, meaning) TIDE_SETTING_##name,
#include "runtime/base/settings.def"
#undef TIDE_SETTING
    TIDE_SETTING_COUNT
} tide_setting;

double tide_setting_get(tide_setting setting);
/* Of a setting that counts: it is a whole number of 0 or more, or what is behind the point is
 * dropped. */
static inline uint64_t tide_setting_whole(tide_setting setting)
{
    return (uint64_t)tide_setting_get(setting);
}

void tide_setting_set(tide_setting setting, double value);

#endif
