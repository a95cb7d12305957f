/* SPDX-License-Identifier: MIT */
/* Memory of other processes: their arena is a file, whose pages are mapped in place of own ones. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "arena.h"

enum { IMPORTS = 16, MAP_FAILED_RESULT = 205 };

/* What a handle holds. */
typedef struct exported {
    uint64_t magic, offset, bytes;
    int32_t process, file;
    uint32_t index, unused;
} exported;

static const uint64_t magic = 0x7469646569706331;

static struct import {
    exported of;
    block *mapped;
    unsigned count; /* of opens; 0: not in use */
    size_t start, length;
} imports[IMPORTS];

int ipc_export(uint64_t address, tide_cu_ipc_handle *out)
{
    const block *one = arena_find(address, false);
    if (one == NULL || one->managed)
        return TIDE_CU_INVALID_VALUE;
    const exported made = {.magic = magic,
                           .offset = one->address - (uint64_t)(uintptr_t)arena.device,
                           .bytes = one->used,
                           .process = getpid(),
                           .file = arena.file,
                           .index = (uint32_t)(one - arena.blocks)};
    memset(out, 0, sizeof *out);
    memcpy(out->bytes, &made, sizeof made);
    return 0;
}

/* Their file; -1: they are gone. */
static int open_file(const exported *of)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/fd/%d", of->process, of->file);
    return open(path, O_RDWR | O_CLOEXEC);
}

static void count_at(int file, const exported *of, uint32_t more)
{
    uint32_t *table =
        mmap(NULL, ARENA_TABLE, PROT_READ | PROT_WRITE, MAP_SHARED, file, ARENA_BYTES);
    if (table == MAP_FAILED)
        abort();
    __atomic_add_fetch(&table[of->index], more, __ATOMIC_SEQ_CST);
    munmap(table, ARENA_TABLE);
}

static void map_both(int file, const struct import *to, size_t from)
{
    const int how = MAP_SHARED | MAP_FIXED;
    if (mmap(arena.device + to->start, to->length, PROT_NONE, how, file, (off_t)from) ==
            MAP_FAILED ||
        mmap(arena.host + to->start, to->length, PROT_READ | PROT_WRITE, how, file, (off_t)from) ==
            MAP_FAILED)
        abort();
}

static int map_import(struct import *made, const exported *of)
{
    size_t in_page = of->offset % PAGE;
    *made = (struct import){.of = *of,
                            .start = (arena.top + PAGE - 1) / PAGE * PAGE,
                            .length = (in_page + of->bytes + PAGE - 1) / PAGE * PAGE};
    int file = open_file(of);
    made->mapped = file >= 0 ? arena_new_block() : NULL;
    if (made->mapped == NULL)
        return MAP_FAILED_RESULT;
    arena.top = made->start + made->length;
    map_both(file, made, of->offset - in_page);
    count_at(file, of, 1);
    close(file);
    *made->mapped = (block){.address = (uint64_t)(uintptr_t)(arena.device + made->start + in_page),
                            .bytes = of->bytes,
                            .used = of->bytes,
                            .live = true,
                            .imported = true};
    return 0;
}

int ipc_open(const tide_cu_ipc_handle *handle, uint64_t *address)
{
    exported of;
    struct import *free = NULL, *found = NULL;
    memcpy(&of, handle->bytes, sizeof of);
    if (of.magic != magic)
        return INVALID_HANDLE;
    if (of.process == getpid())
        return INVALID_CONTEXT;
    for (struct import *one = imports; one < imports + IMPORTS; one++) {
        free = one->count == 0 ? one : free;
        found = one->count != 0 && memcmp(&one->of, &of, sizeof of) == 0 ? one : found;
    }
    if (found == NULL && free == NULL)
        abort();
    int result = found == NULL ? map_import(free, &of) : 0;
    found = found != NULL ? found : free;
    if (result != 0)
        return result;
    found->count++;
    *address = found->mapped->address;
    return 0;
}

static void unmap_import(struct import *one)
{
    int file = open_file(&one->of);
    if (file >= 0) {
        count_at(file, &one->of, UINT32_MAX);
        close(file);
    }
    map_both(arena.file, one, one->start);
    *one->mapped = (block){.address = (uint64_t)(uintptr_t)(arena.device + one->start),
                           .bytes = one->length,
                           .before = fake.known};
    one->count = 0;
}

int ipc_close(uint64_t address)
{
    for (struct import *one = imports; one < imports + IMPORTS; one++) {
        if (one->count == 0 || one->mapped->address != address)
            continue;
        const work last = arena_use_of(one->mapped, "cuIpcCloseMemHandle");
        if (one->count == 1) {
            model_check(&last, &fake.known, "the host");
            unmap_import(one);
        } else {
            one->count--;
        }
        return 0;
    }
    return TIDE_CU_INVALID_VALUE;
}

void ipc_forget(void)
{
    for (struct import *one = imports; one < imports + IMPORTS; one++)
        if (one->count != 0)
            unmap_import(one);
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
