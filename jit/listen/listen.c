/* SPDX-License-Identifier: MIT */
/* Loads the component that listens, and keeps the thread that serves it.
 *
 * The state has one writer at a time: whoever has moved it, with the lock held, to one that says
 * that something is under way. */
#define _GNU_SOURCE
#include "jit/listen/listen.h"

#include <tidepool/facts.h>
#include <tidepool/listen.h>
#include <tidepool/profile.h>

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#include "jit/events/event.h"
#include "jit/learn/background.h"
#include "jit/learn/round.h"
#include "jit/listen/order.h"
#include "jit/stager/locate.h"
#include "runtime/base/assert.h"
#include "runtime/base/copy.h"
#include "runtime/base/error.h"
#include "runtime/base/fork.h"
#include "runtime/base/hooks.h"
#include "runtime/base/lock.h"
#include "runtime/base/os.h"
#include "runtime/base/registry.h"
#include "runtime/base/settings.h"
#include "runtime/pool/core.h"
#include "runtime/pool/request.h"

enum { EXIT_WAITS_MS = 500, BEGIN_WAITS_MS = 2000 };

typedef enum listen_state {
    LISTEN_NOT,
    LISTEN_LOADS, /* a thread for it is in the linker, or on its way there */
    LISTEN_BEGINS,
    LISTEN_SERVES,
    LISTEN_ENDS,
    LISTEN_REFUSED /* the program has ended it, or it failed: only tide_listen begins it */
} listen_state;

/* Guarded by the lock; `state` and `again` are atomic, too, for pools that pass by. */
static struct {
    listen_state state;
    bool again;    /* the parent of this process listened, and nothing has begun or ended here */
    bool called;   /* atomic: what begins was called for, by tide_listen         */
    bool exiting;  /* atomic: nothing begins any more     */
    bool threaded; /* `thread` is to be joined            */
    pthread_t thread;
    const tide_listen_component *component; /* loaded; NULL: not yet */
    char folder[PATH_MAX];                  /* empty: where the command looks */
} listen_own;

static tide_lock listen_lock = TIDE_LOCK(TIDE_FORK_LISTEN);

static void listen_take_lock(void)
{
    tide_lock_take(&listen_lock);
}

static void listen_let_go(void)
{
    tide_lock_let_go(&listen_lock);
}

/* Locked. The component hears of events exactly while there is a thread that serves. */
static void listen_set(listen_state state)
{
    void (*hear)(const tide_event *) = NULL;
    if (state == LISTEN_SERVES && !listen_own.exiting)
        hear = listen_own.component->hear;
    __atomic_store_n(&tide_events_also, hear, __ATOMIC_RELEASE);
    __atomic_store_n(&listen_own.state, state, __ATOMIC_RELAXED);
}

/* False: it is in another state, or the process ends. */
static bool listen_move(listen_state from, listen_state to)
{
    listen_take_lock();
    bool moved = listen_own.state == from && !listen_own.exiting;
    if (moved) {
        listen_set(to);
        __atomic_store_n(&listen_own.again, false, __ATOMIC_RELAXED);
    }
    listen_let_go();
    return moved;
}

/* ---- the component ------------------------------------------------------------------------ */

static const tide_listen_host listen_host = {.lock = listen_take_lock,
                                             .unlock = listen_let_go,
                                             .write_facts = tide_facts_write,
                                             .write_event = tide_event_write,
                                             .write_profile = tide_profile_write,
                                             .write_spec = tide_listen_write_spec,
                                             .obey = tide_listen_obey,
                                             .message = tide_error_message,
                                             .status_name = tide_status_name};

#ifdef TIDEPOOL_STATIC
/* A program may have it linked in. */
extern const tide_listen_component tide_listen_table __attribute__((weak));

static const tide_listen_component *listen_find_linked(void)
{
    return &tide_listen_table;
}
#else
static const tide_listen_component *listen_find_linked(void)
{
    return NULL;
}
#endif

/* NULL with a line in `error`. It stays loaded. */
static const tide_listen_component *listen_load_file(const char *path, char *error, size_t room)
{
    tide_outside outside = tide_outside_enter();
    void *module = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    const tide_listen_component *found = module != NULL ? dlsym(module, "tide_listen_table") : NULL;
    if (found == NULL)
        snprintf(error, room, "%.200s", dlerror());
    tide_outside_leave(outside);
    return found;
}

