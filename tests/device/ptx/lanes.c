/* SPDX-License-Identifier: MIT */
/* What lanes of a warp do together. A lane that comes to such an instruction waits until all that
 * its mask names, and that have not ended, have come to one of the same kind with the same mask. */
#include <string.h>

#include "warp.h"

bool lanes_active(warp *w, const instruction *one, uint32_t lanes)
{
    for (uint32_t left = lanes; left != 0; left &= left - 1)
        warp_write(w, &one->out[0], (unsigned)__builtin_ctz(left), lanes);
    return true;
}

static const instruction *at_lane(const warp *w, unsigned lane)
{
    return &w->of->launch->kernel->code[w->at[lane]];
}

/* The mask is the last operand. */
static uint32_t mask_of(const warp *w, const instruction *one, unsigned lane)
{
    return (uint32_t)warp_read(w, &one->in[one->in_count - 1], lane);
}

bool lanes_meet(warp *w, const instruction *one, uint32_t lanes)
{
    uint32_t index = (uint32_t)(one - w->of->launch->kernel->code);
    for (; lanes != 0; lanes &= lanes - 1) {
        unsigned lane = (unsigned)__builtin_ctz(lanes);
        w->wanted[lane] = mask_of(w, one, lane);
        w->at[lane] = index;
        w->state[lane] = LANE_WAITS;
        if ((w->wanted[lane] >> lane & 1) == 0)
            return warp_fault(w, one, PTX_BAD_MASK, "lane %u is not in its own mask %#x", lane,
                              w->wanted[lane]);
    }
    return true;
}

/* ---- shuffles ------------------------------------------------------------------------------- */

/* The lane to read from, after PTX's rules; in_range is false where those say "keep your own". */
static unsigned source_lane(const instruction *one, unsigned lane, uint32_t b, uint32_t c,
                            bool *in_range)
{
    unsigned bound = c & 31, segment = c >> 8 & 31, least = lane & segment,
             most = least | (bound & ~segment);
    unsigned by = b & 31, from = 0;
    switch (one->shuffle) {
    case SHUFFLE_UP:
        *in_range = (int)(lane - by) >= (int)most;
        from = lane - by;
        break;
    case SHUFFLE_DOWN:
        *in_range = lane + by <= most;
        from = lane + by;
        break;
    case SHUFFLE_BUTTERFLY:
        *in_range = (lane ^ by) <= most;
        from = lane ^ by;
        break;
    default:
        from = least | (by & ~segment);
        *in_range = from <= most;
        break;
    }
    return *in_range ? from : lane;
}

static bool shuffle_lanes(warp *w, uint32_t here)
{
    uint64_t given[PTX_WARP];
    for (uint32_t left = here; left != 0; left &= left - 1) {
        unsigned lane = (unsigned)__builtin_ctz(left);
        given[lane] = warp_read(w, &at_lane(w, lane)->in[0], lane);
    }
    for (uint32_t left = here; left != 0; left &= left - 1) {
        unsigned lane = (unsigned)__builtin_ctz(left);
        const instruction *one = at_lane(w, lane);
        bool in_range;
        unsigned from = source_lane(one, lane, (uint32_t)warp_read(w, &one->in[1], lane),
                                    (uint32_t)warp_read(w, &one->in[2], lane), &in_range);
        if ((here >> from & 1) == 0)
            return warp_fault(w, one, PTX_BAD_MASK, "lane %u asks lane %u, which is not among %#x",
                              lane, from, here);
        warp_write(w, &one->out[0], lane, given[from]);
        if (one->out_count > 1)
            warp_write(w, &one->out[1], lane, in_range);
    }
    return true;
}

/* ---- votes ---------------------------------------------------------------------------------- */

static void count_votes(warp *w, uint32_t here)
{
    uint32_t votes = 0;
    for (uint32_t left = here; left != 0; left &= left - 1) {
        unsigned lane = (unsigned)__builtin_ctz(left);
        votes |= (warp_read(w, &at_lane(w, lane)->in[0], lane) & 1) != 0 ? (uint32_t)1 << lane : 0;
    }
    for (uint32_t left = here; left != 0; left &= left - 1) {
        unsigned lane = (unsigned)__builtin_ctz(left);
        const instruction *one = at_lane(w, lane);
        bool all = votes == here, any = votes != 0;
        warp_write(w, &one->out[0], lane,
                   one->vote == VOTE_BALLOT ? votes
                   : one->vote == VOTE_ALL  ? all
                   : one->vote == VOTE_ANY  ? any
                                            : all || !any);
    }
}

/* ---- meeting -------------------------------------------------------------------------------- */

static bool same_kind(const instruction *a, const instruction *b)
{
    return strcmp(a->text, b->text) == 0;
}

/* All that this lane waits for, if they are here; else 0. */
static uint32_t all_here(const warp *w, unsigned lane)
{
    uint32_t here = 0;
    for (unsigned other = 0; other < PTX_WARP; other++) {
        if ((w->wanted[lane] >> other & 1) == 0 || w->state[other] == LANE_ENDED)
            continue;
        if (w->state[other] != LANE_WAITS || w->wanted[other] != w->wanted[lane] ||
            !same_kind(at_lane(w, other), at_lane(w, lane)))
            return 0;
        here |= (uint32_t)1 << other;
    }
    return here;
}

static bool serve_lanes(warp *w, uint32_t here)
{
    const instruction *one = at_lane(w, (unsigned)__builtin_ctz(here));
    if (one->shuffle != 0 && !shuffle_lanes(w, here))
        return false;
    if (one->vote != 0)
        count_votes(w, here);
    for (uint32_t left = here; left != 0; left &= left - 1) {
        unsigned lane = (unsigned)__builtin_ctz(left);
        w->at[lane]++;
        w->state[lane] = LANE_RUNS;
    }
    return true;
}

bool lanes_release(warp *w, bool *any)
{
    *any = false;
    for (unsigned lane = 0; lane < PTX_WARP; lane++) {
        uint32_t here = w->state[lane] == LANE_WAITS ? all_here(w, lane) : 0;
        if (here == 0)
            continue;
        *any = true;
        if (!serve_lanes(w, here))
            return false;
    }
    return true;
}
