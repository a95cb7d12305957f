/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "runtime/guard.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <ucontext.h>

#include "runtime/assert.h"
#include "runtime/registry.h"
#include "runtime/report.h"
#include "runtime/settings.h"

enum { PAGE = 4096, MOST = 1 << 18, END_PATTERN = 0xA5 };

typedef enum guard_state { FREE = 0, LIVE, REWOUND } guard_state;

/* Read by the fault handler without a lock: `state` is stored last when an entry is filled. */
struct tide_guard {
    uint32_t state;
    tide_type type;
    char *map;
    size_t bytes; /* accessible while live; the guard page follows */
    char *data;
    size_t used, n;
    tide_place acquired, rewound;
    char pool[32];
    tide_guard *next; /* free entries: the next; rewound ones: the next younger */
};

/* All guarded arrays of the process, in reserved address space. Guarded by the registry. */
static struct {
    tide_guard *entries;
    uint32_t count; /* entries ever used; read by the handler */
    tide_guard *free;
    tide_guard *oldest, *youngest; /* the quarantine */
    uint32_t quarantined;
} all;

static struct sigaction previous;

/* ---- the report ------------------------------------------------------------------------- */

static tide_guard *find(const char *address)
{
    uint32_t count = __atomic_load_n(&all.count, __ATOMIC_ACQUIRE);
    for (uint32_t i = 0; i < count; i++) {
        tide_guard *guard = &all.entries[i];
        if (__atomic_load_n(&guard->state, __ATOMIC_ACQUIRE) != FREE && address >= guard->map &&
            address < guard->map + guard->bytes + PAGE)
            return guard;
    }
    return NULL;
}

/* "function+0x12 (module+0x3456)": what addr2line turns into a line. */
static const char *code_text(const void *code, char *text, size_t bytes)
{
    Dl_info info;
    if (dladdr(code, &info) == 0)
        snprintf(text, bytes, "%p", code);
    else
        snprintf(text, bytes, "%s+%#zx (%s+%#zx)", info.dli_sname != NULL ? info.dli_sname : "?",
                 info.dli_saddr != NULL ? (size_t)((const char *)code - (const char *)info.dli_saddr)
                                        : 0,
                 info.dli_fname, (size_t)((const char *)code - (const char *)info.dli_fbase));
    return text;
}

static void report_fault(const tide_guard *guard, const char *address, const void *code)
{
    char used[256], thread[TIDE_OS_NAME_BYTES];
    bool stale = guard->state == REWOUND;
    tide_os_thread_name(thread);
    tide_report(stale ? TIDE_REPORT_USE_AFTER_REWIND : TIDE_REPORT_OVERFLOW,
                "%s: byte %td of an array of %zu %s (%zu bytes) in pool '%s'\n"
                "  acquired  %s\n"
                "  rewound   %s%s\n"
                "  used      %s by thread '%s'",
                stale ? "use after rewind" : "access past the end", address - guard->data,
                guard->n, tide_type_find(guard->type)->name, guard->used, guard->pool,
                tide_place_text(guard->acquired),
                stale ? "with the scope opened at " : "not yet: it is live",
                stale ? tide_place_text(guard->rewound) : "",
                code_text(code, used, sizeof used), thread);
}

static const void *code_of(const void *context)
{
    const ucontext_t *state = context;
#if defined(__x86_64__)
    return (const void *)(uintptr_t)state->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
    return (const void *)(uintptr_t)state->uc_mcontext.pc;
#else
    (void)state;
    return NULL;
#endif
}

/* After the report the access is tried again under whatever handled faults before, so that the
 * program ends (or not) as it would have without us. */
static void on_fault(int signal, siginfo_t *info, void *context)
{
    (void)signal;
    const tide_guard *guard = find(info->si_addr);
    if (guard != NULL)
        report_fault(guard, info->si_addr, code_of(context));
    sigaction(SIGSEGV, &previous, NULL);
}

static void install(void)
{
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigemptyset(&action.sa_mask);
    sigaction(SIGSEGV, &action, &previous);
}

void tide_guard_prepare(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, install);
}

/* ---- entries and the quarantine --------------------------------------------------------- */

