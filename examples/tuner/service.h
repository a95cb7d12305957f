/* SPDX-License-Identifier: MIT */
/* The auto-tuning service: what its files share. */
#ifndef TUNER_SERVICE_H
#define TUNER_SERVICE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* ---- workers.c: processes that listen (tidepool/listen.h) ---- */

/* The thread that looks at them four times a second. */
bool workers_start(void);
void workers_stop(void);

/* The facts of all workers as they were last seen, or of one (NULL: there is no such worker). The
 * caller's own copy. */
json_t *workers_seen(void);
json_t *workers_facts(pid_t pid);

/* What clients see of what was last seen, as JSON; to be freed. */
typedef enum { VIEW_WORKERS, VIEW_SITES, VIEW_SETTINGS, VIEW_COUNT } view;
char *workers_text(view which);

/* Of that the site or tunable PID:NAME; a new reference, NULL: there is none. */
json_t *workers_site(const char *id);

/* Sends a request (taken over) and gives its answer, a new reference. NULL, with a text in `error`:
 * the worker is gone, silent, or refused; *gone tells which. Any thread; waits two seconds at most. */
json_t *workers_ask(pid_t pid, json_t *request, char error[200], bool *gone);

/* ---- tune.c: one change at a time, kept if it wins ---- */

/* Begins a run on a thread of its own, as the body of POST /tune says. False with a text. */
bool tune_begin(const json_t *order, char error[200]);
bool tune_running(void);
void tune_stop(void); /* waits; what is on trial is taken back */

/* ---- journal.c: what was done and why ---- */

/* Takes the entry over, and numbers it. */
void journal_add(json_t *entry);

/* Entries after `since`, of the last 512. A new reference. */
json_t *journal_after(uint64_t since);

/* The number; 0 where no entry has had it yet: it is one of an earlier service. */
uint64_t journal_known(uint64_t number);

/* How many entries have had each verdict: a new object, NULL: none was added. */
json_t *journal_counts(void);

/* ---- profile.c: what the workers have learned ---- */

/* The file that is put and kept; NULL: none. False: it is there, and is no profile. */
bool profile_start(const char *path);

/* What the workers have learned, merged, to be freed; NULL: nothing. */
char *profile_learned(void);

/* Makes a text the profile with which workers begin when the service is started again. */
bool profile_put(const char *bytes, size_t count);

/* Unless one was put, the file has what was learned. False: it cannot be written. */
bool profile_stop(void);

/* ---- http.c, events.c ---- */

struct MHD_Connection;
bool http_start(const char *address, uint16_t port, const char *token, bool has_profile);
uint16_t http_port(void);
void http_stop(void);

/* The answer to GET /events, an MHD_Result; -1: too many follow. */
int events_answer(struct MHD_Connection *connection);
void events_stop(void); /* followers are let go */

#endif
