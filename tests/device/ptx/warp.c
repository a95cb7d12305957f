/* SPDX-License-Identifier: MIT */
/* Runs a launch: group by group, warp by warp. Of the lanes of a warp those at the lowest
 * instruction go on together until the way may part; so lanes that parted meet again where their
 * ways do. With a seed some random lanes go on instead. Each thread is on its own, as on devices
 * from sm_70 on: no order is promised between lanes that have parted. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "warp.h"

static const uint64_t most_instructions = 10000000000;

bool warp_fault(warp *w, const instruction *one, ptx_fault fault, const char *format, ...)
{
    ptx_launch *l = w->of->launch;
    va_list arguments;
    if (l->fault != PTX_NONE)
        return false;
    l->fault = fault;
    int used = snprintf(l->error, sizeof l->error,
                        "%.60s, line %u, %s, group %u, warp %u: ", l->kernel->name, one->line,
                        one->text, w->of->index, w->index);
    va_start(arguments, format);
    vsnprintf(l->error + used, sizeof l->error - (size_t)used, format, arguments);
    va_end(arguments);
    return false;
}

/* ---- registers ------------------------------------------------------------------------------ */

uint64_t warp_read_special(const warp *w, uint32_t number, unsigned lane)
{
    const ptx_launch *l = w->of->launch;
    uint32_t bit = (uint32_t)1 << lane;
    switch ((special)number) {
    case SPECIAL_TID_X: return w->index * PTX_WARP + lane;
    case SPECIAL_NTID_X: return l->group;
    case SPECIAL_CTAID_X: return w->of->index;
    case SPECIAL_NCTAID_X: return l->groups;
    case SPECIAL_LANE: return lane;
    case SPECIAL_WARP: return w->index;
    case SPECIAL_MASK_EQ: return bit;
    case SPECIAL_MASK_LT: return bit - 1;
    case SPECIAL_MASK_LE: return bit | (bit - 1);
    case SPECIAL_MASK_GT: return ~(bit | (bit - 1));
    case SPECIAL_MASK_GE: return ~(bit - 1);
    case SPECIAL_ONE: return 1;
    default: return 0;
    }
}

/* ---- one instruction ------------------------------------------------------------------------ */

static void run_lanes(warp *w, const instruction *one, uint32_t lanes)
{
    for (; lanes != 0; lanes &= lanes - 1) {
        unsigned lane = (unsigned)__builtin_ctz(lanes);
        uint64_t in[INS];
        for (unsigned i = 0; i < one->in_count; i++)
            in[i] = type_extend(warp_read(w, &one->in[i], lane), one->in_types[i]);
        warp_write(w, &one->out[0], lane, type_extend(one->code->lane(one, in), one->out_type));
    }
}

/* Those whose guard says so. */
static uint32_t guarded_lanes(const warp *w, const instruction *one, uint32_t lanes)
{
    uint32_t all = 0;
    if (one->guard == NO_REGISTER)
        return lanes;
    for (uint32_t left = lanes; left != 0; left &= left - 1) {
        unsigned lane = (unsigned)__builtin_ctz(left);
        bool set = w->registers[one->guard * PTX_WARP + lane] != 0;
        all |= set != one->guard_negated ? (uint32_t)1 << lane : 0;
    }
    return all;
}

static void set_places(warp *w, uint32_t lanes, uint32_t at, lane_state state)
{
    for (; lanes != 0; lanes &= lanes - 1) {
        unsigned lane = (unsigned)__builtin_ctz(lanes);
        w->at[lane] = at;
        w->state[lane] = (uint8_t)state;
    }
}

/* Where the way may part: `here` are all that came, `lanes` those that do it. */
static bool run_flow(warp *w, const instruction *one, uint32_t at, uint32_t here, uint32_t lanes)
{
    set_places(w, here & ~lanes, at + 1, LANE_RUNS);
    switch (one->code->flow) {
    case FLOW_BRANCH: set_places(w, lanes, one->target, LANE_RUNS); return true;
    case FLOW_END: set_places(w, lanes, at, LANE_ENDED); return true;
    case FLOW_BARRIER: set_places(w, lanes, at, LANE_AT_BARRIER); return true;
    case FLOW_WAIT: return one->code->warp(w, one, lanes);
    default: set_places(w, lanes, at + 1, LANE_RUNS); return true;
    }
}

