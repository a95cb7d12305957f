/* SPDX-License-Identifier: MIT */
/* One child and one request. What is said over the socket:
 *
 *   we     order NUMBER BYTES   and so many bytes of specs (jit/spec/spec.h)
 *   child  ok MICROSECONDS      the code object lies in the directory as uNUMBER.so
 *      or  error TEXT           one line
 *
 * Anything else is garbage, and the child is killed. When the socket ends, the child removes the
 * directory: then the program was killed, for while it lives it kills the child itself. */
#define _GNU_SOURCE
#include "jit/stager/stager.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "jit/stager/directory.h"
#include "jit/stager/locate.h"
#include "jit/stager/process.h"
#include "runtime/base/assert.h"
#include "runtime/base/os.h"
#include "runtime/base/probe.h"
#include "runtime/base/settings.h"

typedef enum request_state { REQUEST_NONE, REQUEST_SENT, REQUEST_ANSWERED } request_state;

static tide_process stager_child = {.socket = -1};
static uint64_t stager_started;
static int64_t stager_since; /* ms: of the request, or of its answer */

static struct {
    request_state state;
    size_t bytes, sent;
    char *message; /* the line that announces it, and the specs */
    tide_stager_answer answer;
} stager_request;

_Static_assert(sizeof stager_request.answer.path >
                   TIDE_DIRECTORY_PATH + sizeof "/u18446744073709551615.so",
               "the path of every code object fits into an answer");

static int64_t stager_now(void)
{
    return (int64_t)(tide_os_now_ns() / 1000000);
}

/* ---- answering ---------------------------------------------------------------------------- */

static void stager_answer(tide_stager_result result, const char *error)
{
    tide_assert(stager_request.state == REQUEST_SENT);
    stager_request.answer.result = result;
    snprintf(stager_request.answer.error, sizeof stager_request.answer.error, "%s", error);
    stager_request.state = REQUEST_ANSWERED;
    tide_os_free(stager_request.message);
    stager_request.message = NULL;
    stager_since = stager_now();
}

/* Ends the child; the request that it has, if any, is answered with that. */
static void stager_lose(tide_stager_result result, const char *error)
{
    tide_process_end(&stager_child);
    if (stager_request.state == REQUEST_SENT)
        stager_answer(result, error);
}

static void stager_lose_to_garbage(const char *line)
{
    char error[160];
    snprintf(error, sizeof error, "the stager was killed: this is no answer: %.100s", line);
    for (char *c = error; *c != '\0'; c++) /* it may go to a terminal */
        if ((unsigned char)*c < ' ' || *c == 0x7f)
            *c = '?';
    stager_lose(TIDE_STAGER_GARBAGE, error);
}

/* ---- hearing ------------------------------------------------------------------------------ */

static bool stager_is_printable(const char *text)
{
    while ((unsigned char)*text >= ' ' && *text != 0x7f)
        text++;
    return *text == '\0';
}

/* What follows the word; NULL: the line does not begin with it, or nothing follows. */
static const char *stager_rest_of(const char *line, const char *word)
{
    size_t length = strlen(word);
    return strncmp(line, word, length) == 0 && line[length] != '\0' ? line + length : NULL;
}

/* "ok MICROSECONDS", and the file is there; false: nonsense. */
static bool stager_hear_ok(const char *line)
{
    const char *number = stager_rest_of(line, "ok ");
    char *end;
    struct stat file;
    tide_stager_answer *answer = &stager_request.answer;
    if (number == NULL || *number < '0' || *number > '9')
        return false;
    errno = 0;
    answer->spent_us = strtoull(number, &end, 10);
    snprintf(answer->path, sizeof answer->path, "%s/u%" PRIu64 ".so", tide_directory_path(),
             answer->request);
    if (errno != 0 || *end != '\0' || lstat(answer->path, &file) != 0 || !S_ISREG(file.st_mode))
        return false;
    stager_answer(TIDE_STAGER_OK, "");
    return true;
}

