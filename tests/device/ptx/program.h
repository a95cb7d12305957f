/* SPDX-License-Identifier: MIT */
/* A module as it is executed: kernels, their registers, their instructions. */
#ifndef TIDEPOOL_TESTS_PTX_PROGRAM_H
#define TIDEPOOL_TESTS_PTX_PROGRAM_H

#include "ptx.h"

typedef enum type_kind {
    KIND_NONE,
    KIND_BITS,
    KIND_UNSIGNED,
    KIND_SIGNED,
    KIND_FLOAT,
    KIND_PREDICATE
} type_kind;

typedef struct ptx_type {
    uint8_t kind, bits; /* a predicate has one bit */
} ptx_type;

/* Where generic addresses of a thread's and a group's own memory begin. No memory lies there. */
#define PTX_WINDOW_SHARED ((uint64_t)0xA1 << 56)
#define PTX_WINDOW_LOCAL  ((uint64_t)0xA2 << 56)
#define PTX_WINDOW_PARAM  ((uint64_t)0xA3 << 56)
#define PTX_WINDOW        ((uint64_t)0xFF << 56)

typedef enum ptx_space {
    SPACE_GENERIC,
    SPACE_GLOBAL,
    SPACE_SHARED,
    SPACE_LOCAL,
    SPACE_PARAM,
    SPACE_CONST
} ptx_space;

enum { NO_REGISTER = UINT32_MAX, OUTS = 4, INS = 8 };

typedef enum operand_kind {
    OPERAND_REGISTER,
    OPERAND_VALUE,
    OPERAND_SPECIAL,
    OPERAND_ADDRESS
} operand_kind;

typedef struct operand {
    uint8_t kind, bits; /* of a register: its own */
    bool negated;       /* of a predicate */
    uint32_t index;     /* register, base of an address (or NO_REGISTER), special register */
    uint64_t value;     /* immediate, offset of an address */
} operand;

/* What the words after an opcode's first dot can mean; a row of the table of opcodes says which of
 * these it knows. */
typedef enum modifier_group {
    GROUP_COMPARE = 1 << 0,
    GROUP_COMBINE = 1 << 1,
    GROUP_SPACE = 1 << 2,
    GROUP_VECTOR = 1 << 3,
    GROUP_ROUND = 1 << 4,
    GROUP_FTZ = 1 << 5,
    GROUP_SATURATE = 1 << 6,
    GROUP_APPROXIMATE = 1 << 7,
    GROUP_HALF = 1 << 8,
    GROUP_CACHE = 1 << 9, /* means nothing here: caches, order, scopes */
    GROUP_UNIFORM = 1 << 10,
    GROUP_SYNC = 1 << 11,
    GROUP_SHUFFLE = 1 << 12,
    GROUP_VOTE = 1 << 13,
    GROUP_ATOMIC = 1 << 14,
    GROUP_FUNNEL = 1 << 15,
    GROUP_WRAP = 1 << 16,
    GROUP_SHIFT_AMOUNT = 1 << 17,
    GROUP_TO = 1 << 18,
    GROUP_WARP = 1 << 19
} modifier_group;

enum {
    COMPARE_EQ = 1,
    COMPARE_NE,
    COMPARE_LT,
    COMPARE_LE,
    COMPARE_GT,
    COMPARE_GE,
    COMPARE_NUM,
    COMPARE_NAN,
    COMPARE_UNORDERED = 16
};
enum { COMBINE_AND = 1, COMBINE_OR, COMBINE_XOR };
enum { ROUND_NEAREST = 1, ROUND_ZERO, ROUND_DOWN, ROUND_UP, ROUND_INTEGER = 16 };
enum { HALF_LOW = 1, HALF_HIGH, HALF_WIDE };
enum { SHUFFLE_UP = 1, SHUFFLE_DOWN, SHUFFLE_BUTTERFLY, SHUFFLE_INDEX };
enum { VOTE_ALL = 1, VOTE_ANY, VOTE_UNIFORM, VOTE_BALLOT };
enum {
    ATOMIC_ADD = 1,
    ATOMIC_MIN,
    ATOMIC_MAX,
    ATOMIC_AND,
    ATOMIC_OR,
    ATOMIC_XOR,
    ATOMIC_EXCHANGE,
    ATOMIC_CAS,
    ATOMIC_INC,
    ATOMIC_DEC
};
enum { FUNNEL_LEFT = 1, FUNNEL_RIGHT };

