/* SPDX-License-Identifier: MIT */
/* Loads the component that speaks to the fleet's store, has it begin and end. */
#define _GNU_SOURCE
#include "jit/tune/fleet.h"

#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#include <tidepool/profile.h>
#include <tidepool/version.h>

#include "jit/learn/background.h"
#include "jit/stager/locate.h"
#include "profiler/files/file.h"
#include "runtime/base/assert.h"
#include "runtime/base/ring.h"

_Static_assert(offsetof(tide_fleet_component, interface) == 0, "tide_locate_table looks there");

static const tide_fleet_component *fleet_component; /* set once; NULL: none has begun */
static pid_t fleet_process;                         /* a forked child has no part in it */

tide_status tide_fleet_read(const char *bytes, size_t length, bool merge, double weight)
{
    return tide_profile_read_weighed(bytes, length, merge, weight);
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
                                   .read = tide_fleet_read,
                                   .error_message = tide_error_message};
    const char *url = secure_getenv("TIDEPOOL_FLEET"); /* NULL under raised privileges */
    char error[300] = "";
    if (url == NULL || url[0] == '\0')
        return;
    tide_attach();
    host.version = tide_version();
    const tide_fleet_component *found = tide_locate_table(
        "libtidepool-fleet.so", "tide_fleet_table", TIDE_FLEET_INTERFACE, error, sizeof error);
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
