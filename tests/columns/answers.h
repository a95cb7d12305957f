/* SPDX-License-Identifier: MIT */
/* Questions asked twice: as a query of columns, and in the words of another program. */
#ifndef COLUMNS_TEST_ANSWERS_H
#define COLUMNS_TEST_ANSWERS_H

#include <stddef.h>

/* One question. The other's answer is CSV too: SQL for sqlite3, or a program for awk. */
typedef struct question {
    const char *query;
    const char *other;
} question;

typedef struct data_set {
    const char *name;  /* of the check */
    const char *file;  /* under the source tree, or under the folder of test data */
    const char *typed; /* SQL: view `v` of table `t`, which holds texts as imported */
    const question *questions;
    size_t count;
} data_set;

extern const data_set elements_awk, elements_sql, weather_sql, birdstrikes_sql, messy_sql;

/* A file with everything that CSV allows. */
extern const char messy_csv[];

#endif
