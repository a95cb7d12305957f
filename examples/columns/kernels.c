/* SPDX-License-Identifier: MIT */
/* Loops of the operators. Each is written once, as an expression of x and y; LOOP makes one loop
 * of it for every way in which the sides can be constant, so that the compiler vectorises all. */
#include "kernels.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#define LOOP_UNARY(A, R, EXPRESSION)            \
    do {                                        \
        const A *restrict left = a->values;     \
        R *restrict to = out->values;           \
        if (a->constant) {                      \
            A x = left[0];                      \
            for (size_t i = 0; i < rows; i++)   \
                to[i] = (EXPRESSION);           \
        } else {                                \
            for (size_t i = 0; i < rows; i++) { \
                A x = left[i];                  \
                to[i] = (EXPRESSION);           \
            }                                   \
        }                                       \
    } while (0)

#define LOOP(A, R, EXPRESSION)                    \
    do {                                          \
        const A *restrict left = a->values;       \
        const A *restrict right = b->values;      \
        R *restrict to = out->values;             \
        if (!a->constant && !b->constant) {       \
            for (size_t i = 0; i < rows; i++) {   \
                A x = left[i], y = right[i];      \
                to[i] = (EXPRESSION);             \
            }                                     \
        } else if (!a->constant) {                \
            A y = right[0];                       \
            for (size_t i = 0; i < rows; i++) {   \
                A x = left[i];                    \
                to[i] = (EXPRESSION);             \
            }                                     \
        } else {                                  \
            A x = left[0];                        \
            for (size_t i = 0; i < rows; i++) {   \
                A y = right[b->constant ? 0 : i]; \
                to[i] = (EXPRESSION);             \
            }                                     \
        }                                         \
    } while (0)

/* ---- nulls ---- */

/* One side's flags into out's: set, or added. */
static void nulls_from(size_t rows, const vector *a, bool *restrict to, bool add)
{
    if (a->nulls == NULL) {
        if (!add)
            memset(to, 0, rows);
    } else if (a->constant) {
        if (a->nulls[0] || !add)
            memset(to, a->nulls[0], rows);
    } else if (!add) {
        memcpy(to, a->nulls, rows);
    } else {
        const bool *restrict from = a->nulls;
        for (size_t i = 0; i < rows; i++)
            to[i] = to[i] | from[i];
    }
}

void nulls_of(size_t rows, const vector *a, const vector *b, vector *out)
{
    if (out->nulls == NULL)
        return;
    nulls_from(rows, a, out->nulls, false);
    if (b != NULL)
        nulls_from(rows, b, out->nulls, true);
}

/* ---- arithmetic ---- */

static void arithmetic_real(operation op, size_t rows, const vector *a, const vector *b,
                            vector *out)
{
    switch (op) {
    case OP_ADD: LOOP(double, double, x + y); break;
    case OP_SUBTRACT: LOOP(double, double, x - y); break;
    case OP_MULTIPLY: LOOP(double, double, x *y); break;
    case OP_DIVIDE: LOOP(double, double, x / y); break;
    default: LOOP(double, double, fmod(x, y)); break;
    }
    if (op == OP_DIVIDE || op == OP_REMAINDER) {
        const double *restrict divisor = b->values;
        bool *restrict null = out->nulls;
        for (size_t i = 0; i < rows; i++)
            null[i] = null[i] | (divisor[b->constant ? 0 : i] == 0);
    }
}

/* The remainder has the sign of x, as in C; -1 is special because INT64_MIN / -1 traps. */
static int64_t remainder_of(int64_t x, int64_t y)
{
    return y == 0 || y == -1 ? 0 : x % y;
}