static bool stager_hear(const char *line)
{
    if (stager_request.state != REQUEST_SENT || stager_request.sent < stager_request.bytes)
        return false;
    const char *error = stager_rest_of(line, "error ");
    if (error == NULL || !stager_is_printable(error))
        return stager_hear_ok(line);
    stager_answer(TIDE_STAGER_FAILED, error);
    return true;
}

static void stager_listen(void)
{
    const char *line = "";
    while (stager_child.pid != 0) {
        switch (tide_process_read(&stager_child, &line)) {
        case TIDE_PROCESS_GOT:
            if (!stager_hear(line))
                stager_lose_to_garbage(line);
            break;
        case TIDE_PROCESS_LONG: stager_lose_to_garbage("a line without end"); break;
        case TIDE_PROCESS_END: stager_lose(TIDE_STAGER_DIED, "the stager died"); break;
        case TIDE_PROCESS_NONE: return;
        }
    }
}

/* ---- starting ----------------------------------------------------------------------------- */

/* The environment is written anew: nothing of the program's own goes to the compiler, but for where
 * tools and libraries lie. */
static int stager_start_in(const char *program, const char *directory)
{
    char temporary[TIDE_DIRECTORY_PATH + 16];
    const tide_locate_environment *said = tide_locate_environment_get();
    char *environment[] = {(char *)(said->path[0] != '\0' ? said->path : "PATH=/usr/bin:/bin"),
                           temporary, "LANG=C",
                           said->libraries[0] != '\0' ? (char *)said->libraries : NULL, NULL};
    snprintf(temporary, sizeof temporary, "TMPDIR=%s", directory);
    return tide_process_start(&stager_child, program, directory, environment);
}

/* Is it the program that a start failed for? Else another start may go well. */
static tide_stager_result stager_result_of_start(int number)
{
    switch (number) {
    case EAGAIN:
    case EMFILE:
    case ENFILE:
    case ENOBUFS:
    case ENOMEM:
    case ETXTBSY: return TIDE_STAGER_SHORT; /* the last: it is being installed anew */
    default: return TIDE_STAGER_MISSING;
    }
}

/* The directory comes last: without a stager the program has no use for it. */
static tide_stager_result stager_start(char *error, size_t room)
{
    char program[TIDE_LOCATE_PATH];
    if (tide_locate_privileges_raised() || tide_locked_down()) {
        snprintf(error, room, "no stager: the program %s",
                 tide_locked_down() ? "is locked down" : "runs with raised privileges");
        return TIDE_STAGER_REFUSED;
    }
    if (!tide_locate_stager(program, sizeof program, error, room))
        return TIDE_STAGER_MISSING;
    const char *directory = tide_directory_get(error, room);
    if (directory == NULL)
        return TIDE_STAGER_REFUSED;
    int failed = stager_start_in(program, directory);
    if (failed != 0) {
        snprintf(error, room, "the stager cannot be started: %.120s: %s", program,
                 strerror(failed));
        return stager_result_of_start(failed);
    }
    stager_started++;
    tide_assert(stager_child.pid > 1);
    return TIDE_STAGER_OK;
}

/* ---- requests ----------------------------------------------------------------------------- */

static void stager_check_time(void)
{
    char error[80];
    double most = tide_constant_get(TIDE_CONSTANT_stager_deadline);
    if (stager_request.state != REQUEST_SENT || (double)(stager_now() - stager_since) < most)
        return;
    snprintf(error, sizeof error, "the stager was killed: no answer within %g ms", most);
    stager_lose(TIDE_STAGER_LATE, error);
}

/* Sends what there is to send and hears what there is to hear. */
static void stager_attend(void)
{
    if (stager_request.state == REQUEST_SENT)
        stager_request.sent +=
            tide_process_send(&stager_child, stager_request.message + stager_request.sent,
                              stager_request.bytes - stager_request.sent);
    stager_listen();
    stager_check_time();
}

bool tide_stager_busy(void)
{
    return stager_request.state != REQUEST_NONE;
}

