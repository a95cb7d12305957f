/* SPDX-License-Identifier: MIT */
/* Lines sent and heard. Nothing that comes is trusted: an answer must be to an order that this
 * helper was sent whole, and an artefact must lie in our directory. */
#include "jit/stager/protocol.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jit/stager/directory.h"
#include "runtime/base/assert.h"

enum { VERSION = 128 };

static char version[VERSION];

/* ---- sending ------------------------------------------------------------------------------ */

bool tide_protocol_send(tide_worker *member)
{
    for (tide_queued *one = tide_queue_first(); one != NULL; one = tide_queue_after(one)) {
        if (one->helper != member || one->sent == one->bytes)
            continue;
        one->sent +=
            tide_process_send(&member->process, one->message + one->sent, one->bytes - one->sent);
        tide_assert(one->sent <= one->bytes);
        if (one->sent < one->bytes)
            return false;
    }
    return member->role != TIDE_WORKER_DRAINING || tide_workers_tell_to_go(member);
}

/* ---- hearing ------------------------------------------------------------------------------ */

static void lose_to_garbage(tide_worker *member, tide_queued *guilty, const char *what,
                            const char *line)
{
    char text[256];
    tide_worker_figures.garbage++;
    snprintf(text, sizeof text, "the stager was killed: %s: %.100s", what, line);
    tide_workers_lose(member, guilty != NULL ? guilty : tide_queue_head(member), TIDE_STAGER_GARBAGE,
                   text, TIDE_KILL);
}

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

static void greet(tide_worker *member, const char *line)
{
    static const char word[] = "hello ";
    size_t length = strlen(word);
    if (strncmp(line, word, length) != 0 || line[length] == '\0' || !is_printable(line)) {
        lose_to_garbage(member, NULL, "its first line is no greeting", line);
        return;
    }
    member->greeted = true;
    snprintf(version, sizeof version, "%s", line + length);
}

/* A path outside our directory is garbage; one inside a directory that is no longer sound is not
 * the stager's fault. */
static void take_artefact(tide_worker *member, tide_queued *one, const char *path)
{
    char error[256];
    if (!tide_directory_sound(error, sizeof error))
        tide_queue_answer(one, TIDE_STAGER_REFUSED, error);
    else if (strlen(path) >= sizeof one->answer.path ||
             !tide_directory_holds(path, error, sizeof error))
        lose_to_garbage(member, one, "no artefact", path);
    else
        tide_queue_answer(one, TIDE_STAGER_OK, path);
}

static void hear(tide_worker *member, const char *line)
{
    uint64_t id = 0;
    const char *path = parse(line, "ok ", &id), *error = NULL;
    if (path == NULL)
        error = parse(line, "error ", &id);
    tide_queued *one = path != NULL || error != NULL ? tide_queue_find(member, id) : NULL;
    if (one == NULL || one->sent < one->bytes || !is_printable(line)) {
        lose_to_garbage(member, NULL, "this is no answer to what it was asked", line);
        return;
    }
    tide_worker_figures.answers++;
    member->since = tide_workers_now();
    if (path != NULL) {
        take_artefact(member, one, path);
        return;
    }
    tide_worker_figures.failed++;
    tide_queue_answer(one, TIDE_STAGER_FAILED, error);
}

/* Each line answers an order, greets, or ends the helper: this ends. */
void tide_protocol_listen(tide_worker *member)
{
    const char *line;
    while (tide_workers_works(member)) {
        switch (tide_process_read(&member->process, &line)) {
        case TIDE_PROCESS_GOT:
            member->greeted ? hear(member, line) : greet(member, line);
            break;
        case TIDE_PROCESS_NONE:
            return;
        case TIDE_PROCESS_END:
            tide_workers_lose_ended(member);
            return;
        case TIDE_PROCESS_LONG:
            lose_to_garbage(member, NULL, "a line longer than 1023 bytes, or with a 0 in it", "");
            return;
        }
    }
}

const char *tide_protocol_version(void)
{
    return version;
}
