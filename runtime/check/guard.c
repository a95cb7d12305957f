/* SPDX-License-Identifier: MIT */
/* Guarded arrays: their mappings and their quarantine, the handler of faults and its reports, and
 * which acquires are guarded. */
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
#include "runtime/base/settings.h"
#include "runtime/check/report.h"

/* MOST is the number of guarded arrays, live or in quarantine. A live one takes two mappings of the
 * 65530 that Linux lets a process have by default, and the program wants some, too. */
enum { MOST = 30000, END_PATTERN = 0xA5 };

_Static_assert(2 * MOST < 65530, "guarded arrays leave mappings to the program");

typedef enum guard_state { FREE = 0, LIVE, REWOUND } guard_state;

/* The fault handler reads entries without a lock: `state` is stored last when one is filled. The
 * fault is not about an entry that is filled anew meanwhile. */
struct tide_guard {
    uint32_t state;
    tide_type type;
    char *map;
    size_t bytes; /* accessible while live; the guard page follows */
    char *data;
    size_t used, n;
    tide_place acquired, rewound;
    char pool[32];
    tide_guard *next;  /* free entries: the next; rewound ones: the next younger */
    tide_guard *older; /* of all entries */
};

/* All guarded arrays of the process. Guarded by the registry; no entry is ever given back. */
static struct {
    tide_guard *all; /* read by the handler */
    uint32_t count;
    tide_guard *free;
    tide_guard *oldest, *youngest; /* the quarantine */
    uint32_t quarantined;
} guard_all;

/* What handled faults before us. */
static struct sigaction guard_previous_action;

/* ---- the report ------------------------------------------------------------------------- */

/* The entry whose mapping, guard page included, has this address. No lock, for
 * the fault handler. */
static tide_guard *guard_find_address(const char *address)
{
    tide_guard *guard = __atomic_load_n(&guard_all.all, __ATOMIC_ACQUIRE);
    for (; guard != NULL; guard = guard->older)
        if (__atomic_load_n(&guard->state, __ATOMIC_ACQUIRE) != FREE && address >= guard->map &&
            address < guard->map + guard->bytes + tide_os_page())
            return guard;
    return NULL;
}

static const char *guard_type_name(const tide_guard *guard)
{
    return tide_type_facts_of(guard->type)->name;
}

static void guard_report_use_after_rewind(const tide_guard *guard, const char *address,
                                          const void *code)
{
    char thread[TIDE_OS_NAME_BYTES];
    tide_os_thread_name(thread);
    tide_report(TIDE_REPORT_USE_AFTER_REWIND,
                "use after rewind: byte %td of an array of %zu %.60s (%zu bytes) in pool '%s'\n"
                "  acquired  %s\n"
                "  rewound   %s %s\n"
                "  used      %s by thread '%s'",
                address - guard->data, guard->n, guard_type_name(guard), guard->used, guard->pool,
                tide_place_text(guard->acquired).text,
                guard->rewound.file != NULL ? "with the scope opened at" : "by a call at",
                tide_place_text(guard->rewound).text, tide_code_text(code).text, thread);
}

static void guard_report_overflow(const tide_guard *guard, const char *address, const void *code)
{
    char thread[TIDE_OS_NAME_BYTES];
    tide_os_thread_name(thread);
    tide_report(TIDE_REPORT_OVERFLOW,
                "access past the end: byte %td of an array of %zu %.60s (%zu bytes) in pool '%s'\n"
                "  acquired  %s\n"
                "  rewound   not yet: it is live\n"
                "  used      %s by thread '%s'",
                address - guard->data, guard->n, guard_type_name(guard), guard->used, guard->pool,
                tide_place_text(guard->acquired).text, tide_code_text(code).text, thread);
}

/* Where the access was made; NULL: not known on this machine. */
static const void *guard_faulting_code(const void *context)
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

/* Gives every fault, ours too, to what handled faults before. A handler of the program is called,
 * and ours stays in front of it, for the program may survive the fault. Else the default action is
 * set: it ends the program when the access is tried again. A signal that was sent has no access to
 * try, so it is sent again. */