/* The flags are set as the values are computed: `bad` is where there is no answer. */
static void arithmetic_integer(operation op, size_t rows, const vector *a, const vector *b,
                               vector *out)
{
    bool *restrict null = out->nulls;
    bool bad;
    int64_t z;
    switch (op) {
    case OP_ADD:
        LOOP(int64_t, int64_t, (bad = __builtin_add_overflow(x, y, &z), null[i] |= bad, z));
        break;
    case OP_SUBTRACT:
        LOOP(int64_t, int64_t, (bad = __builtin_sub_overflow(x, y, &z), null[i] |= bad, z));
        break;
    case OP_MULTIPLY:
        LOOP(int64_t, int64_t, (bad = __builtin_mul_overflow(x, y, &z), null[i] |= bad, z));
        break;
    default:
        assert(op == OP_REMAINDER);
        LOOP(int64_t, int64_t, (null[i] |= y == 0, remainder_of(x, y)));
        break;
    }
}

void kernel_arithmetic(operation op, size_t rows, const vector *a, const vector *b, vector *out)
{
    assert(a->type == b->type && a->type == out->type);
    nulls_of(rows, a, b, out);
    if (out->type == TIDE_I64)
        arithmetic_integer(op, rows, a, b, out);
    else
        arithmetic_real(op, rows, a, b, out);
}

/* ---- comparison ---- */

#define COMPARE(A, ORDER)                                \
    switch (op) {                                        \
    case OP_EQUAL: LOOP(A, bool, ORDER(==)); break;      \
    case OP_UNEQUAL: LOOP(A, bool, ORDER(!=)); break;    \
    case OP_LESS: LOOP(A, bool, ORDER(<)); break;        \
    case OP_LESS_EQUAL: LOOP(A, bool, ORDER(<=)); break; \
    case OP_GREATER: LOOP(A, bool, ORDER(>)); break;     \
    default: LOOP(A, bool, ORDER(>=)); break;            \
    }

#define BY_VALUE(OPERATOR) (x OPERATOR y)
#define BY_TEXT(OPERATOR)  (word_compare(&text[x], &text[y]) OPERATOR 0)

static void compare_text(operation op, const word *text, size_t rows, const vector *a,
                         const vector *b, vector *out)
{
    if (op == OP_EQUAL)
        LOOP(int32_t, bool, x == y);
    else if (op == OP_UNEQUAL)
        LOOP(int32_t, bool, x != y);
    else
        COMPARE(int32_t, BY_TEXT)
}

void kernel_compare(operation op, const dictionary *words, size_t rows, const vector *a,
                    const vector *b, vector *out)
{
    assert(a->type == b->type && out->type == TIDE_BOOL);
    nulls_of(rows, a, b, out);
    switch (a->type) {
    case TIDE_I64: COMPARE(int64_t, BY_VALUE) break;
    case TIDE_F64: COMPARE(double, BY_VALUE) break;
    case TIDE_BOOL: COMPARE(bool, BY_VALUE) break;
    default: compare_text(op, dictionary_words(words), rows, a, b, out); break;
    }
}

/* ---- logic ---- */

static bool null_at(const vector *a, size_t i)
{
    return a->nulls != NULL && a->nulls[a->constant ? 0 : i];
}

static bool true_at(const vector *a, size_t i)
{
    return ((const bool *)a->values)[a->constant ? 0 : i];
}

/* One side decides alone if it is the value that wins: false for `and`, true for `or`. */
void kernel_logic(operation op, size_t rows, const vector *a, const vector *b, vector *out)
{
    if (op == OP_AND)
        LOOP(bool, bool, x &y);
    else
        LOOP(bool, bool, x | y);
    if (out->nulls == NULL)
        return;
    bool wins = op == OP_OR, *restrict to = out->values;
    for (size_t i = 0; i < rows; i++) {
        bool null_a = null_at(a, i), null_b = null_at(b, i);
        bool decided = (!null_a && true_at(a, i) == wins) || (!null_b && true_at(b, i) == wins);
        out->nulls[i] = !decided && (null_a || null_b);
        to[i] = decided ? wins : to[i];
    }
}

void kernel_not(size_t rows, const vector *a, vector *out)
{
    nulls_of(rows, a, NULL, out);
    LOOP_UNARY(bool, bool, !x);
}

void kernel_is_null(operation op, size_t rows, const vector *a, vector *out)
{
    bool *restrict to = out->values;
    nulls_from(rows, a, to, false);
    if (op == OP_IS_NOT_NULL)
        for (size_t i = 0; i < rows; i++)
            to[i] = !to[i];
}

