/* SPDX-License-Identifier: MIT */
/* The values of the settings. Mechanism reads them here; policy writes them (environment, API).
 * One table, settings.def, says what exists. Any thread; each value is atomic. */
#ifndef TIDEPOOL_RUNTIME_BASE_SETTINGS_H
#define TIDEPOOL_RUNTIME_BASE_SETTINGS_H

typedef enum tide_setting {
#define TIDE_SETTING(name, initial, min, max, meaning) TIDE_SETTING_##name,
#include "runtime/base/settings.def"
#undef TIDE_SETTING
    TIDE_SETTING_COUNT
} tide_setting;

double tide_setting_get(tide_setting setting);
void tide_setting_set(tide_setting setting, double value);

#endif
