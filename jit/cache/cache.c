/* SPDX-License-Identifier: MIT */
/* The cache of artefacts, which outlives the process: entries by key, and the code that they name.
 *
 * What lies in the store, as files of text but for the code:
 *
 *   KEY.spec     an entry: the compiler, the artefact's digest and size, and all that the key was
 *                made of (library, processor, layout, spec); then a digest of it all
 *   DIGEST.code  an artefact; one entry for each of its sites names it
 *   compiler     the name of the last compiler that made anything for this store
 *
 * The compiler is not part of the key, because a lookup comes before any stager has been started,
 * and without a stager nobody says which compiler there is. It is a line of the entry instead. That
 * line is compared with what this process's stager has said, or else with the file `compiler`; so
 * the first compile by another compiler puts all older entries out of use. Until then code of the
 * older compiler runs. That is no less right: code must agree with the layout, and the layout
 * stands in the key and in the artefact itself.
 *
 * The bytes that are mapped are the bytes that were checked. A file is read once, whole, and its
 * digest compared; the bytes are written to a new file in the process's private directory, and that
 * file is loaded. So it does not matter what happens to the file in the store meanwhile. (A sealed
 * memfd would do the same, but perf and gdb could not open it to find symbols.) The digest (XXH3,
 * 128 bits) is against damage, not against forgery: jit/cache/store.h keeps others from writing. */
#define _GNU_SOURCE
#include "jit/cache/cache.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "jit/cache/identity.h"
#include "jit/cache/store.h"
#include "jit/stager/directory.h"
#include "jit/stager/stager.h"
#include "runtime/base/assert.h"
#include "runtime/base/descriptor.h"
#include "runtime/base/os.h"
#include "runtime/base/settings.h"

enum {
    HEX = 33, /* a digest as text */
    NAME = HEX + 8,
    IDENTITY = 1024 + 2 * TIDE_SPEC_SITE_BYTES,
    ENTRY = IDENTITY + 1024,
    COMPILER = 160,
    CODE_MAX = 64 << 20
};

_Static_assert(HEX == 2 * sizeof(tide_artefact_label) + 1, "two digits a byte, and a 0");
_Static_assert(ENTRY >= IDENTITY + COMPILER + 2 * HEX + 128,
               "an entry is its identity and four lines");

static const char first_line[] = "tidepool-kept 1\n";

static tide_artefact_cache_figures cache_figures;

/* ---- digests ------------------------------------------------------------------------------ */

static tide_artefact_label cache_digest(const void *bytes, size_t count)
{
    tide_artefact_label out;
    XXH128_canonical_t canonical;
    _Static_assert(sizeof canonical == sizeof out.bytes, "128 bits");
    XXH128_canonicalFromHash(&canonical, XXH3_128bits(bytes, count));
    memcpy(out.bytes, canonical.digest, sizeof out.bytes);
    return out;
}

static void cache_write_hex(const tide_artefact_label *label, char out[HEX])
{
    for (size_t i = 0; i < sizeof label->bytes; i++)
        snprintf(out + 2 * i, 3, "%02x", label->bytes[i]);
}

/* The file of this digest and kind (".code"). */
static void cache_name_file(const tide_artefact_label *label, const char *kind, char out[NAME])
{
    tide_assert(HEX + strlen(kind) <= NAME);
    cache_write_hex(label, out);
    strcpy(out + HEX - 1, kind);
}

/* ---- entries ------------------------------------------------------------------------------ */

typedef struct entry {
    size_t bytes;
    char text[ENTRY];
} entry;

/* Writes all that the key is made of. */
static size_t cache_write_identity(const tide_spec *spec, char out[IDENTITY])
{
    size_t at = tide_identity_write(out, 1024);
    at += tide_spec_write_head(out + at, TIDE_SPEC_SITE_BYTES);
    tide_assert(at + TIDE_SPEC_SITE_BYTES <= IDENTITY);
    return at + tide_spec_write(spec, out + at, TIDE_SPEC_SITE_BYTES);
}

static void cache_name_entry(const char *identity, size_t bytes, char out[NAME])
{
    tide_artefact_label key = cache_digest(identity, bytes);
    cache_name_file(&key, ".spec", out);
}

/* Writes the entry as it is if the spec's code is in an artefact of this digest and size. */
static void cache_write_entry(entry *out, const char *compiler, const tide_artefact_label *code,
                              size_t code_bytes, const char *identity)
{
    char hex[HEX];
    cache_write_hex(code, hex);
    int at = snprintf(out->text, sizeof out->text, "%scompiler %s\nartefact %s %zu\n%s", first_line,
                      compiler, hex, code_bytes, identity);
    tide_assert(at > 0 && (size_t)at + HEX + 16 < sizeof out->text);
    tide_artefact_label all = cache_digest(out->text, (size_t)at);
    cache_write_hex(&all, hex);
    at += snprintf(out->text + at, sizeof out->text - (size_t)at, "digest %s\n", hex);
    tide_assert((size_t)at < sizeof out->text);
    out->bytes = (size_t)at;
}

