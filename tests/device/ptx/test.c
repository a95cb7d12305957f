/* SPDX-License-Identifier: MIT */
/* The interpreter itself: every form of every instruction by a known result; what it refuses to
 * read; accesses outside, misaligned ones; lanes that part, meet, and wait for what never comes. */
#include <fenv.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ptx.h"

static const char head[] =
    ".version 8.0\n.target sm_90\n.address_size 64\n"
    ".visible .entry k(.param .u64 k_out, .param .align 16 .b8 k_table[32])\n{\n"
    ".reg .pred %p<10>; .reg .b16 %h<20>; .reg .b32 %r<40>; .reg .b64 %d<40>;\n"
    ".reg .f32 %f<20>; .reg .f64 %g<20>; .shared .align 8 .b8 pot[64];\n"
    ".local .align 8 .b8 own[32];\n";
enum { HEAD_LINES = 8, WORDS = 2048 };

static uint64_t memory[WORDS];

typedef struct parameters {
    uint64_t out, gap, table[4];
} parameters;

static ptx_module *load_body(const char *body, char error[PTX_ERROR_BYTES])
{
    static char text[16 << 10];
    snprintf(text, sizeof text, "%sld.param.u64 %%d0, [k_out];\n%s\nret;\n}\n", head, body);
    return ptx_load(text, error);
}

/* Runs it; what is in `memory` then is the result. */
static ptx_launch run_body(const char *body, unsigned groups, unsigned group, uint32_t seed)
{
    char error[PTX_ERROR_BYTES];
    ptx_module *m = load_body(body, error);
    if (m == NULL)
        fail_msg("%s: %s", body, error);
    const parameters given = {(uint64_t)(uintptr_t)memory, 0, {1, 2, 3, 0x0807060504030201}};
    ptx_range range = {.address = given.out, .bytes = sizeof memory, .host = memory};
    ptx_launch l = {.kernel = ptx_find(m, "k"),
                    .groups = groups,
                    .group = group,
                    .parameters = &given,
                    .ranges = &range,
                    .range_count = 1,
                    .seed = seed,
                    .most = 1000000};
    memset(memory, 0, sizeof memory);
    (void)ptx_run(&l);
    l.kernel = NULL;
    ptx_unload(m);
    return l;
}

/* ---- forms ---------------------------------------------------------------------------------- */

/* The result is in %r10, %d10, %f10, %g10, %h10 or %p1, as the letter says. */
typedef struct form {
    char where;
    const char *body;
    uint64_t wanted;
} form;

static const char *store_of(char where)
{
    switch (where) {
    case 'r': return "st.global.u32 [%d0], %r10;";
    case 'd': return "st.global.u64 [%d0], %d10;";
    case 'f': return "st.global.f32 [%d0], %f10;";
    case 'g': return "st.global.f64 [%d0], %g10;";
    case 'h': return "st.global.u16 [%d0], %h10;";
    default: return "selp.u32 %r11, 1, 0, %p1; st.global.u32 [%d0], %r11;";
    }
}

static void expect_forms(const form *all, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char body[2048];
        snprintf(body, sizeof body, "%s\n%s", all[i].body, store_of(all[i].where));
        ptx_launch l = run_body(body, 1, 1, 0);
        if (l.fault != PTX_NONE)
            fail_msg("%s: %s", all[i].body, l.error);
        if (memory[0] != all[i].wanted)
            fail_msg("%s: %#llx, not %#llx", all[i].body, (unsigned long long)memory[0],
                     (unsigned long long)all[i].wanted);
    }
}

#define EXPECT_FORMS(all) expect_forms(all, sizeof(all) / sizeof *(all))

static void integers(void **unused)
{
    (void)unused;
    static const form all[] = {
        {'r', "add.s32 %r10, 5, -7;", 0xFFFFFFFE},
        {'h', "add.u16 %h10, 65535, 2;", 1},
        {'d', "mov.u64 %d1, -1; add.s64 %d10, %d1, 3;", 2},
        {'r', "sub.u32 %r10, 3, 5;", 0xFFFFFFFE},
        {'r', "mul.lo.s32 %r10, -3, 7;", 0xFFFFFFEB},
        {'r', "mul.hi.u32 %r10, 0xFFFFFFFF, 0xFFFFFFFF;", 0xFFFFFFFE},
        {'r', "mul.hi.s32 %r10, -1, 5;", 0xFFFFFFFF},
        {'d', "mov.u64 %d1, 0xFFFFFFFFFFFFFFFF; mul.hi.u64 %d10, %d1, %d1;", 0xFFFFFFFFFFFFFFFE},
        {'d', "mov.u64 %d1, -1; mul.hi.s64 %d10, %d1, 7;", UINT64_MAX},
        {'d', "mul.wide.u32 %d10, 0xFFFFFFFF, 2;", 0x1FFFFFFFE},
        {'d', "mul.wide.s32 %d10, -1, 2;", (uint64_t)-2},
        {'r', "mul.wide.u16 %r10, 65535, 65535;", 0xFFFE0001},
        {'r', "mad.lo.s32 %r10, 3, 4, 5;", 17},
        {'d', "mov.u64 %d1, 5; mad.wide.s32 %d10, -3, 4, %d1;", (uint64_t)-7},
        {'d', "mov.u64 %d1, 5; mad.lo.s64 %d10, %d1, %d1, %d1;", 30},
        {'r', "div.s32 %r10, -7, 2;", 0xFFFFFFFD},
        {'r', "div.u32 %r10, 0xFFFFFFFE, 2;", 0x7FFFFFFF},
        {'r', "div.u32 %r10, 7, 0;", 0xFFFFFFFF},
        {'r', "div.s32 %r10, 0x80000000, -1;", 0x80000000},
        {'r', "rem.s32 %r10, -7, 2;", 0xFFFFFFFF},
        {'r', "rem.u32 %r10, 37, 10;", 7},
        {'r', "rem.s32 %r10, 0x80000000, -1;", 0},
        {'r', "min.s32 %r10, -1, 1;", 0xFFFFFFFF},
        {'r', "min.u32 %r10, -1, 1;", 1},
        {'r', "max.s32 %r10, -1, 1;", 1},
        {'r', "max.u32 %r10, -1, 1;", 0xFFFFFFFF},
        {'r', "neg.s32 %r10, 5;", 0xFFFFFFFB},
        {'r', "abs.s32 %r10, -5;", 5},
    };
    EXPECT_FORMS(all);
}

