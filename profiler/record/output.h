/* SPDX-License-Identifier: MIT */
/* A file that is written whole or not at all: beside the old one, and renamed when all is there. */
#ifndef TIDEPOOL_PROFILER_RECORD_OUTPUT_H
#define TIDEPOOL_PROFILER_RECORD_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

typedef struct tide_output {
    FILE *file;
    const char *path; /* the caller's                          */
    char *temporary;  /* PATH.tmp-PID; NULL: standard output   */
} tide_output;

/* "-" is the standard output, unless that is a terminal: what is written is no text for people, and
 * may have any bytes. False, with one line on the standard error that names the file, where it
 * cannot be made, and where PATH is there and no regular file. */
bool tide_output_open(tide_output *output, const char *path);

/* Gives the file its name. False with a line where something could not be written; then no file is
 * left, and the one that had the name stays. */
bool tide_output_end(tide_output *output);

/* Leaves no file. */
void tide_output_drop(tide_output *output);

#endif
