/* SPDX-License-Identifier: MIT */
/* A warp that runs: its registers, where each lane is, what it waits for. */
#ifndef TIDEPOOL_TESTS_PTX_WARP_H
#define TIDEPOOL_TESTS_PTX_WARP_H

#include "program.h"

typedef enum lane_state { LANE_RUNS, LANE_WAITS, LANE_AT_BARRIER, LANE_ENDED } lane_state;

typedef struct group {
    ptx_launch *launch;
    unsigned index, warp_count;
    struct warp *warps;
    unsigned char *shared;
    uint32_t random;
    ptx_range *last; /* the range that was found last */
} group;

typedef struct warp {
    group *of;
    unsigned index;
    uint64_t *registers; /* of each register the lanes one after another */
    unsigned char *local;
    uint32_t at[PTX_WARP], wanted[PTX_WARP]; /* instruction; lanes that it waits for */
    uint8_t state[PTX_WARP];
    uint32_t here; /* lanes that execute the current instruction */
} warp;

uint64_t warp_read_special(const warp *w, uint32_t number, unsigned lane);

/* An address: base and offset, in whatever space. */
static inline uint64_t warp_read(const warp *w, const operand *of, unsigned lane)
{
    switch ((operand_kind)of->kind) {
    case OPERAND_REGISTER: return w->registers[of->index * PTX_WARP + lane] ^ (of->negated ? 1 : 0);
    case OPERAND_VALUE: return of->value;
    case OPERAND_SPECIAL: return warp_read_special(w, of->index, lane);
    default:
        return of->value +
               (of->index != NO_REGISTER ? w->registers[of->index * PTX_WARP + lane] : 0);
    }
}

static inline void warp_write(warp *w, const operand *to, unsigned lane, uint64_t value)
{
    uint64_t mask = to->bits >= 64 ? UINT64_MAX : ((uint64_t)1 << to->bits) - 1;
    w->registers[to->index * PTX_WARP + lane] = value & mask;
}

/* warp.c */
__attribute__((format(printf, 4, 5))) bool warp_fault(warp *w, const instruction *one,
                                                      ptx_fault fault, const char *format, ...);

/* memory.c: what loads, stores and atomics do. */
bool memory_load(warp *w, const instruction *one, uint32_t lanes);
bool memory_store(warp *w, const instruction *one, uint32_t lanes);
bool memory_atomic(warp *w, const instruction *one, uint32_t lanes);

/* lanes.c: what lanes of a warp do together. */
bool lanes_active(warp *w, const instruction *one, uint32_t lanes);
bool lanes_meet(warp *w, const instruction *one, uint32_t lanes);
bool lanes_release(warp *w, bool *any); /* those that have met */

/* integer.c, real.c, convert.c */
lane_function alu_add, alu_sub, alu_mul, alu_mad, alu_div, alu_rem, alu_min, alu_max, alu_neg,
    alu_abs, alu_and, alu_or, alu_xor, alu_not, alu_shl, alu_shr, alu_brev, alu_popc, alu_clz,
    alu_bfind, alu_bfe, alu_bfi, alu_prmt, alu_lop3, alu_shf, alu_selp;
lane_function real_fma, real_rcp, real_sqrt, real_rsqrt, real_ex2, real_lg2, real_sin, real_cos;
lane_function convert_any, convert_address;
uint64_t real_binary(const instruction *one, uint64_t a, uint64_t b, char what);
bool real_compare(const instruction *one, uint64_t a, uint64_t b);
double real_value(ptx_type type, uint64_t bits);
uint64_t real_bits(ptx_type type, double value);
int real_rounding(const instruction *one); /* as fesetround wants it */
bool compare_set(warp *w, const instruction *one, uint32_t lanes);
bool move_any(warp *w, const instruction *one, uint32_t lanes);

#endif