static void bits(void **unused)
{
    (void)unused;
    static const form all[] = {
        {'r', "and.b32 %r10, 12, 10;", 8},
        {'r', "or.b32 %r10, 12, 10;", 14},
        {'r', "xor.b32 %r10, 12, 10;", 6},
        {'r', "not.b32 %r10, 5;", 0xFFFFFFFA},
        {'h', "and.b16 %h10, 0xFF0F, 0x0FFF;", 0x0F0F},
        {'d', "mov.u64 %d1, 5; not.b64 %d10, %d1;", ~(uint64_t)5},
        {'p', "setp.eq.s32 %p2, 1, 2; not.pred %p1, %p2;", 1},
        {'p', "setp.eq.s32 %p2, 1, 1; not.pred %p1, %p2;", 0},
        {'p', "setp.eq.s32 %p2, 1, 1; setp.eq.s32 %p3, 1, 2; or.pred %p1, %p2, %p3;", 1},
        {'p', "setp.eq.s32 %p2, 1, 1; setp.eq.s32 %p3, 1, 2; and.pred %p1, %p2, %p3;", 0},
        {'p', "setp.eq.s32 %p2, 1, 1; xor.pred %p1, %p2, !%p2;", 1},
        {'r', "shl.b32 %r10, 3, 4;", 48},
        {'r', "shl.b32 %r10, 3, 32;", 0},
        {'d', "mov.u64 %d1, 1; shl.b64 %d10, %d1, 63;", (uint64_t)1 << 63},
        {'r', "shr.u32 %r10, 0x80000000, 31;", 1},
        {'r', "shr.s32 %r10, 0x80000000, 31;", 0xFFFFFFFF},
        {'r', "shr.s32 %r10, 0x80000000, 99;", 0xFFFFFFFF},
        {'r', "shr.u32 %r10, 0x80000000, 99;", 0},
        {'r', "shf.l.wrap.b32 %r10, 0x80000000, 1, 1;", 3},
        {'r', "shf.r.wrap.b32 %r10, 0x80000000, 1, 33;", 0xC0000000},
        {'r', "shf.r.clamp.b32 %r10, 0x80000000, 1, 33;", 1},
        {'r', "brev.b32 %r10, 1;", 0x80000000},
        {'d', "mov.u64 %d1, 2; brev.b64 %d10, %d1;", (uint64_t)1 << 62},
        {'r', "popc.b32 %r10, 0xF0F;", 8},
        {'r', "mov.u64 %d1, -1; popc.b64 %r10, %d1;", 64},
        {'r', "clz.b32 %r10, 1;", 31},
        {'r', "mov.u64 %d1, 0; clz.b64 %r10, %d1;", 64},
        {'r', "bfind.u32 %r10, 0x100;", 8},
        {'r', "bfind.u32 %r10, 0;", 0xFFFFFFFF},
        {'r', "bfind.s32 %r10, -2;", 0},
        {'r', "bfind.shiftamt.u32 %r10, 0x100;", 23},
        {'r', "bfe.u32 %r10, 0x12345678, 8, 12;", 0x456},
        {'r', "bfe.s32 %r10, 0xF00, 8, 4;", 0xFFFFFFFF},
        {'r', "bfe.u32 %r10, 0x12345678, 8, 0;", 0},
        {'r', "bfi.b32 %r10, 0xAB, 0x11111111, 8, 8;", 0x1111AB11},
        {'r', "prmt.b32 %r10, 0x33221100, 0x77665544, 0x7531;", 0x77553311},
        {'r', "prmt.b32 %r10, 0x80, 0, 0x8;", 0x808080FF},
        {'r', "lop3.b32 %r10, 0xF0, 0xCC, 0xAA, 0x96;", 0x96},
        {'r', "setp.eq.s32 %p1, 1, 1; selp.b32 %r10, 4, 9, %p1;", 4},
        {'r', "setp.eq.s32 %p1, 1, 2; selp.b32 %r10, 4, 9, %p1;", 9},
        {'d', "mov.b64 %d10, {7, 9};", (uint64_t)9 << 32 | 7},
        {'r', "mov.u64 %d1, 0x500000006; mov.b64 {%r9, %r10}, %d1;", 5},
        {'d', "mov.b64 %d1, k_table; sub.s64 %d10, %d1, 0;", 16},
        {'r', "mov.u32 %r10, %ntid.x;", 1},
    };
    EXPECT_FORMS(all);
}

