/* SPDX-License-Identifier: MIT */
/* Reports: to the user's function or to standard error, and places of the source in words. Nothing
 * allocates memory here, for the handler of faults reports, too. */
#define _GNU_SOURCE
#include "runtime/check/report.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/assert.h"
#include "runtime/base/lock.h"
#include "runtime/base/os.h"

/* ---- where reports go ------------------------------------------------------------------- */

static struct {
    tide_report_function function;
    void *user;
} report_target;

void tide_report_set_handler(tide_report_function function, void *user)
{
    __atomic_store_n(&report_target.user, user, __ATOMIC_RELAXED);
    __atomic_store_n(&report_target.function, function, __ATOMIC_RELEASE);
}

/* False: the program wants no line on stderr. */
static bool report_tell(tide_report_function function, tide_report_kind kind, const char *text)
{
    tide_lock_assert_none();
    bool wanted = function(kind, text, __atomic_load_n(&report_target.user, __ATOMIC_RELAXED));
    return wanted;
}

void tide_report(tide_report_kind kind, const char *format, ...)
{
    tide_assert((unsigned)kind <= TIDE_REPORT_OVERFLOW && format != NULL);
    char line[1024] = "tidepool: ";
    char *text = line + strlen(line);
    size_t most = sizeof line - strlen(line) - 1; /* the last byte is for the line's end */
    va_list arguments;
    va_start(arguments, format);
    int wanted = vsnprintf(text, most, format, arguments);
    va_end(arguments);
    size_t bytes = wanted < 0 ? 0 : (size_t)wanted < most ? (size_t)wanted : most - 1;
    tide_report_function function = __atomic_load_n(&report_target.function, __ATOMIC_ACQUIRE);
    if (function != NULL && !report_tell(function, kind, text))
        return;
    tide_assert(text + bytes < line + sizeof line);
    text[bytes] = '\n';
    tide_os_write_error(line, (size_t)(text - line) + bytes + 1);
}

/* ---- places ----------------------------------------------------------------------------- */

/* The linker's locks come before all of ours: whoever holds one (a visitor of sites holds the
 * registry's) must not ask the linker. */
static bool report_may_ask_linker(void)
{
    return !tide_lock_held_any();
}

static bool report_ask_linker(const void *code, Dl_info *info)
{
    if (!report_may_ask_linker())
        return false;
    tide_lock_assert_none();
    bool known = dladdr(code, info) != 0;
    return known;
}

/* The strings of a place lie in the module it was compiled into, which may have been unloaded. */
static bool report_place_is_loaded(const tide_place *place)
{
    Dl_info module;
    tide_assert(place->file != NULL && place->function != NULL);
    return report_ask_linker(place->file, &module) && report_ask_linker(place->function, &module);
}

enum { PATH_MOST = 160 };

_Static_assert(PATH_MOST + sizeof ":4294967295 in " + 70 <= sizeof((tide_report_text *)0)->text,
               "the longest place fits: path, line, and 70 bytes of the function's name");

/* The end of a path tells more than its beginning. */
static const char *report_path_end(const char *path)
{
    size_t length = strlen(path);
    return length > PATH_MOST ? path + length - PATH_MOST : path;
}

tide_report_text tide_place_text(tide_place place)
{
    tide_report_text words;
    if (place.file == NULL && place.function != NULL)
        return tide_code_text(place.function - 1); /* the call, not what it returns to */
    if (place.file == NULL)
        snprintf(words.text, sizeof words.text, "an unnamed place");
    else if (!report_may_ask_linker())
        snprintf(words.text, sizeof words.text,
                 "line %u (its file is not named while a lock is held)", place.line);
    else if (!report_place_is_loaded(&place))
        snprintf(words.text, sizeof words.text, "line %u of code that has been unloaded",
                 place.line);
    else
        snprintf(words.text, sizeof words.text, "%s:%u in %.70s", report_path_end(place.file),
                 place.line, place.function);
    return words;
}

tide_report_text tide_code_text(const void *code)
{
    tide_report_text words;
    Dl_info info;
    size_t from_symbol = 0, from_module = 0;
    bool known = report_ask_linker(code, &info);
    if (known)
        from_module = (size_t)((const char *)code - (const char *)info.dli_fbase);
    if (known && info.dli_sname != NULL)
        from_symbol = (size_t)((const char *)code - (const char *)info.dli_saddr);
    if (!known)
        snprintf(words.text, sizeof words.text, "%p", code);
    else if (info.dli_sname == NULL)
        snprintf(words.text, sizeof words.text, "%s+%#zx", report_path_end(info.dli_fname),
                 from_module);
    else
        snprintf(words.text, sizeof words.text, "%.70s+%#zx (%s+%#zx)", info.dli_sname, from_symbol,
                 report_path_end(info.dli_fname), from_module);
    return words;
}
