/* SPDX-License-Identifier: MIT */
/* Lines sent and heard. Nothing that comes is trusted: an answer must be to a request that this
 * worker was sent whole, and an artefact must lie in our directory. */
#include "jit/stager/protocol.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jit/stager/directory.h"
#include "runtime/base/assert.h"

enum { VERSION = 128 };

static char protocol_version[VERSION];

_Static_assert(TIDE_PROCESS_LINE == 1024, "a message says what the longest line is");
_Static_assert(sizeof((tide_stager_answer *)0)->path >
                   TIDE_DIRECTORY_PATH + sizeof "/u18446744073709551615.so",
               "the path of every artefact that workers name fits into an answer");

/* ---- sending ------------------------------------------------------------------------------ */

bool tide_protocol_send(tide_worker *worker)
{
    tide_assert(tide_workers_works(worker));
    for (tide_queued *one = tide_queue_first(); one != NULL; one = tide_queue_after(one)) {
        if (one->worker != worker || one->sent == one->bytes)
            continue;
        one->sent +=
            tide_process_send(&worker->process, one->message + one->sent, one->bytes - one->sent);
        tide_assert(one->sent <= one->bytes);
        if (one->sent < one->bytes)
            return false;
    }
    return worker->state != TIDE_WORKER_DRAINING || tide_workers_tell_to_go(worker);
}

/* ---- hearing ------------------------------------------------------------------------------ */

static void protocol_lose_to_garbage(tide_worker *worker, tide_queued *guilty, const char *what,
                                     const char *line)
{
    char text[256];
    tide_assert(guilty == NULL || guilty->worker == worker);
    tide_worker_figures.garbage++;
    snprintf(text, sizeof text, "the stager was killed: %s: %.100s", what, line);
    tide_workers_lose(worker, guilty != NULL ? guilty : tide_queue_head(worker),
                      TIDE_STAGER_GARBAGE, text, TIDE_KILL);
}

/* What a worker says may go to a terminal or a log: no control characters. */
static bool protocol_is_printable(const char *text)
{
    for (; *text != '\0'; text++)
        if ((unsigned char)*text < ' ' || *text == 0x7f)
            return false;
    return true;
}

/* "WORD ID TEXT": the text; NULL: it is not that. */
static const char *protocol_parse_answer(const char *line, const char *word, uint64_t *id)
{
    size_t length = strlen(word);
    tide_assert(length > 0 && word[length - 1] == ' ');
    if (strncmp(line, word, length) != 0 || line[length] < '0' || line[length] > '9')
        return NULL;
    char *end;
    errno = 0;
    *id = strtoull(line + length, &end, 10);
    return errno == 0 && *end == ' ' && end[1] != '\0' ? end + 1 : NULL;
}

static void protocol_greet(tide_worker *worker, const char *line)
{
    static const char word[] = "hello ";
    size_t length = strlen(word);
    tide_assert(!worker->greeted);
    if (strncmp(line, word, length) != 0 || line[length] == '\0' || !protocol_is_printable(line)) {
        protocol_lose_to_garbage(worker, NULL, "its first line is no greeting", line);
        return;
    }
    worker->greeted = true;
    snprintf(protocol_version, sizeof protocol_version, "%s", line + length);
}

/* A path outside our directory is garbage. If the directory itself is not sound any more, that is
 * not the worker's fault. */
static void protocol_take_artefact(tide_worker *worker, tide_queued *one, const char *path)
{
    char error[256];
    tide_assert(one->worker == worker && one->sent == one->bytes);
    if (!tide_directory_sound(error, sizeof error))
        tide_queue_answer(one, TIDE_STAGER_REFUSED, error);
    else if (strlen(path) >= sizeof one->answer.path ||
             !tide_directory_holds(path, error, sizeof error))
        protocol_lose_to_garbage(worker, one, "no artefact", path);
    else
        tide_queue_answer(one, TIDE_STAGER_OK, path);
}

/* "spent ID MICROSECONDS", once for a request; false: it is not that, or nonsense. */
static bool protocol_hear_spent(const tide_worker *worker, const char *line)
{
    uint64_t id = 0;
    const char *text = protocol_parse_answer(line, "spent ", &id);
    tide_queued *one =
        text != NULL && *text >= '0' && *text <= '9' ? tide_queue_find(worker, id) : NULL;
    if (one == NULL || one->sent < one->bytes || one->answer.spent_us != 0)
        return false;
    char *end;
    errno = 0;
    uint64_t spent = strtoull(text, &end, 10);
    if (errno != 0 || *end != '\0' || spent == 0)
        return false;
    one->answer.spent_us = spent;
    return true;
}

static void protocol_hear_line(tide_worker *worker, const char *line)
{
    tide_assert(worker->greeted);
    uint64_t id = 0;
    if (strcmp(line, "idle") == 0) {
        tide_workers_let_idle_go(worker);
        return;
    }
    if (protocol_hear_spent(worker, line))
        return;
    const char *path = protocol_parse_answer(line, "ok ", &id), *error = NULL;
    if (path == NULL)
        error = protocol_parse_answer(line, "error ", &id);
    tide_queued *one = path != NULL || error != NULL ? tide_queue_find(worker, id) : NULL;
    if (one == NULL || one->sent < one->bytes || !protocol_is_printable(line)) {
        protocol_lose_to_garbage(worker, NULL, "this is no answer to what it was asked", line);
        return;
    }
    tide_worker_figures.answers++;
    worker->since = tide_workers_now();
    if (path != NULL) {
        protocol_take_artefact(worker, one, path);
        return;
    }
    tide_worker_figures.failed++;
    tide_queue_answer(one, TIDE_STAGER_FAILED, error);
}

/* Each line greets, belongs to the answer of a request, or is the end of the worker: so the loop
 * ends when there is nothing more to read. */
void tide_protocol_listen(tide_worker *worker)
{
    const char *line;
    while (tide_workers_works(worker)) {
        switch (tide_process_read(&worker->process, &line)) {
        case TIDE_PROCESS_GOT:
            worker->greeted ? protocol_hear_line(worker, line) : protocol_greet(worker, line);
            break;
        case TIDE_PROCESS_NONE: return;
        case TIDE_PROCESS_END: tide_workers_lose_ended(worker); return;
        case TIDE_PROCESS_LONG:
            protocol_lose_to_garbage(worker, NULL,
                                     "a line longer than 1023 bytes, or with a 0 in it", "");
            return;
        }
    }
}

const char *tide_protocol_version(void)
{
    return protocol_version;
}
