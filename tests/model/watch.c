/* SPDX-License-Identifier: MIT */
#include "watch.h"

#include <string.h>

#include <tidepool/profile.h>
#include <tidepool/site.h>

void watch_reset(struct watch *watch, unsigned menu)
{
    if (tide_site_reset(watch->sites[menu]) != TIDE_OK)
        return; /* the comparison will tell */
    watch->scopes[menu] = 0;
    memset(watch->slots[menu], 0, sizeof watch->slots[menu]);
    memset(watch->touched[menu], 0, sizeof watch->touched[menu]);
    memset(watch->most[menu], 0, sizeof watch->most[menu]);
}

void watch_leave(struct watch *watch, const struct oracle *oracle, unsigned menu, uint64_t level)
{
    uint32_t slots[MODEL_TYPES] = {0};
    size_t position = oracle->level_count;
    while (position > 0 && oracle->levels[position - 1].id != level)
        position--;
    if (position == 0)
        return;
    for (size_t i = oracle->levels[position - 1].live; i < oracle->live_count; i++)
        slots[oracle->live[i].type]++;
    watch->scopes[menu]++;
    for (unsigned type = 0; type < MODEL_TYPES; type++) {
        watch->slots[menu][type] += slots[type];
        watch->touched[menu][type] += slots[type] > 0;
        if (slots[type] > watch->most[menu][type])
            watch->most[menu][type] = slots[type];
    }
}

static const tide_profile_type *find(const tide_site_profile *profile, tide_type id)
{
    static const tide_profile_type none;
    for (uint32_t i = 0; i < profile->type_count; i++)
        if (profile->types[i].type == id)
            return &profile->types[i];
    return &none;
}

static void compare_site(const struct watch *watch, struct oracle *oracle, unsigned menu)
{
    tide_site_profile profile;
    tide_profile_site(watch->sites[menu], &profile);
    if (profile.scopes != watch->scopes[menu] || profile.other != 0)
        oracle_wrong(oracle, "profile of menu %u: %llu scopes, must be %llu", menu,
                     (unsigned long long)profile.scopes, (unsigned long long)watch->scopes[menu]);
    for (unsigned type = 0; type < MODEL_TYPES; type++) {
        if (model_types[type].id == TIDE_NO_TYPE)
            continue;
        const tide_profile_type *seen = find(&profile, model_types[type].id);
        if (seen->scopes != watch->touched[menu][type] || seen->slots != watch->slots[menu][type] ||
            seen->slots_max != watch->most[menu][type])
            oracle_wrong(oracle,
                         "profile of menu %u: %s in %llu scopes, %llu slots, most %u, must "
                         "be %llu, %llu, %u",
                         menu, model_types[type].name, (unsigned long long)seen->scopes,
                         (unsigned long long)seen->slots, seen->slots_max,
                         (unsigned long long)watch->touched[menu][type],
                         (unsigned long long)watch->slots[menu][type], watch->most[menu][type]);
    }
}

void watch_compare(const struct watch *watch, struct oracle *oracle)
{
    for (unsigned menu = 0; menu < MENU_COUNT; menu++)
        compare_site(watch, oracle, menu);
}
