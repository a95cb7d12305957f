/* SPDX-License-Identifier: MIT */
/* What holds for every entry point: the lock, counting, failing on demand, current contexts, the
 * modes of threads, the end of the process. */
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "model.h"

enum { CONTEXTS_DEEP = 16, MODE_GLOBAL = 0, MODE_THREAD = 1 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local struct {
    context *stack[CONTEXTS_DEEP];
    int depth;
    int mode;
} here;

static struct {
    unsigned calls[ENTRIES], all, failures;
    int failing; /* an entry, or -1 */
    unsigned nth;
    int result;
    bool for_ever;
} asked = {.failing = -1};

static bool torn_down; /* atomic: a forked child exits while a thread of its parent has the lock */

void fake_lock(void)
{
    pthread_mutex_lock(&mutex);
}

void fake_unlock(void)
{
    pthread_mutex_unlock(&mutex);
}

uint32_t fake_random(void)
{
    return (uint32_t)rng_next(&fake.random);
}

void fake_complain(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    if (fake.violation[0] == '\0')
        vsnprintf(fake.violation, sizeof fake.violation, format, arguments);
    va_end(arguments);
}

/* ---- entering an entry point -------------------------------------------------------------- */

static const char *const names[ENTRIES] = {
#define X(name, version, arguments) #name,
    TIDE_CU_ENTRIES(X)
#undef X
};

static int injected(int entry)
{
    bool fails = entry == asked.failing && asked.nth > 0 && --asked.nth == 0;
    if (!fails)
        return 0;
    asked.nth = asked.for_ever ? 1 : 0;
    asked.failures++;
    if (asked.result == TIDE_CU_LAUNCH_FAILED && control_current() != NULL)
        control_current()->lost = true;
    return asked.result;
}

/* Real drivers differ in what they do to whoever calls them now. */
static void check_alive(int entry)
{
    if (!__atomic_load_n(&torn_down, __ATOMIC_RELAXED))
        return;
    fprintf(stderr, "fake_cuda: %s after the driver was torn down\n", names[entry]);
    _exit(99);
}

/* ---- a call that does not return ---------------------------------------------------------- */

static int held_up = -1;      /* an entry; atomic, as is the next */
static unsigned held_up_here; /* calls that wait                  */

/* Before the lock: what else is called goes on. */
static void wait_while_held_up(int entry)
{
    if (__atomic_load_n(&held_up, __ATOMIC_SEQ_CST) != entry)
        return;
    __atomic_fetch_add(&held_up_here, 1, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&held_up, __ATOMIC_SEQ_CST) == entry)
        sched_yield();
    __atomic_fetch_sub(&held_up_here, 1, __ATOMIC_SEQ_CST);
}

/* ---- everything as new ---------------------------------------------------------------------- */

lane *control_new_stream(context *of, bool blocking)
{
    for (int i = 0; i < STREAMS; i++) {
        lane *made = &fake.streams[i];
        if (made->live)
            continue;
        *made = (lane){
            .live = true, .blocking = blocking, .context = of, .number = ++fake.stream_numbers};
        return made;
    }
    abort();
}

static void forget(void)
{
    uint64_t numbers = fake.stream_numbers;
    memset(&fake, 0, sizeof fake);
    memset(&asked, 0, sizeof asked);
    asked.failing = -1;
    here.depth = 0;
    here.mode = MODE_GLOBAL;
    fake.stream_numbers = numbers;
}

static void begin_anew(unsigned devices, uint32_t seed)
{
    forget();
    fake.devices = devices;
    fake.random = (rng){seed};
    fake.limit = (size_t)256 << 20;
    model_reset();
    memory_reset();
    pages_reset();
    code_reset();
    for (unsigned i = 0; i < devices; i++) {
        fake.contexts[i] = (context){.device = i};
        fake.contexts[i].legacy = control_new_stream(&fake.contexts[i], false);
    }
}

/* ---- each call ------------------------------------------------------------------------------ */

/* The driver does not work in the child of a fork. */
static bool is_child(void)
{
    if (fake.process == 0)
        fake.process = getpid();
    return fake.process != getpid();
}

int control_enter(int entry)
{
    wait_while_held_up(entry);
    fake_lock();
    if (entry == ENTRY_cuInit && fake.limit == 0) /* a program that knows nothing of fakes */
        begin_anew(1, 1);
    check_alive(entry);
    asked.calls[entry]++;
    asked.all++;
    if (is_child())
        return NOT_INITIALISED;
    model_advance();
    return injected(entry);
}

int control_enter_current(int entry)
{
    int result = control_enter(entry);
    if (result == 0 && control_current() == NULL)
        result = INVALID_CONTEXT;
    return result == 0 && control_current()->lost ? TIDE_CU_ILLEGAL_ADDRESS : result;
}

int control_leave(int result)
{
    fake_unlock();
    return result;
}

/* As the driver's documentation of cuThreadExchangeStreamCaptureMode has it. */
static bool forbids(const capture *of)
{
    if (of == NULL || here.mode == TIDE_CU_CAPTURE_RELAXED || of->mode == TIDE_CU_CAPTURE_RELAXED)
        return false;
    return of->thread == &here || (here.mode == MODE_GLOBAL && of->mode == MODE_GLOBAL);
}