static bool cache_read_hex(const char *text, tide_artefact_label *out)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < 2 * sizeof out->bytes; i++) {
        const char *digit = text[i] != '\0' ? strchr(digits, text[i]) : NULL;
        if (digit == NULL)
            return false;
        unsigned value = (unsigned)(digit - digits);
        out->bytes[i / 2] = (unsigned char)(i % 2 ? out->bytes[i / 2] | value : value << 4);
    }
    return true;
}

/* Which artefact the entry names. The entry is believed as a whole: it must be the very one that
 * would be written from what was read of it. */
static bool cache_read_entry(const char *text, size_t bytes, const char *compiler,
                             const char *identity, tide_artefact_label *code, size_t *code_bytes)
{
    entry expected;
    const char *line = strstr(text, "\nartefact ");
    if (line == NULL || !cache_read_hex(line + strlen("\nartefact "), code))
        return false;
    *code_bytes = strtoull(line + strlen("\nartefact ") + HEX - 1, NULL, 10);
    cache_write_entry(&expected, compiler, code, *code_bytes, identity);
    return expected.bytes == bytes && memcmp(expected.text, text, bytes) == 0;
}

/* ---- the compiler ------------------------------------------------------------------------- */

/* Can it stand in an entry, as a line that is not empty? */
static bool cache_is_line(const char *text)
{
    return text[0] != '\0' && strchr(text, '\n') == NULL && strlen(text) < COMPILER;
}

/* The compiler in use: what this process's stager has said; else what the store remembers. */
static bool cache_know_compiler(int store, char out[COMPILER])
{
    char *text;
    size_t bytes;
    snprintf(out, COMPILER, "%s", tide_stager_version());
    if (out[0] != '\0')
        return true;
    if (tide_store_read(store, "compiler", COMPILER - 1, &text, &bytes) != TIDE_STORE_OK)
        return false;
    tide_assert(bytes < COMPILER && text[bytes] == '\0');
    memcpy(out, text, bytes + 1);
    tide_os_free(text);
    return cache_is_line(out);
}

static bool cache_remember_compiler(int store, const char *compiler)
{
    char *text = NULL;
    size_t bytes;
    bool same = tide_store_read(store, "compiler", COMPILER - 1, &text, &bytes) == TIDE_STORE_OK &&
                strcmp(text, compiler) == 0;
    tide_os_free(text);
    return same || tide_store_write(store, "compiler", compiler, strlen(compiler)) == TIDE_STORE_OK;
}

/* ---- finding ------------------------------------------------------------------------------ */