static void reals(void **unused)
{
    (void)unused;
    static const form all[] = {
        {'f', "add.f32 %f10, 0f3F800000, 0f40000000;", 0x40400000},
        {'f', "add.rn.ftz.f32 %f10, 0f00000001, 0f00000000;", 0},
        {'f', "add.f32 %f10, 0f00000001, 0f00000000;", 1},
        {'f', "add.sat.f32 %f10, 0f3F800000, 0f40000000;", 0x3F800000},
        {'f', "sub.f32 %f10, 0f3F800000, 0f40000000;", 0xBF800000},
        {'f', "mul.f32 %f10, 0f40400000, 0f40000000;", 0x40C00000},
        {'g', "add.f64 %g10, 0d3FF0000000000000, 0d3FF0000000000000;", 0x4000000000000000},
        {'f', "div.rn.f32 %f10, 0f3F800000, 0f40400000;", 0x3EAAAAAB},
        {'f', "rcp.rn.f32 %f10, 0f40400000;", 0x3EAAAAAB},
        {'f', "sqrt.rn.f32 %f10, 0f40000000;", 0x3FB504F3},
        {'f', "rsqrt.approx.f32 %f10, 0f40800000;", 0x3F000000},
        {'f', "ex2.approx.ftz.f32 %f10, 0f40400000;", 0x41000000},
        {'f', "lg2.approx.f32 %f10, 0f41000000;", 0x40400000},
        {'f', "sin.approx.f32 %f10, 0f00000000;", 0},
        {'f', "cos.approx.f32 %f10, 0f00000000;", 0x3F800000},
        {'f', "fma.rn.f32 %f10, 0f40400000, 0f40000000, 0f3F800000;", 0x40E00000},
        {'f', "neg.f32 %f10, 0f3F800000;", 0xBF800000},
        {'f', "abs.f32 %f10, 0fBF800000;", 0x3F800000},
        {'f', "min.f32 %f10, 0f7FC00000, 0f3F800000;", 0x3F800000},
        {'f', "max.f32 %f10, 0f80000000, 0f00000000;", 0},
        {'f', "sub.f32 %f10, 0f7F800000, 0f7F800000;", 0x7FFFFFFF},
        {'f', "cvt.rn.f32.s32 %f10, -3;", 0xC0400000},
        {'f', "cvt.rn.f32.u32 %f10, 0xFFFFFFFF;", 0x4F800000},
        {'f', "cvt.sat.f32.f32 %f10, 0f40000000;", 0x3F800000},
        {'f', "cvt.rni.f32.f32 %f10, 0f40200000;", 0x40000000},
        {'f', "cvt.rn.f32.f64 %f10, 0d3FD5555555555555;", 0x3EAAAAAB},
        {'g', "cvt.f64.f32 %g10, 0f3F800000;", 0x3FF0000000000000},
        {'r', "cvt.rzi.s32.f32 %r10, 0fC0200000;", 0xFFFFFFFE},
        {'r', "cvt.rzi.u32.f32 %r10, 0fC0200000;", 0},
        {'r', "cvt.rzi.s32.f32 %r10, 0f7F800000;", 0x7FFFFFFF},
        {'r', "cvt.rzi.s32.f32 %r10, 0f7FC00000;", 0},
    };
    EXPECT_FORMS(all);
}

/* Valgrind's processor rounds to nearest, whatever it is told. */
static bool rounding_can_be_told(void)
{
    volatile float one = 1, little = 1e-30f;
    fesetround(FE_UPWARD);
    volatile float sum = one + little; /* while the mode is in force */
    fesetround(FE_TONEAREST);
    return sum > 1;
}

static void reals_are_rounded_as_told(void **unused)
{
    (void)unused;
    static const form all[] = {
        {'f', "add.rp.f32 %f10, 0f3F800000, 0f00000001;", 0x3F800001},
        {'f', "add.rz.f32 %f10, 0f3F800000, 0f33000000;", 0x3F800000},
        {'f', "fma.rm.f32 %f10, 0f3F800001, 0f3F800001, 0f00000000;", 0x3F800002},
        {'f', "fma.rp.f32 %f10, 0f3F800001, 0f3F800001, 0f00000000;", 0x3F800003},
        {'f', "cvt.rz.f32.u32 %f10, 0xFFFFFFFF;", 0x4F7FFFFF},
        {'r', "cvt.rmi.s32.f32 %r10, 0fC0200000;", 0xFFFFFFFD},
    };
    if (!rounding_can_be_told())
        skip();
    EXPECT_FORMS(all);
}

