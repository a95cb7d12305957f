/* SPDX-License-Identifier: MIT */
/* Orders, and the helper processes that work on them.
 *
 * An order waits (no helper yet), is under way (has a helper), or is answered. A helper serves
 * (takes new orders), finishes (has been told to go, and answers what it has), or is doomed (owes
 * nothing and only has to end). Every failure comes down to one step: `lose` dooms a helper, and
 * each of its orders is answered or waits again; waiting again is allowed once, which bounds
 * everything. The order that was at its head, and so probably was being worked on, goes to the end
 * of the queue: if it is what kills stagers, it does not take the same others with it twice.
 *
 * A stager works on one order after the other, so the deadline is the head's: it runs from when the
 * order could be begun, which is when it was given or when the one before it was answered. */
#define _GNU_SOURCE
#include "jit/stager.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "jit/directory.h"
#include "jit/helper.h"
#include "jit/locate.h"
#include "jit/privilege.h"
#include "runtime/assert.h"
#include "runtime/os.h"
#include "runtime/settings.h"

enum {
    HELPERS = 8,        /* at once; most of them doomed and slow to end */
    GRACE = 200,        /* milliseconds from SIGTERM to SIGKILL */
    LEAVE_KINDLY = 100, /* milliseconds that stopping waits for an idle helper … */
    LEAVE = 1000,       /* … and for one that was killed */
    UNSTORED = 256,     /* orders for which there was no memory, and no answer fetched yet */
    VERSION = 128
};

typedef enum role { SERVES = 1, FINISHES, DOOMED } role;

typedef struct helper {
    role role; /* 0: the place is free */
    bool greeted;
    bool killed;
    size_t bye_sent;
    uint64_t sites;
    int64_t since; /* when the head of its orders could be begun; doomed: when it was told */
    tide_helper process;
} helper;

typedef struct order {
    struct order *next;
    helper *helper;
    bool again; /* has been given to a helper that was lost */
    uint64_t sites;
    size_t sent, bytes;
    tide_stager_answer answer;
    char message[]; /* the line that announces it, and the specs */
} order;

typedef struct queue {
    order *first, **last;
    size_t count;
} queue;

static const char bye[] = "bye\n";
static helper helpers[HELPERS];
static queue pending = {.last = &pending.first}, answered = {.last = &answered.first};
static uint64_t unstored[UNSTORED];
static size_t unstored_count;
static int watch = -1; /* epoll: all sockets and processes */
static pid_t owner;    /* who started the helpers */
static char version[VERSION];
static tide_stager_figures figures;

int64_t (*tide_stager_clock)(void);

/* ---- time --------------------------------------------------------------------------------- */

