/* SPDX-License-Identifier: MIT */
/* How a site dispatches: by the pages of the generic function, or first by a table of the few types
 * that come to it, which stands behind the plan. Types are tested one after the other in straight code:
 * a processor foresees which of the calls it will be, where a call by a page is one for all types. */
#include <tidepool/generic.h>

#include "runtime/base/assert.h"
#include "runtime/dispatch/generic.h"

/* Not inlined: it would take room on the stack in the tables, which end in a jump. */
__attribute__((noinline)) void tide_general_dispatch(tide_generic *generic, tide_type type,
                                                     void *args, const tide_plan *plan,
                                                     tide_site *site)
{
    (void)site;
    tide_assert(plan != NULL);
    if (plan->counts != NULL)
        __atomic_fetch_add(&plan->counts->misses, 1, __ATOMIC_RELAXED);
    tide_method *method = tide_generic_meet(generic, type, "TIDE_DISPATCH");
    if (TIDE_LIKELY(method != NULL))
        method(args);
}

/* ---- tables ------------------------------------------------------------------------------- */

/* To the method that stands at its place now: methods may be replaced. */
/* clang-format off */
#define TEST_1(i) if (type == table->tests[i]) { __atomic_load_n(table->methods[i], __ATOMIC_ACQUIRE)(args); return; }
#define TEST_2(i) TEST_1(i) TEST_1((i) + 1)
#define TEST_4(i) TEST_2(i) TEST_2((i) + 2)
#define TEST_8(i) TEST_4(i) TEST_4((i) + 4)
#define TEST_16(i) TEST_8(i) TEST_8((i) + 8)
/* clang-format on */
_Static_assert(offsetof(tide_dispatch_table, plan) == 0, "a table's plan is cast to the table");
_Static_assert(TIDE_DISPATCH_TESTS == 16, "the largest of the functions below tests for all");

#define TABLE(n)                                                                  \
    static void site_table_##n(tide_generic *generic, tide_type type, void *args, \
                               const tide_plan *plan, tide_site *site)            \
    {                                                                             \
        const tide_dispatch_table *table = (const tide_dispatch_table *)plan;     \
        if (TIDE_LIKELY(generic == table->generic)) {                             \
            TEST_##n(0)                                                           \
        }                                                                         \
        tide_general_dispatch(generic, type, args, plan, site);                   \
    }
TABLE(1)
TABLE(2)
TABLE(4)
TABLE(8)
TABLE(16)

/* Places that are left over test once more for the first type, which is not it by then. */
bool tide_dispatch_use_table(tide_dispatch_table *table, const tide_generic *generic)
{
    static tide_dispatch_function *const tables[] = {site_table_1, site_table_2, site_table_4,
                                                     site_table_8, site_table_16};
    tide_plan *plan = &table->plan;
    uint32_t count = plan->type_count, size = 0;
    if (generic == NULL || count == 0 || count > TIDE_DISPATCH_TESTS)
        return false;
    for (uint32_t i = 0; i < TIDE_DISPATCH_TESTS; i++) {
        tide_type number = plan->types[i < count ? i : 0];
        table->tests[i] = number < TIDE_KEY_FIRST ? number : number - TIDE_KEY_FIRST;
        table->methods[i] = tide_generic_entry_of(generic, number);
        if (table->methods[i] == NULL)
            return false;
    }
    table->generic = generic;
    while (1u << size < count)
        size++;
    tide_assert(size < sizeof tables / sizeof *tables);
    plan->dispatch = tables[size];
    return true;
}
