/* SPDX-License-Identifier: MIT */
#include "chart.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <tidepool/site.h>

static bool terminal;
static const char *last_phase = "";

/* Eighths of a character: 8 ns are one. */
static void print_bar(double ns)
{
    static const char *const eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    enum { WIDTH = 6 };
    int length = ns < WIDTH * 8 ? (int)(ns + 0.5) : WIDTH * 8, full = length / 8;
    for (int i = 0; i < full; i++)
        fputs("█", stdout);
    fputs(eighths[length % 8], stdout);
    printf("%*s", WIDTH - full - (length % 8 != 0), "");
}

static void print_cell(const sample *s)
{
    static const char *const colours[] = {"\033[31m", "\033[33m", "\033[32m"};
    if (!terminal) {
        printf("  %-8s%6.1f", tide_tier_name(s->tier), s->ns);
        return;
    }
    printf("  %s%5.1f ", colours[s->tier], s->ns);
    print_bar(s->ns);
    printf("\033[0m%s", s->observed ? "?" : " ");
}

void chart_begin(void)
{
    terminal = isatty(STDOUT_FILENO);
    printf("Nanoseconds for one use, and the plan in force");
    if (terminal)
        printf(": \033[31mfull\033[0m, \033[33mtable\033[0m, \033[32mcompiled\033[0m; "
               "? is watched");
    printf("\n\n%14s", "");
    for (size_t i = 0; i < WORKS; i++)
        printf("  %-14s", works[i].name);
    putchar('\n');
}

void chart_line(size_t interval, const char *name, const sample samples[WORKS])
{
    bool changed = strcmp(name, last_phase) != 0;
    last_phase = name;
    printf("%5zu %-8s", interval, changed ? name : "");
    for (size_t i = 0; i < WORKS; i++)
        print_cell(&samples[i]);
    putchar('\n');
    fflush(stdout);
}
