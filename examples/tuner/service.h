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

enum { WORKERS_MAX = 64, ANSWER_MAX = 8 << 20 };

/* The thread that looks at them every `period_ms`. */
bool workers_start(int period_ms);
void workers_stop(void);

/* Of all workers, as they were last seen: [{"pid", "facts"}]. The caller's own copy. */
json_t *workers_seen(void);

/* The facts of one, a copy; NULL: there is no such worker. */
json_t *workers_facts(pid_t pid);

/* Sends a request (borrowed) and gives its answer, a new reference. NULL, with a text in `error`:
 * the worker is gone, silent, or refused; *gone tells which. Any thread; waits two seconds at most. */
json_t *workers_ask(pid_t pid, json_t *request, char error[200], bool *gone);

/* ---- tune.c: one change at a time, kept if it wins ---- */

/* A change: requests of the socket, and what takes them back. */
typedef struct tune_change {
    char what[200];
    json_t *apply, *undo; /* arrays of requests */
} tune_change;

/* Begins a run on a thread of its own: all that `worker` has, or only the tunable, site or setting
 * that `only` names (NULL: all), against `control` (0: any other worker). `objective` is a tunable
 * that is measured (NULL: the worker's first one). False with a text: one is under way, or there is
 * no such worker. */
bool tune_begin(pid_t worker, pid_t control, const char *only, const char *objective,
                char error[200]);
bool tune_running(void);
void tune_stop(void); /* waits; what is on trial is taken back */

/* ---- journal.c: what was done and why ---- */

/* Takes the entry over, and numbers it. */
void journal_add(json_t *entry);

/* Entries after `since`; waits up to so long for one. A new reference. */
json_t *journal_after(uint64_t since, int wait_ms);

/* The number; 0 where no entry has had it yet: it is one of an earlier service. */
uint64_t journal_known(uint64_t number);
uint64_t journal_count(const char *verdict);

/* ---- http.c ---- */

bool http_start(const char *address, uint16_t port, const char *token, const char *profile);
void http_stop(void);

/* Once http_stop has returned: loads into this process what is to be in the profile's file, which
 * each worker overwrites when it ends: what a client has put there, else what all workers have
 * learned. False: there is nothing. */
bool http_recall_profile(void);
uint16_t http_port(void);

extern const char tuner_page[]; /* page.html */

#endif
