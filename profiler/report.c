/* SPDX-License-Identifier: MIT */
/* Prints the profile as a page for a person. */
#define _GNU_SOURCE
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <tidepool/generic.h>
#include <tidepool/profile.h>

#include "runtime/base/assert.h"
#include "runtime/base/document.h"
#include "runtime/base/error.h"
#include "runtime/scope/site.h"

static const char *report_base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

static void report_type(FILE *out, const tide_profile_type *type, uint64_t uses)
{
    char key[32];
    tide_assert(type->scopes != 0 && uses != 0);
    snprintf(key, sizeof key, "key %" PRIu32, type->type - TIDE_KEY_FIRST);
    fprintf(out, "    %-16s in %5.1f %% of uses, %.2f slots each, at most %" PRIu32 "\n",
            type->type >= TIDE_KEY_FIRST ? key : tide_type_name(type->type),
            100 * (double)type->scopes / (double)uses, (double)type->slots / (double)type->scopes,
            type->slots_max);
}

/* ---- sites ------------------------------------------------------------------------------ */

static void report_head(FILE *out, const tide_site_information *info, uint64_t uses)
{
    fprintf(out, "  %s", info->name);
    if (info->file[0] != '\0')
        fprintf(out, " (%s:%" PRIu32 ")", report_base_name(info->file), info->line);
    fprintf(out, ", %s, %s%s: %" PRIu64 " uses observed, %" PRIu64 " misses\n",
            tide_kind_name(info->kind), tide_tier_name(info->tier), info->pinned ? " (pinned)" : "",
            uses, info->misses);
}

/* Why it runs what it runs, and in figures what is known of the alternative. */
static void report_reason(FILE *out, const tide_site_information *info)
{
    if (info->reason[0] != '\0')
        fprintf(out, "    %s\n", info->reason);
    if (info->trial_uses > 0)
        fprintf(out,
                "    last trial: %.1f ns a use, %.1f ns by compiled code (±%.1f, %" PRIu64
                " uses)\n",
                info->trial_ns, info->trial_code_ns, info->trial_error_ns, info->trial_uses);
    if (info->compile_ns > 0)
        fprintf(out, "    compiled in %.3f ms of the processor; %.3f ms saved so far\n",
                info->compile_ns * 1e-6, info->saved_ns * 1e-6);
    if (info->lost_ns >= 500) /* of what is shown */
        fprintf(out, "    lost without compiled code: %.3f ms\n", info->lost_ns * 1e-6);
}

static bool report_site(tide_site *site, void *user)
{
    FILE *out = user;
    tide_site_information info;
    tide_site_profile profile;
    if (tide_site_info(site, &info) != TIDE_OK || tide_profile_site(site, &profile) != TIDE_OK ||
        profile.scopes == 0)
        return true;
    report_head(out, &info, profile.scopes);
    report_reason(out, &info);
    if (profile.generic != NULL)
        fprintf(out, "    of %s()\n", tide_generic_name(profile.generic));
    for (uint32_t i = 0; i < profile.type_count; i++)
        report_type(out, &profile.types[i], profile.scopes);
    if (profile.other != 0)
        fprintf(out, "    other types: %" PRIu64 " touches\n", profile.other);
    return true;
}

tide_status tide_profile_print(FILE *out)
{
    const char *call = "tide_profile_print";
    tide_document document;
    if (out == NULL)
        return tide_fail(TIDE_ERROR_ARGUMENT, call, "the file is NULL");
    TIDE_FORWARD(tide_document_begin(&document, call));
    fprintf(document.page, "call sites that were observed:\n");
    /* With the registry locked, so not to `out`, which may be a full pipe. */
    tide_site_each(report_site, document.page);
    return tide_document_end(&document, out, call);
}
