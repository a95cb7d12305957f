/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "runtime/check/guard.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <ucontext.h>

#include "runtime/base/assert.h"
#include "runtime/base/os.h"
#include "runtime/base/registry.h"
#include "runtime/check/report.h"
#include "runtime/base/settings.h"

/* MOST: a live array takes two mappings, of the 65530 that Linux lets a process have by default;
 * the program wants some, too. */
enum { PAGE = 4096, MOST = 30000, END_PATTERN = 0xA5 };

typedef enum guard_state { FREE = 0, LIVE, REWOUND } guard_state;

/* Read by the fault handler without a lock: `state` is stored last when an entry is filled. An
 * entry that is filled anew meanwhile is none that the fault was about. */
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

/* What handled faults before us. */
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

static const char *type_name(const tide_guard *guard)
{
    return tide_type_find(guard->type)->name;
}

static void report_use_after_rewind(const tide_guard *guard, const char *address, const void *code)
{
    char thread[TIDE_OS_NAME_BYTES];
    tide_os_thread_name(thread);
    tide_report(TIDE_REPORT_USE_AFTER_REWIND,
                "use after rewind: byte %td of an array of %zu %.60s (%zu bytes) in pool '%s'\n"
                "  acquired  %s\n"
                "  rewound   %s %s\n"
                "  used      %s by thread '%s'",
                address - guard->data, guard->n, type_name(guard), guard->used, guard->pool,
                tide_place_text(guard->acquired).text,
                guard->rewound.file != NULL ? "with the scope opened at" : "by a call at",
                tide_place_text(guard->rewound).text, tide_code_text(code).text, thread);
}

