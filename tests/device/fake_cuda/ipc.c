/* SPDX-License-Identifier: MIT */
/* Memory of other processes: whole allocations of cuMemAlloc. There is one process here; a test has a handle
 * become another's, whose memory lies where this one's does. */
#include <stdlib.h>

#include "arena.h"

enum { IMPORTS = 16 };

/* What a handle holds. */
typedef struct exported {
    uint64_t magic, address;
    bool foreign;
} exported;

static const uint64_t magic = 0x7469646569706331;

static struct import {
    uint64_t address;
    unsigned count; /* of opens; 0: not in use */
} imports[IMPORTS];

int ipc_export(uint64_t address, tide_cu_ipc_handle *out)
{
    const block *one = arena_find(address, false);
    if (one == NULL || one->managed)
        return TIDE_CU_INVALID_VALUE;
    const exported made = {.magic = magic, .address = address};
    memset(out, 0, sizeof *out);
    memcpy(out->bytes, &made, sizeof made);
    return 0;
}

void fake_ipc_foreign(void *handle)
{
    exported of;
    memcpy(&of, handle, sizeof of);
    of.foreign = true;
    memcpy(handle, &of, sizeof of);
}

int ipc_open(const tide_cu_ipc_handle *handle, uint64_t *address)
{
    exported of;
    struct import *free = NULL, *found = NULL;
    memcpy(&of, handle->bytes, sizeof of);
    if (of.magic != magic)
        return INVALID_HANDLE;
    if (!of.foreign)
        return INVALID_CONTEXT;
    for (struct import *one = imports; one < imports + IMPORTS; one++) {
        free = one->count == 0 ? one : free;
        found = one->count != 0 && one->address == of.address ? one : found;
    }
    found = found != NULL ? found : free;
    if (found == NULL)
        abort();
    found->address = *address = of.address;
    found->count++;
    return 0;
}

int ipc_close(uint64_t address)
{
    for (struct import *one = imports; one < imports + IMPORTS; one++)
        if (one->count != 0 && one->address == address) {
            one->count--;
            return 0;
        }
    return TIDE_CU_INVALID_VALUE;
}

void ipc_forget(void)
{
    memset(imports, 0, sizeof imports);
}

unsigned fake_opened(void)
{
    unsigned opened = 0;
    fake_lock();
    for (struct import *one = imports; one < imports + IMPORTS; one++)
        opened += one->count;
    fake_unlock();
    return opened;
}