static void conversions_and_comparisons(void **unused)
{
    (void)unused;
    static const form all[] = {
        {'d', "cvt.u64.u32 %d10, 0xFFFFFFFF;", 0xFFFFFFFF},
        {'d', "mov.u32 %r1, -2; cvt.s64.s32 %d10, %r1;", (uint64_t)-2},
        {'r', "mov.u64 %d1, 0x1234567890; cvt.u32.u64 %r10, %d1;", 0x34567890},
        {'r', "mov.u32 %r1, 0x1280; cvt.s32.s8 %r10, %r1;", 0xFFFFFF80},
        {'r', "mov.u32 %r1, 0x1280; cvt.u32.u8 %r10, %r1;", 0x80},
        {'h', "mov.u64 %d1, 0x12345; cvt.u16.u64 %h10, %d1;", 0x2345},
        {'r', "mov.u32 %r1, 300; cvt.sat.u8.u32 %r10, %r1;", 255},
        {'r', "mov.u32 %r1, -300; cvt.sat.s8.s32 %r10, %r1;", 0xFFFFFF80},
        {'r', "mov.u32 %r1, -300; cvt.sat.u8.s32 %r10, %r1;", 0},
        {'p', "setp.lt.s32 %p1, -1, 1;", 1},
        {'p', "setp.lt.u32 %p1, -1, 1;", 0},
        {'p', "setp.lo.u32 %p1, 0, 1;", 1},
        {'p', "setp.hs.u32 %p1, 1, 1;", 1},
        {'p', "setp.le.s32 %p1, 1, 1;", 1},
        {'p', "setp.gt.u32 %p1, -1, 1;", 1},
        {'p', "setp.ge.s32 %p1, -1, 1;", 0},
        {'p', "setp.ne.s32 %p1, 1, 2;", 1},
        {'p', "mov.u16 %h1, 3; setp.eq.s16 %p1, %h1, 3;", 1},
        {'p', "mov.u64 %d1, -1; setp.gt.u64 %p1, %d1, 0;", 1},
        {'p', "setp.eq.s32 %p2, 1, 1; setp.eq.and.s32 %p1, 1, 2, %p2;", 0},
        {'p', "setp.eq.s32 %p2, 1, 1; setp.eq.or.s32 %p1, 1, 2, %p2;", 1},
        {'p', "setp.eq.s32 %p2, 1, 1; setp.eq.xor.s32 %p1, 1, 1, %p2;", 0},
        {'p', "setp.eq.s32 %p2|%p1, 1, 2;", 1},
        {'p', "setp.lt.f32 %p1, 0f3F800000, 0f40000000;", 1},
        {'p', "setp.lt.f32 %p1, 0f7FC00000, 0f40000000;", 0},
        {'p', "setp.ltu.f32 %p1, 0f7FC00000, 0f40000000;", 1},
        {'p', "setp.nan.f32 %p1, 0f7FC00000, 0f40000000;", 1},
        {'p', "setp.num.f32 %p1, 0f7FC00000, 0f40000000;", 0},
        {'p', "setp.neu.f64 %p1, 0d3FF0000000000000, 0d3FF0000000000000;", 0},
        {'r', "setp.eq.s32 %p2, 1, 2; mov.u32 %r10, 1; @%p2 mov.u32 %r10, 2;", 1},
        {'r', "setp.eq.s32 %p2, 1, 2; mov.u32 %r10, 1; @!%p2 mov.u32 %r10, 2;", 2},
        {'r', "mov.u32 %r10, 1; bra.uni over; mov.u32 %r10, 2; over: add.s32 %r10, %r10, 8;", 9},
    };
    EXPECT_FORMS(all);
}

static void spaces(void **unused)
{
    (void)unused;
    static const form all[] = {
        {'d', "ld.param.u64 %d10, [k_table+16];", 3},
        {'d', "ld.param.v2.u64 {%d9, %d10}, [k_table+16];", 0x0807060504030201},
        {'r', "mov.b64 %d1, k_table; ld.param.v4.u8 {%r1, %r2, %r3, %r10}, [%d1+28];", 8},
        {'d', "mov.b64 %d1, k_table; cvta.param.u64 %d2, %d1; ld.u64 %d10, [%d2+8];", 2},
        {'r', "st.shared.u32 [pot+8], 77; ld.shared.u32 %r10, [pot+8];", 77},
        {'r',
         "mov.u64 %d1, pot; cvta.shared.u64 %d2, %d1; st.shared.u32 [pot+4], 78; ld.u32 %r10, "
         "[%d2+4];",
         78},
        {'r',
         "mov.u64 %d1, own; cvta.local.u64 %d2, %d1; st.u32 [%d2+4], 79; ld.local.u32 %r10, "
         "[own+4];",
         79},
        {'d',
         "mov.u64 %d1, pot; cvta.shared.u64 %d2, %d1; cvta.to.shared.u64 %d3, %d2; sub.s64 %d10, "
         "%d3, %d1;",
         0},
        {'r', "st.global.u32 [%d0+64], 0x80; ld.global.s8 %r10, [%d0+64];", 0xFFFFFF80},
        {'r', "st.global.u32 [%d0+64], 0x80; ld.volatile.global.u8 %r10, [%d0+64];", 0x80},
        {'d', "st.global.u32 [%d0+64], -1; ld.global.nc.u32 %d10, [%d0+64];", 0xFFFFFFFF},
        {'d', "st.global.v2.u64 [%d0+64], {4, 6}; ld.relaxed.gpu.global.u64 %d10, [%d0+72];", 6},
        {'r', "add.s64 %d1, %d0, 64; st.global.u32 [%d1+-4], 5; ld.global.u32 %r10, [%d0+60];", 5},
    };
    EXPECT_FORMS(all);
}