static int64_t real_time(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

static int64_t now(void)
{
    return tide_stager_clock != NULL ? tide_stager_clock() : real_time();
}

/* ---- queues ------------------------------------------------------------------------------- */

static void append(queue *to, order *one)
{
    one->next = NULL;
    *to->last = one;
    to->last = &one->next;
    to->count++;
}

static void take_out(queue *from, order *one)
{
    order **link = &from->first;
    while (*link != one) {
        tide_assert(*link != NULL);
        link = &(*link)->next;
    }
    *link = one->next;
    if (from->last == &one->next)
        from->last = link;
    from->count--;
}

static void clear(queue *all)
{
    while (all->first != NULL) {
        order *one = all->first;
        take_out(all, one);
        tide_os_free(one);
    }
    tide_assert(all->count == 0);
}

/* The order that a helper is, or will first be, working on; with NULL, the first that waits. */
static order *head_of(const helper *of)
{
    order *one = pending.first;
    while (one != NULL && one->helper != of)
        one = one->next;
    return one;
}

static order *find(const helper *of, uint64_t id)
{
    order *one = pending.first;
    while (one != NULL && (one->helper != of || one->answer.order != id))
        one = one->next;
    return one;
}

static void answer(order *one, tide_stager_result result, const char *text)
{
    char *to = result == TIDE_STAGER_OK ? one->answer.path : one->answer.error;
    size_t room = result == TIDE_STAGER_OK ? sizeof one->answer.path : sizeof one->answer.error;
    one->answer.result = result;
    snprintf(to, room, "%s", text);
    take_out(&pending, one);
    append(&answered, one);
    figures.failed += result == TIDE_STAGER_FAILED;
}

/* ---- watching ----------------------------------------------------------------------------- */

static bool watch_descriptor(int descriptor)
{
    struct epoll_event event = {.events = EPOLLIN};
    return epoll_ctl(watch, EPOLL_CTL_ADD, descriptor, &event) == 0;
}

static bool begin_watching(const tide_helper *process, char *error, size_t room)
{
    if (watch < 0)
        watch = tide_helper_lift(epoll_create1(EPOLL_CLOEXEC));
    bool watched = watch >= 0 && watch_descriptor(process->socket) &&
                   (process->process < 0 || watch_descriptor(process->process));
    if (!watched)
        snprintf(error, room, "the stager cannot be watched: %s", strerror(errno));
    return watched;
}

static void watch_for_room(const helper *h, bool wanted)
{
    struct epoll_event event = {.events = EPOLLIN | (wanted ? EPOLLOUT : 0u)};
    (void)epoll_ctl(watch, EPOLL_CTL_MOD, h->process.socket, &event);
}

/* Taken out by name: a process forked behind our back may hold a copy, and closing ours would then
 * leave it watched. */
static void stop_watching(int descriptor)
{
    if (descriptor >= 0)
        (void)epoll_ctl(watch, EPOLL_CTL_DEL, descriptor, NULL);
}

/* ---- ending helpers ----------------------------------------------------------------------- */

static void kill_now(helper *h)
{
    tide_helper_kill(&h->process);
    h->killed = true;
}

static void release(helper *h)
{
    h->role = 0;
    h->killed = false;
}

/* Gives its place back if it has ended. */
static void collect(helper *h)
{
    tide_assert(h->role == DOOMED);
    if (!tide_helper_ended(&h->process))
        return;
    stop_watching(h->process.process);
    tide_helper_collect(&h->process);
    release(h);
}

typedef enum ending { LET_GO, TERMINATE, KILL } ending;

/* The connection stays open, unwatched, until the process is gone, unless that has been told "bye":
 * whoever sees the end of its input without it takes us for dead and removes our directory. */
static void doom(helper *h, ending how)
{
    tide_assert(head_of(h) == NULL);
    h->role = DOOMED;
    h->since = now();
    stop_watching(h->process.socket);
    if (how == LET_GO)
        tide_helper_hang_up(&h->process);
    else if (how == TERMINATE)
        tide_helper_terminate(&h->process);
    else
        kill_now(h);
    collect(h);
}

/* Each of its orders waits once more, or is answered. `guilty` (NULL: nobody knows) is answered
 * with `result` at once. */
static void lose(helper *h, order *guilty, tide_stager_result result, const char *text, ending how)
{
    order *suspect = head_of(h);
    if (guilty != NULL)
        answer(guilty, result, text);
    for (order *one = pending.first, *next; one != NULL; one = next) {
        next = one->next;
        if (one->helper != h)
            continue;
        one->helper = NULL;
        if (one->again)
            answer(one, TIDE_STAGER_DIED, text);
        one->again = true;
    }
    if (suspect != NULL && suspect != guilty && find(NULL, suspect->answer.order) == suspect) {
        take_out(&pending, suspect);
        append(&pending, suspect);
    }
    doom(h, how);
}

static void lose_to_garbage(helper *h, order *guilty, const char *what, const char *line)
{
    char text[256];
    figures.garbage++;
    snprintf(text, sizeof text, "the stager was killed: %s: %.100s", what, line);
    lose(h, guilty != NULL ? guilty : head_of(h), TIDE_STAGER_GARBAGE, text, KILL);
}

static void lose_late(helper *h)
{
    char text[160];
    figures.late++;
    snprintf(text, sizeof text, "the stager was killed: no answer within %g ms",
             tide_setting_get(TIDE_SETTING_stager_deadline));
    lose(h, head_of(h), TIDE_STAGER_LATE, text, TERMINATE);
}

/* It went by itself: as it was told, or not. */
static void lose_ended(helper *h)
{
    bool expected = h->role == FINISHES && head_of(h) == NULL;
    figures.died += !expected;
    lose(h, NULL, TIDE_STAGER_DIED, "the stager died with the order", expected ? LET_GO : KILL);
}

/* ---- starting helpers --------------------------------------------------------------------- */

static void forget_in_child(void);

static helper *find_role(role wanted)
{
    for (size_t i = 0; i < HELPERS; i++)
        if (helpers[i].role == wanted)
            return &helpers[i];
    return NULL;
}

static void start_first(void)
{
    static bool asked;
    if (!asked)
        asked = pthread_atfork(NULL, NULL, forget_in_child) == 0;
    owner = getpid();
}

/* NULL: one line in `error`. */
static helper *start(const char *program, const char *directory, char *error, size_t room)
{
    helper *h = find_role(0);
    if (h == NULL) {
        snprintf(error, room, "the stager cannot be started: %d earlier ones do not end", HELPERS);
        return NULL;
    }
    start_first();
    if (!tide_helper_start(&h->process, program, directory, error, room))
        return NULL;
    *h = (helper){.role = SERVES, .since = now(), .process = h->process};
    figures.started++;
    if (begin_watching(&h->process, error, room))
        return h;
    doom(h, KILL);
    return NULL;
}

/* Its directory is gone or can no longer be trusted, and with it whatever it makes. */
static void leave_directory(const char *why)
{
    for (size_t i = 0; i < HELPERS; i++)
        if (helpers[i].role == SERVES || helpers[i].role == FINISHES)
            lose(&helpers[i], NULL, TIDE_STAGER_REFUSED, why, KILL);
    tide_directory_remove();
}

/* One that has done its part goes, unless the one before it has not gone yet. */
static void recycle(void)
{
    helper *h = find_role(SERVES);
    if (h == NULL || find_role(FINISHES) != NULL ||
        (double)h->sites < tide_setting_get(TIDE_SETTING_stager_recycle))
        return;
    h->role = FINISHES;
    figures.recycled++;
}

/* The directory comes last: a program that has no stager has no use for it, and nobody to remove it
 * should it crash. */
static helper *start_anew(tide_stager_result *result, char *error, size_t room)
{
    char program[4096];
    *result = TIDE_STAGER_MISSING;
    if (!tide_locate_stager(program, sizeof program, error, room))
        return NULL;
    *result = TIDE_STAGER_REFUSED;
    const char *directory = tide_directory_get(error, room);
    if (directory == NULL)
        return NULL;
    *result = TIDE_STAGER_MISSING;
    return start(program, directory, error, room);
}

static helper *serving(tide_stager_result *result, char *error, size_t room)
{
    *result = TIDE_STAGER_REFUSED;
    if (tide_privileges_raised()) {
        snprintf(error, room, "no stager: the program runs with raised privileges");
        return NULL;
    }
    recycle();
    helper *h = find_role(SERVES);
    return h != NULL ? h : start_anew(result, error, room);
}

/* ---- giving orders to helpers ------------------------------------------------------------- */

static void give(helper *h, order *one)
{
    if (head_of(h) == NULL)
        h->since = now();
    one->helper = h;
    one->sent = 0;
    h->sites += one->sites;
}

static void refuse_waiting(tide_stager_result result, const char *error)
{
    for (order *one; (one = head_of(NULL)) != NULL;)
        answer(one, result, error);
}

static void give_waiting(void)
{
    char error[256] = "";
    tide_stager_result result;
    if (head_of(NULL) != NULL && tide_directory_made() &&
        !tide_directory_sound(error, sizeof error))
        leave_directory(error);
    for (order *one; (one = head_of(NULL)) != NULL;) {
        helper *h = serving(&result, error, sizeof error);
        if (h == NULL)
            refuse_waiting(result, error);
        else
            give(h, one);
    }
}

/* Sends what there is to send, in order; false: the system takes no more now. */
static bool send_orders(helper *h)
{
    for (order *one = pending.first; one != NULL; one = one->next) {
        if (one->helper != h || one->sent == one->bytes)
            continue;
        one->sent +=
            tide_helper_send(&h->process, one->message + one->sent, one->bytes - one->sent);
        if (one->sent < one->bytes)
            return false;
    }
    if (h->role == FINISHES)
        h->bye_sent += tide_helper_send(&h->process, bye + h->bye_sent, strlen(bye) - h->bye_sent);
    return h->role != FINISHES || h->bye_sent == strlen(bye);
}

/* ---- reading answers ---------------------------------------------------------------------- */

static bool is_printable(const char *text)
{
    for (; *text != '\0'; text++)
        if ((unsigned char)*text < ' ' || *text == 0x7f)
            return false;
    return true;
}

/* "WORD ID TEXT": the text; NULL: it is not that. */
static const char *parse(const char *line, const char *word, uint64_t *id)
{
    size_t length = strlen(word);
    if (strncmp(line, word, length) != 0 || line[length] < '0' || line[length] > '9')
        return NULL;
    char *end;
    errno = 0;
    *id = strtoull(line + length, &end, 10);
    return errno == 0 && *end == ' ' && end[1] != '\0' ? end + 1 : NULL;
}

static void greet(helper *h, const char *line)
{
    static const char word[] = "hello ";
    size_t length = strlen(word);
    if (strncmp(line, word, length) != 0 || line[length] == '\0' || !is_printable(line)) {
        lose_to_garbage(h, NULL, "its first line is no greeting", line);
        return;
    }
    h->greeted = true;
    snprintf(version, sizeof version, "%s", line + length);
}

/* A path outside our directory is garbage; one inside a directory that is no longer sound is not
 * the stager's fault. */
static void take_artefact(helper *h, order *one, const char *path)
{
    char error[256];
    if (!tide_directory_sound(error, sizeof error))
        answer(one, TIDE_STAGER_REFUSED, error);
    else if (strlen(path) >= sizeof one->answer.path ||
             !tide_directory_holds(path, error, sizeof error))
        lose_to_garbage(h, one, "no artefact", path);
    else
        answer(one, TIDE_STAGER_OK, path);
}

static void hear(helper *h, const char *line)
{
    uint64_t id = 0;
    const char *path = parse(line, "ok ", &id), *error = NULL;
    if (path == NULL)
        error = parse(line, "error ", &id);
    order *one = path != NULL || error != NULL ? find(h, id) : NULL;
    if (one == NULL || one->sent < one->bytes || !is_printable(line)) {
        lose_to_garbage(h, NULL, "this is no answer to what it was asked", line);
        return;
    }
    figures.answers++;
    h->since = now();
    if (path != NULL)
        take_artefact(h, one, path);
    else
        answer(one, TIDE_STAGER_FAILED, error);
}

/* Each line answers an order, greets, or ends the helper: this ends. */
static void listen_to(helper *h)
{
    const char *line;
    while (h->role == SERVES || h->role == FINISHES) {
        switch (tide_helper_read(&h->process, &line)) {
        case TIDE_HELPER_GOT:
            h->greeted ? hear(h, line) : greet(h, line);
            break;
        case TIDE_HELPER_NONE:
            return;
        case TIDE_HELPER_END:
            lose_ended(h);
            return;
        case TIDE_HELPER_LONG:
            lose_to_garbage(h, NULL, "a line longer than 1023 bytes, or with a 0 in it", "");
            return;
        }
    }
}

/* ---- one look at everything --------------------------------------------------------------- */

static void check_time(helper *h)
{
    int64_t passed = now() - h->since;
    if (h->role == DOOMED) {
        if (!h->killed && passed >= GRACE)
            kill_now(h);
    } else if ((h->role == FINISHES || head_of(h) != NULL) &&
               (double)passed >= tide_setting_get(TIDE_SETTING_stager_deadline)) {
        lose_late(h);
    }
}

static void attend_one(helper *h)
{
    bool ended = tide_helper_ended(&h->process);
    listen_to(h);
    if (ended && h->role != DOOMED && h->role != 0) /* though what it started may hold its socket */
        lose_ended(h);
    if (h->role != 0)
        check_time(h);
    if (h->role == DOOMED)
        collect(h);
}

static void attend(void)
{
    for (size_t i = 0; i < HELPERS; i++)
        if (helpers[i].role != 0)
            attend_one(&helpers[i]);
    give_waiting();
    for (size_t i = 0; i < HELPERS; i++)
        if (helpers[i].role == SERVES || helpers[i].role == FINISHES)
            watch_for_room(&helpers[i], !send_orders(&helpers[i]));
}

/* ---- what the header promises ------------------------------------------------------------- */

static uint64_t count_sites(const char *text, size_t bytes)
{
    static const char word[] = "\nsite ";
    uint64_t count = 0;
    const char *end = text + bytes;
    while ((text = memmem(text, (size_t)(end - text), word, strlen(word))) != NULL) {
        text += strlen(word);
        count++;
    }
    return count;
}

static order *make(uint64_t id, const char *specs, size_t bytes)
{
    char announced[64];
    int length = snprintf(announced, sizeof announced, "order %llu %zu\n", (unsigned long long)id,
                          bytes);
    order *one = tide_os_resize(NULL, sizeof *one + (size_t)length + bytes);
    if (one == NULL)
        return NULL;
    *one = (order){.sites = count_sites(specs, bytes),
                   .bytes = (size_t)length + bytes,
                   .answer.order = id};
    memcpy(one->message, announced, (size_t)length);
    memcpy(one->message + length, specs, bytes);
    return one;
}

void tide_stager_submit(uint64_t id, const char *specs, size_t bytes)
{
    figures.orders++;
    attend(); /* so that it is not given to one that died while idle */
    order *one = make(id, specs, bytes);
    if (one != NULL) {
        append(&pending, one);
        attend();
    } else if (unstored_count < UNSTORED) {
        unstored[unstored_count++] = id;
    }
}

static bool next_answer(tide_stager_answer *out)
{
    order *one = answered.first;
    if (one != NULL) {
        *out = one->answer;
        take_out(&answered, one);
        tide_os_free(one);
        return true;
    }
    if (unstored_count == 0)
        return false;
    *out = (tide_stager_answer){.order = unstored[--unstored_count], .result = TIDE_STAGER_DIED};
    snprintf(out->error, sizeof out->error, "no memory for the order");
    return true;
}

/* How long it is worth sleeping: to the nearest time at which something must be done. */
static int64_t until_due(int64_t most)
{
    for (size_t i = 0; i < HELPERS; i++) {
        const helper *h = &helpers[i];
        if (h->role == 0 || h->killed || (h->role == SERVES && head_of(h) == NULL))
            continue;
        double limit = h->role == DOOMED ? GRACE : tide_setting_get(TIDE_SETTING_stager_deadline);
        int64_t left = h->since + (int64_t)limit - now();
        if (left < most)
            most = left;
    }
    return most > 0 ? most : 0;
}

bool tide_stager_poll(tide_stager_answer *out, int timeout_ms)
{
    int64_t end = real_time() + timeout_ms;
    attend();
    while (!next_answer(out)) {
        int64_t left = end - real_time();
        if (left <= 0 || pending.count == 0)
            return false;
        struct epoll_event event;
        (void)epoll_wait(watch, &event, 1, (int)until_due(left));
        attend();
    }
    return true;
}

size_t tide_stager_pending(void)
{
    return pending.count + answered.count + unstored_count;
}

int tide_stager_descriptor(void)
{
    return watch;
}

const char *tide_stager_version(void)
{
    return version;
}

int tide_stager_process(void)
{
    const helper *h = find_role(SERVES);
    return h != NULL ? (int)h->process.pid : 0;
}

void tide_stager_figures_get(tide_stager_figures *out)
{
    *out = figures;
}

/* ---- leaving ------------------------------------------------------------------------------ */

static bool all_ended(void)
{
    for (size_t i = 0; i < HELPERS; i++)
        if (helpers[i].role != 0)
            return false;
    return true;
}

/* Waits for doomed helpers to end; sleeps by process descriptors, or in short steps. */
static void wait_for_ends(int most_ms)
{
    int64_t end = real_time() + most_ms;
    for (;;) {
        for (size_t i = 0; i < HELPERS; i++)
            if (helpers[i].role == DOOMED)
                collect(&helpers[i]);
        int64_t left = end - real_time();
        if (all_ended() || left <= 0)
            return;
        struct epoll_event event;
        if (epoll_wait(watch, &event, 1, left < 5 ? (int)left : 5) < 0)
            nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL); /* nothing is watched */
    }
}