static const tide_listen_component *listen_load(char *error, size_t room)
{
    char path[PATH_MAX];
    const tide_listen_component *found = listen_find_linked();
    if (found == NULL && !tide_locate_component("libtidepool-listen.so", path, sizeof path)) {
        snprintf(error, room, "no libtidepool-listen.so beside the library or on its run path");
        return NULL;
    }
    found = found != NULL ? found : listen_load_file(path, error, room);
    if (found == NULL || found->interface == TIDE_LISTEN_INTERFACE)
        return found;
    snprintf(error, room, "%.160s is of another version of the library", path);
    return NULL;
}

/* By who has moved the state to LISTEN_BEGINS. `found`: what listen_load gave. */
static bool listen_open(const tide_listen_component *found, const char *folder, char *error,
                        size_t room)
{
    if (found == NULL)
        return false;
    listen_take_lock();
    listen_own.component = found;
    listen_let_go();
    return found->open(&listen_host, folder[0] != '\0' ? folder : NULL, error, room);
}

/* ---- the thread --------------------------------------------------------------------------- */

static void listen_say(const char *error)
{
    char line[400];
    int length = snprintf(line, sizeof line, "tidepool: this process does not listen: %s\n", error);
    tide_os_write_error(line, (size_t)length < sizeof line ? (size_t)length : sizeof line - 1);
}

/* When a client wakes it, it does not take the processor from a thread of the program that runs: it
 * waits for its turn. (With less than that share it might keep the program waiting for a lock.) */
static void listen_stand_back(void)
{
    (void)sched_setscheduler(0, SCHED_BATCH, &(struct sched_param){0});
    tide_background_lower_thread();
}

static void *listen_serve(void *unused)
{
    (void)unused;
    (void)prctl(PR_SET_NAME, "tide-listen");
    listen_stand_back();
    tide_assert(listen_own.component != NULL);
    listen_own.component->serve();
    return NULL;
}

/* False: the process ends, and the name with it. */
static bool listen_begun(void)
{
    bool begun = listen_move(LISTEN_BEGINS, LISTEN_SERVES);
    if (!begun)
        listen_own.component->stop();
    return begun;
}

/* Where nobody waits for it: opens and serves, unless another has taken that over. */
static void *listen_open_and_serve(void *unused)
{
    char error[300];
    const tide_listen_component *found = listen_load(error, sizeof error);
    if (!listen_move(LISTEN_LOADS, LISTEN_BEGINS))
        return NULL;
    if (!listen_open(found, listen_own.folder, error, sizeof error)) {
        listen_say(error);
        (void)listen_move(LISTEN_BEGINS, LISTEN_REFUSED);
        return NULL;
    }
    return listen_begun() ? listen_serve(unused) : NULL;
}

/* Who takes the thread is the one that joins it. False: there is none to be joined, or others
 * do. */
static bool listen_take_thread(pthread_t *thread)
{
    listen_take_lock();
    bool taken = listen_own.threaded && !pthread_equal(listen_own.thread, pthread_self());
    if (taken) {
        *thread = listen_own.thread;
        listen_own.threaded = false;
    }
    listen_let_go();
    return taken;
}

/* By who has moved the state. A thread that could not begin has ended already. False: there was
 * none, or the process ends and waits for it there. */
static bool listen_join_thread(void)
{
    pthread_t thread;
    bool taken = listen_take_thread(&thread);
    tide_assert(!taken || !tide_lock_held_any());
    if (taken)
        pthread_join(thread, NULL);
    return taken;
}

/* Signals are for the program's own threads. False: the system gives none. */
static bool listen_start_thread(void *(*run)(void *))
{
    sigset_t all, before;
    (void)listen_join_thread();
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    listen_take_lock(); /* whoever ends this looks for the thread */
    int error = tide_background_create_described(&listen_own.thread, run);
    listen_own.threaded = error == 0;
    listen_let_go();
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error == 0;
}

/* ---- beginning ---------------------------------------------------------------------------- */

static void listen_begin_by_itself(void)
{
    TIDE_UNCANCELLED;
    if (!tide_copy_stay() || !listen_move(LISTEN_NOT, LISTEN_LOADS))
        return;
    if (listen_start_thread(listen_open_and_serve))
        return;
    listen_say("the system gives no thread");
    (void)listen_move(LISTEN_LOADS, LISTEN_REFUSED);
}

