/* SPDX-License-Identifier: MIT */
/* Settings by name, and the environment that sets them: the part of configuration that is
 * policy. The runtime reads values; it knows no names and no environment. */
#define _GNU_SOURCE
#include <tidepool/tune.h>

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jit/learn/tune.h"
#include "runtime/base/error.h"
#include "runtime/base/hooks.h"
#include "runtime/base/settings.h"

static const tide_tune_entry table[TIDE_SETTING_COUNT] = {
#define TIDE_SETTING(name, initial, least, most, meaning) \
    {#name, initial, initial, least, most, meaning},
#include "runtime/base/settings.def"
#undef TIDE_SETTING
};

static const tide_tune_entry *find(const char *name, const char *call)
{
    if (name == NULL) {
        tide_fail(TIDE_ERROR_ARGUMENT, call, "the name is NULL");
        return NULL;
    }
    for (size_t i = 0; i < TIDE_SETTING_COUNT; i++)
        if (strcmp(table[i].name, name) == 0)
            return &table[i];
    tide_fail(TIDE_ERROR_NAME, call, "no setting '%s'", name);
    return NULL;
}

static tide_status set(const tide_tune_entry *entry, double value, const char *call)
{
    if (!(value >= entry->least && value <= entry->most))
        return tide_fail(TIDE_ERROR_SIZE, call, "%s = %g is not within %g to %g", entry->name,
                         value, entry->least, entry->most);
    tide_setting_set((tide_setting)(entry - table), value);
    return TIDE_OK;
}

tide_status tide_tune_set(const char *name, double value)
{
    const char *call = "tide_tune_set";
    tide_attach(); /* or the environment would overwrite this later */
    const tide_tune_entry *entry = find(name, call);
    return entry != NULL ? set(entry, value, call) : tide_error_status();
}

tide_status tide_tune_get(const char *name, double *value)
{
    const char *call = "tide_tune_get";
    tide_attach();
    const tide_tune_entry *entry = find(name, call);
    if (entry == NULL)
        return tide_error_status();
    if (value == NULL)
        return tide_fail(TIDE_ERROR_ARGUMENT, call, "the result is NULL");
    *value = tide_setting_get((tide_setting)(entry - table));
    return TIDE_OK;
}

void tide_tune_each(bool (*visit)(const tide_tune_entry *entry, void *user), void *user)
{
    tide_attach();
    bool more = true;
    for (size_t i = 0; more && i < TIDE_SETTING_COUNT; i++) {
        tide_tune_entry entry = table[i];
        entry.value = tide_setting_get((tide_setting)i);
        more = visit(&entry, user);
    }
}

/* ---- environment ------------------------------------------------------------------------ */

/* A value that cannot be used is said on stderr: there is nobody to return a status to. */
static void read_variable(const tide_tune_entry *entry)
{
    char variable[64] = "TIDEPOOL_";
    size_t at = strlen(variable);
    for (const char *c = entry->name; *c != '\0' && at < sizeof variable - 1; c++)
        variable[at++] = (char)toupper((unsigned char)*c);
    const char *text = secure_getenv(variable); /* NULL under AT_SECURE */
    if (text == NULL)
        return;
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end != '\0')
        value = NAN;
    if (set(entry, value, variable) != TIDE_OK)
        fprintf(stderr, "tidepool: %s=%s ignored: %s\n", variable, text, tide_error_message());
}

void tide_tune_read_environment(void)
{
    for (size_t i = 0; i < TIDE_SETTING_COUNT; i++)
        read_variable(&table[i]);
}
