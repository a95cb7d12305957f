/* SPDX-License-Identifier: MIT */
/* The instructions that are known: for each its operands, the words it may carry, and what does it.
 * A word that is not in its row's groups makes the instruction unknown. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "warp.h"

enum {
    REAL = GROUP_ROUND | GROUP_FTZ | GROUP_SATURATE,
    ROUGH = GROUP_ROUND | GROUP_FTZ | GROUP_APPROXIMATE,
    MEMORY = GROUP_SPACE | GROUP_VECTOR | GROUP_CACHE
};

static bool nothing_to_do(warp *w, const instruction *one, uint32_t lanes)
{
    (void)w, (void)one, (void)lanes;
    return true;
}

static const opcode opcodes[] = {
    /* name, outs, ins, flow, words, one lane, or the warp */
    {"add", 1, 2, FLOW_ON, REAL, alu_add, NULL},
    {"sub", 1, 2, FLOW_ON, REAL, alu_sub, NULL},
    {"mul", 1, 2, FLOW_ON, REAL | GROUP_HALF, alu_mul, NULL},
    {"mad", 1, 3, FLOW_ON, GROUP_HALF, alu_mad, NULL},
    {"div", 1, 2, FLOW_ON, ROUGH, alu_div, NULL},
    {"rem", 1, 2, FLOW_ON, 0, alu_rem, NULL},
    {"min", 1, 2, FLOW_ON, GROUP_FTZ, alu_min, NULL},
    {"max", 1, 2, FLOW_ON, GROUP_FTZ, alu_max, NULL},
    {"neg", 1, 1, FLOW_ON, GROUP_FTZ, alu_neg, NULL},
    {"abs", 1, 1, FLOW_ON, GROUP_FTZ, alu_abs, NULL},
    {"and", 1, 2, FLOW_ON, 0, alu_and, NULL},
    {"or", 1, 2, FLOW_ON, 0, alu_or, NULL},
    {"xor", 1, 2, FLOW_ON, 0, alu_xor, NULL},
    {"not", 1, 1, FLOW_ON, 0, alu_not, NULL},
    {"shl", 1, 2, FLOW_ON, 0, alu_shl, NULL},
    {"shr", 1, 2, FLOW_ON, 0, alu_shr, NULL},
    {"shf", 1, 3, FLOW_ON, GROUP_FUNNEL | GROUP_WRAP, alu_shf, NULL},
    {"brev", 1, 1, FLOW_ON, 0, alu_brev, NULL},
    {"popc", 1, 1, FLOW_ON, 0, alu_popc, NULL},
    {"clz", 1, 1, FLOW_ON, 0, alu_clz, NULL},
    {"bfind", 1, 1, FLOW_ON, GROUP_SHIFT_AMOUNT, alu_bfind, NULL},
    {"bfe", 1, 3, FLOW_ON, 0, alu_bfe, NULL},
    {"bfi", 1, 4, FLOW_ON, 0, alu_bfi, NULL},
    {"prmt", 1, 3, FLOW_ON, 0, alu_prmt, NULL},
    {"lop3", 1, 4, FLOW_ON, 0, alu_lop3, NULL},
    {"selp", 1, 3, FLOW_ON, 0, alu_selp, NULL},
    {"fma", 1, 3, FLOW_ON, REAL, real_fma, NULL},
    {"rcp", 1, 1, FLOW_ON, ROUGH, real_rcp, NULL},
    {"sqrt", 1, 1, FLOW_ON, ROUGH, real_sqrt, NULL},
    {"rsqrt", 1, 1, FLOW_ON, ROUGH, real_rsqrt, NULL},
    {"ex2", 1, 1, FLOW_ON, ROUGH, real_ex2, NULL},
    {"lg2", 1, 1, FLOW_ON, ROUGH, real_lg2, NULL},
    {"sin", 1, 1, FLOW_ON, ROUGH, real_sin, NULL},
    {"cos", 1, 1, FLOW_ON, ROUGH, real_cos, NULL},
    {"cvt", 1, 1, FLOW_ON, REAL, convert_any, NULL},
    {"cvta", 1, 1, FLOW_ON, GROUP_SPACE | GROUP_TO, convert_address, NULL},
    {"mov", 1, 1, FLOW_ON, 0, NULL, move_any},
    {"setp", 1, 2, FLOW_ON, GROUP_COMPARE | GROUP_COMBINE | GROUP_FTZ, NULL, compare_set},
    {"ld", 1, 1, FLOW_ON, MEMORY, NULL, memory_load},
    {"st", 0, 2, FLOW_ON, MEMORY, NULL, memory_store},
    {"atom", 1, 2, FLOW_ON, GROUP_SPACE | GROUP_CACHE | GROUP_ATOMIC, NULL, memory_atomic},
    {"red", 0, 2, FLOW_ON, GROUP_SPACE | GROUP_CACHE | GROUP_ATOMIC, NULL, memory_atomic},
    {"activemask", 1, 0, FLOW_ON, 0, NULL, lanes_active},
    {"shfl", 1, 4, FLOW_WAIT, GROUP_SYNC | GROUP_SHUFFLE, NULL, lanes_meet},
    {"vote", 1, 2, FLOW_WAIT, GROUP_SYNC | GROUP_VOTE, NULL, lanes_meet},
    {"bar", 0, 1, FLOW_BARRIER, GROUP_SYNC | GROUP_WARP | GROUP_CACHE, NULL, NULL},
    {"barrier", 0, 1, FLOW_BARRIER, GROUP_SYNC | GROUP_CACHE, NULL, NULL},
    {"membar", 0, 0, FLOW_ON, GROUP_CACHE, NULL, nothing_to_do},
    {"fence", 0, 0, FLOW_ON, GROUP_CACHE, NULL, nothing_to_do},
    {"bra", 0, 0, FLOW_BRANCH, GROUP_UNIFORM, NULL, NULL},
    {"ret", 0, 0, FLOW_END, GROUP_UNIFORM, NULL, NULL},
    {"exit", 0, 0, FLOW_END, 0, NULL, NULL},
};