static void atomics(void **unused)
{
    (void)unused;
#define AT(old, body) "st.global.u64 [%d0+64], " old "; " body " ld.global.u64 %d10, [%d0+64];"
    static const form all[] = {
        {'d', AT("5", "atom.global.add.u64 %d2, [%d0+64], 3;"), 8},
        {'d', "st.global.u64 [%d0+64], 5; atom.global.add.u64 %d10, [%d0+64], 3;", 5},
        {'d', AT("5", "red.global.add.u32 [%d0+64], 3;"), 8},
        {'d', AT("5", "atom.relaxed.gpu.global.min.s32 %r2, [%d0+64], -3;"), 0xFFFFFFFD},
        {'d', AT("5", "atom.global.max.s32 %r2, [%d0+64], -3;"), 5},
        {'d', AT("5", "atom.global.min.u32 %r2, [%d0+64], -3;"), 5},
        {'d', AT("12", "atom.and.b32 %r2, [%d0+64], 10;"), 8},
        {'d', AT("12", "atom.global.or.b32 %r2, [%d0+64], 10;"), 14},
        {'d', AT("12", "atom.global.xor.b32 %r2, [%d0+64], 10;"), 6},
        {'d', AT("12", "atom.global.exch.b64 %d2, [%d0+64], 10;"), 10},
        {'d', AT("12", "atom.global.cas.b32 %r2, [%d0+64], 12, 99;"), 99},
        {'d', AT("12", "atom.global.cas.b32 %r2, [%d0+64], 13, 99;"), 12},
        {'d', AT("3", "atom.global.inc.u32 %r2, [%d0+64], 3;"), 0},
        {'d', AT("0", "atom.global.dec.u32 %r2, [%d0+64], 3;"), 3},
        {'d', AT("0x3F800000", "atom.global.add.f32 %f2, [%d0+64], 0f3F800000;"), 0x40000000},
        {'r',
         "st.shared.u32 [pot], 5; atom.shared.add.u32 %r2, [pot], 1; ld.shared.u32 %r10, [pot];",
         6},
    };
    EXPECT_FORMS(all);
}

/* ---- what is refused ------------------------------------------------------------------------ */

static void expect_refused(const char *body, const char *words)
{
    char error[PTX_ERROR_BYTES];
    ptx_module *m = load_body(body, error);
    if (m != NULL)
        fail_msg("loaded: %s", body);
    if (strstr(error, words) == NULL)
        fail_msg("'%s' lacks '%s'", error, words);
}

static void what_is_unknown_is_refused(void **unused)
{
    (void)unused;
    char line[32];
    snprintf(line, sizeof line, "line %d: ", HEAD_LINES + 3);
    expect_refused("\nwmma.load.a.sync.f16 %r1, [%d0];", line);
    expect_refused("\nwmma.load.a.sync.f16 %r1, [%d0];", "'wmma.load.a.sync.f16' is not known");
    expect_refused("add.cc.u32 %r1, %r2, %r3;", "'add.cc.u32' is not known");
    expect_refused("mul.u32 %r1, %r2, %r3;", "'mul.u32' is not known");
    expect_refused("add.rn.u32 %r1, %r2, %r3;", "'add.rn.u32' is not known");
    expect_refused("add.f16 %h1, %h2, %h3;", "'add.f16' is not known");
    expect_refused("atom.global.u32 %r1, [%d0], 1;", "'atom.global.u32' is not known");
    expect_refused("mov.u32 %r1, %clock;", "'%clock' is not known");
    expect_refused("mov.u32 %r1, %r40;", "'%r40' is not known");
    expect_refused("add.u32 %r1, %r2;", "has 2 operands, not 3");
    expect_refused("add.u32 %d1, %r2, %r3;", "writes a register of another width");
    expect_refused("add.u64 %d1, %d2, %r3;", "reads a register of another width");
    expect_refused("add %r1, %r2, %r3;", "has no type");
    expect_refused("ld.global.v2.u32 %r1, [%d0];", "vector of another length");
    expect_refused("ld.global.u32 %r1, [%r2];", "no address of 64 bits");
    expect_refused("bra nowhere;", "no label 'nowhere'");
    expect_refused("call foo, (%r1);", "'call' is not known");
    expect_refused("@%r1 ret;", "no predicate");
    expect_refused("add.u32 5, %r2, %r3;", "writes what is no register");
}