static void unmap(tide_guard *guard)
{
    tide_os_unmap_guarded(guard->map, guard->bytes + PAGE);
    __atomic_store_n(&guard->state, FREE, __ATOMIC_RELEASE);
    guard->next = all.free;
    all.free = guard;
}

static void release_oldest(void)
{
    tide_guard *guard = all.oldest;
    all.oldest = guard->next;
    if (all.oldest == NULL)
        all.youngest = NULL;
    all.quarantined--;
    unmap(guard);
}

static void quarantine(tide_guard *guard)
{
    guard->next = NULL;
    if (all.youngest != NULL)
        all.youngest->next = guard;
    else
        all.oldest = guard;
    all.youngest = guard;
    all.quarantined++;
    while (all.quarantined > (uint32_t)tide_setting_get(TIDE_SETTING_quarantine))
        release_oldest();
}

static tide_guard *take_entry(void)
{
    tide_guard *guard = all.free;
    if (guard != NULL) {
        all.free = guard->next;
        return guard;
    }
    if (all.entries == NULL)
        all.entries = tide_os_reserve(MOST * sizeof *all.entries);
    if (all.entries == NULL || all.count == MOST)
        return NULL;
    return &all.entries[all.count];
}

/* ---- one array -------------------------------------------------------------------------- */

static void fill(tide_guard *guard, const tide_pool *pool, tide_type type, size_t n, size_t used,
                 size_t tail, tide_place acquired)
{
    guard->type = type;
    guard->n = n;
    guard->used = used;
    guard->data = guard->map + guard->bytes - tail;
    guard->acquired = acquired;
    guard->rewound = (tide_place){TIDE_NOWHERE};
    memcpy(guard->pool, pool->core->name, sizeof guard->pool);
    memset(guard->data + used, END_PATTERN, tail - used);
    __atomic_store_n(&guard->state, LIVE, __ATOMIC_RELEASE);
    if (guard == &all.entries[all.count])
        __atomic_store_n(&all.count, all.count + 1, __ATOMIC_RELEASE);
}

/* From the array's first byte to the guard page. */
static size_t tail_bytes(size_t used, size_t align)
{
    return used == 0 ? align : (used + align - 1) / align * align;
}

size_t tide_guard_size(size_t used, size_t align)
{
    return (tail_bytes(used, align) + PAGE - 1) / PAGE * PAGE;
}

tide_guard *tide_guard_create(const tide_pool *pool, tide_type type, size_t n, size_t used,
                              size_t align, tide_place acquired, void **data)
{
    if (align > PAGE || used > SIZE_MAX / 2)
        return NULL;
    size_t tail = tail_bytes(used, align), bytes = tide_guard_size(used, align);
    tide_registry_lock();
    tide_guard *guard = take_entry();
    char *map = guard != NULL ? tide_os_map_guarded(bytes, PAGE) : NULL;
    if (map != NULL) {
        guard->map = map;
        guard->bytes = bytes;
        fill(guard, pool, type, n, used, tail, acquired);
        *data = guard->data;
    } else if (guard != NULL && guard != &all.entries[all.count]) {
        guard->next = all.free;
        all.free = guard;
    }
    tide_registry_unlock();
    return map != NULL ? guard : NULL;
}

size_t tide_guard_bytes(const tide_guard *guard)
{
    return guard->bytes;
}

/* The gap between the array's last byte and the guard page. */
static void verify_end(const tide_guard *guard)
{
    const char *end = guard->map + guard->bytes;
    for (const char *byte = guard->data + guard->used; byte < end; byte++)
        if (*byte != (char)END_PATTERN) {
            tide_report(TIDE_REPORT_OVERFLOW,
                        "written past the end: byte %td of an array of %zu %s (%zu bytes) in "
                        "pool '%s'\n  acquired  %s\n  found     when it was rewound",
                        byte - guard->data, guard->n, tide_type_find(guard->type)->name,
                        guard->used, guard->pool, tide_place_text(guard->acquired));
            return;
        }
}

void tide_guard_retire(tide_guard *guard, tide_place rewound)
{
    tide_assert(guard->state == LIVE);
    verify_end(guard);
    tide_registry_lock();
    guard->rewound = rewound;
    __atomic_store_n(&guard->state, REWOUND, __ATOMIC_RELEASE);
    tide_os_forbid(guard->map, guard->bytes);
    quarantine(guard);
    tide_registry_unlock();
}
