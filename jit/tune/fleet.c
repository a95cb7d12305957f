/* SPDX-License-Identifier: MIT */
/* Loads the component that speaks to the fleet's store, has it begin and end. */
#define _GNU_SOURCE
#include "jit/tune/fleet.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include <tidepool/profile.h>
#include <tidepool/version.h>

#include "jit/learn/background.h"
#include "jit/stager/locate.h"
#include "profiler/loaded.h"
#include "runtime/base/assert.h"
#include "runtime/base/hooks.h"
#include "runtime/base/lock.h"

static const tide_fleet_component *fleet_component; /* set once; NULL: none has begun */
static pid_t fleet_process;                         /* a forked child has no part in it */

/* NULL with a line in `error`. It stays loaded. */
static const tide_fleet_component *fleet_load(char *error, size_t room)
{
    char path[PATH_MAX];
    if (!tide_locate_component("libtidepool-fleet.so", path, sizeof path)) {
        snprintf(error, room, "no libtidepool-fleet.so beside the library or on its run path");
        return NULL;
    }
    tide_lock_assert_none();
    void *module = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    const tide_fleet_component *found = module != NULL ? dlsym(module, "tide_fleet_table") : NULL;
    if (found == NULL)
        snprintf(error, room, "%.200s", dlerror());
    if (found == NULL || found->interface == TIDE_FLEET_INTERFACE)
        return found;
    snprintf(error, room, "%.160s is of another version of the library", path);
    return NULL;
}

static void fleet_at_exit(void)
{
    tide_assert(fleet_component != NULL);
    if (getpid() == fleet_process)
        fleet_component->end();
}

static void fleet_begin_once(void)
{
    static tide_fleet_host host = {.create_thread = tide_background_create_thread,
                                   .write_own = tide_profile_write_own,
                                   .read = tide_profile_read};
    const char *url = secure_getenv("TIDEPOOL_FLEET"); /* NULL under raised privileges */
    char error[300] = "";
    if (url == NULL || url[0] == '\0')
        return;
    tide_attach();
    host.version = tide_version();
    const tide_fleet_component *found = fleet_load(error, sizeof error);
    if (found == NULL || !found->begin(&host, url, error, sizeof error)) {
        fprintf(stderr, "tidepool: TIDEPOOL_FLEET is not used: %s\n", error);
        return;
    }
    fleet_component = found;
    fleet_process = getpid();
    (void)atexit(fleet_at_exit);
}

/* Who comes second does not wait: it may have the loader's lock, for which the first one waits. */
void tide_fleet_begin(void)
{
    static bool begun;
    if (!__atomic_load_n(&begun, __ATOMIC_RELAXED) &&
        !__atomic_exchange_n(&begun, true, __ATOMIC_RELAXED))
        fleet_begin_once();
}