static void what_is_no_module_is_refused(void **unused)
{
    (void)unused;
    char error[PTX_ERROR_BYTES];
    static const char *const all[][2] = {
        {"", "no .target"},
        {".target sm_90\n.address_size 32\n", "64 bits"},
        {".target sm_90\n.func f() { ret; }", "'.func' is not known"},
        {".target sm_90\n.visible .entry k()\n.nonsense 3\n{ ret; }",
         "line 3: the directive '.nonsense'"},
        {".target sm_90\n.visible .entry k()\n{ ret;", "end of the text"},
        {".target sm_90\n.visible .entry k()\n{ .reg .b32 %r<2>; mov.u32 %r1, 1; }",
         "past its end"},
        {".target sm_90\n.global .u32 x = 3;", "'.global' is not known"},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        assert_null(ptx_load(all[i][0], error));
        if (strstr(error, all[i][1]) == NULL)
            fail_msg("'%s' lacks '%s'", error, all[i][1]);
    }
}

/* ---- faults --------------------------------------------------------------------------------- */

static void expect_fault(const char *body, unsigned group, ptx_fault fault, const char *words)
{
    for (uint32_t seed = 0; seed < 4; seed++) {
        ptx_launch l = run_body(body, 1, group, seed);
        if (l.fault != fault || strstr(l.error, words) == NULL)
            fail_msg("%s: fault %d '%s', not %d '%s'", body, (int)l.fault, l.error, (int)fault,
                     words);
    }
}

static void what_lies_outside_is_a_fault(void **unused)
{
    (void)unused;
    expect_fault("ld.global.u64 %d1, [%d0+16384];", 1, PTX_ILLEGAL_ADDRESS,
                 "reads 8 bytes of global memory");
    expect_fault("st.global.u8 [%d0+-1], 0;", 1, PTX_ILLEGAL_ADDRESS,
                 "writes 1 bytes of global memory");
    expect_fault("st.global.v2.u64 [%d0+16384], {1, 2};", 1, PTX_ILLEGAL_ADDRESS, "16 bytes");
    expect_fault("mov.u64 %d1, 0; ld.u32 %r1, [%d1];", 1, PTX_ILLEGAL_ADDRESS, "at 0");
    expect_fault("atom.global.add.u32 %r1, [%d0+16384], 1;", 1, PTX_ILLEGAL_ADDRESS,
                 "changes 4 bytes");
    expect_fault("ld.shared.u32 %r1, [pot+64];", 1, PTX_ILLEGAL_ADDRESS, "shared memory");
    expect_fault("ld.local.u32 %r1, [own+32];", 1, PTX_ILLEGAL_ADDRESS, "local memory");
    expect_fault("ld.param.u32 %r1, [k_table+32];", 1, PTX_ILLEGAL_ADDRESS, "parameter memory");
    expect_fault("mov.b64 %d1, k_table; cvta.param.u64 %d2, %d1; st.u32 [%d2], 1;", 1,
                 PTX_ILLEGAL_ADDRESS, "writes 4 bytes");
    expect_fault("mov.u32 %r1, %tid.x; mul.wide.u32 %d1, %r1, 512; add.s64 %d2, %d0, %d1; "
                 "st.global.u64 [%d2], 1;",
                 64, PTX_ILLEGAL_ADDRESS, "lane 0 writes 8 bytes");
}

static void what_is_not_aligned_is_a_fault(void **unused)
{
    (void)unused;
    expect_fault("ld.global.u32 %r1, [%d0+2];", 1, PTX_MISALIGNED, "reads 4 bytes");
    expect_fault("st.global.v2.u64 [%d0+8], {1, 2};", 1, PTX_MISALIGNED, "writes 16 bytes");
    expect_fault("ld.shared.u64 %d1, [pot+4];", 1, PTX_MISALIGNED, "shared memory");
    expect_fault("atom.global.add.u64 %d1, [%d0+4], 1;", 1, PTX_MISALIGNED, "changes 8 bytes");
    expect_fault("ld.param.u64 %d1, [k_table+4];", 1, PTX_MISALIGNED, "parameter memory");
}

static void what_does_not_end_is_ended(void **unused)
{
    (void)unused;
    expect_fault("again: bra again;", 1, PTX_ENDLESS, "no end");
}

/* ---- lanes ---------------------------------------------------------------------------------- */

/* Each thread's result, at its own place. */
#define EACH(body)                                                                                 \
    "mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mad.lo.s32 %r4, %r2, %r3, " \
    "%r1;\n"                                                                                       \
    "mul.wide.u32 %d1, %r4, 8; add.s64 %d2, %d0, %d1; mov.u32 %r5, %laneid;\n" body                \
    " st.global.u32 [%d2], %r10;"

static void expect_each(const char *body, unsigned groups, unsigned group,
                        uint32_t (*wanted)(uint32_t))
{
    for (uint32_t seed = 0; seed < 8; seed++) {
        ptx_launch l = run_body(body, groups, group, seed);
        if (l.fault != PTX_NONE)
            fail_msg("%s", l.error);
        for (uint32_t i = 0; i < groups * group; i++)
            if ((uint32_t)memory[i] != wanted(i))
                fail_msg("thread %u, seed %u: %#x, not %#x", i, seed, (uint32_t)memory[i],
                         wanted(i));
        assert_true(memory[groups * group] == 0 && l.instructions > groups * group * 8);
    }
}

static uint32_t itself(uint32_t i)
{
    return i;
}

static uint32_t three(uint32_t i)
{
    return i % 32 < 7 ? 100 + i : i % 32 < 20 ? 200 + i : 300 + i;
}