void tide_listen_passed(void)
{
    bool again = __atomic_load_n(&listen_own.again, __ATOMIC_RELAXED);
    if (TIDE_LIKELY(!again && tide_setting_get(TIDE_SETTING_listen) == 0))
        return;
    if (__atomic_load_n(&listen_own.state, __ATOMIC_RELAXED) == LISTEN_NOT)
        listen_begin_by_itself();
}

static tide_status listen_check_caller(const char *call)
{
    if (tide_round_held())
        return tide_fail(TIDE_ERROR_STATE, call, "called by a listener to events");
    return tide_registry_admit(call);
}

/* Locked: a fork copies it whole. */
static void listen_set_folder(const char *folder)
{
    tide_assert(strlen(folder) < sizeof listen_own.folder);
    listen_take_lock();
    snprintf(listen_own.folder, sizeof listen_own.folder, "%s", folder);
    listen_let_go();
}

/* What failed is in `error`, and nothing is left. */
static tide_status listen_open_and_start(const char *folder, char *error, size_t room)
{
    if (!listen_open(listen_load(error, room), folder, error, room))
        return TIDE_ERROR_FILE;
    if (listen_start_thread(listen_serve))
        return TIDE_OK;
    listen_own.component->stop();
    listen_own.component->close();
    snprintf(error, room, "the system gives no thread");
    return TIDE_ERROR_MEMORY;
}

/* `from`: where it is again if this fails, with the folder of before. Children use the folder, also
 * one that another thread forks while this begins: so it is set first. */
static tide_status listen_begin(listen_state from, const char *folder, const char *call)
{
    char before[PATH_MAX], error[300];
    __atomic_store_n(&listen_own.called, true, __ATOMIC_RELAXED);
    snprintf(before, sizeof before, "%s", listen_own.folder); /* nobody else sets it now */
    listen_set_folder(folder);
    tide_status failed = listen_open_and_start(folder, error, sizeof error);
    if (failed != TIDE_OK)
        listen_set_folder(before);
    __atomic_store_n(&listen_own.called, false, __ATOMIC_RELAXED);
    if (failed == TIDE_OK)
        return listen_begun() ? TIDE_OK : tide_fail(TIDE_ERROR_STATE, call, "the process ends");
    (void)listen_move(LISTEN_BEGINS, from);
    return tide_fail(failed, call, "%s", error);
}

/* The thread that loads may wait in the linker for whoever is in here, in a constructor, and could
 * not begin as long as that one waits. False: there is none, or it is past that. */
static bool listen_send_thread_off(void)
{
    listen_take_lock();
    bool sent = listen_own.state == LISTEN_LOADS && listen_own.threaded && !listen_own.exiting;
    if (sent) {
        listen_set(LISTEN_BEGINS);
        listen_own.threaded = false;
        (void)pthread_detach(listen_own.thread);
    }
    listen_let_go();
    return sent;
}

/* Does here what that thread would have done, in the same folder. */
static void listen_begin_instead(void)
{
    char error[300];
    if (listen_open_and_start(listen_own.folder, error, sizeof error) == TIDE_OK) {
        (void)listen_begun();
        return;
    }
    listen_say(error);
    (void)listen_move(LISTEN_BEGINS, LISTEN_REFUSED);
}

static bool listen_begins_by_itself(void)
{
    listen_state state = __atomic_load_n(&listen_own.state, __ATOMIC_RELAXED);
    return (state == LISTEN_LOADS || state == LISTEN_BEGINS) &&
           !__atomic_load_n(&listen_own.called, __ATOMIC_RELAXED) &&
           !__atomic_load_n(&listen_own.exiting, __ATOMIC_RELAXED);
}

/* What the setting or a parent has begun a moment ago is no reason to refuse who wants the same: it
 * is waited for. But not for ever: it may wait for a lock of the program's. */
static void listen_await_own(void)
{
    static const struct timespec moment = {.tv_nsec = 1000000};
    for (int i = 0; i < BEGIN_WAITS_MS && listen_begins_by_itself(); i++) {
        if (listen_send_thread_off())
            listen_begin_instead();
        else
            (void)nanosleep(&moment, NULL);
    }
}

