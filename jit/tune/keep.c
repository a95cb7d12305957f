/* SPDX-License-Identifier: MIT */
/* TIDEPOOL_PROFILE=FILE, read once, when the first tunable or pool comes. */
#define _GNU_SOURCE
#include "jit/tune/keep.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <tidepool/profile.h>

#include "runtime/base/assert.h"
#include "runtime/base/ring.h"

static char *keep_path;    /* set once */
static pid_t keep_process; /* a forked child saves nothing */

/* True: there is nothing to complain of. */
static bool keep_worked(tide_status status, const char *what)
{
    if (status != TIDE_OK)
        fprintf(stderr, "tidepool: TIDEPOOL_PROFILE is not %s: %s\n", what, tide_error_message());
    return status == TIDE_OK;
}

static void keep_save(void)
{
    tide_assert(keep_path != NULL);
    if (getpid() == keep_process)
        (void)keep_worked(tide_profile_save(keep_path), "saved");
}

/* The path is made absolute: the program may change its folder before it exits. A file that cannot
 * be read is not replaced: it may be another version's, or no profile at all. An empty one is new. */
static void keep_load(void)
{
    const char *named = secure_getenv("TIDEPOOL_PROFILE"); /* NULL under raised privileges */
    if (named == NULL || named[0] == '\0')
        return;
    char *folder = named[0] == '/' ? NULL : getcwd(NULL, 0);
    if (asprintf(&keep_path, "%s%s%s", folder != NULL ? folder : "", folder != NULL ? "/" : "",
                 named) < 0)
        keep_path = NULL;
    free(folder);
    if (keep_path == NULL)
        return;
    tide_attach();
    struct stat file;
    if (stat(keep_path, &file) == 0 && file.st_size != 0 &&
        !keep_worked(tide_profile_load(keep_path), "loaded, and not replaced at exit"))
        return;
    keep_process = getpid();
    (void)atexit(keep_save);
}

void tide_keep_begin(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, keep_load);
}
