/* SPDX-License-Identifier: MIT */
/* When the files of control groups are read, and what they said. */
#include "runtime/device/group.h"

#include "runtime/base/cgroup.h"
#include "runtime/base/settings.h"

enum {
    LOOK_BYTES = 32 << 20, /* taken from the system: their pages cost a hundred times a look */
    LOOK_ROUNDS = 100
};

/* What a look has found (max 0: nobody has looked), and what has gone on since. All atomic. */
static size_t group_found_max, group_found_high = SIZE_MAX, group_taken;
static uint64_t group_rounds;

static bool group_is_asked(void)
{
    return tide_setting_get(TIDE_SETTING_process_limit) < 0;
}

static bool group_read(void)
{
    tide_cgroup found;
    bool known = tide_cgroup_read(&found);
    if (known || __atomic_load_n(&group_found_max, __ATOMIC_RELAXED) == 0) {
        __atomic_store_n(&group_found_max, found.max, __ATOMIC_RELAXED);
        __atomic_store_n(&group_found_high, found.high, __ATOMIC_RELAXED);
    }
    __atomic_store_n(&group_taken, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&group_rounds, 0, __ATOMIC_RELAXED);
    return found.stalled >= tide_constant_get(TIDE_CONSTANT_pressure);
}

bool tide_group_look(void)
{
    return !tide_locked_down() && group_read();
}

void tide_group_look_first(void)
{
    if (group_is_asked())
        (void)group_read();
}

size_t tide_group_max(void)
{
    if (__atomic_load_n(&group_found_max, __ATOMIC_RELAXED) == 0)
        (void)tide_group_look();
    size_t most = __atomic_load_n(&group_found_max, __ATOMIC_RELAXED);
    return most != 0 ? most : SIZE_MAX;
}

size_t tide_group_high(void)
{
    return group_is_asked() ? __atomic_load_n(&group_found_high, __ATOMIC_RELAXED) : SIZE_MAX;
}

void tide_group_note_taken(size_t bytes)
{
    if (group_is_asked())
        __atomic_fetch_add(&group_taken, bytes, __ATOMIC_RELAXED);
}

bool tide_group_look_is_due(void)
{
    return group_is_asked() && __atomic_load_n(&group_taken, __ATOMIC_RELAXED) >= LOOK_BYTES;
}

bool tide_group_is_tight(uint64_t rounds)
{
    return group_is_asked() &&
           __atomic_add_fetch(&group_rounds, rounds, __ATOMIC_RELAXED) >= LOOK_ROUNDS &&
           tide_group_look();
}
