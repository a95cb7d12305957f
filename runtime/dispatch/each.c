/* SPDX-License-Identifier: MIT */
/* Dispatching many values at once. A processor foresees a call only if the calls before it tell
 * which it will be. Where types come at random, each call by type costs what a wrong guess costs.
 * So values are collected by type first, without a branch that depends on a type; when a type has a
 * row of them, its method is called for all of the row: one wrong guess for a row, not for a value.
 *
 *   types  f64 i32 f64 f64 i32      row of f64:  1st 3rd 4th     row of i32:  2nd 5th
 *
 * A type's row is that of its number's low bits. If two types share a row, one's values are called
 * before the other's are collected: that is slow, not wrong. */
#include <tidepool/generic.h>

#include "runtime/base/assert.h"
#include "runtime/base/error.h"
#include "runtime/dispatch/generic.h"

enum {
    EACH_ROWS = 32,
    EACH_ROW_VALUES = 64 /* all rows together take 16 KiB of the stack */
};

static const char call[] = "tide_dispatch_each";

typedef struct each_rows {
    tide_generic *generic;
    size_t met;
    void **ends[EACH_ROWS]; /* where the row's next value goes */
    tide_type types[EACH_ROWS];
    void *values[EACH_ROWS][EACH_ROW_VALUES];
} each_rows;

/* Values that meet no method: each is counted. */
static TIDE_COLD void each_report(tide_generic *generic, tide_type type, size_t count)
{
    tide_assert(count > 0);
    for (size_t i = 0; i < count; i++)
        (void)tide_generic_meet(generic, type, call);
}

/* How many of these values of one type meet a method. */
static size_t each_call(tide_generic *generic, tide_type type, void *const *args, size_t count)
{
    tide_method_many *many = tide_generic_find_many(generic, type);
    tide_assert(count > 0 && count <= EACH_ROW_VALUES);
    if (many != NULL) {
        many(args, count);
        return count;
    }
    tide_method *method = tide_generic_find_quietly(generic, type);
    if (method == NULL) {
        each_report(generic, type, count);
        return 0;
    }
    for (size_t i = 0; i < count; i++)
        method(args[i]);
    return count;
}

/* Calls the method of a row for all that it has. */
static void each_empty(each_rows *rows, size_t row)
{
    tide_assert(row < EACH_ROWS);
    size_t count = (size_t)(rows->ends[row] - rows->values[row]);
    rows->ends[row] = rows->values[row];
    if (count != 0)
        rows->met += each_call(rows->generic, rows->types[row], rows->values[row], count);
}

/* The two branches are foreseen: one is taken once in a row, the other once for a type, where no
 * two types share a row. */
static void each_collect(each_rows *rows, const tide_type *types, void *const *args, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        size_t row = types[i] % EACH_ROWS;
        if (TIDE_UNLIKELY(rows->types[row] != types[i])) {
            each_empty(rows, row);
            rows->types[row] = types[i];
        }
        void **end = rows->ends[row];
        *end++ = args[i];
        rows->ends[row] = end;
        if (TIDE_UNLIKELY(end == rows->values[row] + EACH_ROW_VALUES))
            each_empty(rows, row);
    }
}

size_t tide_dispatch_each(tide_generic *generic, const tide_type *types, void *const *args,
                          size_t count)
{
    each_rows rows;
    if (generic == NULL || (count != 0 && (types == NULL || args == NULL))) {
        tide_fail(TIDE_ERROR_ARGUMENT, call, "%s NULL",
                  generic == NULL ? "the generic function is"
                  : types == NULL ? "types is"
                                  : "args is");
        return 0;
    }
    rows.generic = generic;
    rows.met = 0;
    for (size_t row = 0; row < EACH_ROWS; row++) {
        rows.ends[row] = rows.values[row];
        rows.types[row] = TIDE_NO_TYPE;
    }
    each_collect(&rows, types, args, count);
    for (size_t row = 0; row < EACH_ROWS; row++)
        each_empty(&rows, row);
    tide_assert(rows.met <= count);
    return rows.met;
}