static void threads_have_places(void **unused)
{
    (void)unused;
    expect_each(EACH("mov.u32 %r10, %r4;"), 3, 70, itself);
    expect_each(EACH("mov.u32 %r10, %r4; setp.ge.u32 %p1, %r5, 32; @%p1 bra never; bra.uni good;\n"
                     "never: mov.u32 %r10, 0; good: membar.gl; fence.acq_rel.gpu;"),
                2, 33, itself);
    expect_each(EACH("setp.lt.u32 %p1, %r5, 7; setp.lt.u32 %p2, %r5, 20; @%p1 bra a; @%p2 bra b;\n"
                     "add.s32 %r10, %r4, 300; bra.uni end; b: add.s32 %r10, %r4, 200; bra end;\n"
                     "a: add.s32 %r10, %r4, 100; end:"),
                4, 64, three);
}

static uint32_t neighbour(uint32_t i)
{
    return i ^ 3;
}

static uint32_t last_of_eight(uint32_t i)
{
    return i | 7;
}

static uint32_t one_below(uint32_t i)
{
    return i % 32 == 0 ? i : i - 1;
}

static uint32_t two_above(uint32_t i)
{
    return i % 32 > 29 ? 1000 + i : i + 2;
}

static uint32_t low_lanes(uint32_t i)
{
    return i % 32 < 12 ? 0xFFF : 0xFFFFF000;
}

static void lanes_exchange(void **unused)
{
    (void)unused;
    expect_each(EACH("shfl.sync.bfly.b32 %r10, %r4, 3, 31, -1;"), 2, 64, neighbour);
    expect_each(EACH("shfl.sync.idx.b32 %r10, %r4, 7, 0x181F, -1;"), 2, 64, last_of_eight);
    expect_each(EACH("shfl.sync.up.b32 %r10, %r4, 1, 0, -1;"), 2, 64, one_below);
    expect_each(
        EACH("shfl.sync.down.b32 %r10|%p1, %r4, 2, 31, -1; @!%p1 add.s32 %r10, %r10, 1000;"), 2, 64,
        two_above);
    /* Lanes that have parted meet by their masks, at two instructions. */
    expect_each(
        EACH(
            "setp.lt.u32 %p1, %r5, 12; @%p1 bra low; vote.sync.ballot.b32 %r10, !%p1, 0xFFFFF000;\n"
            "bra.uni end; low: vote.sync.ballot.b32 %r10, %p1, 0xFFF; end:"),
        1, 64, low_lanes);
}

static uint32_t yes(uint32_t i)
{
    (void)i;
    return 1;
}

static uint32_t threads_of_group(uint32_t i)
{
    (void)i;
    return 96;
}

static void lanes_vote(void **unused)
{
    (void)unused;
#define VOTE(mode, compare, value)                                   \
    EACH("setp." compare ".u32 %p1, %r5, " value "; vote.sync." mode \
         ".pred %p2, %p1, -1; selp.u32 %r10, 1, 0, %p2;")
    expect_each(VOTE("all", "lt", "32"), 1, 64, yes);
    expect_each(VOTE("any", "eq", "31"), 1, 64, yes);
    expect_each(VOTE("uni", "gt", "31"), 1, 64, yes);
    expect_each(
        EACH("setp.lt.u32 %p1, %r5, 3; vote.sync.all.pred %p2, %p1, -1; selp.u32 %r10, 0, 1, %p2;"),
        1, 32, yes);
    expect_each(EACH("bar.warp.sync -1; mov.u32 %r10, 1;"), 1, 32, yes);
}

/* Warps count in shared memory, and read what all have counted. */
static void groups_meet(void **unused)
{
    (void)unused;
    expect_each(
        EACH("setp.ne.s32 %p1, %r1, 0; @%p1 bra over; st.shared.u32 [pot], 0; over: bar.sync 0;\n"
             "atom.shared.add.u32 %r6, [pot], 1; barrier.sync 0; ld.shared.u32 %r10, [pot];"),
        3, 96, threads_of_group);
}

static void masks_are_checked(void **unused)
{
    (void)unused;
    expect_fault(EACH("shfl.sync.idx.b32 %r10, %r4, 0, 31, 0xF;"), 32, PTX_BAD_MASK,
                 "is not in its own mask");
    expect_fault(EACH("setp.lt.u32 %p1, %r5, 16; @!%p1 bra end; shfl.sync.idx.b32 %r10, %r4, 20, "
                      "31, 0xFFFF; end:"),
                 32, PTX_BAD_MASK, "asks lane 20");
    expect_fault(
        EACH("setp.lt.u32 %p1, %r5, 16; @!%p1 ret; shfl.sync.idx.b32 %r10, %r4, 20, 31, -1;"), 32,
        PTX_BAD_MASK, "asks lane 20");
    /* The other half waits for the group: nobody comes. */
    expect_fault(EACH("setp.lt.u32 %p1, %r5, 16; @%p1 bra vote; bar.sync 0; bra.uni end;\n"
                      "vote: vote.sync.ballot.b32 %r10, %p1, -1; end:"),
                 32, PTX_STUCK, "waits for lanes 0xffffffff");
    /* Two halves with masks that name each other's lanes and are not the same. */
    expect_fault(EACH("setp.lt.u32 %p1, %r5, 16; selp.b32 %r6, 0x1FFFF, 0xFFFF8000, %p1;\n"
                      "vote.sync.any.pred %p2, %p1, %r6; mov.u32 %r10, 0;"),
                 32, PTX_STUCK, "waits for lanes");
}