/* bar.warp.sync is a meeting of lanes, not of the group. */
static const opcode warp_barrier = {"bar", 0, 1, FLOW_WAIT, 0, NULL, lanes_meet};

typedef struct word {
    const char *name;
    unsigned group;
    uint8_t value;
} word;

static const word words[] = {
    {"eq", GROUP_COMPARE, COMPARE_EQ},
    {"ne", GROUP_COMPARE, COMPARE_NE},
    {"lt", GROUP_COMPARE, COMPARE_LT},
    {"le", GROUP_COMPARE, COMPARE_LE},
    {"gt", GROUP_COMPARE, COMPARE_GT},
    {"ge", GROUP_COMPARE, COMPARE_GE},
    {"lo", GROUP_COMPARE, COMPARE_LT},
    {"ls", GROUP_COMPARE, COMPARE_LE},
    {"hi", GROUP_COMPARE, COMPARE_GT},
    {"hs", GROUP_COMPARE, COMPARE_GE},
    {"num", GROUP_COMPARE, COMPARE_NUM},
    {"nan", GROUP_COMPARE, COMPARE_NAN},
    {"equ", GROUP_COMPARE, COMPARE_EQ | COMPARE_UNORDERED},
    {"neu", GROUP_COMPARE, COMPARE_NE | COMPARE_UNORDERED},
    {"ltu", GROUP_COMPARE, COMPARE_LT | COMPARE_UNORDERED},
    {"leu", GROUP_COMPARE, COMPARE_LE | COMPARE_UNORDERED},
    {"gtu", GROUP_COMPARE, COMPARE_GT | COMPARE_UNORDERED},
    {"geu", GROUP_COMPARE, COMPARE_GE | COMPARE_UNORDERED},
    {"and", GROUP_COMBINE, COMBINE_AND},
    {"or", GROUP_COMBINE, COMBINE_OR},
    {"xor", GROUP_COMBINE, COMBINE_XOR},
    {"global", GROUP_SPACE, SPACE_GLOBAL},
    {"shared", GROUP_SPACE, SPACE_SHARED},
    {"local", GROUP_SPACE, SPACE_LOCAL},
    {"param", GROUP_SPACE, SPACE_PARAM},
    {"const", GROUP_SPACE, SPACE_CONST},
    {"v2", GROUP_VECTOR, 2},
    {"v4", GROUP_VECTOR, 4},
    {"rn", GROUP_ROUND, ROUND_NEAREST},
    {"rz", GROUP_ROUND, ROUND_ZERO},
    {"rm", GROUP_ROUND, ROUND_DOWN},
    {"rp", GROUP_ROUND, ROUND_UP},
    {"rni", GROUP_ROUND, ROUND_NEAREST | ROUND_INTEGER},
    {"rzi", GROUP_ROUND, ROUND_ZERO | ROUND_INTEGER},
    {"rmi", GROUP_ROUND, ROUND_DOWN | ROUND_INTEGER},
    {"rpi", GROUP_ROUND, ROUND_UP | ROUND_INTEGER},
    {"ftz", GROUP_FTZ, 1},
    {"sat", GROUP_SATURATE, 1},
    {"approx", GROUP_APPROXIMATE, 1},
    {"full", GROUP_APPROXIMATE, 1},
    {"lo", GROUP_HALF, HALF_LOW},
    {"hi", GROUP_HALF, HALF_HIGH},
    {"wide", GROUP_HALF, HALF_WIDE},
    {"volatile", GROUP_CACHE, 0},
    {"relaxed", GROUP_CACHE, 0},
    {"acquire", GROUP_CACHE, 0},
    {"release", GROUP_CACHE, 0},
    {"acq_rel", GROUP_CACHE, 0},
    {"sc", GROUP_CACHE, 0},
    {"weak", GROUP_CACHE, 0},
    {"cta", GROUP_CACHE, 0},
    {"gl", GROUP_CACHE, 0},
    {"gpu", GROUP_CACHE, 0},
    {"sys", GROUP_CACHE, 0},
    {"aligned", GROUP_CACHE, 0},
    {"nc", GROUP_CACHE, 0},
    {"ca", GROUP_CACHE, 0},
    {"cg", GROUP_CACHE, 0},
    {"cs", GROUP_CACHE, 0},
    {"lu", GROUP_CACHE, 0},
    {"cv", GROUP_CACHE, 0},
    {"wb", GROUP_CACHE, 0},
    {"wt", GROUP_CACHE, 0},
    {"uni", GROUP_UNIFORM, 1},
    {"sync", GROUP_SYNC, 1},
    {"warp", GROUP_WARP, 1},
    {"up", GROUP_SHUFFLE, SHUFFLE_UP},
    {"down", GROUP_SHUFFLE, SHUFFLE_DOWN},
    {"bfly", GROUP_SHUFFLE, SHUFFLE_BUTTERFLY},
    {"idx", GROUP_SHUFFLE, SHUFFLE_INDEX},
    {"all", GROUP_VOTE, VOTE_ALL},
    {"any", GROUP_VOTE, VOTE_ANY},
    {"uni", GROUP_VOTE, VOTE_UNIFORM},
    {"ballot", GROUP_VOTE, VOTE_BALLOT},
    {"add", GROUP_ATOMIC, ATOMIC_ADD},
    {"min", GROUP_ATOMIC, ATOMIC_MIN},
    {"max", GROUP_ATOMIC, ATOMIC_MAX},
    {"and", GROUP_ATOMIC, ATOMIC_AND},
    {"or", GROUP_ATOMIC, ATOMIC_OR},
    {"xor", GROUP_ATOMIC, ATOMIC_XOR},
    {"exch", GROUP_ATOMIC, ATOMIC_EXCHANGE},
    {"cas", GROUP_ATOMIC, ATOMIC_CAS},
    {"inc", GROUP_ATOMIC, ATOMIC_INC},
    {"dec", GROUP_ATOMIC, ATOMIC_DEC},
    {"l", GROUP_FUNNEL, FUNNEL_LEFT},
    {"r", GROUP_FUNNEL, FUNNEL_RIGHT},
    {"wrap", GROUP_WRAP, 2},
    {"clamp", GROUP_WRAP, 1},
    {"shiftamt", GROUP_SHIFT_AMOUNT, 1},
    {"to", GROUP_TO, 1},
};

