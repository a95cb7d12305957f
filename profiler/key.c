/* SPDX-License-Identifier: MIT */
/* Keys of sites: made from a site, and compared strictly or loosely. */
#include "profiler/key.h"

#include <string.h>

#include "runtime/base/assert.h"

static const char *key_or_empty(const char *text)
{
    return text != NULL ? text : "";
}

/* Without a file, `function` may be an address and no string: it is left out. */
tide_key tide_key_of(const tide_site *site)
{
    tide_assert((unsigned)site->kind < TIDE_KIND_COUNT);
    return (tide_key){site->kind, site->place.line, key_or_empty(site->name),
                      key_or_empty(site->place.file),
                      site->place.file != NULL ? key_or_empty(site->place.function) : ""};
}

static const char *key_last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

int tide_key_compare_loosely(const tide_key *left, const tide_key *right)
{
    tide_assert(left->name != NULL && left->file != NULL && left->function != NULL);
    tide_assert(right->name != NULL && right->file != NULL && right->function != NULL);
    if (left->kind != right->kind)
        return left->kind < right->kind ? -1 : 1;
    int order = strcmp(left->function, right->function);
    if (order == 0)
        order = strcmp(left->name, right->name);
    return order != 0 ? order : strcmp(key_last_part(left->file), key_last_part(right->file));
}

int tide_key_compare(const tide_key *left, const tide_key *right)
{
    int order = tide_key_compare_loosely(left, right);
    if (order == 0)
        order = strcmp(left->file, right->file);
    return order != 0 ? order : (left->line > right->line) - (left->line < right->line);
}
