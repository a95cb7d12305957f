/* SPDX-License-Identifier: MIT */
/* Makes the private directory in the first of the usual places that lets us, and removes it. */
#define _GNU_SOURCE
#include "jit/stager/directory.h"

#include <errno.h>
#include <ftw.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "jit/stager/locate.h"
#include "runtime/base/assert.h"
#include "runtime/base/os.h"
#include "runtime/scope/compiled.h"

static char directory_path[TIDE_DIRECTORY_PATH];
static pid_t directory_owner; /* who removes it; 0: nobody, it stays */

const char *tide_directory_path(void)
{
    return directory_path;
}

/* Code cannot be mapped from where programs cannot be executed. */
static bool directory_may_execute(const char *path)
{
    struct statvfs system;
    return statvfs(path, &system) != 0 || (system.f_flag & ST_NOEXEC) == 0;
}

static bool directory_make_in(const char *parent, const char *name, char *error, size_t room)
{
    char path[TIDE_DIRECTORY_PATH];
    tide_assert(parent[0] == '/' && directory_path[0] == '\0');
    int length = snprintf(path, sizeof path, "%s/%s%d-XXXXXX", parent, name, (int)getpid());
    const char *why = NULL;
    if (length < 0 || (size_t)length >= sizeof path)
        why = "its path is too long";
    else if (!directory_may_execute(parent))
        why = "mounted noexec";
    else if (mkdtemp(path) == NULL)
        why = strerror(errno);
    if (why == NULL)
        memcpy(directory_path, path, sizeof path);
    else
        snprintf(error, room, "no private directory in %.150s: %s", parent, why);
    return why == NULL;
}

/* Where it cannot be made, which is said once, code is made all the same, and goes with the process. */
static bool directory_make_kept(const char *folder, char *error, size_t room)
{
    static bool said;
    (void)mkdir(folder, 0700);
    bool made = directory_make_in(folder, TIDE_CODE_KEPT, error, room);
    directory_owner = 0;
    if (!made && !said)
        tide_os_complain("code is not kept: %s", error);
    said |= !made;
    return made;
}

static bool directory_make(char *error, size_t room)
{
    const tide_locate_environment *said = tide_locate_environment_get();
    if (said->keep_code[0] != '\0' && directory_make_kept(said->keep_code, error, room))
        return true;
    const char *const places[] = {said->runtime, said->temporary, "/tmp", "/var/tmp", "/dev/shm"};
    directory_owner = getpid();
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        if (places[i][0] != '\0' && directory_make_in(places[i], "tidepool-", error, room))
            return true;
    return false;
}

const char *tide_directory_get(char *error, size_t room)
{
    if (directory_path[0] == '\0' && !directory_make(error, room))
        return NULL;
    tide_assert(directory_path[0] == '/');
    return directory_path;
}

bool tide_directory_is_ours(void)
{
    struct stat seen;
    return lstat(directory_path, &seen) == 0 && S_ISDIR(seen.st_mode) && seen.st_uid == geteuid() &&
           (seen.st_mode & (S_IRWXG | S_IRWXO)) == 0;
}

static int directory_remove_entry(const char *path, const struct stat *seen, int type,
                                  struct FTW *where)
{
    (void)seen, (void)type, (void)where;
    (void)remove(path);
    return 0;
}

void tide_directory_remove(void)
{
    if (directory_path[0] != '\0' && directory_owner == getpid())
        (void)nftw(directory_path, directory_remove_entry, 8, FTW_DEPTH | FTW_PHYS);
    tide_directory_forget();
}

void tide_directory_forget(void)
{
    directory_path[0] = '\0';
}