bool type_decode(const char *name, ptx_type *out)
{
    static const char kinds[] = "-busfp";
    if (strcmp(name, "pred") == 0) {
        *out = (ptx_type){KIND_PREDICATE, 1};
        return true;
    }
    const char *kind = name[0] != '\0' && name[0] != '-' ? strchr(kinds, name[0]) : NULL;
    char *end;
    unsigned long bits = kind != NULL ? strtoul(name + 1, &end, 10) : 0;
    bool whole = bits == 8 || bits == 16 || bits == 32 || bits == 64;
    if (!whole || *end != '\0' || *kind == 'p' || (*kind == 'f' && bits < 32))
        return false;
    *out = (ptx_type){(uint8_t)(kind - kinds), (uint8_t)bits};
    return true;
}

static void word_apply(const word *of, instruction *to)
{
    switch (of->group) {
    case GROUP_COMPARE: to->compare = of->value; break;
    case GROUP_COMBINE: to->combine = of->value; break;
    case GROUP_SPACE: to->space = of->value; break;
    case GROUP_VECTOR: to->vector = of->value; break;
    case GROUP_ROUND: to->round = of->value; break;
    case GROUP_FTZ: to->ftz = true; break;
    case GROUP_SATURATE: to->saturate = true; break;
    case GROUP_APPROXIMATE: to->approximate = true; break;
    case GROUP_HALF: to->half = of->value; break;
    case GROUP_SHUFFLE: to->shuffle = of->value; break;
    case GROUP_VOTE: to->vote = of->value; break;
    case GROUP_ATOMIC: to->atomic = of->value; break;
    case GROUP_FUNNEL: to->funnel = of->value; break;
    case GROUP_WRAP: to->wrap = of->value == 2; break;
    case GROUP_SHIFT_AMOUNT: to->shift_amount = true; break;
    case GROUP_TO: to->to = true; break;
    case GROUP_WARP: to->code = &warp_barrier; break;
    default: break; /* caches, scopes, uniform, sync: nothing differs here */
    }
}