/* Writes the bytes to a new file of the private directory. False: nothing is left there. */
static bool cache_copy_to_directory(const char *bytes, size_t count, char *path, size_t room)
{
    static unsigned copies;
    char error[256];
    const char *directory = tide_directory_get(error, sizeof error);
    if (directory == NULL)
        return false;
    int length = snprintf(path, room, "%s/kept-%ld-%u.so", directory, (long)getpid(), copies++);
    tide_assert(length > 0 && (size_t)length < room);
    (void)length;
    int file = tide_descriptor_lift(
        open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (file < 0)
        return false;
    size_t at = 0;
    while (at < count) {
        ssize_t put = write(file, bytes + at, count - at);
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            break;
        at += (size_t)put;
        tide_assert(at <= count);
    }
    bool done = close(file) == 0 && at == count;
    if (!done)
        (void)unlink(path);
    return done;
}

/* The code that an entry names. */
typedef struct kept_code {
    tide_artefact_label label;
    size_t bytes;
    tide_artefact *artefact; /* with a use: it was loaded for another of its sites; or NULL */
    char path[TIDE_DIRECTORY_PATH + 64]; /* then a copy of it in the private directory */
} kept_code;

/* Finds it loaded, or copies it from the store. */
static tide_store_result cache_take_code(int store, kept_code *out)
{
    char name[NAME], *bytes;
    size_t count;
    out->artefact = tide_artefact_labelled(&out->label);
    if (out->artefact != NULL)
        return TIDE_STORE_OK;
    cache_name_file(&out->label, ".code", name);
    tide_store_result result = tide_store_read(store, name, CODE_MAX, &bytes, &count);
    if (result != TIDE_STORE_OK)
        return result;
    tide_artefact_label found = cache_digest(bytes, count);
    tide_assert(count <= CODE_MAX);
    bool whole = count == out->bytes && memcmp(&found, &out->label, sizeof found) == 0 &&
                 cache_copy_to_directory(bytes, count, out->path, sizeof out->path);
    tide_os_free(bytes);
    return whole ? TIDE_STORE_OK : TIDE_STORE_REFUSED;
}

static tide_store_result cache_find_in(int store, const tide_spec *spec, kept_code *out)
{
    char identity[IDENTITY], name[NAME], compiler[COMPILER], *text;
    size_t bytes;
    cache_name_entry(identity, cache_write_identity(spec, identity), name);
    tide_store_result result = tide_store_read(store, name, ENTRY, &text, &bytes);
    if (result != TIDE_STORE_OK)
        return result;
    bool usable = cache_know_compiler(store, compiler) &&
                  cache_read_entry(text, bytes, compiler, identity, &out->label, &out->bytes);
    tide_os_free(text);
    return usable ? cache_take_code(store, out) : TIDE_STORE_REFUSED;
}

static tide_artefact *cache_load(const kept_code *found)
{
    char error[256];
    if (found->artefact != NULL)
        return found->artefact;
    tide_artefact *artefact = tide_artefact_load(found->path, true, error, sizeof error);
    if (artefact != NULL)
        tide_artefact_set_label(artefact, &found->label);
    return artefact;
}

static bool cache_has_code(const tide_artefact *artefact, const tide_spec *spec)
{
    tide_assert((unsigned)spec->kind < TIDE_KIND_COUNT);
    return tide_artefact_find(artefact, spec->stem, tide_spec_suffix(spec->kind)) != NULL;
}

/* The linker is asked before the store is open, and after: of a fork meanwhile the child would keep
 * it open. */
static tide_store_result cache_find(const tide_spec *spec, tide_artefact **out)
{
    int store;
    kept_code found;
    tide_identity_prepare();
    tide_store_result result = tide_store_open(false, &store);
    if (result != TIDE_STORE_OK)
        return result;
    result = cache_find_in(store, spec, &found);
    close(store);
    if (result != TIDE_STORE_OK)
        return result;
    *out = cache_load(&found);
    if (*out != NULL && !cache_has_code(*out, spec)) {
        tide_artefact_drop(*out);
        *out = NULL;
    }
    return *out != NULL ? TIDE_STORE_OK : TIDE_STORE_REFUSED;
}

tide_artefact *tide_artefact_cache_find(const tide_spec *spec)
{
    tide_artefact *artefact = NULL;
    tide_store_result result = tide_setting_get(TIDE_SETTING_artefact_cache) != 0
                                   ? cache_find(spec, &artefact)
                                   : TIDE_STORE_MISSING;
    cache_figures.found += result == TIDE_STORE_OK;
    cache_figures.missing += result == TIDE_STORE_MISSING;
    cache_figures.refused += result != TIDE_STORE_OK && result != TIDE_STORE_MISSING;
    tide_assert((artefact != NULL) == (result == TIDE_STORE_OK));
    return artefact;
}

/* ---- storing ------------------------------------------------------------------------------ */

static bool cache_store_spec(int store, const tide_spec *spec, const char *compiler,
                             const tide_artefact_label *code, size_t code_bytes)
{
    char identity[IDENTITY], name[NAME];
    entry made;
    cache_name_entry(identity, cache_write_identity(spec, identity), name);
    cache_write_entry(&made, compiler, code, code_bytes, identity);
    return tide_store_write(store, name, made.text, made.bytes) == TIDE_STORE_OK;
}

/* Writes the code before the entries that name it. Returns how many entries were written. */
static size_t cache_store_all(int store, const char *bytes, size_t count, const tide_spec *specs,
                              size_t spec_count)
{
    char name[NAME];
    const char *compiler = tide_stager_version();
    tide_artefact_label label = cache_digest(bytes, count);
    size_t stored = 0;
    cache_name_file(&label, ".code", name);
    if (!cache_is_line(compiler) || !cache_remember_compiler(store, compiler) ||
        tide_store_write(store, name, bytes, count) != TIDE_STORE_OK)
        return 0;
    for (size_t i = 0; i < spec_count; i++)
        stored += cache_store_spec(store, &specs[i], compiler, &label, count);
    tide_assert(stored <= spec_count);
    tide_store_bound(store,
                     (uint64_t)(tide_setting_get(TIDE_SETTING_artefact_cache_max) * (1 << 20)));
    return stored;
}

static char *cache_read_artefact(const char *path, size_t *count)
{
    int file = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    off_t end = file >= 0 ? lseek(file, 0, SEEK_END) : -1;
    char *bytes = end > 0 && end <= CODE_MAX ? tide_os_resize(NULL, (size_t)end) : NULL;
    if (bytes != NULL && pread(file, bytes, (size_t)end, 0) != end) {
        tide_os_free(bytes);
        bytes = NULL;
    }
    if (file >= 0)
        close(file);
    *count = (size_t)end;
    return bytes;
}

void tide_artefact_cache_store(const char *path, const tide_spec *specs, size_t count)
{
    int store;
    size_t bytes_count, stored = 0;
    tide_assert(count <= TIDE_SPEC_SITES);
    if (tide_setting_get(TIDE_SETTING_artefact_cache) == 0)
        return;
    tide_identity_prepare();
    char *bytes = cache_read_artefact(path, &bytes_count);
    if (bytes != NULL && tide_store_open(true, &store) == TIDE_STORE_OK) {
        stored = cache_store_all(store, bytes, bytes_count, specs, count);
        close(store);
    }
    tide_assert(stored <= count);
    tide_os_free(bytes);
    cache_figures.stored += stored;
    cache_figures.failed += count - stored;
}

void tide_artefact_cache_figures_get(tide_artefact_cache_figures *out)
{
    *out = cache_figures;
}