static uint32_t active_now(uint32_t i)
{
    return i % 32 < 12 ? 0xFFF : 0xFFFFF000;
}

static void those_that_are_here_are_named(void **unused)
{
    (void)unused;
    ptx_launch l =
        run_body(EACH("setp.lt.u32 %p1, %r5, 12; @%p1 bra low; activemask.b32 %r10; bra.uni end;\n"
                      "low: activemask.b32 %r10; end:"),
                 1, 32, 0);
    assert_int_equal(l.fault, PTX_NONE);
    for (uint32_t i = 0; i < 32; i++)
        assert_int_equal((uint32_t)memory[i], active_now(i));
    bool fewer = false; /* a seed lets lanes part where they need not */
    for (uint32_t seed = 1; seed < 40; seed++) {
        l = run_body(EACH("bra on; on: activemask.b32 %r10;"), 1, 32, seed);
        for (uint32_t i = 0; i < 32; i++) {
            assert_true(((uint32_t)memory[i] >> i & 1) != 0);
            fewer = fewer || (uint32_t)memory[i] != UINT32_MAX;
        }
    }
    assert_true(fewer);
}

static void instructions_are_counted(void **unused)
{
    (void)unused;
    /* ld, add, setp, bra, three times the loop, ret */
    ptx_launch l = run_body(
        "mov.u32 %r1, 0; again: add.s32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, 3; @%p1 bra again;", 5,
        33, 0);
    assert_int_equal(l.instructions, 5 * 33 * (2 + 3 * 3 + 1));
}

/* Bytes, and nothing beside them. */
static void what_is_used_is_told(void **unused)
{
    (void)unused;
    char error[PTX_ERROR_BYTES];
    ptx_module *m = load_body("ld.global.u16 %h1, [%d0+8]; st.global.u32 [%d0+12], 1;\n"
                              "atom.global.add.u32 %r1, [%d0+32], 1;",
                              error);
    assert_non_null(m);
    const parameters given = {.out = 1 << 20}; /* not where the host has it */
    ptx_range range = {
        .address = given.out, .bytes = sizeof memory, .host = memory, .tracked = true};
    ptx_launch l = {.kernel = ptx_find(m, "k"),
                    .groups = 1,
                    .group = 1,
                    .parameters = &given,
                    .ranges = &range,
                    .range_count = 1};
    assert_true(ptx_run(&l));
    assert_memory_equal(range.reads, "\0\3\0\0\x0F\0", 6);
    assert_memory_equal(range.writes, "\0\xF0\0\0\x0F\0", 6);
    free(range.reads);
    free(range.writes);
    ptx_unload(m);
}

static void launches_are_checked(void **unused)
{
    (void)unused;
    char error[PTX_ERROR_BYTES];
    ptx_module *m = ptx_load(
        ".target sm_100\n.visible .entry a(.param .u32 x, .param .u64 .ptr .global .align 4 y)\n"
        ".maxntid 64, 1, 1\n{ ret; }\n.entry b() { ret; }",
        error);
    size_t offset;
    assert_non_null(m);
    assert_int_equal(ptx_target(m), 100);
    assert_non_null(ptx_find(m, "b"));
    assert_null(ptx_find(m, "c"));
    assert_int_equal(ptx_parameter(ptx_find(m, "a"), 1, &offset), 8);
    assert_int_equal(offset, 8);
    assert_int_equal(ptx_parameter(ptx_find(m, "a"), 2, &offset), 0);
    ptx_launch l = {
        .kernel = ptx_find(m, "a"), .groups = 1, .group = 65, .parameters = "0123456789abcdef"};
    assert_false(ptx_run(&l));
    assert_int_equal(l.fault, PTX_BAD_LAUNCH);
    l.group = 64;
    assert_true(ptx_run(&l));
    assert_int_equal(l.instructions, 64);
    ptx_unload(m);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(integers),
        cmocka_unit_test(bits),
        cmocka_unit_test(reals),
        cmocka_unit_test(reals_are_rounded_as_told),
        cmocka_unit_test(conversions_and_comparisons),
        cmocka_unit_test(spaces),
        cmocka_unit_test(atomics),
        cmocka_unit_test(what_is_unknown_is_refused),
        cmocka_unit_test(what_is_no_module_is_refused),
        cmocka_unit_test(what_lies_outside_is_a_fault),
        cmocka_unit_test(what_is_not_aligned_is_a_fault),
        cmocka_unit_test(what_does_not_end_is_ended),
        cmocka_unit_test(threads_have_places),
        cmocka_unit_test(lanes_exchange),
        cmocka_unit_test(lanes_vote),
        cmocka_unit_test(groups_meet),
        cmocka_unit_test(masks_are_checked),
        cmocka_unit_test(those_that_are_here_are_named),
        cmocka_unit_test(instructions_are_counted),
        cmocka_unit_test(what_is_used_is_told),
        cmocka_unit_test(launches_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
