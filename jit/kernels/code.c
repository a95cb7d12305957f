/* SPDX-License-Identifier: MIT */
/* Compiled kernels as a file, and the order for one. What is read must be the very bytes that would
 * be written. */
#include "jit/kernels/code.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "jit/kernels/source.h"
#include "runtime/base/assert.h"

static const char first_line[] = "tidepool-kernels 1\n";

_Static_assert(TIDE_KERNELS_LINE > sizeof "kernels cuda   \n" + 10 + 10 + 16,
               "an order fits its line");
_Static_assert(TIDE_KERNELS_HEAD >
                   sizeof first_line + TIDE_KERNELS_LINE + TIDE_KERNELS_COMPILER + 128,
               "the lines before the code fit");

static uint64_t code_hash_source(void)
{
    char text[TIDE_KERNELS_SOURCE_BYTES];
    return XXH3_64bits(text, tide_kernels_source(TIDE_KERNELS_CUDA, text, sizeof text));
}

void tide_kernels_order_write(tide_kernels_target target, char out[TIDE_KERNELS_LINE])
{
    int wrote = snprintf(out, TIDE_KERNELS_LINE, "kernels cuda %u %u %016" PRIx64 "\n",
                         target.architecture, target.driver, code_hash_source());
    tide_assert(wrote > 0 && wrote < TIDE_KERNELS_LINE);
    (void)wrote;
}

bool tide_kernels_order_read(const char *text, tide_kernels_target *target, char *error,
                             size_t room)
{
    char expected[TIDE_KERNELS_LINE];
    uint64_t hash;
    if (sscanf(text, "kernels cuda %4u %6u %16" SCNx64, &target->architecture, &target->driver,
               &hash) != 3) {
        snprintf(error, room, "this is no order for kernels");
        return false;
    }
    tide_kernels_order_write(*target, expected);
    if (strcmp(text, expected) == 0)
        return true;
    snprintf(error, room,
             "the order is for other kernels than this stager writes: library and stager "
             "are of different builds");
    return false;
}

/* ---- files ---------------------------------------------------------------------------------- */

static void code_digest(const char *head, size_t head_bytes, const void *code, size_t bytes,
                        char out[40])
{
    XXH3_state_t state;
    XXH128_canonical_t canonical;
    XXH3_128bits_reset(&state);
    XXH3_128bits_update(&state, head, head_bytes);
    XXH3_128bits_update(&state, code, bytes);
    _Static_assert(2 * sizeof canonical.digest < 40, "two digits a byte, and a 0");
    XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(&state));
    for (size_t i = 0; i < sizeof canonical.digest; i++)
        snprintf(out + 2 * i, 3, "%02x", canonical.digest[i]);
}

size_t tide_kernels_head_write(tide_kernels_target target, const char *compiler, const char *kind,
                               const void *code, size_t bytes, char out[TIDE_KERNELS_HEAD])
{
    char order[TIDE_KERNELS_LINE], hex[40];
    tide_assert(strchr(kind, '\n') == NULL && strchr(kind, ' ') == NULL);
    tide_assert(strlen(compiler) < TIDE_KERNELS_COMPILER && strchr(compiler, '\n') == NULL);
    tide_kernels_order_write(target, order);
    int at = snprintf(out, TIDE_KERNELS_HEAD, "%s%scompiler %s\ncode %s %zu\n", first_line, order,
                      compiler, kind, bytes);
    tide_assert(at > 0 && at < TIDE_KERNELS_HEAD - 48);
    code_digest(out, (size_t)at, code, bytes, hex);
    return (size_t)at +
           (size_t)snprintf(out + at, TIDE_KERNELS_HEAD - (size_t)at, "digest %s\n", hex);
}

/* Copies what stands between this word and the end of its line. */
static bool code_line_of(const char *file, const char *word, char *out, size_t room)
{
    const char *line = strstr(file, word);
    size_t length = line != NULL ? strcspn(line + strlen(word), "\n") : room;
    if (length >= room)
        return false;
    tide_assert(line != NULL && length < room);
    memcpy(out, line + strlen(word), length);
    out[length] = '\0';
    return true;
}

static bool code_refused(char *error, size_t room, const char *why)
{
    snprintf(error, room, "kernels refused: %s", why);
    return false;
}

bool tide_kernels_code_read(const char *file, size_t bytes, tide_kernels_target target,
                            tide_kernels_code *out, char *error, size_t room)
{
    char start[TIDE_KERNELS_HEAD], head[TIDE_KERNELS_HEAD], kind[16];
    snprintf(start, sizeof start, "%.*s", (int)sizeof start - 1,
             file); /* up to the code's first 0 */
    const char *end = strstr(start, "\ndigest ");
    size_t head_bytes = end != NULL ? (size_t)(end - start) + strlen("\ndigest \n") + 32 : 0;
    if (head_bytes == 0 || head_bytes >= bytes ||
        !code_line_of(start, "\ncompiler ", out->compiler, sizeof out->compiler) ||
        !code_line_of(start, "\ncode ", kind, sizeof kind))
        return code_refused(error, room, "the file is none of kernels");
    kind[strcspn(kind, " ")] = '\0';
    out->code = file + head_bytes;
    out->bytes = bytes - head_bytes;
    tide_assert(out->bytes != 0 && out->code + out->bytes == file + bytes);
    size_t expected =
        tide_kernels_head_write(target, out->compiler, kind, out->code, out->bytes, head);
    if (expected != head_bytes || memcmp(head, file, head_bytes) != 0)
        return code_refused(error, room, "the file is damaged, or of other kernels");
    return true;
}