tide_status tide_listen(const char *folder)
{
    static const char call[] = "tide_listen";
    TIDE_UNCANCELLED; /* or it would be beginning for ever */
    tide_attach();
    TIDE_FORWARD(listen_check_caller(call));
    if (!tide_copy_stay())
        return tide_fail(TIDE_ERROR_STATE, call,
                         "this copy of the library may be unloaded before the thread ends");
    if (folder != NULL && (folder[0] != '/' || strlen(folder) >= sizeof listen_own.folder))
        return tide_fail(TIDE_ERROR_ARGUMENT, call, "the folder is no absolute path, or too long");
    listen_await_own();
    if (__atomic_load_n(&listen_own.state, __ATOMIC_RELAXED) == LISTEN_SERVES)
        return TIDE_OK;
    static const listen_state from[] = {LISTEN_NOT, LISTEN_REFUSED};
    for (size_t i = 0; i < sizeof from / sizeof *from; i++)
        if (listen_move(from[i], LISTEN_BEGINS))
            return listen_begin(from[i], folder != NULL ? folder : "", call);
    return tide_fail(TIDE_ERROR_STATE, call,
                     "another thread begins or ends this, or the process ends");
}

/* ---- ending ------------------------------------------------------------------------------- */

tide_status tide_listen_end(void)
{
    static const char call[] = "tide_listen_end";
    TIDE_UNCANCELLED;
    tide_attach();
    TIDE_FORWARD(listen_check_caller(call));
    if (listen_move(LISTEN_NOT, LISTEN_REFUSED))
        return TIDE_OK;
    if (!listen_move(LISTEN_SERVES, LISTEN_ENDS))
        return __atomic_load_n(&listen_own.state, __ATOMIC_RELAXED) == LISTEN_REFUSED
                   ? TIDE_OK
                   : tide_fail(TIDE_ERROR_STATE, call, "another thread begins or ends this");
    listen_own.component->stop();
    if (listen_join_thread())
        listen_own.component->close();
    (void)listen_move(LISTEN_ENDS, LISTEN_REFUSED);
    return TIDE_OK;
}

/* The name goes in any case. The thread may be waiting for a lock that whoever called exit has: so
 * it is not waited for longer than a person would not notice. */
static void listen_at_exit(void)
{
    TIDE_UNCANCELLED;
    listen_take_lock();
    bool live = listen_own.state == LISTEN_BEGINS || listen_own.state == LISTEN_SERVES;
    const tide_listen_component *component = listen_own.component;
    pthread_t thread;
    __atomic_store_n(&listen_own.exiting, true, __ATOMIC_RELAXED);
    listen_set(listen_own.state); /* nobody hears any more */
    listen_let_go();
    if (live && component != NULL)
        component->stop();
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += EXIT_WAITS_MS * 1000000L;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    if (listen_take_thread(&thread)) /* unless another thread is about to end this */
        (void)pthread_timedjoin_np(thread, NULL, &until);
}

static void listen_ask_pool(tide_pool *pool, void *unused)
{
    (void)unused;
    tide_request_pass(pool);
}

/* In the child of a fork: the thread is not here. As the keeper, it comes again only when a thread
 * comes by a pool, for most children execute another program at once. */
static void listen_forget(void)
{
    listen_state state = listen_own.state;
    bool lost = state == LISTEN_LOADS || state == LISTEN_BEGINS || state == LISTEN_SERVES;
    lost |= state == LISTEN_NOT && listen_own.again; /* a child's child: its grandparent listened */
    if (listen_own.component != NULL)
        listen_own.component->forget();
    listen_own.threaded = false;
    __atomic_store_n(&listen_own.called, false, __ATOMIC_RELAXED);
    listen_set(lost ? LISTEN_NOT : state == LISTEN_ENDS ? LISTEN_REFUSED : state);
    __atomic_store_n(&listen_own.again, lost, __ATOMIC_RELAXED);
    listen_let_go();
    if (lost)
        tide_pools_visit(listen_ask_pool, NULL); /* this thread has the registry: it forks */
}

static void listen_prepare(void)
{
    static const tide_fork_handlers handlers = {listen_take_lock, listen_let_go, listen_forget};
    tide_fork_register(TIDE_FORK_LISTEN, &handlers);
    atexit(listen_at_exit);
}

void tide_listen_prepare(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, listen_prepare);
}
