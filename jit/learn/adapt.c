/* SPDX-License-Identifier: MIT */
/* Decisions of the using thread: it borrows the round and the registry if both are free. */
#include "jit/learn/adapt.h"

#include "jit/events/event.h"
#include "jit/learn/background.h"
#include "jit/learn/misses.h"
#include "jit/learn/round.h"
#include "jit/learn/watch.h"
#include "profiler/touches.h"
#include "runtime/base/assert.h"
#include "runtime/base/settings.h"
#include "runtime/scope/kind.h"

static bool adapt_begin(void)
{
    return tide_constant_get(TIDE_CONSTANT_adapt) != 0 &&
           tide_setting_get(TIDE_SETTING_learn) != 0 && tide_round_begin_at_once();
}

void tide_adapt_filled(tide_site *site)
{
    if (tide_kind_has_tables(site->kind) && adapt_begin()) {
        tide_watch(site, tide_round_number());
        tide_round_end_at_once();
    }
    tide_background_wanted();
    (void)tide_event_deliver();
}

/* If it touched more types than a list has room for, no plan is said to be of exactly these. */
void tide_adapt_missed(const tide_scope *scope)
{
    tide_items touched = {0};
    tide_assert(scope->plan->kind == TIDE_KIND_SCOPE);
    if (!tide_touches_known(scope) || !adapt_begin())
        return;
    tide_type types[TIDE_ITEMS_MAX];
    uint32_t count = tide_touches_list(scope, types, TIDE_ITEMS_MAX);
    for (uint32_t i = 0; i < count; i++)
        touched.items[i].type = types[i];
    touched.count = count;
    tide_misses_alarm(scope->plan, &touched, tide_round_number());
    tide_round_end_at_once();
}