/* ---- choice and movement ---- */

void kernel_truth(size_t rows, const vector *a, bool *restrict mask)
{
    const bool *restrict holds = a->values, *restrict null = a->nulls;
    if (a->constant)
        memset(mask, true_at(a, 0) && !null_at(a, 0), rows);
    else if (null == NULL)
        memcpy(mask, holds, rows);
    else
        for (size_t i = 0; i < rows; i++)
            mask[i] = holds[i] > null[i]; /* true, and not null */
}

/* Integers and reals alike are moved by their bits. */
typedef uint64_t __attribute__((may_alias)) bits;

#define CHOOSE(T)                                                           \
    do {                                                                    \
        const T *restrict left = yes->values, *restrict right = no->values; \
        T *restrict to = out->values;                                       \
        size_t step_left = !yes->constant, step_right = !no->constant;      \
        for (size_t i = 0; i < rows; i++)                                   \
            to[i] = mask[i] ? left[i * step_left] : right[i * step_right];  \
    } while (0)

void kernel_if(size_t rows, const bool *mask, const vector *yes, const vector *no, vector *out)
{
    switch (type_width(out->type)) {
    case 1: CHOOSE(bool); break;
    case 4: CHOOSE(int32_t); break;
    default: CHOOSE(bits); break;
    }
    if (out->nulls != NULL)
        for (size_t i = 0; i < rows; i++)
            out->nulls[i] = mask[i] ? null_at(yes, i) : null_at(no, i);
}

#define FILL(T)                                            \
    do {                                                   \
        T x = *(const T *)from->values, *to = out->values; \
        for (size_t i = 0; i < rows; i++)                  \
            to[i] = x;                                     \
    } while (0)

void kernel_copy(size_t rows, const vector *from, vector *out)
{
    nulls_of(rows, from, NULL, out);
    if (!from->constant) {
        memcpy(out->values, from->values, rows * type_width(out->type));
        return;
    }
    switch (type_width(out->type)) {
    case 1: FILL(bool); break;
    case 4: FILL(int32_t); break;
    default: FILL(bits); break;
    }
}

size_t kernel_select(size_t rows, const bool *mask, int32_t *selection)
{
    size_t count = 0;
    for (size_t i = 0; i < rows; i++) { /* no branch: it would be mispredicted */
        selection[count] = (int32_t)i;
        count += mask[i];
    }
    return count;
}

#define GATHER(T)                                \
    do {                                         \
        const T *restrict source = from->values; \
        T *restrict to = out->values;            \
        for (size_t i = 0; i < rows; i++)        \
            to[i] = source[selection[i]];        \
    } while (0)

void kernel_gather(size_t rows, const vector *from, const int32_t *selection, vector *out)
{
    switch (type_width(out->type)) {
    case 1: GATHER(bool); break;
    case 4: GATHER(int32_t); break;
    default: GATHER(bits); break;
    }
    if (out->nulls != NULL)
        for (size_t i = 0; i < rows; i++)
            out->nulls[i] = from->nulls[selection[i]];
}

/* ---- hashing ---- */

/* The finaliser of splitmix64: every input bit reaches every output bit. */
static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

uint64_t vector_key(const vector *a, size_t i)
{
    if (null_at(a, i))
        return 0x9e3779b97f4a7c15u; /* any number; what is null is compared as null as well */
    switch (a->type) {
    case TIDE_BOOL: return ((const bool *)a->values)[i];
    case TIDE_I32: return (uint64_t)((const int32_t *)a->values)[i];
    case TIDE_I64: return (uint64_t)((const int64_t *)a->values)[i];
    default: return ((const double *)a->values)[i] == 0 ? 0 : ((const bits *)a->values)[i];
    }
}

void kernel_hash(size_t rows, const vector *a, uint64_t *hashes)
{
    assert(!a->constant);
    for (size_t i = 0; i < rows; i++)
        hashes[i] = mix(hashes[i] + vector_key(a, i));
}
