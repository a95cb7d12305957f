/* SPDX-License-Identifier: MIT */
/* Which version of the library runs, and whether the headers are of it. */
#ifndef TIDEPOOL_VERSION_H
#define TIDEPOOL_VERSION_H

#include <tidepool/inline/config.h>
#include <tidepool/status.h>

#define TIDEPOOL_VERSION_MAJOR 0
#define TIDEPOOL_VERSION_MINOR 1
#define TIDEPOOL_VERSION_PATCH 0

/* As one number, for comparisons: 10203 is 1.2.3. */
#define TIDEPOOL_VERSION \
    (TIDEPOOL_VERSION_MAJOR * 10000 + TIDEPOOL_VERSION_MINOR * 100 + TIDEPOOL_VERSION_PATCH)

TIDE_BEGIN_DECLS

/* The library's version, "1.2.3"; static text. Any thread, as all of this header. */
TIDE_API const char *tide_version(void);

/* For tide_version_check: does the library fit headers of that version? */
TIDE_API tide_status tide_version_fits(int headers);

/* Can code that was compiled with these headers run with the library that is linked? The first
 * numbers must be equal, and while they are 0 the second ones, too; and the library must not be
 * older. TIDE_ERROR_STATE with a message that names both versions. Call it once at the start, where
 * library and program are installed separately. */
TIDE_INLINE tide_status tide_version_check(void)
{
    return tide_version_fits(TIDEPOOL_VERSION);
}

TIDE_END_DECLS

#endif
