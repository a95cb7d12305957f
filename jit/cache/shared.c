/* SPDX-License-Identifier: MIT */
/* One artefact for each number of tests, with a use that is never given back. */
#include "jit/cache/shared.h"

#include "runtime/base/assert.h"

static tide_artefact *shared[2][TIDE_PLAN_METHODS + 1]; /* by whether it counts, and tests */

bool tide_shared_holds(tide_kind kind, uint32_t tests, bool counts)
{
    tide_assert(kind != TIDE_KIND_DISPATCH || (tests > 0 && tests <= TIDE_PLAN_METHODS));
    return kind == TIDE_KIND_DISPATCH && shared[counts][tests] != NULL;
}

tide_artefact *tide_shared_find(const tide_spec *spec)
{
    if (!tide_shared_holds(spec->kind, spec->item_count, spec->count))
        return NULL;
    tide_artefact *found = shared[spec->count][spec->item_count];
    tide_artefact_use(found);
    return found;
}

void tide_shared_keep(const tide_spec *spec, tide_artefact *artefact)
{
    tide_assert(artefact != NULL);
    if (spec->kind != TIDE_KIND_DISPATCH ||
        tide_shared_holds(spec->kind, spec->item_count, spec->count))
        return;
    tide_artefact_use(artefact);
    shared[spec->count][spec->item_count] = artefact;
}
