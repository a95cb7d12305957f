/* SPDX-License-Identifier: MIT */
/* How a site dispatches: by the pages of the generic function, or first by a table of the few types
 * that come to it, which is data of the plan. Types are tested one after the other in straight code:
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
#define TEST_1(i) if (type == plan->tests[i]) { __atomic_load_n(plan->methods[i], __ATOMIC_ACQUIRE)(args); return; }
#define TEST_2(i) TEST_1(i) TEST_1((i) + 1)
#define TEST_4(i) TEST_2(i) TEST_2((i) + 2)
#define TEST_8(i) TEST_4(i) TEST_4((i) + 4)
#define TEST_16(i) TEST_8(i) TEST_8((i) + 8)
/* clang-format on */
#define TABLE(n)                                                                  \
    static void site_table_##n(tide_generic *generic, tide_type type, void *args, \
                               const tide_plan *plan, tide_site *site)            \
    {                                                                             \
        if (TIDE_LIKELY(generic == plan->generic)) {                              \
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
bool tide_dispatch_use_table(tide_plan *plan, const tide_generic *generic)
{
    static tide_dispatch_function *const tables[] = {site_table_1, site_table_2, site_table_4,
                                                     site_table_8, site_table_16};
    _Static_assert(TIDE_PLAN_METHODS == 16, "the largest table has room for all methods");
    if (generic == NULL || plan->type_count == 0 || plan->type_count > TIDE_PLAN_METHODS)
        return false;
    for (uint32_t i = 0; i < TIDE_PLAN_METHODS; i++) {
        tide_type number = plan->types[i < plan->type_count ? i : 0];
        plan->tests[i] = number < TIDE_KEY_FIRST ? number : number - TIDE_KEY_FIRST;
        plan->methods[i] = tide_generic_entry_of(generic, number);
        if (plan->methods[i] == NULL)
            return false;
    }
    plan->generic = generic;
    uint32_t size = 0;
    while (1u << size < plan->type_count)
        size++;
    tide_assert(size < sizeof tables / sizeof *tables);
    plan->dispatch = tables[size];
    return true;
}
