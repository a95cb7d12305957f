/* SPDX-License-Identifier: MIT */
/* Keeps the module of this copy loaded; shares the numbers of types with other copies. */
#define _GNU_SOURCE
#include "runtime/base/copy.h"
#include "runtime/base/test_hooks.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/assert.h"
#include "runtime/base/linker.h"
#include "runtime/base/lock.h"
#include "runtime/base/os.h"

__attribute__((visibility("hidden"), used)) tide_copy_facts tide_copy_own;

bool tide_copy_refuse_stay;

/* ---- staying loaded --------------------------------------------------------------------- */

typedef enum copy_state {
    COPY_UNDECIDED,
    COPY_STAYS,
    COPY_GOES /* it could not be made to stay, or it is being unloaded */
} copy_state;

/* Atomic. The shared library is linked so that it stays. */
#ifdef TIDEPOOL_SHARED
static copy_state copy_now = COPY_STAYS;
#else
static copy_state copy_now = COPY_UNDECIDED;
#endif

/* Is this copy part of the program? No linker is asked. */
static bool copy_is_in_program(void)
{
    tide_linker_range program;
    return tide_linker_in_program(&tide_copy_own, &program);
}

/* The module is found by its name in the linker's list: its file is not opened again. NULL, or why
 * it may be unloaded. */
static const char *copy_pin(void)
{
    Dl_info info;
    struct link_map *own = NULL, *found = NULL;
    if (dladdr1(&tide_copy_own, &info, (void **)&own, RTLD_DL_LINKMAP) == 0 || own == NULL)
        return "the dynamic linker does not know it";
    if (own->l_name == NULL || own->l_name[0] == '\0')
        return NULL; /* the program after all */
    void *handle = tide_copy_refuse_stay
                       ? NULL
                       : dlopen(own->l_name, RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD | RTLD_NODELETE);
    if (handle == NULL)
        return "the dynamic linker refuses";
    if (dlinfo(handle, RTLD_DI_LINKMAP, &found) == 0 && found == own)
        return NULL; /* the handle stays open, too */
    (void)dlclose(handle);
    return "the dynamic linker has another module of its name";
}

static void copy_say_refusal(const char *why)
{
    char text[300];
    int length =
        snprintf(text, sizeof text,
                 "tidepool: the library in this plugin cannot be kept loaded (%s): threads "
                 "have no pools of their own, faults no reports, sites no compiled code\n",
                 why);
    tide_os_write_error(text, (size_t)length);
}

/* Two threads may both pin: once more does no harm. One of them says that it failed. */
static bool copy_decide(void)
{
    const char *why = NULL;
    if (!copy_is_in_program()) {
        tide_outside outside = tide_outside_enter();
        why = copy_pin();
        tide_outside_leave(outside);
    }
    copy_state next = why == NULL ? COPY_STAYS : COPY_GOES, before = COPY_UNDECIDED;
    bool first = __atomic_compare_exchange_n(&copy_now, &before, next, false, __ATOMIC_ACQ_REL,
                                             __ATOMIC_ACQUIRE);
    if (first && why != NULL)
        copy_say_refusal(why);
    return (first ? next : before) == COPY_STAYS;
}

bool tide_copy_stay(void)
{
    copy_state now = __atomic_load_n(&copy_now, __ATOMIC_ACQUIRE);
    if (TIDE_LIKELY(now != COPY_UNDECIDED))
        return now == COPY_STAYS;
    return !tide_lock_held_any() && copy_decide();
}

/* The module is being unloaded, or the process ends. Destructors that come later get nothing that
 * would outlive the module; to pin it would not help any more. */
__attribute__((destructor)) static void copy_leave(void)
{
    copy_state before = COPY_UNDECIDED;
    copy_state next = copy_is_in_program() ? COPY_STAYS : COPY_GOES;
    (void)__atomic_compare_exchange_n(&copy_now, &before, next, false, __ATOMIC_ACQ_REL,
                                      __ATOMIC_ACQUIRE);
}

