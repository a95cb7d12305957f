/* SPDX-License-Identifier: MIT */
/* Names the library's build and the processor. The build is the GNU build id, a digest that the
 * linker makes of all code (of the program's, if the library is linked into it); without one it is
 * the file's name, size and time. The processor is what the kernel says of its names and features,
 * since the compiler may use all of them. */
#define _GNU_SOURCE
#include "jit/cache/identity.h"

#include <elf.h>
#include <inttypes.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <tidepool/config.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "runtime/base/assert.h"
#include "runtime/base/lock.h"

enum { ID_MAX = 64 };

typedef struct build {
    uintptr_t own; /* an address of ours */
    unsigned char id[ID_MAX];
    size_t bytes;
    char name[256];
} build;

/* ---- the library -------------------------------------------------------------------------- */

static size_t identity_aligned(size_t bytes)
{
    return (bytes + 3) & ~(size_t)3;
}

/* Looks for the build id in one segment of notes. */
static void identity_read_notes(const char *notes, size_t bytes, build *out)
{
    ElfW(Nhdr) note;
    for (size_t at = 0; at + sizeof note <= bytes;) {
        memcpy(&note, notes + at, sizeof note);
        size_t name = at + sizeof note, text = name + identity_aligned(note.n_namesz);
        if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
            memcmp(notes + name, "GNU", 4) == 0 && note.n_descsz <= ID_MAX) {
            memcpy(out->id, notes + text, note.n_descsz);
            out->bytes = note.n_descsz;
        }
        at = text + identity_aligned(note.n_descsz);
    }
}

static bool identity_contains(const struct dl_phdr_info *info, uintptr_t address)
{
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        uintptr_t start = info->dlpi_addr + header->p_vaddr;
        if (header->p_type == PT_LOAD && address >= start && address - start < header->p_memsz)
            return true;
    }
    return false;
}

/* Reads the notes of the module that holds `own`, and ends the walk there. */
static int identity_visit(struct dl_phdr_info *info, size_t size, void *user)
{
    (void)size;
    build *out = user;
    tide_assert(out->bytes == 0);
    if (!identity_contains(info, out->own))
        return 0;
    snprintf(out->name, sizeof out->name, "%s",
             info->dlpi_name[0] != '\0' ? info->dlpi_name : "/proc/self/exe");
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_NOTE)
            identity_read_notes((const char *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr),
                                info->dlpi_phdr[i].p_memsz, out);
    return 1;
}

static size_t identity_write_build(char *out, size_t room)
{
    build found = {.own = (uintptr_t)identity_write_build};
    struct stat seen = {.st_size = 0};
    int at = snprintf(out, room, "library %d.%d.%d ", TIDEPOOL_VERSION_MAJOR,
                      TIDEPOOL_VERSION_MINOR, TIDEPOOL_VERSION_PATCH);
    (void)dl_iterate_phdr(identity_visit, &found);
    tide_assert(at > 0 && found.bytes <= ID_MAX);
    for (size_t i = 0; i < found.bytes; i++)
        at += snprintf(out + at, room - (size_t)at, "%02x", found.id[i]);
    if (found.bytes == 0 && stat(found.name, &seen) == 0)
        at +=
            snprintf(out + at, room - (size_t)at, "%s %lld %lld.%09ld", found.name,
                     (long long)seen.st_size, (long long)seen.st_mtim.tv_sec, seen.st_mtim.tv_nsec);
    tide_assert((size_t)at + 2 <= room);
    return (size_t)at + (size_t)snprintf(out + at, room - (size_t)at, "\n");
}

/* ---- the processor ------------------------------------------------------------------------ */

static bool identity_tells_features(const char *line)
{
    static const char *const names[] = {"vendor_id", "cpu family", "model", "flags",
                                        "Features",  "CPU ",       "isa",   "cpu\t"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strncmp(line, names[i], strlen(names[i])) == 0)
            return true;
    return false;
}

/* Hashes the lines of the first processor that do not change from one moment to the next. */
static uint64_t identity_hash_processor(void)
{
    char line[8192];
    uint64_t hash = getauxval(AT_HWCAP) ^ (uint64_t)getauxval(AT_HWCAP2) << 32;
    FILE *file = fopen("/proc/cpuinfo", "re");
    if (file == NULL)
        return hash;
    while (fgets(line, sizeof line, file) != NULL && line[0] != '\n')
        if (identity_tells_features(line))
            hash = XXH3_64bits_withSeed(line, strlen(line), hash);
    fclose(file);
    return hash;
}

/* ---- both --------------------------------------------------------------------------------- */

static struct {
    char text[1024];
    size_t bytes; /* 0: not asked yet */
} identity;

void tide_identity_prepare(void)
{
    struct utsname system;
    if (identity.bytes != 0)
        return;
    size_t room = sizeof identity.text, at = identity_write_build(identity.text, room);
    const char *machine = uname(&system) == 0 ? system.machine : "?";
    at += (size_t)snprintf(identity.text + at, room - at, "cpu %s %016" PRIx64 "\n", machine,
                           identity_hash_processor());
    tide_assert(at < room);
    identity.bytes = at;
}

size_t tide_identity_write(char *out, size_t room)
{
    tide_assert(identity.bytes != 0 && identity.bytes < room);
    memcpy(out, identity.text, identity.bytes + 1);
    return identity.bytes;
}
