/* SPDX-License-Identifier: MIT */
/* The profile as a page for a person. */
#include <inttypes.h>
#include <string.h>

#include <tidepool/profile.h>

#include "runtime/error.h"

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

static void print_type(FILE *out, const tide_profile_type *type, uint64_t scopes)
{
    fprintf(out, "    %-16s in %5.1f %% of scopes, %.2f slots each, at most %" PRIu32 "\n",
            tide_type_name(type->type), 100 * (double)type->scopes / (double)scopes,
            (double)type->slots / (double)type->scopes, type->slots_most);
}

static bool print_site(tide_site *site, void *user)
{
    FILE *out = user;
    tide_site_information info;
    tide_site_profile profile;
    if (tide_site_info(site, &info) != TIDE_OK || tide_profile_site(site, &profile) != TIDE_OK ||
        profile.scopes == 0)
        return true;
    fprintf(out, "  %s", info.name);
    if (info.file[0] != '\0')
        fprintf(out, " (%s:%" PRIu32 ")", base_name(info.file), info.line);
    fprintf(out, ", %s%s: %" PRIu64 " scopes\n", tide_tier_name(info.tier),
            info.pinned ? " (pinned)" : "", profile.scopes);
    for (uint32_t i = 0; i < profile.type_count; i++)
        print_type(out, &profile.types[i], profile.scopes);
    if (profile.other != 0)
        fprintf(out, "    other types: %" PRIu64 " touches\n", profile.other);
    return true;
}

tide_status tide_profile_print(FILE *out)
{
    if (out == NULL)
        return tide_fail(TIDE_ERROR_ARGUMENT, "tide_profile_print", "the file is NULL");
    fprintf(out, "call sites that were observed:\n");
    tide_site_each(print_site, out);
    return TIDE_OK;
}
