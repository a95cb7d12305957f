/* SPDX-License-Identifier: MIT */
/* What is slow in a record, why, and what to write instead, in words; worst first. Before that a
 * verdict in one sentence. */
#ifndef TIDEPOOL_PROFILER_REPORT_ADVICE_H
#define TIDEPOOL_PROFILER_REPORT_ADVICE_H

#include <stddef.h>
#include <stdio.h>

#include "profiler/report/history.h"
#include "profiler/tool/print.h"

/* Most that is said; the rest would be read by nobody. */
enum { TIDE_ADVICE_MAX = 24 };

typedef enum tide_grade {
    TIDE_GRADE_NOTE,  /* so that the reader does not draw a wrong conclusion */
    TIDE_GRADE_SLOW,  /* costs time or memory                                */
    TIDE_GRADE_WRONG, /* the program does what it should not                 */
    TIDE_GRADE_COUNT
} tide_grade;

typedef struct tide_advice {
    tide_grade grade;
    char subject[128]; /* "solve (solve.c:12)"           */
    char what[320];    /* one sentence that says it all  */
    char why[320];     /* the figures behind it          */
    char instead[320]; /* what to do                     */
    char code[400];    /* what to write, or ""           */
    double use_ns;     /* that a use would save; 0: not known                     */
    double cost_ns;    /* that it took in the record; 0: not known                */
    double share;      /* the same of the processor time of the program, 0 to 1   */
    uint64_t site;     /* its id, or 0                   */
    const char *alike; /* constant: two pieces with one `alike` and one `code` say the same */
    size_t others;     /* sites or pools of which the same was to be said; this is the dearest */
} tide_advice;

/* Writes into a text of a piece of advice; what has no room is cut. */
#define TIDE_SAY(text, ...) snprintf(text, sizeof(text), __VA_ARGS__)

/* What is said of sites that saves less than this part of the processor time is not worth a line of
 * its own: it is summed up. */
#define TIDE_ADVICE_WORTH 0.01

typedef struct tide_advice_list {
    tide_advice each[TIDE_ADVICE_MAX];
    size_t count, room_lacked; /* pieces for which there was no room: the least important */
    size_t worth;              /* the first so many are worth a line each                 */
    double small_share;        /* of all others together                                  */
} tide_advice_list;

/* Fills in three lines, what, why and what to do instead, and puts it into the list. */
__attribute__((format(printf, 3, 4))) void
tide_advice_say(tide_advice_list *list, tide_advice *advice, const char *format, ...);

/* Puts it into the list by grade, then cost; of equals the earlier one first. What was said already
 * gets one more of whom it is said. */
void tide_advice_put(tide_advice_list *list, const tide_advice *advice);

/* The part of `cost_ns` in the processor time of the program, at most 1; where a record has none,
 * in the time that it lasted. */
double tide_advice_share(const tide_history *history, double cost_ns);

/* What the record's call sites took of the processor, how many arrays came from buffers, and what all
 * would have taken from malloc; times in ns. */
typedef struct tide_verdict {
    double taken_ns, measured_ns; /* measured: the part of it at sites whose use was timed */
    double busy_ns;               /* of the processor, by the whole program                */
    double scope_arrays;          /* that sites acquired; modelled, 0: not known           */
    double buffer_arrays;         /* of host memory, requests to buffers ...               */
    double cached_arrays;         /* ... and how many of these the caches had              */
    double malloc_ns;             /* for all these arrays, modelled; 0: not known          */
    size_t uncounted;             /* sites whose uses are more than is told                */
    bool capped;                  /* taken_ns would be more than busy_ns                   */
    char words[600];              /* all of this in one sentence                           */
} tide_verdict;

/* `list` has been made of the same history. */
void tide_advice_judge(const tide_history *history, const tide_advice_list *list,
                       tide_verdict *out);

/* "5 more pieces of advice would save 0.3 % of the processor time together"; "" if there are none. */
const char *tide_advice_of_small(const tide_advice_list *list, char *out, size_t size);

/* Processor time of the program in the record, in ns; where it has none, the time it lasted. */
double tide_advice_busy(const tide_history *history);

/* All that is to be said about a record. */
void tide_advice_of(const tide_history *history, tide_advice_list *out);

/* Its parts, which add to the list: profiler/report/advice_sites.c, advice_memory.c. */
void tide_advice_of_sites(const tide_history *history, tide_advice_list *out);
void tide_advice_of_memory(const tide_history *history, tide_advice_list *out);

#endif