/* ---- the note --------------------------------------------------------------------------- */

/* Its content is the distance from itself to tide_copy_own, so nothing of it needs to be relocated.
 * The number in the second place after the length is the version of struct tide_copy_facts. */
#define COPY_NOTE_NAME    "Tidepool"
#define COPY_NOTE_VERSION 1

__asm__(".pushsection .note.tidepool,\"a\",%note\n"
        "    .balign 4\n"
        "    .long 9, 4, 1\n"
        "    .asciz \"Tidepool\"\n"
        "    .balign 4\n"
        "    .long tide_copy_own - .\n"
        "    .popsection\n");

static size_t copy_aligned(size_t bytes)
{
    return (bytes + 3) & ~(size_t)3;
}

/* The copy that one segment of notes tells of, or NULL. */
static const tide_copy_facts *copy_in_notes(const char *notes, size_t bytes)
{
    ElfW(Nhdr) note;
    for (size_t at = 0; at + sizeof note <= bytes;) {
        memcpy(&note, notes + at, sizeof note);
        size_t name = at + sizeof note, content = name + copy_aligned(note.n_namesz);
        int32_t distance;
        if (note.n_type == COPY_NOTE_VERSION && note.n_namesz == sizeof COPY_NOTE_NAME &&
            note.n_descsz == sizeof distance &&
            memcmp(notes + name, COPY_NOTE_NAME, sizeof COPY_NOTE_NAME) == 0) {
            memcpy(&distance, notes + content, sizeof distance);
            return (const void *)(notes + content + distance);
        }
        at = content + copy_aligned(note.n_descsz);
    }
    return NULL;
}

/* ---- chunks ----------------------------------------------------------------------------- */

/* Adds the chunks of the module's copy, unless that is this one. */
static int copy_visit(struct dl_phdr_info *info, size_t size, void *taken)
{
    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        if (header->p_type != PT_NOTE)
            continue;
        const tide_copy_facts *copy =
            copy_in_notes((const char *)(info->dlpi_addr + header->p_vaddr), header->p_memsz);
        if (copy != NULL && copy != &tide_copy_own)
            *(uint64_t *)taken |= __atomic_load_n(&copy->chunks, __ATOMIC_ACQUIRE);
    }
    return 0;
}

/* The lowest bit that is set, from bit `from` on; TIDE_COPY_CHUNKS if none is. */
static int copy_lowest(uint64_t bits, int from)
{
    bits = from < TIDE_COPY_CHUNKS ? bits >> from << from : 0;
    return bits != 0 ? __builtin_ctzll(bits) : TIDE_COPY_CHUNKS;
}

int tide_copy_own_chunk(int above)
{
    return copy_lowest(__atomic_load_n(&tide_copy_own.chunks, __ATOMIC_ACQUIRE), above + 1);
}

/* `user` is what the chunk must be above, and then the chunk. */
static void copy_take(uint64_t others, int *user)
{
    int chunk = tide_copy_own_chunk(*user);
    if (chunk == TIDE_COPY_CHUNKS)
        chunk = copy_lowest(~others, *user + 1);
    if (chunk < TIDE_COPY_CHUNKS)
        __atomic_fetch_or(&tide_copy_own.chunks, UINT64_C(1) << chunk, __ATOMIC_ACQ_REL);
    *user = chunk;
}

/* Called for the first module, with the list of modules locked by the linker: until it is done no
 * other copy looks, so no two copies take one chunk. */
static int copy_take_locked(struct dl_phdr_info *info, size_t size, void *user)
{
    (void)info;
    (void)size;
    uint64_t others = 0;
    dl_iterate_phdr(copy_visit, &others);
    copy_take(others, user);
    return 1;
}

int tide_copy_take_chunk(int above)
{
    tide_assert(above >= -1 && above < TIDE_COPY_CHUNKS && !tide_lock_held_any());
    int chunk = above;
    if (tide_linker_each_module(copy_take_locked, &chunk) == 0)
        copy_take(0, &chunk);
    tide_assert(chunk > above);
    return chunk;
}
