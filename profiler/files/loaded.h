/* SPDX-License-Identifier: MIT */
/* What files said of this program's scopes. It stays until another file is loaded in its place. */
#ifndef TIDEPOOL_PROFILER_FILES_LOADED_H
#define TIDEPOOL_PROFILER_FILES_LOADED_H

#include "profiler/files/profile_set.h"

/* Replaces what was loaded, and owns the set from now on. NULL: nothing. Registry locked. */
void tide_loaded_replace(tide_profile_set *set);

/* What a loaded profile says of a site of which nothing was taken yet; false: nothing, or some of
 * its types are not registered yet, or something was taken. Registry locked. */
bool tide_profile_prior(tide_site *site, tide_site_profile *out);

/* Adds a copy of what was loaded to `to`. Registry locked. */
tide_status tide_loaded_copy(tide_profile_set *to, const char *call);

/* Adds to `to` what was seen of the program's scopes, and, unless `own`, what was loaded of scopes of
 * which nothing was seen, as far as the set's limits leave room for it. Registry locked. */
tide_status tide_loaded_collect(tide_profile_set *to, bool own, const char *call);

#endif