static bool word_take(const char *name, unsigned groups, instruction *out)
{
    ptx_type type;
    if (type_decode(name, &type)) {
        out->type = out->type.kind == KIND_NONE ? type : out->type;
        out->from = type;
        return true;
    }
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if ((words[i].group & groups) != 0 && strcmp(words[i].name, name) == 0) {
            word_apply(&words[i], out);
            return true;
        }
    return (groups & GROUP_CACHE) != 0 &&
           (strncmp(name, "L1::", 4) == 0 || strncmp(name, "L2::", 4) == 0);
}

/* What a row cannot say: words without which, or with which, an instruction is another one. */
static bool opcode_whole(const instruction *one, const char *name)
{
    bool real = one->type.kind == KIND_FLOAT;
    bool multiplies = strcmp(name, "mul") == 0 || strcmp(name, "mad") == 0;
    if (multiplies && real == (one->half != 0))
        return false;
    if (one->code->lane != NULL && !real && one->from.kind != KIND_FLOAT &&
        (one->round != 0 || one->ftz))
        return false;
    if ((one->code->groups &
         (GROUP_ATOMIC | GROUP_SHUFFLE | GROUP_VOTE | GROUP_COMPARE | GROUP_FUNNEL)) != 0 &&
        one->atomic + one->shuffle + one->vote + one->compare + one->funnel == 0)
        return false;
    if (one->saturate && !real && strcmp(name, "cvt") != 0)
        return false;
    return strcmp(name, "mad") != 0 || !real;
}

bool opcode_decode(const char *all, instruction *out)
{
    char copy[128], *rest = copy;
    if (snprintf(copy, sizeof copy, "%s", all) >= (int)sizeof copy)
        return false;
    const char *name = strsep(&rest, ".");
    for (size_t i = 0; i < sizeof opcodes / sizeof *opcodes && out->code == NULL; i++)
        if (strcmp(opcodes[i].name, name) == 0)
            out->code = &opcodes[i];
    if (out->code == NULL)
        return false;
    unsigned groups = out->code->groups;
    for (const char *next; (next = strsep(&rest, ".")) != NULL;)
        if (!word_take(next, groups, out))
            return false;
    return opcode_whole(out, name);
}