/* Whoever clears old files away may have removed the directory, and others may have taken its name. */
static void stager_keep_sound(void)
{
    if (tide_directory_path()[0] == '\0' || tide_directory_is_ours())
        return;
    if (stager_child.pid != 0)
        tide_process_end(&stager_child);
    tide_directory_forget();
}

bool tide_stager_submit(uint64_t request, const char *specs, size_t bytes)
{
    char announced[64], error[256];
    tide_assert(specs != NULL && !tide_stager_busy());
    stager_listen(); /* it may have died while it was idle */
    stager_keep_sound();
    int length = snprintf(announced, sizeof announced, "order %" PRIu64 " %zu\n", request, bytes);
    stager_request.bytes = (size_t)length + bytes;
    stager_request.sent = 0;
    stager_request.message = tide_os_resize(NULL, stager_request.bytes);
    if (stager_request.message == NULL)
        return false;
    memcpy(stager_request.message, announced, (size_t)length);
    memcpy(stager_request.message + length, specs, bytes);
    stager_request.answer = (tide_stager_answer){.request = request};
    stager_request.state = REQUEST_SENT;
    stager_since = stager_now();
    TIDE_USDT(compile_begin, request, bytes);
    tide_stager_result started =
        stager_child.pid != 0 ? TIDE_STAGER_OK : stager_start(error, sizeof error);
    if (started != TIDE_STAGER_OK)
        stager_answer(started, error);
    else
        stager_attend();
    return true;
}

/* Until the child says something, takes more, or is late. */
static void stager_wait(int64_t most_ms)
{
    bool full = stager_request.sent < stager_request.bytes;
    struct pollfd one = {.fd = stager_child.socket,
                         .events = (short)(POLLIN | (full ? POLLOUT : 0))};
    int64_t left =
        stager_since + (int64_t)tide_constant_get(TIDE_CONSTANT_stager_deadline) - stager_now();
    left = left < 0 ? 0 : left;
    (void)poll(&one, 1, (int)(left < most_ms ? left : most_ms));
}

bool tide_stager_poll(tide_stager_answer *out, int timeout_ms)
{
    int64_t end = stager_now() + timeout_ms;
    tide_assert(out != NULL);
    if (stager_request.state == REQUEST_SENT)
        stager_attend();
    while (stager_request.state == REQUEST_SENT) {
        int64_t left = end - stager_now();
        if (left <= 0)
            return false;
        stager_wait(left);
        stager_attend();
    }
    if (stager_request.state == REQUEST_NONE)
        return false;
    *out = stager_request.answer;
    stager_request.state = REQUEST_NONE;
    TIDE_USDT(compile_end, out->request, (int)out->result, out->spent_us);
    return true;
}

/* ---- the end ------------------------------------------------------------------------------ */

void tide_stager_tend(void)
{
    double most = tide_constant_get(TIDE_CONSTANT_stager_idle);
    if (stager_child.pid == 0 || tide_stager_busy())
        return;
    stager_listen();
    if (stager_child.pid != 0 && most != 0 && (double)(stager_now() - stager_since) >= most)
        tide_process_end(&stager_child);
}

static void stager_forget_request(void)
{
    tide_os_free(stager_request.message);
    memset(&stager_request, 0, sizeof stager_request);
    tide_assert(!tide_stager_busy());
}

void tide_stager_refuse(const char *why)
{
    if (stager_child.pid != 0)
        tide_process_end(&stager_child);
    if (stager_request.state != REQUEST_NONE) {
        stager_request.state = REQUEST_SENT; /* what it has made is not loaded any more */
        stager_answer(TIDE_STAGER_REFUSED, why);
    }
    tide_directory_remove();
}

void tide_stager_stop(void)
{
    tide_stager_refuse("the process ends");
    stager_forget_request();
}

/* Whoever forks holds the round lock, so all of this is whole. */
void tide_stager_forget_in_child(void)
{
    tide_process_forget(&stager_child);
    stager_forget_request();
    tide_directory_forget();
}

uint64_t tide_stager_started(void)
{
    return stager_started;
}

int tide_stager_process(void)
{
    return (int)stager_child.pid;
}
