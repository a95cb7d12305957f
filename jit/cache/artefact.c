/* SPDX-License-Identifier: MIT */
/* Loaded artefacts: one list, one lock, and a count of uses each. The dynamic linker is called
 * without the lock; by then an artefact without uses has left the list, so nobody can find it. */
#define _GNU_SOURCE
#include "jit/cache/artefact.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "jit/stager/directory.h"
#include "runtime/base/assert.h"
#include "runtime/base/fork.h"
#include "runtime/base/lock.h"
#include "runtime/base/os.h"
#include "runtime/scope/compiled.h"

_Static_assert(sizeof(tide_artefact_label) == 16, "labels are compared as bytes");

typedef struct range {
    uintptr_t first, last;
} range;

struct tide_artefact {
    struct tide_artefact *next;
    void *handle;
    range code;
    size_t uses;
    pid_t temporary; /* the process that is to remove the file; 0: nobody */
    bool labelled;
    tide_artefact_label label;
    char path[];
};

static tide_lock artefact_list_lock = TIDE_LOCK(TIDE_FORK_ARTEFACTS);
static tide_artefact *artefact_list;
static size_t artefact_list_count;

/* ---- the lock, and fork ------------------------------------------------------------------- */

static void artefact_unlock(void)
{
    tide_lock_let_go(&artefact_list_lock);
}

static void artefact_lock_for_fork(void)
{
    tide_lock_take(&artefact_list_lock);
}

static void artefact_prepare(void)
{
    static const tide_fork_handlers handlers = {artefact_lock_for_fork, artefact_unlock,
                                                artefact_unlock};
    tide_fork_register(TIDE_FORK_ARTEFACTS, &handlers);
}

void tide_artefacts_prepare(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, artefact_prepare);
}

static void artefact_lock(void)
{
    tide_artefacts_prepare();
    tide_lock_take(&artefact_list_lock);
}

/* ---- the linker --------------------------------------------------------------------------- */

static void *artefact_symbol(void *handle, const char *name)
{
    tide_assert(handle != NULL);
    tide_outside outside = tide_outside_enter();
    void *found = dlsym(handle, name);
    tide_outside_leave(outside);
    return found;
}

static void artefact_close(void *handle)
{
    tide_assert(handle != NULL);
    tide_outside outside = tide_outside_enter();
    dlclose(handle);
    tide_outside_leave(outside);
}

/* ---- checking ----------------------------------------------------------------------------- */

static bool artefact_check_number(void *handle, const char *name, uint64_t wanted, char *error,
                                  size_t room)
{
    tide_assert(handle != NULL);
    const uint64_t *found = artefact_symbol(handle, name);
    if (found == NULL)
        snprintf(error, room, "artefact refused: it has no %s", name);
    else if (*found != wanted)
        snprintf(error, room, "artefact refused: %s is %016" PRIx64 ", not %016" PRIx64, name,
                 *found, wanted);
    return found != NULL && *found == wanted;
}

/* Is the artefact made for this library? Nothing in it is called before. */
static bool artefact_check(void *handle, char *error, size_t room)
{
    return artefact_check_number(handle, "tide_artefact_magic", TIDE_ARTEFACT_MAGIC, error, room) &&
           artefact_check_number(handle, "tide_artefact_layout", tide_compiled_layout(), error,
                                 room);
}

/* Of code that cannot be found, nobody can be shown to be outside: it is everywhere. */
static range artefact_find_range(void *handle)
{
    range code = {(uintptr_t)artefact_symbol(handle, "tide_artefact_code"),
                  (uintptr_t)artefact_symbol(handle, "tide_artefact_code_end")};
    if (code.first == 0 || code.last <= code.first)
        code = (range){0, UINTPTR_MAX};
    tide_assert(code.first < code.last);
    return code;
}

/* Tells its code where the general path is. */
static bool artefact_attach(void *handle, char *error, size_t room)
{
    const tide_runtime **table = artefact_symbol(handle, "tide_artefact_table");
    if (table == NULL) {
        snprintf(error, room, "artefact refused: it has no tide_artefact_table");
        return false;
    }
    *table = &tide_runtime_general;
    return true;
}

/* ---- loading ------------------------------------------------------------------------------ */

/* Loads, checks and attaches. NULL: one line in `error`, and nothing stays loaded. */
static void *artefact_open_checked(const char *path, char *error, size_t room)
{
    tide_outside outside = tide_outside_enter();
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    const char *why = handle == NULL ? dlerror() : NULL;
    tide_outside_leave(outside);
    if (handle == NULL)
        snprintf(error, room, "artefact refused: %s", why != NULL ? why : path);
    else if (!artefact_check(handle, error, room) || !artefact_attach(handle, error, room)) {
        artefact_close(handle);
        handle = NULL;
    }
    return handle;
}

