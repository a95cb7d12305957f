/* SPDX-License-Identifier: MIT */
/* What `top` shows, as lines of text: no terminal is known here. */
#ifndef TIDEPOOL_PROFILER_TOOL_SCREEN_H
#define TIDEPOOL_PROFILER_TOOL_SCREEN_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

enum { TOOL_SORTS = 5, TOOL_SCREEN_LINE = 512 };

typedef struct tool_screen {
    int sort;      /* which column of sites: tool_screen_sort_name */
    bool reversed; /* the smallest first                           */
    int first;     /* site that stands first: scrolled by so many   */
    int rows, columns;
    const json_t *before; /* the facts that were shown before these, of the same process, or NULL */
    char notice[160];     /* what else is to be known, above the last line; "": nothing */
} tool_screen;

const char *tool_screen_sort_name(int sort);

typedef enum tool_screen_look { TOOL_LOOK_PLAIN, TOOL_LOOK_HEAD, TOOL_LOOK_TITLE } tool_screen_look;

/* Calls `put` for each line from the top, with its row; none is longer than `columns` bytes or
 * beyond `rows`. `first` is corrected where there are fewer sites. Without facts (NULL) there are
 * only the last lines. */
void tool_screen_draw(tool_screen *screen, const json_t *facts,
                      void (*put)(int row, tool_screen_look look, const char *line));

#endif
