/* SPDX-License-Identifier: MIT */
/* The library's version, and whether a program's headers are of one that fits. */
#include <tidepool/version.h>

#include "runtime/base/error.h"

#define VERSION_TEXT_OF(major, minor, patch) #major "." #minor "." #patch
#define VERSION_TEXT_BY(major, minor, patch) VERSION_TEXT_OF(major, minor, patch)

/* Versions with the same such number can work together, if the library is not the older one. */
static int version_line(int version)
{
    return version >= 10000 ? version / 10000 * 100 : version / 100;
}

const char *tide_version(void)
{
    return VERSION_TEXT_BY(TIDEPOOL_VERSION_MAJOR, TIDEPOOL_VERSION_MINOR, TIDEPOOL_VERSION_PATCH);
}

tide_status tide_version_fits(int headers)
{
    if (version_line(headers) == version_line(TIDEPOOL_VERSION) && headers <= TIDEPOOL_VERSION)
        return TIDE_OK;
    return tide_fail(TIDE_ERROR_STATE, "tide_version_check",
                     "compiled with headers of version %d.%d.%d, the library is %s",
                     headers / 10000, headers / 100 % 100, headers % 100, tide_version());
}