/* One that is idle is told to go; one at work would go on writing into the directory. */
static void dismiss(helper *h)
{
    bool idle = head_of(h) == NULL && h->role == SERVES;
    if (h->role == DOOMED)
        return;
    h->role = DOOMED;
    h->since = now();
    stop_watching(h->process.socket);
    if (idle && tide_helper_send(&h->process, bye, strlen(bye)) == strlen(bye))
        tide_helper_hang_up(&h->process);
    else
        kill_now(h);
}

static void forget_orders(void)
{
    clear(&pending);
    clear(&answered);
    unstored_count = 0;
    if (watch >= 0)
        close(watch);
    watch = -1;
}

void tide_stager_stop(bool directory)
{
    for (size_t i = 0; i < HELPERS; i++)
        if (helpers[i].role != 0)
            dismiss(&helpers[i]);
    wait_for_ends(LEAVE_KINDLY);
    for (size_t i = 0; i < HELPERS; i++)
        if (helpers[i].role != 0)
            kill_now(&helpers[i]);
    wait_for_ends(LEAVE);
    for (size_t i = 0; i < HELPERS; i++)
        if (helpers[i].role != 0) {
            tide_helper_forget(&helpers[i].process);
            release(&helpers[i]);
        }
    forget_orders();
    if (directory)
        tide_directory_remove();
}

/* Whoever forks holds the lock under which all this is used (jit/round.h), so it is whole. The
 * helpers are the parent's: they are left without a word. */
static void forget_in_child(void)
{
    for (size_t i = 0; i < HELPERS; i++)
        if (helpers[i].role != 0)
            tide_helper_forget(&helpers[i].process);
    memset(helpers, 0, sizeof helpers);
    forget_orders();
}

/* After the library's other destructors, which may still have to hand back artefacts. A process
 * that was made behind our back is none of those that may clean up. */
__attribute__((destructor(101))) static void leave(void)
{
    if (owner == getpid())
        tide_stager_stop(false);
    tide_directory_remove();
}
