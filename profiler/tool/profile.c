/* SPDX-License-Identifier: MIT */
/* tidepool-profile: what the command `tidepool profile` has done by the library. Texts go to the standard
 * output, a complaint as one line to the standard error.
 *
 *   merge FILE...                        files of profiles, added up
 *   push PROGRAM URL MS MEMBER <TEXT     a profile goes to the fleet's store, as this member's
 *   pull PROGRAM URL MS                  what the store has of the program, added up
 *   watch PROGRAM URL MS                 how many profiles it has, whenever that changes */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tidepool/profile.h>

#include "profiler/tool/profile.h"
#include "runtime/base/assert.h"

int profile_complain(int code, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    vfprintf(stderr, format, values);
    va_end(values);
    fputc('\n', stderr);
    tide_assert(code != PROFILE_OK);
    return code;
}

int profile_write(void)
{
    if (tide_profile_write(stdout) == TIDE_OK && fflush(stdout) == 0)
        return PROFILE_OK;
    return profile_complain(PROFILE_NO, "%s", tide_error_message());
}

static int profile_merge(int count, char **files)
{
    for (int i = 0; i < count; i++)
        if ((i == 0 ? tide_profile_load(files[i]) : tide_profile_merge(files[i])) != TIDE_OK)
            return profile_complain(PROFILE_NO, "%s", tide_error_message());
    return profile_write();
}

int main(int count, char **args)
{
    if (count > 2 && strcmp(args[1], "merge") == 0)
        return profile_merge(count - 2, args + 2);
#ifdef TIDE_HAVE_HIREDIS
    if (count == 5 || (count == 6 && strcmp(args[1], "push") == 0))
        return profile_share(args + 1);
    return profile_complain(PROFILE_USAGE, "merge FILE...; push, pull, watch PROGRAM URL MS");
#else
    return profile_complain(PROFILE_NO, "it was built without hiredis: it speaks to no store");
#endif
}