/* These lanes from here to the end of the block. */
static bool run_block(warp *w, uint32_t at, uint32_t here)
{
    ptx_launch *l = w->of->launch;
    for (;; at++) {
        const instruction *one = &l->kernel->code[at];
        uint32_t lanes = guarded_lanes(w, one, here);
        l->instructions += (uint64_t)__builtin_popcount(here);
        w->here = here;
        if (one->code->lane != NULL)
            run_lanes(w, one, lanes);
        else if (one->code->flow == FLOW_ON && !one->code->warp(w, one, lanes))
            return false;
        if (one->ends_block)
            return run_flow(w, one, at, here, lanes);
    }
}

/* ---- a warp --------------------------------------------------------------------------------- */

static uint32_t next_random(group *g)
{
    g->random ^= g->random << 13;
    g->random ^= g->random >> 17;
    g->random ^= g->random << 5;
    return g->random;
}

static uint32_t lanes_in(const warp *w, lane_state state)
{
    uint32_t found = 0;
    for (unsigned lane = 0; lane < PTX_WARP; lane++)
        found |= w->state[lane] == state ? (uint32_t)1 << lane : 0;
    return found;
}

/* The lanes that go on next, all at one instruction; 0: none can. */
static uint32_t choose_lanes(warp *w, uint32_t *at)
{
    uint32_t able = lanes_in(w, LANE_RUNS), chosen = 0;
    if (able == 0)
        return 0;
    *at = UINT32_MAX;
    for (uint32_t left = able; left != 0; left &= left - 1) {
        unsigned lane = (unsigned)__builtin_ctz(left);
        *at = w->at[lane] < *at ? w->at[lane] : *at;
    }
    bool wild = w->of->launch->seed != 0 && next_random(w->of) % 4 == 0;
    for (unsigned lane = next_random(w->of) % PTX_WARP; wild; lane = (lane + 1) % PTX_WARP)
        if ((able >> lane & 1) != 0) {
            *at = w->at[lane];
            break;
        }
    for (uint32_t left = able; left != 0; left &= left - 1) {
        unsigned lane = (unsigned)__builtin_ctz(left);
        chosen |= w->at[lane] == *at ? (uint32_t)1 << lane : 0;
    }
    uint32_t fewer = wild ? chosen & next_random(w->of) : chosen;
    return fewer != 0 ? fewer : chosen;
}

/* Until none of its lanes can go on without the rest of the group. */
static bool run_warp(warp *w, bool *moved)
{
    ptx_launch *l = w->of->launch;
    for (;;) {
        uint32_t at = 0, lanes = choose_lanes(w, &at);
        if (lanes == 0)
            return true;
        *moved = true;
        if (!run_block(w, at, lanes))
            return false;
        bool any = true;
        while (any)
            if (!lanes_release(w, &any))
                return false;
        if (l->instructions > (l->most != 0 ? l->most : most_instructions))
            return warp_fault(w, &l->kernel->code[at], PTX_ENDLESS, "%llu instructions and no end",
                              (unsigned long long)l->instructions);
    }
}

/* ---- a group -------------------------------------------------------------------------------- */

/* Do all that have not ended wait for the group? Then on with them. */
static bool pass_barrier(group *g, bool *live)
{
    *live = false;
    for (unsigned i = 0; i < g->warp_count; i++) {
        warp *w = &g->warps[i];
        uint32_t ended = lanes_in(w, LANE_ENDED);
        *live = *live || ended != UINT32_MAX;
        if ((lanes_in(w, LANE_AT_BARRIER) | ended) != UINT32_MAX)
            return false;
    }
    for (unsigned i = 0; i < g->warp_count; i++)
        for (unsigned lane = 0; lane < PTX_WARP; lane++)
            if (g->warps[i].state[lane] == LANE_AT_BARRIER) {
                g->warps[i].state[lane] = LANE_RUNS;
                g->warps[i].at[lane]++;
            }
    return true;
}