static tide_artefact *artefact_make(void *handle, range code, const char *path, bool temporary)
{
    size_t bytes = strlen(path) + 1;
    tide_artefact *artefact = tide_os_resize(NULL, sizeof *artefact + bytes);
    if (artefact == NULL)
        return NULL;
    *artefact = (tide_artefact){.handle = handle, .code = code, .uses = 1};
    artefact->temporary = temporary ? getpid() : 0;
    memcpy(artefact->path, path, bytes);
    tide_assert(artefact->path[bytes - 1] == '\0' && !artefact->labelled);
    return artefact;
}

static void artefact_enlist(tide_artefact *artefact)
{
    tide_assert(artefact->handle != NULL && artefact->uses == 1);
    artefact_lock();
    artefact->next = artefact_list;
    artefact_list = artefact;
    artefact_list_count++;
    artefact_unlock();
}

/* From making it to enlisting it nothing is asked of the linker: a fork in the meantime would leave
 * it to nobody. */
static tide_artefact *artefact_load(const char *path, bool temporary, char *error, size_t room)
{
    void *handle = artefact_open_checked(path, error, room);
    if (handle == NULL)
        return NULL;
    range code = artefact_find_range(handle);
    tide_artefact *artefact = artefact_make(handle, code, path, temporary);
    if (artefact != NULL) {
        artefact_enlist(artefact);
    } else {
        snprintf(error, room, "no memory for the artefact '%s'", path);
        artefact_close(handle);
    }
    return artefact;
}

tide_artefact *tide_artefact_load(const char *path, bool temporary, char *error, size_t room)
{
    tide_assert(path[0] == '/'); /* else the dynamic linker would search for it */
    if (temporary && !tide_directory_holds(path, error, room))
        return NULL;
    bool removed = temporary && !tide_directory_keeps();
    tide_artefact *artefact = artefact_load(path, removed, error, room);
    if (artefact == NULL && removed)
        (void)unlink(path);
    return artefact;
}

void *tide_artefact_find(const tide_artefact *artefact, const char *stem, const char *suffix)
{
    tide_assert(artefact->handle != NULL);
    char name[128];
    int length = snprintf(name, sizeof name, "%s%s", stem, suffix);
    return length > 0 && (size_t)length < sizeof name ? artefact_symbol(artefact->handle, name)
                                                      : NULL;
}

/* ---- labels ------------------------------------------------------------------------------- */

void tide_artefact_set_label(tide_artefact *artefact, const tide_artefact_label *label)
{
    artefact_lock();
    tide_assert(artefact->uses > 0 && !artefact->labelled);
    artefact->label = *label;
    artefact->labelled = true;
    artefact_unlock();
}

tide_artefact *tide_artefact_labelled(const tide_artefact_label *label)
{
    artefact_lock();
    tide_artefact *artefact = artefact_list;
    while (artefact != NULL &&
           !(artefact->labelled && memcmp(&artefact->label, label, sizeof *label) == 0))
        artefact = artefact->next;
    tide_assert(artefact == NULL || artefact->uses > 0);
    if (artefact != NULL)
        artefact->uses++;
    artefact_unlock();
    return artefact;
}

void tide_artefact_range(const tide_artefact *artefact, uintptr_t *first, uintptr_t *last)
{
    tide_assert(artefact->code.first < artefact->code.last);
    *first = artefact->code.first;
    *last = artefact->code.last;
}

/* ---- uses --------------------------------------------------------------------------------- */

void tide_artefact_use(tide_artefact *artefact)
{
    artefact_lock();
    tide_assert(artefact->uses > 0);
    artefact->uses++;
    artefact_unlock();
}

/* Takes one use away; the last one takes the artefact out of the list. True: it was the last. */
static bool artefact_give_up_use(tide_artefact *artefact)
{
    artefact_lock();
    tide_assert(artefact->uses > 0);
    bool last = --artefact->uses == 0;
    if (last) {
        tide_artefact **link = &artefact_list;
        tide_assert(artefact_list_count > 0);
        while (*link != artefact) {
            tide_assert(*link != NULL); /* an artefact with uses is in the list */
            link = &(*link)->next;
        }
        *link = artefact->next;
        artefact_list_count--;
    }
    artefact_unlock();
    return last;
}

void tide_artefact_drop(tide_artefact *artefact)
{
    if (!artefact_give_up_use(artefact))
        return;
    tide_assert(artefact->uses == 0);
    void *handle = artefact->handle;
    if (artefact->temporary == getpid()) /* a forked child leaves its parent's files alone */
        (void)unlink(artefact->path);
    tide_os_free(artefact);
    artefact_close(
        handle); /* last: what a fork in the meantime finds in no list is lost to its child */
}

size_t tide_artefact_count(void)
{
    artefact_lock();
    size_t count = artefact_list_count;
    artefact_unlock();
    return count;
}
