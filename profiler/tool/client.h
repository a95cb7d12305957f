/* SPDX-License-Identifier: MIT */
/* A connection to a process that listens: JSON lines, either way. What comes is not believed: an
 * endless line, silence and nonsense each end in TOOL_BROKEN. */
#ifndef TIDEPOOL_PROFILER_TOOL_CLIENT_H
#define TIDEPOOL_PROFILER_TOOL_CLIENT_H

#include <jansson.h>
#include <sys/types.h>

#include "profiler/tool/tool.h"

enum { TOOL_LINE_MAX = 64 << 20 }; /* bytes of a line; of more, it lies */

typedef struct tool_client {
    int socket; /* -1: closed */
    pid_t pid;
    int timeout_ms;     /* for the next request or line          */
    char *bytes;        /* what came and was not read yet        */
    size_t count, room; /* of it                                 */
    size_t line;        /* bytes at its start that were given out */
    char error[200];    /* of the last call that failed          */
} tool_client;

/* Where the sockets are, in a static buffer: `folder` itself unless NULL, else
 * $XDG_RUNTIME_DIR/tidepool, else /tmp/tidepool-UID. NULL: the path is too long. */
const char *tool_folder(const char *folder);

/* The processes whose sockets are in the folder, ascending; the caller frees *out. Their number, 0
 * if there is no such folder. */
size_t tool_folder_list(const char *folder, pid_t **out);

/* There is none of that number, or it waits for nothing but its parent (a zombie). */
bool tool_process_ended(pid_t pid);

/* Each returns TOOL_OK, or a code with a text in `error`, which is not printed: that is the
 * caller's, by tool_client_complain. */

/* TOOL_NOBODY when there is no such process, or it does not listen, and a name that it left behind is
 * removed; TOOL_BROKEN when another process is behind its name. */
int tool_client_open(tool_client *client, pid_t pid, const char *folder, int timeout_ms);
void tool_client_close(tool_client *client);

/* Opens the youngest process of the folder that runs a program of this name, and gives its facts. TOOL_NOBODY
 * where none does. */
int tool_client_find(tool_client *client, const char *program, const tool_options *options,
                     json_t **facts);

/* Sends a request, which gets a line feed. */
int tool_client_send(tool_client *client, const char *request);

/* The next line, without its line feed, a 0 behind it; until the next call. TOOL_NO when none came
 * within timeout_ms (which may be 0); TOOL_BROKEN for an end or a line that is too long. */
int tool_client_read(tool_client *client, int timeout_ms, const char **line, size_t *length);

/* The next line as an object; TOOL_BROKEN also where it is none. */
int tool_client_object(tool_client *client, int timeout_ms, json_t **object);

/* Sends a request (the reference is taken over; NULL fails) and gives the answer's object, NULL
 * unless TOOL_OK. TOOL_NO with the process's own words if the answer is {"error":…}. */
int tool_client_ask(tool_client *client, json_t *request, json_t **answer);

/* The facts document. TOOL_BROKEN unless it is one, of this process. */
int tool_client_facts(tool_client *client, json_t **facts);

/* Prints the error. Returns `code`. */
int tool_client_complain(const tool_client *client, int code);

/* Opens the process that `text` names, complaining where that fails. */
int tool_client_open_named(tool_client *client, const char *text, const tool_options *options);

/* The facts of the process that `text` names, over a connection that stays open; a code after a
 * complaint, with nothing left. */
int tool_client_facts_of(tool_client *client, const char *text, const tool_options *options,
                         json_t **facts);

/* A site as requests name it: digits are its number, all else its name. NULL: JSON holds no such
 * text. */
json_t *tool_site_of(const char *text);

/* The same request for a site of this kind (NULL: of any); NULL if JSON cannot hold that. */
json_t *tool_request_of_kind(json_t *request, const char *kind);

#endif
