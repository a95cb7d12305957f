/* SPDX-License-Identifier: MIT */
/* What is slow in a record, why, and what to write instead, in words; worst first. */
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
} tide_advice;

/* Writes into a text of a piece of advice; what has no room is cut. */
#define TIDE_SAY(text, ...) snprintf(text, sizeof(text), __VA_ARGS__)

typedef struct tide_advice_list {
    tide_advice each[TIDE_ADVICE_MAX];
    size_t count, room_lacked; /* pieces for which there was no room: the least important */
} tide_advice_list;

/* Fills in three lines, what, why and what to do instead, and puts it into the list. */
__attribute__((format(printf, 3, 4))) void
tide_advice_say(tide_advice_list *list, tide_advice *advice, const char *format, ...);

/* Puts it into the list by grade, then cost; of equals the earlier one first. */
void tide_advice_put(tide_advice_list *list, const tide_advice *advice);

/* The part of `cost_ns` in the processor time of the program, at most 1; where a record has none,
 * in the time that it lasted. */
double tide_advice_share(const tide_history *history, double cost_ns);

/* All that is to be said about a record. */
void tide_advice_of(const tide_history *history, tide_advice_list *out);

/* Its parts, which add to the list: profiler/report/advice_sites.c, advice_memory.c. */
void tide_advice_of_sites(const tide_history *history, tide_advice_list *out);
void tide_advice_of_memory(const tide_history *history, tide_advice_list *out);

#endif
