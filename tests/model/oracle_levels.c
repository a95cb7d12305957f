/* SPDX-License-Identifier: MIT */
/* Levels: what is open, and what a close releases and trades back. */
#include "oracle_parts.h"

uint64_t oracle_open(struct oracle *oracle)
{
    oracle_served(oracle);
    struct level *level = &oracle->levels[oracle->level_count++];
    *level = (struct level){++oracle->last_id, oracle->live_count, oracle->trade_count};
    return level->id;
}

static bool find_level(const struct oracle *oracle, uint64_t id, size_t *position)
{
    for (size_t i = oracle->level_count; i-- > 0;)
        if (oracle->levels[i].id == id) {
            *position = i;
            return true;
        }
    return false;
}

bool oracle_is_open(const struct oracle *oracle, uint64_t id)
{
    size_t position;
    return find_level(oracle, id, &position);
}

static void release_newest(struct oracle *oracle)
{
    struct live *newest = &oracle->live[--oracle->live_count];
    struct row *row = &oracle->rows[newest->type];
    struct place *place = &row->places[newest->place];
    row->live--;
    if (newest->place != row->live)
        oracle_wrong(oracle, "the oracle lost count of %s", model_types[newest->type].name);
    nd_release(oracle, newest);
    if (pins_release(oracle, place))
        return;
    if (oracle->disabled || place->guarded) {
        place_hollow(place);
        oracle->releases++;
    } else if (oracle->poison && place->bytes > place->stained) {
        place->stained = place->bytes;
    }
}

static void trade_back(struct oracle *oracle)
{
    struct trade trade = oracle->trades[--oracle->trade_count];
    struct row *row = &oracle->rows[trade.type];
    if (trade.far < row->count) /* else it has been trimmed */
        row_swap(row, trade.near, trade.far);
}

bool oracle_close(struct oracle *oracle, uint64_t id)
{
    size_t position;
    if (!find_level(oracle, id, &position))
        return false;
    struct level level = oracle->levels[position];
    while (oracle->live_count > level.live)
        release_newest(oracle);
    while (oracle->trade_count > level.exchanges)
        trade_back(oracle);
    bool forgetful = oracle->plant == PLANT_LEAK;
    oracle->level_count = forgetful ? oracle->level_count - 1 : position;
    oracle_verify(oracle);
    return true;
}

void oracle_reset(struct oracle *oracle)
{
    if (oracle->level_count > 0)
        oracle_close(oracle, oracle->levels[0].id);
    while (oracle->live_count > 0)
        release_newest(oracle);
}
