/* SPDX-License-Identifier: MIT */
/* What compiled dispatch needs of a generic function. */
#ifndef TIDEPOOL_RUNTIME_SCOPE_GENERIC_H
#define TIDEPOOL_RUNTIME_SCOPE_GENERIC_H

#include <tidepool/generic.h>

/* Where the type's own method stands: an address for good, whose content may be replaced but is
 * never NULL again. NULL: it has no method of its own. Any thread. */
tide_method **tide_generic_place(const tide_generic *generic, tide_type type);

#endif
