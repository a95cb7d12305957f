/* SPDX-License-Identifier: MIT */
/* Saying what went wrong: one sentence for a person, and `false` to pass upwards. */
#ifndef COLUMNS_ERROR_H
#define COLUMNS_ERROR_H

#include "engine.h"

/* Writes the message; always false, so that a failing function can return it. */
__attribute__((format(printf, 2, 3), cold)) bool columns_fail(columns_error *error,
                                                              const char *format, ...);

/* The same for what is no mistake in the input: columns_exhausted() from now on. */
bool columns_no_memory(columns_error *error);
bool columns_exhaust(columns_error *error, const char *what, const char *why);

/* "NAME:LINE:COLUMN: " for an offset in a text. Columns count characters, from 1. */
void columns_place(char *out, size_t room, const char *name, const char *text, size_t offset);

/* A failure in a query: the message, the line it is in, and a caret under the place. */
__attribute__((format(printf, 4, 5), cold)) bool
columns_query_fail(columns_error *error, const char *query, size_t offset, const char *format, ...);

/* Tells the watcher, if there is one. */
void columns_step(const char *doing, size_t done, size_t of);

#endif
