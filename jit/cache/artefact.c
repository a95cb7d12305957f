/* SPDX-License-Identifier: MIT */
/* Loaded artefacts: one list, one lock, counts of uses. The dynamic linker is called outside the
 * lock; an artefact whose last use went has left the list by then, so nobody finds it any more. */
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
#include "runtime/scope/compiled.h"
#include "runtime/base/os.h"

struct tide_artefact {
    struct tide_artefact *next;
    void *handle;
    size_t uses;
    pid_t temporary; /* the process that is to remove the file; 0: nobody */
    bool labelled;
    tide_artefact_label label;
    char path[];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static tide_artefact *loaded;
static size_t loaded_count;

/* ---- the lock, and fork ------------------------------------------------------------------- */

static void unlock_list(void)
{
    pthread_mutex_unlock(&lock);
}

static void lock_for_fork(void)
{
    pthread_mutex_lock(&lock);
}

static void prepare(void)
{
    static const tide_fork_handlers handlers = {lock_for_fork, unlock_list, unlock_list};
    tide_fork_register(TIDE_FORK_ARTEFACTS, &handlers);
}

static void lock_list(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, prepare);
    pthread_mutex_lock(&lock);
}

/* ---- checking ----------------------------------------------------------------------------- */

static bool check_number(void *handle, const char *name, uint64_t wanted, char *error, size_t room)
{
    const uint64_t *found = dlsym(handle, name);
    if (found == NULL)
        snprintf(error, room, "artefact refused: it has no %s", name);
    else if (*found != wanted)
        snprintf(error, room, "artefact refused: %s is %016" PRIx64 ", not %016" PRIx64, name,
                 *found, wanted);
    return found != NULL && *found == wanted;
}

/* Nothing of the artefact runs before this says so. */
static bool check(void *handle, char *error, size_t room)
{
    return check_number(handle, "tide_artefact_magic", TIDE_ARTEFACT_MAGIC, error, room) &&
           check_number(handle, "tide_artefact_layout", tide_compiled_layout(), error, room);
}

static bool attach(void *handle, char *error, size_t room)
{
    void (*function)(const tide_runtime *);
    *(void **)&function = dlsym(handle, "tide_artefact_attach");
    if (function == NULL) {
        snprintf(error, room, "artefact refused: it has no tide_artefact_attach");
        return false;
    }
    function(&tide_runtime_general);
    return true;
}

/* ---- loading ------------------------------------------------------------------------------ */

static void *open_checked(const char *path, char *error, size_t room)
{
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL) {
        const char *why = dlerror();
        snprintf(error, room, "artefact refused: %s", why != NULL ? why : path);
    } else if (!check(handle, error, room) || !attach(handle, error, room)) {
        dlclose(handle);
        handle = NULL;
    }
    return handle;
}

static tide_artefact *make(const char *path, char *error, size_t room)
{
    size_t bytes = strlen(path) + 1;
    tide_artefact *artefact = tide_os_resize(NULL, sizeof *artefact + bytes);
    if (artefact == NULL) {
        snprintf(error, room, "no memory for the artefact '%s'", path);
        return NULL;
    }
    *artefact = (tide_artefact){.uses = 1};
    memcpy(artefact->path, path, bytes);
    return artefact;
}

static void add(tide_artefact *artefact)
{
    lock_list();
    artefact->next = loaded;
    loaded = artefact;
    loaded_count++;
    unlock_list();
}

tide_artefact *tide_artefact_load(const char *path, bool temporary, char *error, size_t room)
{
    tide_assert(path[0] == '/'); /* or the dynamic linker would search for it */
    if (temporary && !tide_directory_holds(path, error, room))
        return NULL;
    tide_artefact *artefact = make(path, error, room);
    if (artefact == NULL)
        return NULL;
    artefact->handle = open_checked(path, error, room);
    if (artefact->handle == NULL) {
        tide_os_free(artefact);
        return NULL;
    }
    artefact->temporary = temporary ? getpid() : 0;
    add(artefact);
    return artefact;
}

void *tide_artefact_find(const tide_artefact *artefact, const char *stem, const char *suffix)
{
    char name[128];
    int length = snprintf(name, sizeof name, "%s%s", stem, suffix);
    return length > 0 && (size_t)length < sizeof name ? dlsym(artefact->handle, name) : NULL;
}

/* ---- labels ------------------------------------------------------------------------------- */

void tide_artefact_set_label(tide_artefact *artefact, const tide_artefact_label *label)
{
    lock_list();
    artefact->label = *label;
    artefact->labelled = true;
    unlock_list();
}

tide_artefact *tide_artefact_labelled(const tide_artefact_label *label)
{
    lock_list();
    tide_artefact *artefact = loaded;
    while (artefact != NULL &&
           !(artefact->labelled && memcmp(&artefact->label, label, sizeof *label) == 0))
        artefact = artefact->next;
    if (artefact != NULL)
        artefact->uses++;
    unlock_list();
    return artefact;
}

/* ---- uses --------------------------------------------------------------------------------- */

void tide_artefact_use(tide_artefact *artefact)
{
    lock_list();
    tide_assert(artefact->uses > 0);
    artefact->uses++;
    unlock_list();
}

/* True when that was the last use. */
static bool give_up_use(tide_artefact *artefact)
{
    lock_list();
    tide_assert(artefact->uses > 0);
    bool last = --artefact->uses == 0;
    if (last) {
        tide_artefact **link = &loaded;
        while (*link != artefact)
            link = &(*link)->next;
        *link = artefact->next;
        loaded_count--;
    }
    unlock_list();
    return last;
}

void tide_artefact_drop(tide_artefact *artefact)
{
    if (!give_up_use(artefact))
        return;
    dlclose(artefact->handle);
    if (artefact->temporary == getpid()) /* a forked child leaves its parent's files alone */
        (void)unlink(artefact->path);
    tide_os_free(artefact);
}

size_t tide_artefact_count(void)
{
    lock_list();
    size_t count = loaded_count;
    unlock_list();
    return count;
}
