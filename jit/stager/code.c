/* SPDX-License-Identifier: MIT */
/* Loads code objects, and counts what they take. */
#define _GNU_SOURCE
#include "jit/stager/code.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "runtime/base/assert.h"
#include "runtime/base/os.h"
#include "runtime/base/settings.h"
#include "runtime/scope/compiled.h"

/* For debuggers: where the code of an object lies, and its file, which may be gone by then. */
typedef struct code_object {
    struct code_object *next;
    uintptr_t first, last;
    char path[];
} code_object;

static code_object *code_list;
static uint64_t code_objects, code_bytes; /* atomic */
static uint64_t code_refused;             /* bytes of the last object that had no room */

/* ---- checking ----------------------------------------------------------------------------- */

static bool code_check_number(void *object, const char *name, uint64_t wanted, char *error,
                              size_t room)
{
    const uint64_t *found = dlsym(object, name);
    if (found == NULL)
        snprintf(error, room, "code object refused: it has no %s", name);
    else if (*found != wanted)
        snprintf(error, room, "code object refused: %s is %016" PRIx64 ", not %016" PRIx64, name,
                 *found, wanted);
    return found != NULL && *found == wanted;
}

/* Is it made for this library? Nothing in it is called before. */
static bool code_check(void *object, char *error, size_t room)
{
    return code_check_number(object, "tide_object_magic", TIDE_CODE_MAGIC, error, room) &&
           code_check_number(object, "tide_object_layout", tide_compiled_layout(), error, room);
}

/* Tells the code where the general path is. */
static bool code_attach(void *object, char *error, size_t room)
{
    const tide_runtime **table = dlsym(object, "tide_object_table");
    if (table == NULL) {
        snprintf(error, room, "code object refused: it has no tide_object_table");
        return false;
    }
    *table = &tide_runtime_general;
    return true;
}

/* ---- the cap ------------------------------------------------------------------------------ */

static bool code_has_room(uint64_t bytes)
{
    return tide_code_bytes() + bytes <= tide_setting_whole(TIDE_SETTING_code_bytes);
}

/* An object that had no room would have none the next time, unless the setting has changed. */
bool tide_code_full(void)
{
    return !code_has_room(code_refused != 0 ? code_refused : 1);
}

uint64_t tide_code_objects(void)
{
    return __atomic_load_n(&code_objects, __ATOMIC_RELAXED);
}

uint64_t tide_code_bytes(void)
{
    return __atomic_load_n(&code_bytes, __ATOMIC_RELAXED);
}

/* ---- loading ------------------------------------------------------------------------------ */

static void *code_open(const char *path, char *error, size_t room)
{
    void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    const char *why = object == NULL ? dlerror() : NULL;
    if (object == NULL)
        snprintf(error, room, "code object refused: %s", why != NULL ? why : path);
    return object;
}

/* Without memory debuggers do not know of it. */
static void code_list_object(void *object, const char *path)
{
    uintptr_t first = (uintptr_t)dlsym(object, "tide_object_code");
    uintptr_t last = (uintptr_t)dlsym(object, "tide_object_code_end");
    code_object *made = tide_os_resize(NULL, sizeof *made + strlen(path) + 1);
    if (made == NULL)
        return;
    *made = (code_object){.next = code_list, .first = first, .last = last};
    memcpy(made->path, path, strlen(path) + 1);
    __atomic_store_n(&code_list, made, __ATOMIC_RELEASE);
}

void *tide_code_load(const char *path, char *error, size_t room)
{
    struct stat file;
    tide_assert(path[0] == '/'); /* else the dynamic linker would search for it */
    uint64_t bytes = stat(path, &file) == 0 && file.st_size > 0 ? (uint64_t)file.st_size : 1;
    if (!code_has_room(bytes)) {
        code_refused = bytes;
        snprintf(error, room, "as much code is loaded as the setting code_bytes allows");
        return NULL;
    }
    void *object = code_open(path, error, room);
    if (object == NULL)
        return NULL;
    if (!code_check(object, error, room) || !code_attach(object, error, room)) {
        dlclose(object);
        return NULL;
    }
    code_list_object(object, path);
    __atomic_fetch_add(&code_objects, 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&code_bytes, bytes, __ATOMIC_RELAXED);
    return object;
}

/* ---- what is in them ---------------------------------------------------------------------- */

static tide_code *code_known; /* the newest first */

const tide_code *tide_code_known(uint64_t form)
{
    const tide_code *code = code_known;
    while (code != NULL && code->form != form)
        code = code->next;
    return code;
}

static void *code_symbol(void *object, const char *stem, const char *suffix)
{
    char name[TIDE_SPEC_STEM + 32];
    int length = snprintf(name, sizeof name, "%s%s", stem, suffix);
    tide_assert(length > 0 && (size_t)length < sizeof name);
    return dlsym(object, name);
}

const tide_code *tide_code_find(void *object, uint64_t form, const tide_spec *spec)
{
    const tide_code *known = tide_code_known(form);
    tide_code *made = known == NULL ? tide_os_resize(NULL, sizeof *made) : NULL;
    if (made == NULL)
        return known;
    *made = (tide_code){code_known, form, code_symbol(object, spec->stem, "_enter"),
                        code_symbol(object, spec->stem, "_leave")};
    if (made->enter == NULL || made->leave == NULL) {
        tide_os_free(made);
        return NULL;
    }
    return code_known = made;
}
