/* SPDX-License-Identifier: MIT */
/* Settings by name, and the environment that sets them. The runtime reads values, and knows no names
 * and no environment. */
#define _GNU_SOURCE
#include <tidepool/tune.h>

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "jit/learn/background.h"
#include "jit/learn/tune.h"
#include "runtime/base/assert.h"
#include "runtime/base/error.h"
#include "runtime/base/ring.h"
#include "runtime/base/settings.h"

static const tide_tune_entry tune_table[TIDE_SETTING_COUNT] = {
#define TIDE_SETTING(name, initial, min, max, meaning) {#name, initial, initial, min, max, meaning},
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
    if (!(value >= entry->min && value <= entry->max))
        return tide_fail(TIDE_ERROR_SIZE, call, "%s = %g is not within %g to %g", entry->name,
                         value, entry->min, entry->max);
    tide_setting_set((tide_setting)(entry - tune_table), value);
    return TIDE_OK;
}

/* May learning start the background thread? */
static bool tune_allows_thread(void)
{
    return tide_setting_get(TIDE_SETTING_learn) != 0 &&
           tide_setting_get(TIDE_SETTING_background) != 0;
}

tide_status tide_tune_set(const char *name, double value)
{
    const char *call = "tide_tune_set";
    tide_attach(); /* or the environment would overwrite this later */
    const tide_tune_entry *entry = tune_find(name, call);
    if (entry == NULL)
        return tide_error_status();
    bool allowed = tune_allows_thread();
    TIDE_FORWARD(tune_set(entry, value, call));
    if (!allowed && tune_allows_thread())
        tide_background_wanted(); /* for what was used meanwhile, and may not be again */
    return TIDE_OK;
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
        tide_assert(entry.value >= entry.min && entry.value <= entry.max);
        more = visit(&entry, user);
    }
}

/* ---- environment ------------------------------------------------------------------------ */

/* Numbers as C writes them, whatever the program's locale: a program may have set one before its
 * first pool. */
static bool tune_parse(const tide_tune_entry *entry, const char *text, double *value)
{
    if (entry == &tune_table[TIDE_SETTING_stats] && strcasecmp(text, "json") == 0) {
        *value = 2;
        return true;
    }
    if (entry == &tune_table[TIDE_SETTING_process_limit] && strcasecmp(text, "auto") == 0) {
        *value = -1;
        return true;
    }
    static const char *const words[][2] = {{"off", "on"}, {"no", "yes"}, {"false", "true"}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        for (int meaning = 0; meaning < 2; meaning++)
            if (strcasecmp(text, words[i][meaning]) == 0) {
                *value = meaning;
                return true;
            }
    locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (plain == (locale_t)0)
        return false;
    char *end = NULL;
    *value = strtod_l(text, &end, plain);
    freelocale(plain);
    return end != text && *end == '\0';
}

/* Complains on stderr of a value that cannot be used: there is nobody to return a status to. */
static void tune_read_variable(const tide_tune_entry *entry)
{
    char variable[64] = "TIDEPOOL_";
    size_t at = strlen(variable);
    tide_assert(at + strlen(entry->name) < sizeof variable);
    for (const char *c = entry->name; *c != '\0' && at < sizeof variable - 1; c++)
        variable[at++] = *c == '_' ? '_' : (char)(*c - 'a' + 'A'); /* names have nothing else */
    const char *text = secure_getenv(variable);                    /* NULL under AT_SECURE */
    if (text == NULL)
        return;
    double value = 0;
    tide_status status =
        tune_parse(entry, text, &value)
            ? tune_set(entry, value, variable)
            : tide_fail(TIDE_ERROR_ARGUMENT, variable,
                        "'%.40s' is no number, on, off, yes, no, true or false", text);
    if (status == TIDE_OK)
        return;
    const char *why =
        strchr(tide_error_message(), ' '); /* behind the variable's name, which is said */
    tide_assert(why != NULL);
    fprintf(stderr, "tidepool: %s=%.80s ignored:%s\n", variable, text, why);
}

void tide_tune_read_environment(void)
{
    for (size_t i = 0; i < TIDE_SETTING_COUNT; i++)
        tune_read_variable(&tune_table[i]);
}
