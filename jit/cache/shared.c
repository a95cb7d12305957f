/* SPDX-License-Identifier: MIT */
/* One artefact for each number of tests, with a use that is never given back. */
#include "jit/cache/shared.h"

#include "runtime/base/assert.h"

static tide_artefact *shared[2][TIDE_PLAN_METHODS + 1]; /* by whether it counts, and tests */

static tide_artefact **shared_place(const tide_spec *spec)
{
    tide_assert(spec->kind == TIDE_KIND_DISPATCH);
    tide_assert(spec->item_count > 0 && spec->item_count <= TIDE_PLAN_METHODS);
    return &shared[spec->count][spec->item_count];
}

bool tide_shared_holds(const tide_spec *spec)
{
    return spec->kind == TIDE_KIND_DISPATCH && *shared_place(spec) != NULL;
}

tide_artefact *tide_shared_find(const tide_spec *spec)
{
    if (!tide_shared_holds(spec))
        return NULL;
    tide_artefact *found = *shared_place(spec);
    tide_artefact_use(found);
    return found;
}

void tide_shared_keep(const tide_spec *spec, tide_artefact *artefact)
{
    tide_assert(artefact != NULL);
    if (spec->kind != TIDE_KIND_DISPATCH || *shared_place(spec) == artefact)
        return;
    tide_artefact_use(artefact);
    if (*shared_place(spec) == NULL)
        *shared_place(spec) = artefact;
}
