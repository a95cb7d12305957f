/* SPDX-License-Identifier: MIT */
/* Compiled kernels in the cache folder. A file's name is a digest of what its code depends on: the
 * library's build, the kernels' interface and source, the architecture. The compiler is not part of
 * the name, because no compiler has been asked yet when a file is looked for. Instead the file
 * `kernels-compiler` names the last one that was used, without its options; what another compiler
 * has made is not used any more. */
#define _GNU_SOURCE
#include "jit/kernels/cached.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "jit/cache/identity.h"
#include "jit/cache/store.h"
#include "jit/stager/directory.h"
#include "jit/stager/privilege.h"
#include "runtime/base/assert.h"
#include "runtime/base/os.h"
#include "runtime/base/settings.h"

enum { IDENTITY = 2048, NAME = 48, FILE_MAX = TIDE_KERNELS_CODE_MAX + TIDE_KERNELS_HEAD };

static const char compiler_file[] = "kernels-compiler";

_Static_assert(NAME >= 32 + sizeof ".kernels", "a digest of 128 bits, in hex");

static bool cached_allowed(void)
{
    return tide_setting_get(TIDE_SETTING_artefact_cache) != 0 && !tide_privileges_raised();
}

static void cached_name_file(tide_kernels_target target, char out[NAME])
{
    char identity[IDENTITY], order[TIDE_KERNELS_LINE];
    size_t bytes = tide_identity_write(identity, sizeof identity - sizeof order);
    tide_kernels_order_write(target, order);
    tide_assert(bytes + strlen(order) < sizeof identity);
    memcpy(identity + bytes, order, strlen(order) + 1);
    XXH128_hash_t hash = XXH3_128bits(identity, strlen(identity));
    snprintf(out, NAME, "%016llx%016llx.kernels", (unsigned long long)hash.high64,
             (unsigned long long)hash.low64);
}

/* Of "nvrtc 13.0 -arch=…" the length of the compiler's name, without its options. */
static size_t cached_compiler_length(const char *compiler)
{
    const char *options = strstr(compiler, " -");
    return options != NULL ? (size_t)(options - compiler) : strlen(compiler);
}

/* Is it the compiler that the folder names as the last one? */
static bool cached_is_compiler(int store, const char *compiler)
{
    char *text = NULL;
    size_t bytes;
    bool same = tide_store_read(store, compiler_file, TIDE_KERNELS_COMPILER, &text, &bytes) ==
                    TIDE_STORE_OK &&
                bytes == cached_compiler_length(compiler) && memcmp(text, compiler, bytes) == 0;
    tide_os_free(text);
    return same;
}

tide_kernels_file tide_kernels_cached_find(tide_kernels_target target)
{
    tide_kernels_file file = {0};
    char name[NAME], error[160];
    size_t bytes = 0;
    int store;
    if (!cached_allowed())
        return file;
    tide_identity_prepare();
    if (tide_store_open(false, &store) != TIDE_STORE_OK)
        return file;
    cached_name_file(target, name);
    bool good =
        tide_store_read(store, name, FILE_MAX, &file.bytes, &bytes) == TIDE_STORE_OK &&
        tide_kernels_code_read(file.bytes, bytes, target, &file.code, error, sizeof error) &&
        cached_is_compiler(store, file.code.compiler);
    close(store);
    if (!good) {
        tide_os_free(file.bytes);
        file.bytes = NULL;
    }
    tide_assert(file.bytes == NULL || file.code.code + file.code.bytes == file.bytes + bytes);
    return file;
}

void tide_kernels_cached_store(tide_kernels_target target, const tide_kernels_file *file)
{
    tide_assert(file->bytes != NULL && file->code.code > file->bytes && file->code.bytes != 0);
    char name[NAME];
    const char *compiler = file->code.compiler;
    int store;
    if (!cached_allowed())
        return;
    tide_identity_prepare();
    if (tide_store_open(true, &store) != TIDE_STORE_OK)
        return;
    cached_name_file(target, name);
    size_t bytes = (size_t)(file->code.code - file->bytes) + file->code.bytes;
    tide_assert(bytes <= FILE_MAX);
    if (cached_is_compiler(store, compiler) ||
        tide_store_write(store, compiler_file, compiler, cached_compiler_length(compiler)) ==
            TIDE_STORE_OK)
        (void)tide_store_write(store, name, file->bytes, bytes);
    tide_store_bound(store,
                     (uint64_t)(tide_setting_get(TIDE_SETTING_artefact_cache_max) * (1 << 20)));
    close(store);
}

/* ---- what the stager has just made ---------------------------------------------------------- */

/* All of the file and a final 0; NULL when it is empty, too large or cannot be read. */
static char *cached_read_file(const char *path, size_t *count)
{
    int file = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    off_t end = file >= 0 ? lseek(file, 0, SEEK_END) : -1;
    char *bytes = end > 0 && end <= FILE_MAX ? tide_os_resize(NULL, (size_t)end + 1) : NULL;
    if (bytes != NULL && pread(file, bytes, (size_t)end, 0) != end) {
        tide_os_free(bytes);
        bytes = NULL;
    }
    if (bytes != NULL)
        bytes[end] = '\0';
    if (file >= 0)
        close(file);
    *count = bytes != NULL ? (size_t)end : 0;
    tide_assert(*count <= FILE_MAX && (bytes != NULL) == (*count != 0));
    return bytes;
}

tide_kernels_file tide_kernels_fetch(const char *path, tide_kernels_target target, char *error,
                                     size_t room)
{
    tide_kernels_file file = {0};
    size_t bytes;
    if (!tide_directory_holds(path, error, room))
        return file;
    file.bytes = cached_read_file(path, &bytes);
    (void)unlink(path);
    if (file.bytes == NULL)
        snprintf(error, room, "%.100s cannot be read", path);
    else if (!tide_kernels_code_read(file.bytes, bytes, target, &file.code, error, room)) {
        tide_os_free(file.bytes);
        file.bytes = NULL;
    }
    return file;
}