struct instruction;
struct warp;

/* One lane of an instruction that only computes: from its inputs, extended to 64 bits by their
 * type, to its output. */
typedef uint64_t lane_function(const struct instruction *one, const uint64_t *in);

/* Everything else. False: a fault has been told. */
typedef bool warp_function(struct warp *w, const struct instruction *one, uint32_t lanes);

/* What an opcode does to the lanes that execute it, beside going on to the next instruction. */
typedef enum opcode_flow { FLOW_ON, FLOW_BRANCH, FLOW_END, FLOW_WAIT, FLOW_BARRIER } opcode_flow;

typedef struct opcode {
    const char *name;
    uint8_t outs, ins; /* operands, a vector counting as one */
    opcode_flow flow;
    unsigned groups; /* that it knows */
    lane_function *lane;
    warp_function *warp;
} opcode;

typedef struct instruction {
    const opcode *code;
    ptx_type type, from; /* the first and the last type named */
    uint8_t compare, combine, space, vector, round, half, shuffle, vote, atomic, funnel;
    bool ftz, saturate, approximate, wrap, shift_amount, to;
    bool guard_negated, ends_block; /* the next one may be reached from elsewhere */
    uint32_t guard;                 /* a register, or NO_REGISTER */
    uint8_t out_count, in_count;
    operand out[OUTS], in[INS];
    ptx_type out_type, in_types[INS]; /* of the operands */
    uint32_t target;                  /* of a branch */
    unsigned line;
    char text[40]; /* as it is called */
} instruction;

typedef struct parameter {
    size_t offset, bytes;
} parameter;

struct ptx_kernel {
    char name[128];
    instruction *code;
    size_t count, parameter_count, parameter_bytes, shared_bytes, local_bytes;
    parameter *parameters;
    uint32_t registers;
    unsigned most_threads; /* .maxntid, or 0 */
};

struct ptx_module {
    ptx_kernel *kernels;
    size_t count;
    unsigned target;
};

/* The numbers of special registers. */
typedef enum special {
    SPECIAL_TID_X,
    SPECIAL_NTID_X,
    SPECIAL_CTAID_X,
    SPECIAL_NCTAID_X,
    SPECIAL_LANE,
    SPECIAL_WARP,
    SPECIAL_MASK_EQ,
    SPECIAL_MASK_LT,
    SPECIAL_MASK_LE,
    SPECIAL_MASK_GT,
    SPECIAL_MASK_GE,
    SPECIAL_ZERO, /* tid.y, ctaid.z … */
    SPECIAL_ONE   /* ntid.y, nctaid.z … */
} special;

/* opcodes.c: fills in what the words of an opcode say. False: one of them is unknown. */
bool opcode_decode(const char *words, instruction *out);
bool type_decode(const char *name, ptx_type *out);    /* "u32" */
bool special_decode(const char *name, uint32_t *out); /* "%tid.x" */
const char *opcode_mistyped(const instruction *one);  /* what is wrong with its operands, or NULL */
ptx_type opcode_in_type(const instruction *one, unsigned i);
ptx_type opcode_out_type(const instruction *one, unsigned i);

/* The value as a register of this type holds it, extended to 64 bits by its sign if it has one. */
static inline uint64_t type_extend(uint64_t value, ptx_type type)
{
    if (type.bits >= 64)
        return value;
    unsigned shift = 64 - type.bits;
    return type.kind == KIND_SIGNED ? (uint64_t)((int64_t)(value << shift) >> shift)
                                    : value << shift >> shift;
}

#endif
