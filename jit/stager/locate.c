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
#include <sys/auxv.h>
#include <unistd.h>

#include "runtime/base/assert.h"
#include "runtime/base/lock.h"
#include "runtime/base/os.h"
#include "runtime/base/process.h"

/* ---- the environment ---------------------------------------------------------------------- */

bool (*tide_locate_privileges_hook)(void);

bool tide_locate_privileges_raised(void)
{
    return tide_locate_privileges_hook != NULL ? tide_locate_privileges_hook()
                                               : getauxval(AT_SECURE) != 0;
}

static tide_locate_environment locate_environment;
static bool locate_environment_read;

/* As it stands in an environment. */
static void locate_copy_list(const char *name, char out[TIDE_LOCATE_LIST])
{
    const char *value = secure_getenv(name);
    int length = value != NULL ? snprintf(out, TIDE_LOCATE_LIST, "%s=%s", name, value) : 0;
    if (length < 0 || length >= TIDE_LOCATE_LIST)
        out[0] = '\0';
}

/* A relative one would move with the program's working directory. `complains`: that it is ignored
 * is said. */
static void locate_copy_absolute(const char *name, char *out, size_t room, bool complains)
{
    const char *value = secure_getenv(name);
    if (value == NULL)
        return;
    if (value[0] == '/' && strlen(value) < room)
        memcpy(out, value, strlen(value) + 1);
    else if (complains)
        fprintf(stderr, "tidepool: %s=%s ignored: not an absolute path\n", name, value);
}

const tide_locate_environment *tide_locate_environment_get(void)
{
    tide_locate_environment *to = &locate_environment;
    if (locate_environment_read)
        return to;
    locate_environment_read = true;
    const char *stager = secure_getenv("TIDEPOOL_STAGER");
    to->none = stager != NULL && strcmp(stager, "none") == 0;
    locate_copy_list("PATH", to->path);
    locate_copy_list("LD_LIBRARY_PATH", to->libraries);
    locate_copy_absolute("TIDEPOOL_STAGER", to->stager, sizeof to->stager, !to->none);
    locate_copy_absolute("TIDEPOOL_KEEP_CODE", to->keep_code, sizeof to->keep_code, true);
    locate_copy_absolute("XDG_RUNTIME_DIR", to->runtime, sizeof to->runtime, false);
    locate_copy_absolute("TMPDIR", to->temporary, sizeof to->temporary, false);
    return to;
}

void tide_locate_environment_forget(void)
{
    locate_environment = (tide_locate_environment){0};
    locate_environment_read = false;
}

/* ---- the library's own place -------------------------------------------------------------- */

/* What the dynamic linker knows of the module that holds this code; NULL: nothing. */
static struct link_map *locate_own_module(void)
{
    Dl_info info;
    struct link_map *map = NULL;
    return dladdr1(&tide_copy_own, &info, (void **)&map, RTLD_DL_LINKMAP) != 0 ? map : NULL;
}

/* The file that holds this code: the shared library, or the program that it was linked into. (The
 * dynamic linker knows the program only by the name with which it was called.) */
static bool locate_own_file(char out[PATH_MAX])
{
    const struct link_map *map = locate_own_module();
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

static bool locate_try_place(const char *folder, const char *rest, int how, char *path, size_t room)
{
    tide_assert(room > 0 && (rest[0] == '\0' || rest[0] == '/'));
    int length = snprintf(path, room, "%s%s", folder, rest);
    return length > 0 && (size_t)length < room && access(path, how) == 0;
}

/* Where the dynamic linker looks for the libraries of this code's module. Of programs with the static
 * library in them the build says by a run path where the stager is. */
static bool locate_try_run_path(const char *file, int how, char *path, size_t room)
{
    struct link_map *module = locate_own_module();
    Dl_serinfo size, *list = NULL;
    bool found = false;
    if (module != NULL && dlinfo(module, RTLD_DI_SERINFOSIZE, &size) == 0)
        list = tide_os_resize(NULL, size.dls_size);
    if (list == NULL)
        return false;
    bool known = dlinfo(module, RTLD_DI_SERINFOSIZE, list) == 0 &&
                 dlinfo(module, RTLD_DI_SERINFO, list) == 0;
    for (unsigned i = 0; known && i < list->dls_cnt && !found; i++)
        found = list->dls_serpath[i].dls_name[0] == '/' &&
                locate_try_place(list->dls_serpath[i].dls_name, file, how, path, room);
    tide_os_free(list);
    return found;
}

/* Where nobody named it. */
static bool locate_search(char *path, size_t room)
{
    static const char *const beside[] = {
        "/tidepool-stage", "/../libexec/tidepool/tidepool-stage",
        "/../../libexec/tidepool/tidepool-stage", /* lib/ARCHITECTURE */
    };
    char folder[PATH_MAX];
    bool known = locate_own_folder(folder);
    for (size_t i = 0; known && i < sizeof beside / sizeof *beside; i++)
        if (locate_try_place(folder, beside[i], X_OK, path, room))
            return true;
    if (locate_try_run_path("/tidepool-stage", X_OK, path, room))
        return true;
#ifdef TIDEPOOL_STAGER_INSTALLED
    return locate_try_place(TIDEPOOL_STAGER_INSTALLED, "", X_OK, path, room);
#else
    return false;
#endif
}

static bool locate_component(const char *name, char *path, size_t room)
{
    char folder[PATH_MAX], file[NAME_MAX];
    bool known = locate_own_folder(folder);
    tide_assert(strchr(name, '/') == NULL && strlen(name) < sizeof file - 1);
    snprintf(file, sizeof file, "/%s", name);
    if (known && locate_try_place(folder, file, R_OK, path, room))
        return true;
    if (locate_try_run_path(file, R_OK, path, room))
        return true;
#ifdef TIDEPOOL_LIBRARIES_INSTALLED
    return locate_try_place(TIDEPOOL_LIBRARIES_INSTALLED, file, R_OK, path, room);
#else
    return false;
#endif
}

const void *tide_locate_table(const char *name, const char *table, uint32_t interface, char *error,
                              size_t room)
{
    char path[PATH_MAX];
    if (!locate_component(name, path, sizeof path)) {
        snprintf(error, room, "no %s beside the library or on its run path", name);
        return NULL;
    }
    tide_lock_assert_none();
    void *module = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    const uint32_t *found = module != NULL ? dlsym(module, table) : NULL;
    if (found == NULL)
        snprintf(error, room, "%.200s", dlerror());
    if (found == NULL || *found == interface)
        return found;
    snprintf(error, room, "%.160s is of another version of the library", path);
    return NULL;
}

bool tide_locate_stager(char *path, size_t room, char *error, size_t error_room)
{
    const tide_locate_environment *said = tide_locate_environment_get();
    if (said->none) {
        snprintf(error, error_room, "no stager: TIDEPOOL_STAGER=none");
        return false;
    }
    if (said->stager[0] != '\0') {
        if (locate_try_place(said->stager, "", X_OK, path, room))
            return true;
        snprintf(error, error_room, "no stager: TIDEPOOL_STAGER=%.160s cannot be executed",
                 said->stager);
        return false;
    }
    if (locate_search(path, room))
        return true;
    snprintf(error, error_room,
             "no stager: no program tidepool-stage beside the library or on its run path");
    return false;
}