int control_unsafe(const char *what)
{
    int result = 0;
    for (int i = 0; i < CAPTURES; i++) {
        if (!forbids(fake.captures[i]))
            continue;
        fake_complain("%s while a graph is captured", what);
        fake.captures[i]->spoiled = true;
        result = CAPTURE_UNSUPPORTED;
    }
    return result;
}

int control_enter_uncaptured(int entry)
{
    int result = control_enter(entry);
    return result != 0 ? result : control_unsafe(names[entry]);
}

int control_enter_safe(int entry)
{
    int result = control_enter_current(entry);
    return result != 0 ? result : control_unsafe(names[entry]);
}

const void *control_thread(void)
{
    return &here;
}

/* The driver follows the handle into memory that has been freed. No error is given: a program that
 * got one here would lean on it. */
void control_fault(const char *what, const void *handle)
{
    fprintf(stderr, "fake_cuda: %s %p is gone\n", what, handle);
    abort();
}

/* FAKE_CUDA_REPORT: for a program that knows nothing of fakes. Without the lock, as above: what is
 * counted while a thread is in the driver may be missing. */
void control_tear_down(void)
{
    if (getenv("FAKE_CUDA_REPORT") != NULL)
        code_report();
    __atomic_store_n(&torn_down, true, __ATOMIC_RELAXED);
}

/* ---- threads ------------------------------------------------------------------------------ */

int control_mode(int mode)
{
    int old = here.mode;
    here.mode = mode;
    return old;
}

context *control_current(void)
{
    return here.depth > 0 ? here.stack[here.depth - 1] : NULL;
}

void control_push(context *pushed)
{
    if (here.depth == CONTEXTS_DEEP)
        abort();
    here.stack[here.depth++] = pushed;
}

context *control_pop(void)
{
    return here.depth > 0 ? here.stack[--here.depth] : NULL;
}

/* ---- what is asked of it ------------------------------------------------------------------ */

static int entry_of(const char *name)
{
    for (int i = 0; i < ENTRIES; i++)
        if (strcmp(names[i], name) == 0)
            return i;
    fprintf(stderr, "fake_cuda: there is no %s\n", name);
    abort();
}

void fake_fail(const char *entry, unsigned nth, int result, bool for_ever)
{
    fake_lock();
    asked.failing = entry_of(entry);
    asked.nth = nth;
    asked.result = result;
    asked.for_ever = for_ever;
    asked.failures = 0;
    fake_unlock();
}

/* A statement, and a value, under the lock. */
#define DONE(name, parameters, ...) \
    void name parameters            \
    {                               \
        fake_lock();                \
        __VA_ARGS__;                \
        fake_unlock();              \
    }
#define TOLD(type, name, parameters, value) \
    type name parameters                    \
    {                                       \
        fake_lock();                        \
        type told = value;                  \
        fake_unlock();                      \
        return told;                        \
    }

void fake_hold_up(const char *entry)
{
    __atomic_store_n(&held_up, entry != NULL ? entry_of(entry) : -1, __ATOMIC_SEQ_CST);
}

unsigned fake_held_up(void)
{
    return __atomic_load_n(&held_up_here, __ATOMIC_SEQ_CST);
}

static void count_anew(void)
{
    memset(asked.calls, 0, sizeof asked.calls);
    asked.all = 0;
}

static unsigned live_streams(void)
{
    unsigned live = 0;
    for (int i = 0; i < STREAMS; i++)
        live += fake.streams[i].live;
    return live;
}

DONE(fake_reset, (unsigned devices, uint32_t seed), begin_anew(devices, seed))
DONE(fake_count_anew, (void), count_anew())
DONE(fake_lose, (unsigned device), fake.contexts[device].lost = true)
DONE(fake_without, (unsigned what), fake.without |= what)
DONE(fake_limit, (size_t bytes), fake.limit = bytes)
TOLD(unsigned, fake_failures, (void), asked.failures)
TOLD(size_t, fake_live_bytes, (void), fake.live_bytes)
TOLD(uint64_t, fake_highest_fill, (void), fake.highest)
TOLD(unsigned, fake_pending, (void), model_pending())
TOLD(unsigned, fake_streams, (void), live_streams())
TOLD(unsigned, fake_calls, (const char *entry),
     entry == NULL ? asked.all : asked.calls[entry_of(entry)])

const char *fake_entry(unsigned i)
{
    return i < ENTRIES ? names[i] : NULL;
}

/* Written once, so whoever is told of it may read on without the lock. */
static const char *found(const char *what)
{
    fake_lock();
    bool any = what[0] != '\0';
    fake_unlock();
    return any ? what : NULL;
}

const char *fake_hazard(void)
{
    return found(fake.hazard);
}

const char *fake_violation(void)
{
    return found(fake.violation);
}

bool fake_has(unsigned what)
{
    return (fake.without & what) == 0;
}
