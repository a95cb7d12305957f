/* SPDX-License-Identifier: MIT */
/* JSON written member by member to a stream, on one line. The caller keeps to the grammar: members
 * of objects have keys, those of arrays (key NULL) have none. */
#ifndef TIDEPOOL_JIT_FACTS_JSON_H
#define TIDEPOOL_JIT_FACTS_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

typedef struct tide_json {
    FILE *out;
    bool follows; /* something stands before in what is open: a comma is due */
} tide_json;

/* '{' or '[', and its end. Keys are plain words. */
void tide_json_open(tide_json *json, const char *key, char bracket);
void tide_json_close(tide_json *json, char bracket);

/* Any bytes: what is no UTF-8 becomes U+FFFD. NULL is "". */
void tide_json_text(tide_json *json, const char *key, const char *text);

/* Counts beyond 2^63 - 1 are written as that: readers have signed numbers. */
void tide_json_count(tide_json *json, const char *key, uint64_t count);

/* A number that is not finite is written as 0. The thread's locale must have a point. */
void tide_json_number(tide_json *json, const char *key, double number);
void tide_json_flag(tide_json *json, const char *key, bool flag);

#endif