static void report_overflow(const tide_guard *guard, const char *address, const void *code)
{
    char thread[TIDE_OS_NAME_BYTES];
    tide_os_thread_name(thread);
    tide_report(TIDE_REPORT_OVERFLOW,
                "access past the end: byte %td of an array of %zu %.60s (%zu bytes) in pool '%s'\n"
                "  acquired  %s\n"
                "  rewound   not yet: it is live\n"
                "  used      %s by thread '%s'",
                address - guard->data, guard->n, type_name(guard), guard->used, guard->pool,
                tide_place_text(guard->acquired).text, tide_code_text(code).text, thread);
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

/* Whatever handled faults before goes on doing so, ours among them; a handler of its own stays
 * behind us, for it may survive the fault. The default action ends the program when the access
 * is tried again; a signal that was sent has no access to try, and is sent again. */
static void pass_on(int signal, siginfo_t *info, void *context)
{
    if ((previous.sa_flags & SA_SIGINFO) != 0) {
        previous.sa_sigaction(signal, info, context);
    } else if (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN) {
        previous.sa_handler(signal);
    } else if (info->si_code > 0) {
        sigaction(SIGSEGV, &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
    } else if (previous.sa_handler == SIG_DFL) {
        sigaction(SIGSEGV, &previous, NULL);
        raise(signal);
    }
}

static void on_fault(int signal, siginfo_t *info, void *context)
{
    int error = errno;
    const tide_guard *guard = info->si_code > 0 ? find(info->si_addr) : NULL;
    if (guard != NULL && guard->state == REWOUND)
        report_use_after_rewind(guard, info->si_addr, code_of(context));
    else if (guard != NULL)
        report_overflow(guard, info->si_addr, code_of(context));
    pass_on(signal, info, context);
    errno = error;
}

static void install(void)
{
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigemptyset(&action.sa_mask);
    sigaction(SIGSEGV, NULL, &previous); /* known before the first fault can come by */
    sigaction(SIGSEGV, &action, NULL);
}

void tide_guard_prepare(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, install);
}

/* ---- entries and the quarantine --------------------------------------------------------- */

static void put_entry(tide_guard *guard)
{
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
    __atomic_store_n(&guard->state, FREE, __ATOMIC_RELEASE);
    tide_os_unmap_guarded(guard->map, guard->bytes + PAGE);
    put_entry(guard);
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

/* Arrays that are live come before those in quarantine. */
static tide_guard *take_entry(void)
{
    if (all.entries == NULL)
        all.entries = tide_os_reserve(MOST * sizeof *all.entries);
    if (all.entries == NULL)
        return NULL;
    if (all.free == NULL && all.count == MOST && all.oldest != NULL)
        release_oldest();
    tide_guard *guard = all.free;
    if (guard != NULL)
        all.free = guard->next;
    else if (all.count < MOST)
        guard = &all.entries[all.count];
    return guard;
}

static char *map_array(size_t bytes)
{
    char *map = tide_os_map_guarded(bytes, PAGE);
    if (map != NULL || all.oldest == NULL)
        return map;
    while (all.oldest != NULL)
        release_oldest();
    return tide_os_map_guarded(bytes, PAGE);
}

/* ---- one array -------------------------------------------------------------------------- */

static void fill(tide_guard *guard, const char *pool_name, tide_type type, size_t n, size_t used,
                 size_t tail, tide_place acquired)
{
    guard->type = type;
    guard->n = n;
    guard->used = used;
    guard->data = guard->map + guard->bytes - tail;
    guard->acquired = acquired;
    guard->rewound = (tide_place){TIDE_NOWHERE};
    snprintf(guard->pool, sizeof guard->pool, "%s", pool_name);
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

tide_guard *tide_guard_create(const char *pool_name, tide_type type, size_t n, size_t used,
                              size_t align, tide_place acquired, void **data)
{
    if (align > PAGE || used > SIZE_MAX / 2)
        return NULL;
    size_t tail = tail_bytes(used, align), bytes = tide_guard_size(used, align);
    tide_registry_lock();
    tide_guard *guard = take_entry();
    char *map = guard != NULL ? map_array(bytes) : NULL;
    if (map != NULL) {
        guard->map = map;
        guard->bytes = bytes;
        fill(guard, pool_name, type, n, used, tail, acquired);
        *data = guard->data;
    } else if (guard != NULL && guard != &all.entries[all.count]) {
        put_entry(guard);
    }
    tide_registry_unlock();
    return map != NULL ? guard : NULL;
}

size_t tide_guard_bytes(const tide_guard *guard)
{
    return guard->bytes;
}

/* The page that the array begins in starts with zeros; the gap between its last byte and the guard
 * page with the pattern that `fill` put there. The first byte that is neither, or NULL. */
static const char *find_damage(const tide_guard *guard)
{
    const char *end = guard->map + guard->bytes;
    for (const char *byte = guard->data; byte-- > guard->map;)
        if (*byte != 0)
            return byte;
    for (const char *byte = guard->data + guard->used; byte < end; byte++)
        if (*byte != (char)END_PATTERN)
            return byte;
    return NULL;
}

static void verify_gaps(const tide_guard *guard)
{
    const char *byte = find_damage(guard);
    if (byte != NULL)
        tide_report(TIDE_REPORT_OVERFLOW,
                    "written %s: byte %td of an array of %zu %.60s (%zu bytes) in pool '%s'\n"
                    "  acquired  %s\n"
                    "  found     when it was rewound",
                    byte < guard->data ? "before the start" : "past the end", byte - guard->data,
                    guard->n, type_name(guard), guard->used, guard->pool,
                    tide_place_text(guard->acquired).text);
}

void tide_guard_retire(tide_guard *guard, tide_place rewound)
{
    tide_assert(guard->state == LIVE);
    verify_gaps(guard);
    tide_registry_lock();
    guard->rewound = rewound;
    __atomic_store_n(&guard->state, REWOUND, __ATOMIC_RELEASE);
    tide_os_forbid(guard->map, guard->bytes);
    quarantine(guard);
    tide_registry_unlock();
}

/* ---- which acquires --------------------------------------------------------------------- */

/* Another number at each call, and in each run of the program. */
static uint64_t guard_random(void)
{
    static uint64_t state;
    uint64_t x = __atomic_add_fetch(&state, 0x9E3779B97F4A7C15u, __ATOMIC_RELAXED);
    x += (uintptr_t)&state;
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
    x = (x ^ x >> 27) * 0x94D049BB133111EBu;
    return x ^ x >> 31;
}

/* One in each round of so many, at a random place in it: a fixed step would meet the same
 * acquire of a loop each time, and the others never. */
static void guard_draw(tide_guard_turns *turns)
{
    uint32_t at = 1 + (uint32_t)(guard_random() % turns->every);
    turns->in = turns->rest + at;
    turns->rest = turns->every - at;
}

bool tide_guard_due(tide_guard_turns *turns)
{
    if (turns->every == 0)
        return false;
    if (turns->in == 0)
        guard_draw(turns);
    return --turns->in == 0;
}
