/* SPDX-License-Identifier: MIT */
/* Loops of casts, of functions of numbers, and of functions of texts. */
#include "kernels.h"
#include "number.h"

#include <assert.h>
#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define AT(a, i) ((a)->constant ? 0 : (i))

static bool null_at(const vector *a, size_t i)
{
    return a->nulls != NULL && a->nulls[AT(a, i)];
}

/* ---- casts ---- */

/* Towards zero. Null if it does not fit; the bounds are exact as reals, unlike INT64_MAX. */
static int64_t integer_of_real(double x, bool *null)
{
    bool fits = x >= -0x1p63 && x < 0x1p63;
    *null |= !fits;
    return fits ? (int64_t)x : 0;
}

static int64_t integer_of_text(const word *w, bool *null)
{
    int64_t integer;
    double real;
    if (read_integer(w->text, w->bytes, &integer))
        return integer;
    if (read_real(w->text, w->bytes, &real))
        return integer_of_real(real, null);
    *null = true;
    return 0;
}

static double real_of_text(const word *w, bool *null)
{
    double real = 0;
    *null |= !read_real(w->text, w->bytes, &real);
    return real;
}

static bool boolean_of_text(const word *w, bool *null)
{
    bool boolean = false;
    bool read = read_boolean(w->text, w->bytes, &boolean);
    *null |= !read;
    return read && boolean;
}

#define CONVERT(A, R, EXPRESSION)           \
    do {                                    \
        const A *restrict from = a->values; \
        R *restrict to = out->values;       \
        for (size_t i = 0; i < rows; i++) { \
            A x = from[AT(a, i)];           \
            to[i] = (EXPRESSION);           \
        }                                   \
    } while (0)

static void cast_text(const word *text, size_t rows, const vector *a, vector *out)
{
    if (out->type == TIDE_I64)
        CONVERT(int32_t, int64_t, integer_of_text(&text[x], &out->nulls[i]));
    else if (out->type == TIDE_F64)
        CONVERT(int32_t, double, real_of_text(&text[x], &out->nulls[i]));
    else
        CONVERT(int32_t, bool, boolean_of_text(&text[x], &out->nulls[i]));
}

static void print_value(char *to, size_t room, const vector *a, size_t i)
{
    switch (a->type) {
    case TIDE_I64: snprintf(to, room, "%" PRId64, ((const int64_t *)a->values)[i]); break;
    case TIDE_F64: write_real(to, ((const double *)a->values)[i], false); break;
    default: snprintf(to, room, "%s", ((const bool *)a->values)[i] ? "true" : "false"); break;
    }
}

static bool cast_to_text(dictionary *words, size_t rows, const vector *a, vector *out)
{
    int32_t *to = out->values;
    for (size_t i = 0; i < rows; i++) {
        char text[32] = "";
        if (!null_at(a, i))
            print_value(text, sizeof text, a, AT(a, i));
        to[i] = dictionary_code(words, text, strlen(text));
        if (to[i] < 0)
            return false;
    }
    return true;
}

bool kernel_cast(dictionary *words, size_t rows, const vector *a, vector *out)
{
    assert(a->type != out->type);
    nulls_of(rows, a, NULL, out);
    if (out->type == TIDE_I32)
        return cast_to_text(words, rows, a, out);
    if (a->type == TIDE_I32)
        cast_text(dictionary_words(words), rows, a, out);
    else if (out->type == TIDE_I64 && a->type == TIDE_F64)
        CONVERT(double, int64_t, integer_of_real(x, &out->nulls[i]));
    else if (out->type == TIDE_I64)
        CONVERT(bool, int64_t, x);
    else if (out->type == TIDE_F64 && a->type == TIDE_I64)
        CONVERT(int64_t, double, (double)x);
    else if (out->type == TIDE_F64)
        CONVERT(bool, double, x);
    else if (a->type == TIDE_I64)
        CONVERT(int64_t, bool, x != 0);
    else
        CONVERT(double, bool, x != 0);
    return true;
}

/* ---- functions of numbers ---- */

