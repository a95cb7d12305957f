/* SPDX-License-Identifier: MIT */
#include "report.h"

#include "error.h"

#include <string.h>

static void print_place(FILE *out, const tide_site_information *info)
{
    const char *file = strrchr(info->file, '/');
    fprintf(out, "  %s", info->name);
    if (info->line != 0)
        fprintf(out, " (%s:%u)", file != NULL ? file + 1 : info->file, info->line);
}

static void print_plan(FILE *out, const tide_site_information *info)
{
    fprintf(out, ", %s: %s", tide_kind_name(info->kind), tide_tier_name(info->tier));
    for (uint32_t i = 0; i < info->type_count && i < TIDE_SITE_TYPES; i++)
        fprintf(out, "%s %s", i == 0 ? " for" : "", tide_type_name(info->types[i]));
    fputc('\n', out);
}

/* Sites that were never used have nothing to tell. */
static bool print_life(tide_site *site, void *user)
{
    FILE *out = user;
    tide_site_information info;
    if (tide_site_info(site, &info) != TIDE_OK || info.reason[0] == '\0')
        return true;
    print_place(out, &info);
    print_plan(out, &info);
    fprintf(out,
            "    about %.0f uses, %llu observed, %llu misses, %llu plans published, %llu compiled; "
            "%s\n",
            info.calls, (unsigned long long)info.samples, (unsigned long long)info.misses,
            (unsigned long long)info.generation, (unsigned long long)info.compiles, info.reason);
    return true;
}

bool print_report(FILE *out, columns_error *error)
{
    if (tide_profile_print(out) != TIDE_OK)
        return columns_exhaust(error, "no report", tide_error_message());
    fputs("\ntheir lives so far:\n", out);
    tide_site_each(print_life, out);
    return true;
}
