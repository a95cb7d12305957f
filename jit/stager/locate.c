/* SPDX-License-Identifier: MIT */
/* Finds the stager program. There is a list of places, and each is tried for a file that can be
 * executed; if the environment names one, that is the only place. */
#define _GNU_SOURCE
#include "jit/stager/locate.h"
#include "jit/stager/test_hooks.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/assert.h"
#include "runtime/base/os.h"

/* ---- the environment ---------------------------------------------------------------------- */

static tide_locate_environment locate_environment;
static bool locate_environment_read;

/* NULL if not set; also without memory. */
static char *locate_copy(const char *text)
{
    size_t bytes = text != NULL ? strlen(text) + 1 : 0;
    char *copied = text != NULL ? tide_os_resize(NULL, bytes) : NULL;
    return copied != NULL ? memcpy(copied, text, bytes) : NULL;
}

/* NULL unless absolute: a relative one would move with the program's working directory. */
static char *locate_copy_folder(const char *name)
{
    const char *value = secure_getenv(name);
    return value != NULL && value[0] == '/' ? locate_copy(value) : NULL;
}

static void locate_read_stager(const char *value)
{
    tide_assert(locate_environment.stager == NULL);
    if (value == NULL)
        return;
    locate_environment.none = strcmp(value, "none") == 0;
    if (value[0] == '/')
        locate_environment.stager = locate_copy(value);
    else if (!locate_environment.none)
        fprintf(stderr, "tidepool: TIDEPOOL_STAGER=%s ignored: not an absolute path\n", value);
}

static void locate_read_nvrtc(const char *value)
{
    if (value != NULL && (value[0] == '/' || strcmp(value, "none") == 0))
        locate_environment.nvrtc = locate_copy(value);
    else if (value != NULL)
        fprintf(stderr, "tidepool: TIDEPOOL_NVRTC=%s ignored: not an absolute path\n", value);
}

const tide_locate_environment *tide_locate_environment_get(void)
{
    if (!locate_environment_read) {
        locate_environment_read = true;
        locate_read_stager(secure_getenv("TIDEPOOL_STAGER"));
        locate_environment.path = locate_copy(secure_getenv("PATH"));
        locate_environment.runtime = locate_copy_folder("XDG_RUNTIME_DIR");
        locate_environment.temporary = locate_copy_folder("TMPDIR");
        locate_environment.cache = locate_copy_folder("XDG_CACHE_HOME");
        locate_environment.home = locate_copy_folder("HOME");
        locate_read_nvrtc(secure_getenv("TIDEPOOL_NVRTC"));
        locate_environment.verbose = secure_getenv("TIDEPOOL_STAGER_VERBOSE") != NULL;
    }
    tide_assert(!locate_environment.none || locate_environment.stager == NULL);
    return &locate_environment;
}

void tide_locate_environment_forget(void)
{
    char *copies[] = {locate_environment.stager,  locate_environment.path,
                      locate_environment.runtime, locate_environment.temporary,
                      locate_environment.cache,   locate_environment.home,
                      locate_environment.nvrtc};
    for (size_t i = 0; i < sizeof copies / sizeof *copies; i++)
        tide_os_free(copies[i]);
    locate_environment = (tide_locate_environment){0};
    locate_environment_read = false;
}

/* ---- the library's own place -------------------------------------------------------------- */

/* The file that holds this code: the shared library, or the program that it was linked into. (The
 * dynamic linker knows the program only by the name with which it was called.) */
static bool locate_own_file(char out[PATH_MAX])
{
    Dl_info info;
    struct link_map *map = NULL;
    if (dladdr1((const void *)(uintptr_t)locate_own_file, &info, (void **)&map, RTLD_DL_LINKMAP) ==
        0)
        return false;
    bool program = map == NULL || map->l_name == NULL || map->l_name[0] == '\0';
    return realpath(program ? "/proc/self/exe" : map->l_name, out) != NULL;
}

/* The folder of this code's file, without a slash at its end. */
static bool locate_own_folder(char out[PATH_MAX])
{
    char *slash = locate_own_file(out) ? strrchr(out, '/') : NULL;
    if (slash == NULL)
        return false;
    tide_assert(out[0] == '/');
    *slash = '\0';
    return true;
}

/* ---- the program -------------------------------------------------------------------------- */

static bool locate_try_place(const char *folder, const char *rest, char *path, size_t room)
{
    tide_assert(room > 0 && (rest[0] == '\0' || rest[0] == '/'));
    int length = snprintf(path, room, "%s%s", folder, rest);
    return length > 0 && (size_t)length < room && access(path, X_OK) == 0;
}

bool tide_locate_stager(char *path, size_t room, char *error, size_t error_room)
{
    static const char *const beside[] = {
        "/tidepool-stage", "/../libexec/tidepool/tidepool-stage",
        "/../../libexec/tidepool/tidepool-stage", /* lib/ARCHITECTURE */
    };
    const tide_locate_environment *said = tide_locate_environment_get();
    char folder[PATH_MAX];
    if (said->none) {
        snprintf(error, error_room, "no stager: TIDEPOOL_STAGER=none");
        return false;
    }
    if (said->stager != NULL) {
        if (locate_try_place(said->stager, "", path, room))
            return true;
        snprintf(error, error_room, "no stager: TIDEPOOL_STAGER=%.160s cannot be executed",
                 said->stager);
        return false;
    }
    if (locate_own_folder(folder))
        for (size_t i = 0; i < sizeof beside / sizeof *beside; i++)
            if (locate_try_place(folder, beside[i], path, room))
                return true;
#ifdef TIDEPOOL_STAGER_INSTALLED
    if (locate_try_place(TIDEPOOL_STAGER_INSTALLED, "", path, room))
        return true;
#endif
    snprintf(error, error_room, "no stager: no program tidepool-stage beside the library");
    return false;
}