static void absolute_integer(size_t rows, const vector *a, vector *out)
{
    for (size_t i = 0; i < rows; i++) {
        int64_t x = ((const int64_t *)a->values)[AT(a, i)];
        bool none = x == INT64_MIN; /* its opposite does not fit */
        out->nulls[i] |= none;
        ((int64_t *)out->values)[i] = none ? 0 : x < 0 ? -x : x;
    }
}

void kernel_math(operation op, size_t rows, const vector *a, vector *out)
{
    nulls_of(rows, a, NULL, out);
    if (out->type == TIDE_I64) {
        absolute_integer(rows, a, out);
        return;
    }
    switch (op) {
    case OP_ABS: CONVERT(double, double, fabs(x)); break;
    case OP_SQRT: CONVERT(double, double, (out->nulls[i] |= x < 0, sqrt(x < 0 ? 0 : x))); break;
    case OP_EXP: CONVERT(double, double, exp(x)); break;
    case OP_LN: CONVERT(double, double, (out->nulls[i] |= x <= 0, log(x <= 0 ? 1 : x))); break;
    case OP_FLOOR: CONVERT(double, double, floor(x)); break;
    case OP_CEIL: CONVERT(double, double, ceil(x)); break;
    default: CONVERT(double, double, round(x)); break;
    }
}

/* ---- functions of texts ---- */

/* The bytes of `count` characters (of UTF-8) after the first `skip`. */
static size_t characters(const char *text, size_t bytes, int64_t count)
{
    size_t at = 0;
    while (at < bytes && count > 0) {
        do
            at++;
        while (at < bytes && ((unsigned char)text[at] & 0xc0) == 0x80);
        count--;
    }
    return at;
}

/* `count` characters from the `start`-th (1 is the first). */
static int32_t substring(dictionary *words, int32_t code, int64_t start, int64_t count)
{
    const word *w = &dictionary_words(words)[code];
    if (start < 1) { /* what lies before the text counts, but is nothing */
        count = count > 0 && start + count > 1 ? start + count - 1 : 0;
        start = 1;
    }
    size_t skip = characters(w->text, w->bytes, start - 1);
    size_t take = characters(w->text + skip, w->bytes - skip, count);
    return dictionary_code(words, w->text + skip, take);
}

static bool substr_rows(dictionary *words, size_t rows, const vector *args, vector *out)
{
    const int32_t *text = args[0].values;
    const int64_t *start = args[1].values, *count = args[2].values;
    int32_t *to = out->values;
    nulls_of(rows, &args[0], &args[1], out);
    for (size_t i = 0; i < rows; i++) {
        if (out->nulls != NULL)
            out->nulls[i] |= null_at(&args[2], i);
        to[i] =
            substring(words, text[AT(&args[0], i)], start[AT(&args[1], i)], count[AT(&args[2], i)]);
        if (to[i] < 0)
            return false;
    }
    return true;
}

/* ASCII letters only: other alphabets would need tables. */
static int32_t change_case(dictionary *words, int32_t code, bool upper)
{
    word w = dictionary_words(words)[code];
    char small[128], *copy = w.bytes <= sizeof small ? small : malloc(w.bytes);
    if (copy == NULL)
        return -1;
    for (uint32_t i = 0; i < w.bytes; i++) {
        unsigned char c = (unsigned char)w.text[i];
        copy[i] = (char)(c >= 0x80 ? c : upper ? toupper(c) : tolower(c));
    }
    int32_t result = dictionary_code(words, copy, w.bytes);
    if (copy != small)
        free(copy);
    return result;
}

static bool case_rows(operation op, dictionary *words, size_t rows, const vector *a, vector *out)
{
    const int32_t *from = a->values;
    int32_t *to = out->values;
    for (size_t i = 0; i < rows; i++)
        if ((to[i] = change_case(words, from[AT(a, i)], op == OP_UPPER)) < 0)
            return false;
    return true;
}

bool kernel_text(operation op, dictionary *words, size_t rows, const vector *args, vector *out)
{
    const vector *a = &args[0];
    if (op == OP_SUBSTR)
        return substr_rows(words, rows, args, out);
    nulls_of(rows, a, NULL, out);
    if (op != OP_LENGTH)
        return case_rows(op, words, rows, a, out);
    const word *text = dictionary_words(words);
    CONVERT(int32_t, int64_t, text[x].characters);
    return true;
}