static void guard_pass_fault_on(int signal, siginfo_t *info, void *context)
{
    if ((guard_previous_action.sa_flags & SA_SIGINFO) != 0) {
        guard_previous_action.sa_sigaction(signal, info, context);
    } else if (guard_previous_action.sa_handler != SIG_DFL &&
               guard_previous_action.sa_handler != SIG_IGN) {
        guard_previous_action.sa_handler(signal);
    } else if (info->si_code > 0) {
        sigaction(SIGSEGV, &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
    } else if (guard_previous_action.sa_handler == SIG_DFL) {
        sigaction(SIGSEGV, &guard_previous_action, NULL);
        raise(signal);
    }
}

static void guard_on_fault(int signal, siginfo_t *info, void *context)
{
    int error = errno;
    const tide_guard *guard = info->si_code > 0 ? guard_find_address(info->si_addr) : NULL;
    if (guard != NULL && guard->state == REWOUND)
        guard_report_use_after_rewind(guard, info->si_addr, guard_faulting_code(context));
    else if (guard != NULL)
        guard_report_overflow(guard, info->si_addr, guard_faulting_code(context));
    guard_pass_fault_on(signal, info, context);
    errno = error;
}

static void guard_install_handler(void)
{
    struct sigaction action = {.sa_sigaction = guard_on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigemptyset(&action.sa_mask);
    sigaction(SIGSEGV, NULL, &guard_previous_action); /* known before the first fault can come by */
    sigaction(SIGSEGV, &action, NULL);
}

void tide_guard_prepare(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, guard_install_handler);
}

/* ---- entries and the quarantine: the registry is locked ---------------------------------- */

static void guard_put_entry(tide_guard *guard)
{
    tide_assert(guard->state == FREE);
    guard->next = guard_all.free;
    guard_all.free = guard;
}

/* FREE is stored before the addresses may serve again: the handler must not take what comes to lie
 * there for this array. */
static void guard_release_oldest(void)
{
    tide_guard *guard = guard_all.oldest;
    tide_assert(guard != NULL && guard->state == REWOUND && guard_all.quarantined > 0);
    guard_all.oldest = guard->next;
    if (guard_all.oldest == NULL)
        guard_all.youngest = NULL;
    guard_all.quarantined--;
    __atomic_store_n(&guard->state, FREE, __ATOMIC_RELEASE);
    tide_os_unmap(guard->map, guard->bytes + tide_os_page());
    guard_put_entry(guard);
}

static void guard_quarantine(tide_guard *guard)
{
    tide_assert(guard->state == REWOUND && guard != guard_all.youngest);
    guard->next = NULL;
    if (guard_all.youngest != NULL)
        guard_all.youngest->next = guard;
    else
        guard_all.oldest = guard;
    guard_all.youngest = guard;
    guard_all.quarantined++;
    while (guard_all.quarantined > (uint32_t)tide_constant_get(TIDE_CONSTANT_quarantine))
        guard_release_oldest();
    tide_assert((guard_all.oldest == NULL) == (guard_all.quarantined == 0));
}

/* An entry to fill, or NULL. */
static tide_guard *guard_take_entry(void)
{
    tide_guard *guard = guard_all.free;
    if (guard != NULL) {
        guard_all.free = guard->next;
        return guard;
    }
    guard = guard_all.count < MOST ? tide_os_resize(NULL, sizeof *guard) : NULL;
    if (guard == NULL)
        return NULL;
    *guard = (tide_guard){.state = FREE, .older = guard_all.all};
    guard_all.count++;
    __atomic_store_n(&guard_all.all, guard, __ATOMIC_RELEASE);
    return guard;
}

/* ---- one array -------------------------------------------------------------------------- */

/* Publishes the entry. The array begins `tail` bytes before the guard page. */
static void guard_fill(tide_guard *guard, const char *pool_name, tide_type type, size_t n,
                       size_t used, size_t tail, tide_place acquired)
{
    tide_assert(guard->state == FREE && used <= tail && tail <= guard->bytes);
    guard->type = type;
    guard->n = n;
    guard->used = used;
    guard->data = guard->map + guard->bytes - tail;
    guard->acquired = acquired;
    guard->rewound = (tide_place){TIDE_NOWHERE};
    snprintf(guard->pool, sizeof guard->pool, "%s", pool_name);
    memset(guard->data + used, END_PATTERN, tail - used);
    __atomic_store_n(&guard->state, LIVE, __ATOMIC_RELEASE);
}

/* From the array's first byte to the guard page. */
static size_t guard_tail_bytes(size_t used, size_t align)
{
    tide_assert(align > 0 && (align & (align - 1)) == 0);
    return used == 0 ? align : (used + align - 1) / align * align;
}

size_t tide_guard_size(size_t used, size_t align)
{
    return (guard_tail_bytes(used, align) + tide_os_page() - 1) / tide_os_page() * tide_os_page();
}

tide_guard *tide_guard_create(const char *pool_name, tide_type type, size_t n, size_t used,
                              size_t align, tide_place acquired, void **data)
{
    tide_assert(pool_name != NULL && data != NULL);
    if (align > tide_os_page() || used > SIZE_MAX / 2)
        return NULL;
    size_t tail = guard_tail_bytes(used, align), bytes = tide_guard_size(used, align);
    tide_registry_lock();
    tide_guard *guard = guard_take_entry();
    char *map = guard != NULL ? tide_os_map_guarded(bytes, tide_os_page()) : NULL;
    if (map != NULL) {
        guard->map = map;
        guard->bytes = bytes;
        guard_fill(guard, pool_name, type, n, used, tail, acquired);
        *data = guard->data;
        tide_assert((uintptr_t)guard->data % align == 0);
    } else if (guard != NULL) {
        guard_put_entry(guard);
    }
    tide_registry_unlock();
    return map != NULL ? guard : NULL;
}

size_t tide_guard_bytes(const tide_guard *guard)
{
    return guard->bytes;
}

/* Before the array its first page holds zeros; between its last byte and the guard page lies the
 * pattern that guard_fill put there. Returns a byte that was changed, or NULL. */
static const char *guard_find_damage(const tide_guard *guard)
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

static void guard_verify_gaps(const tide_guard *guard)
{
    const char *byte = guard_find_damage(guard);
    if (byte != NULL)
        tide_report(TIDE_REPORT_OVERFLOW,
                    "written %s: byte %td of an array of %zu %.60s (%zu bytes) in pool '%s'\n"
                    "  acquired  %s\n"
                    "  found     when it was rewound",
                    byte < guard->data ? "before the start" : "past the end", byte - guard->data,
                    guard->n, guard_type_name(guard), guard->used, guard->pool,
                    tide_place_text(guard->acquired).text);
}

void tide_guard_retire(tide_guard *guard, tide_place rewound)
{
    tide_assert(guard->state == LIVE); /* each array is retired once, by the owner of its pool */
    guard_verify_gaps(guard);
    tide_registry_lock();
    guard->rewound = rewound;
    __atomic_store_n(&guard->state, REWOUND, __ATOMIC_RELEASE);
    tide_os_forbid(guard->map, guard->bytes);
    guard_quarantine(guard);
    tide_registry_unlock();
}

/* ---- which acquires --------------------------------------------------------------------- */

/* Another number at each call. The address makes it another one in each run of the program. */
static uint64_t guard_random(void)
{
    static uint64_t state;
    uint64_t x = __atomic_add_fetch(&state, 0x9E3779B97F4A7C15u, __ATOMIC_RELAXED);
    x += (uintptr_t)&state;
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
    x = (x ^ x >> 27) * 0x94D049BB133111EBu;
    return x ^ x >> 31;
}

/* Draws which acquire of the next round is guarded: one in `every`, at a random place. A fixed step
 * would meet the same acquire of a loop each time, and the others never. */
static void guard_draw(tide_guard_turns *turns)
{
    tide_assert(turns->every != 0 && turns->in == 0 && turns->rest < turns->every);
    uint32_t at = 1 + (uint32_t)(guard_random() % turns->every);
    turns->in = turns->rest + at;
    turns->rest = turns->every - at;
    tide_assert(turns->in > 0 && turns->rest < turns->every);
}

bool tide_guard_turn(tide_guard_turns *turns)
{
    if (turns->in == 0)
        guard_draw(turns);
    return --turns->in == 0;
}