bool special_decode(const char *name, uint32_t *out)
{
    static const struct {
        const char *name;
        special number;
    } all[] = {
        {"%tid.x", SPECIAL_TID_X},         {"%ntid.x", SPECIAL_NTID_X},
        {"%ctaid.x", SPECIAL_CTAID_X},     {"%nctaid.x", SPECIAL_NCTAID_X},
        {"%laneid", SPECIAL_LANE},         {"%warpid", SPECIAL_WARP},
        {"%lanemask_eq", SPECIAL_MASK_EQ}, {"%lanemask_lt", SPECIAL_MASK_LT},
        {"%lanemask_le", SPECIAL_MASK_LE}, {"%lanemask_gt", SPECIAL_MASK_GT},
        {"%lanemask_ge", SPECIAL_MASK_GE}, {"%tid.y", SPECIAL_ZERO},
        {"%tid.z", SPECIAL_ZERO},          {"%ctaid.y", SPECIAL_ZERO},
        {"%ctaid.z", SPECIAL_ZERO},        {"%ntid.y", SPECIAL_ONE},
        {"%ntid.z", SPECIAL_ONE},          {"%nctaid.y", SPECIAL_ONE},
        {"%nctaid.z", SPECIAL_ONE},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (strcmp(all[i].name, name) == 0) {
            *out = all[i].number;
            return true;
        }
    return false;
}

/* ---- types of operands ---------------------------------------------------------------------- */

static const ptx_type type_word = {KIND_UNSIGNED, 32}, type_predicate = {KIND_PREDICATE, 1};

static bool is_called(const instruction *one, const char *name)
{
    return strcmp(one->code->name, name) == 0;
}

/* Most inputs are of the instruction's type. */
ptx_type opcode_in_type(const instruction *one, unsigned i)
{
    if (is_called(one, "shfl"))
        return i == 0 ? one->type : type_word;
    if (is_called(one, "vote"))
        return i == 0 ? type_predicate : type_word;
    if (is_called(one, "bar") || is_called(one, "barrier"))
        return type_word;
    if ((is_called(one, "selp") || is_called(one, "setp")) && i == 2)
        return type_predicate;
    if ((is_called(one, "shl") || is_called(one, "shr")) && i == 1)
        return type_word;
    if ((is_called(one, "bfe") && i > 0) || (is_called(one, "bfi") && i > 1) ||
        (is_called(one, "lop3") && i > 2))
        return type_word;
    if (is_called(one, "mad") && i == 2 && one->half == HALF_WIDE)
        return opcode_out_type(one, 0);
    return is_called(one, "cvt") ? one->from : one->type;
}

ptx_type opcode_out_type(const instruction *one, unsigned i)
{
    if (one->half == HALF_WIDE)
        return (ptx_type){one->type.kind, (uint8_t)(2 * one->type.bits)};
    if (is_called(one, "setp") || (is_called(one, "shfl") && i == 1))
        return type_predicate;
    if (is_called(one, "popc") || is_called(one, "clz") || is_called(one, "bfind"))
        return type_word;
    return one->type;
}

/* Loads, stores and conversions may use wider registers; all else fits exactly. */
static bool register_fits(const instruction *one, const operand *of, ptx_type type)
{
    bool loose = is_called(one, "ld") || is_called(one, "st") || is_called(one, "cvt");
    if (of->kind != OPERAND_REGISTER)
        return true;
    return of->bits == type.bits ||
           (loose && of->bits > type.bits && of->bits != 1 && type.bits != 1);
}

const char *opcode_mistyped(const instruction *one)
{
    bool typeless = one->code->flow == FLOW_BRANCH || one->code->flow == FLOW_END ||
                    is_called(one, "bar") || is_called(one, "barrier") ||
                    is_called(one, "membar") || is_called(one, "fence");
    if (one->type.kind == KIND_NONE)
        return typeless ? NULL : "has no type";
    bool packs = is_called(one, "mov") && (one->out_count > 1 || one->in_count > 1);
    for (unsigned i = 0; i < one->out_count && !packs; i++)
        if (!register_fits(one, &one->out[i], opcode_out_type(one, i)))
            return "writes a register of another width";
    for (unsigned i = 0; i < one->in_count && !packs; i++)
        if (!register_fits(one, &one->in[i], opcode_in_type(one, i)))
            return "reads a register of another width";
    return NULL;
}
