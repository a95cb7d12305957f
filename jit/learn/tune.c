/* SPDX-License-Identifier: MIT */
/* Settings by name, and the environment that sets them. This part of configuration is policy: the
 * runtime reads values, and knows no names and no environment. */
#define _GNU_SOURCE
#include <tidepool/tune.h>

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jit/learn/tune.h"
#include "runtime/base/assert.h"
#include "runtime/base/error.h"
#include "runtime/base/hooks.h"
#include "runtime/base/settings.h"

static const tide_tune_entry tune_table[TIDE_SETTING_COUNT] = {
#define TIDE_SETTING(name, initial, least, most, meaning) \
    {#name, initial, initial, least, most, meaning},
#include "runtime/base/settings.def"
#undef TIDE_SETTING
};

/* NULL with a message in the name of `call`. */
static const tide_tune_entry *tune_find(const char *name, const char *call)
{
    if (name == NULL) {
        tide_fail(TIDE_ERROR_ARGUMENT, call, "the name is NULL");
        return NULL;
    }
    for (size_t i = 0; i < TIDE_SETTING_COUNT; i++)
        if (strcmp(tune_table[i].name, name) == 0)
            return &tune_table[i];
    tide_fail(TIDE_ERROR_NAME, call, "no setting '%s'", name);
    return NULL;
}

static tide_status tune_set(const tide_tune_entry *entry, double value, const char *call)
{
    tide_assert(entry >= tune_table && entry < tune_table + TIDE_SETTING_COUNT);
    if (!(value >= entry->least && value <= entry->most))
        return tide_fail(TIDE_ERROR_SIZE, call, "%s = %g is not within %g to %g", entry->name,
                         value, entry->least, entry->most);
    tide_setting_set((tide_setting)(entry - tune_table), value);
    return TIDE_OK;
}

tide_status tide_tune_set(const char *name, double value)
{
    const char *call = "tide_tune_set";
    tide_attach(); /* or the environment would overwrite this later */
    const tide_tune_entry *entry = tune_find(name, call);
    return entry != NULL ? tune_set(entry, value, call) : tide_error_status();
}

tide_status tide_tune_get(const char *name, double *value)
{
    const char *call = "tide_tune_get";
    tide_attach();
    const tide_tune_entry *entry = tune_find(name, call);
    if (entry == NULL)
        return tide_error_status();
    if (value == NULL)
        return tide_fail(TIDE_ERROR_ARGUMENT, call, "the result is NULL");
    *value = tide_setting_get((tide_setting)(entry - tune_table));
    return TIDE_OK;
}

void tide_tune_each(bool (*visit)(const tide_tune_entry *entry, void *user), void *user)
{
    tide_attach();
    bool more = true;
    for (size_t i = 0; more && i < TIDE_SETTING_COUNT; i++) {
        tide_tune_entry entry = tune_table[i];
        entry.value = tide_setting_get((tide_setting)i);
        tide_assert(entry.value >= entry.least && entry.value <= entry.most);
        more = visit(&entry, user);
    }
}

/* ---- environment ------------------------------------------------------------------------ */

/* Complains on stderr of a value that cannot be used: there is nobody to return a status to. */
static void tune_read_variable(const tide_tune_entry *entry)
{
    char variable[64] = "TIDEPOOL_";
    size_t at = strlen(variable);
    tide_assert(at + strlen(entry->name) < sizeof variable);
    for (const char *c = entry->name; *c != '\0' && at < sizeof variable - 1; c++)
        variable[at++] = (char)toupper((unsigned char)*c);
    const char *text = secure_getenv(variable); /* NULL under AT_SECURE */
    if (text == NULL)
        return;
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end != '\0')
        value = NAN;
    if (tune_set(entry, value, variable) != TIDE_OK)
        fprintf(stderr, "tidepool: %s=%s ignored: %s\n", variable, text, tide_error_message());
}

void tide_tune_read_environment(void)
{
    for (size_t i = 0; i < TIDE_SETTING_COUNT; i++)
        tune_read_variable(&tune_table[i]);
}
