/* SPDX-License-Identifier: MIT */
/* Profiles added up, and packed. */
#ifndef TIDEPOOL_PROFILER_ADD_H
#define TIDEPOOL_PROFILER_ADD_H

#include <tidepool/profile.h>

/* Adds `from`, its counts times `weight`, to `into`: types are matched; the most frequent
 * keep a place, the rest goes to the others. */
void tide_profile_add(tide_site_profile *into, const tide_site_profile *from, double weight);

/* Before uses of that generic function are added. NULL stands for several; a profile without uses has
 * none. */
static inline void tide_profile_add_generic(tide_site_profile *into,
                                            const struct tide_generic *generic)
{
    if (into->scopes == 0)
        into->generic = generic;
    else if (into->generic != generic)
        into->generic = NULL;
}

/* A profile in the memory that its figures need. NULL: all zero. */
typedef struct tide_packed_profile tide_packed_profile;

void tide_profile_unpack(const tide_packed_profile *packed, tide_site_profile *out);
uint64_t tide_packed_scopes(const tide_packed_profile *packed);

/* Puts the profile in the place of what is packed there. False: no memory, nothing changed. */
bool tide_profile_pack(tide_packed_profile **packed, const tide_site_profile *profile);

#endif