static bool tell_stuck(group *g)
{
    for (unsigned i = 0; i < g->warp_count; i++) {
        warp *w = &g->warps[i];
        uint32_t waiting = lanes_in(w, LANE_WAITS);
        unsigned lane = waiting != 0 ? (unsigned)__builtin_ctz(waiting) : 0;
        if (waiting != 0)
            return warp_fault(
                w, &g->launch->kernel->code[w->at[lane]], PTX_STUCK,
                "lane %u waits for lanes %#x, of which %#x have ended and %#x wait for the group",
                lane, w->wanted[lane], lanes_in(w, LANE_ENDED), lanes_in(w, LANE_AT_BARRIER));
    }
    return warp_fault(&g->warps[0], &g->launch->kernel->code[0], PTX_STUCK, "nothing goes on");
}

static bool run_group(group *g)
{
    for (;;) {
        bool moved = false, live;
        for (unsigned i = 0; i < g->warp_count; i++)
            if (!run_warp(&g->warps[i], &moved))
                return false;
        bool passed = pass_barrier(g, &live);
        if (!live)
            return true;
        if (!passed && !moved)
            return tell_stuck(g);
    }
}

/* What registers and memory hold at the start is nobody's business: 0xA5. */
static void begin_group(group *g, unsigned index)
{
    const ptx_kernel *k = g->launch->kernel;
    g->index = index;
    memset(g->shared, 0xA5, k->shared_bytes);
    for (unsigned i = 0; i < g->warp_count; i++) {
        warp *w = &g->warps[i];
        w->of = g;
        w->index = i;
        memset(w->local, 0xA5, k->local_bytes * PTX_WARP);
        memset(w->registers, 0xA5, (size_t)k->registers * PTX_WARP * sizeof *w->registers);
        for (unsigned lane = 0; lane < PTX_WARP; lane++) {
            w->at[lane] = 0;
            w->state[lane] = i * PTX_WARP + lane < g->launch->group ? LANE_RUNS : LANE_ENDED;
        }
    }
}

/* ---- a launch ------------------------------------------------------------------------------- */

static bool refuse_launch(ptx_launch *l, const char *why)
{
    l->fault = PTX_BAD_LAUNCH;
    snprintf(l->error, sizeof l->error, "%.60s: %u groups of %u: %s", l->kernel->name, l->groups,
             l->group, why);
    return false;
}

static void *make_room(size_t bytes)
{
    void *made = malloc(bytes + 16);
    if (made == NULL)
        abort();
    return made;
}

static void open_group(group *g, ptx_launch *l)
{
    const ptx_kernel *k = l->kernel;
    *g = (group){
        .launch = l, .warp_count = (l->group + PTX_WARP - 1) / PTX_WARP, .random = l->seed | 1};
    g->warps = make_room(g->warp_count * sizeof *g->warps);
    g->shared = make_room(k->shared_bytes);
    for (unsigned i = 0; i < g->warp_count; i++) {
        g->warps[i].registers = make_room((size_t)k->registers * PTX_WARP * sizeof(uint64_t));
        g->warps[i].local = make_room(k->local_bytes * PTX_WARP);
    }
}

static void close_group(group *g)
{
    for (unsigned i = 0; i < g->warp_count; i++) {
        free(g->warps[i].registers);
        free(g->warps[i].local);
    }
    free(g->warps);
    free(g->shared);
}

bool ptx_run(ptx_launch *l)
{
    group g;
    bool good = true;
    l->fault = PTX_NONE;
    l->instructions = 0;
    l->error[0] = '\0';
    if (l->groups == 0 || l->group == 0 || l->group > 1024)
        return refuse_launch(l, "not possible");
    if (l->kernel->most_threads != 0 && l->group > l->kernel->most_threads)
        return refuse_launch(l, "more threads than the kernel was made for");
    open_group(&g, l);
    for (unsigned i = 0; i < l->groups && good; i++) {
        begin_group(&g, i);
        good = run_group(&g);
    }
    close_group(&g);
    return good;
}
