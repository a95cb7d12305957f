/* SPDX-License-Identifier: MIT */
/* The stack of open levels and their places, and the report of those that were left open. */
#include "runtime/check/levels.h"

#include "runtime/base/assert.h"
#include "runtime/base/os.h"
#include "runtime/check/report.h"

static bool levels_grow(tide_levels *levels)
{
    uint32_t room = levels->room == 0 ? 16 : levels->room * 2;
    tide_open_level *open = tide_os_resize(levels->open, room * sizeof *open);
    tide_assert(levels->count == levels->room);
    if (open == NULL)
        return false;
    levels->open = open;
    levels->room = room;
    return true;
}

void tide_levels_push(tide_levels *levels, uint64_t tag, tide_place place)
{
    tide_assert(levels->count <= levels->room && tide_level(tag) > 0);
    tide_assert(levels->count == 0 ||
                tide_level(levels->open[levels->count - 1].tag) < tide_level(tag));
    if (levels->count == levels->room && !levels_grow(levels))
        return;
    tide_assert(levels->count < levels->room);
    levels->open[levels->count++] = (tide_open_level){tag, place};
}

static void levels_report_leak(const tide_levels *levels, const tide_open_level *leaked)
{
    if (levels->reported_of != NULL)
        tide_report(TIDE_REPORT_LEAK,
                    "leaked scope: the one opened at %s in pool '%s' was left open; "
                    "the scope around it cleaned up",
                    tide_place_text(leaked->place).text, levels->reported_of);
}

/* Levels are compared, not tags: a level may be closed under another epoch's tag. */
tide_place tide_levels_pop(tide_levels *levels, uint64_t tag)
{
    tide_assert(tide_level(tag) > 0);
    while (levels->count > 0) {
        const tide_open_level *top = &levels->open[levels->count - 1];
        if (tide_level(top->tag) < tide_level(tag))
            return (tide_place){TIDE_NOWHERE}; /* pushing it found no memory */
        levels->count--;
        if (tide_level(top->tag) == tide_level(tag))
            return top->place;
        levels_report_leak(levels, top);
    }
    return (tide_place){TIDE_NOWHERE};
}

void tide_levels_clear(tide_levels *levels)
{
    levels->count = 0;
}

void tide_levels_free(tide_levels *levels)
{
    tide_os_free(levels->open);
    *levels = (tide_levels){0};
}
