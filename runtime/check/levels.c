/* SPDX-License-Identifier: MIT */
#include "runtime/check/levels.h"

#include "runtime/check/report.h"

void tide_levels_push(tide_pool *pool, uint64_t tag, tide_place place)
{
    tide_pool_core *core = pool->core;
    if (core->level_count == core->level_room) {
        uint32_t room = core->level_room == 0 ? 16 : core->level_room * 2;
        tide_open_level *levels = tide_os_resize(core->levels, room * sizeof *levels);
        if (levels == NULL)
            return;
        core->levels = levels;
        core->level_room = room;
    }
    core->levels[core->level_count++] = (tide_open_level){tag, place};
}

static void report_leak(const tide_pool *pool, const tide_open_level *leaked)
{
    if (pool->core->check >= TIDE_CHECK_POISON)
        tide_report(TIDE_REPORT_LEAK,
                    "leaked scope: the one opened at %s in pool '%s' was left open; "
                    "the scope around it cleaned up",
                    tide_place_words(leaked->place).text, pool->core->name);
}

tide_place tide_levels_pop(tide_pool *pool, uint64_t tag)
{
    tide_pool_core *core = pool->core;
    while (core->level_count > 0) {
        const tide_open_level *top = &core->levels[core->level_count - 1];
        if (tide_level(top->tag) < tide_level(tag))
            return (tide_place){TIDE_NOWHERE}; /* pushing it found no memory */
        core->level_count--;
        if (tide_level(top->tag) == tide_level(tag))
            return top->place;
        report_leak(pool, top);
    }
    return (tide_place){TIDE_NOWHERE};
}

void tide_levels_clear(tide_pool *pool)
{
    pool->core->level_count = 0;
}
