/* SPDX-License-Identifier: MIT */
/* What a program is in the store. Its file may be anything that can be executed. */
#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "profiler/fleet/store.h"
#include "runtime/base/assert.h"

enum { BUILD_MAX = 20, NOTES_MAX = 4096, HEADERS_MAX = 64 };

/* The build id in these notes, as text. */
static bool identity_find_build(const unsigned char *notes, size_t bytes, char *out)
{
    Elf64_Nhdr note;
    for (size_t at = 0; at + sizeof note <= bytes;) {
        memcpy(&note, notes + at, sizeof note);
        size_t name = at + sizeof note, value = name + ((size_t)note.n_namesz + 3) / 4 * 4;
        size_t next = value + ((size_t)note.n_descsz + 3) / 4 * 4;
        if (next > bytes || value < name || next < value)
            return false;
        if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
            memcmp(notes + name, "GNU", 4) == 0 && note.n_descsz > 0) {
            for (size_t i = 0; i < note.n_descsz && i < BUILD_MAX; i++)
                snprintf(out + 2 * i, 3, "%02x", notes[value + i]);
            return true;
        }
        at = next;
    }
    return false;
}

static bool identity_read_build(int file, char *out)
{
    Elf64_Ehdr head;
    unsigned char notes[NOTES_MAX];
    if (pread(file, &head, sizeof head, 0) != sizeof head ||
        memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_ident[EI_CLASS] != ELFCLASS64 ||
        head.e_phentsize != sizeof(Elf64_Phdr))
        return false;
    for (unsigned i = 0; i < head.e_phnum && i < HEADERS_MAX; i++) {
        Elf64_Phdr part;
        off_t at = (off_t)(head.e_phoff + i * sizeof part);
        if (pread(file, &part, sizeof part, at) != sizeof part || part.p_type != PT_NOTE)
            continue;
        size_t bytes = part.p_filesz < sizeof notes ? part.p_filesz : sizeof notes;
        ssize_t got = pread(file, notes, bytes, (off_t)part.p_offset);
        if (got > 0 && identity_find_build(notes, (size_t)got, out))
            return true;
    }
    return false;
}

/* Of the line of flags of the first processor (FNV-1a), 0 where the system tells none. */
static uint64_t identity_of_processor(void)
{
    char line[8192];
    uint64_t hash = 0;
    FILE *file = fopen("/proc/cpuinfo", "re");
    while (hash == 0 && file != NULL && fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, "flags", 5) != 0 && strncmp(line, "Features", 8) != 0)
            continue;
        hash = UINT64_C(0xcbf29ce484222325);
        for (const char *c = line; *c != '\0'; c++)
            hash = (hash ^ (unsigned char)*c) * UINT64_C(0x100000001b3);
    }
    if (file != NULL)
        fclose(file);
    return hash;
}

bool fleet_identity(const char *path, const char *version, const fleet_url *url,
                    char out[FLEET_ID_MAX], char error[FLEET_ERROR_MAX])
{
    char build[2 * BUILD_MAX + 1] = "";
    struct stat facts;
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0 || fstat(file, &facts) != 0 || !S_ISREG(facts.st_mode)) {
        snprintf(error, FLEET_ERROR_MAX, "'%.100s' is no program: %s", path,
                 file < 0 ? strerror(errno) : "no plain file");
        if (file >= 0)
            close(file);
        return false;
    }
    if (!identity_read_build(file, build)) {
        char real[PATH_MAX]; /* of /proc/self/exe and other links */
        path = realpath(path, real) != NULL ? real : path;
        const char *slash = strrchr(path, '/');
        snprintf(build, sizeof build, "%.20s-%jx", slash != NULL ? slash + 1 : path,
                 (intmax_t)facts.st_size);
        for (char *c = build; *(c += strcspn(c, "{}% \n")) != '\0';)
            *c = '_';
    }
    close(file);
    int length =
        snprintf(out, FLEET_ID_MAX, "%s:%.16s:%016" PRIx64 "%s%s", build, version,
                 identity_of_processor(), url->program[0] != '\0' ? ":" : "", url->program);
    tide_assert(length > 0 && length < FLEET_ID_MAX);
    return length > 0 && length < FLEET_ID_MAX;
}
