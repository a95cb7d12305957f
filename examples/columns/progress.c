/* SPDX-License-Identifier: MIT */
/* The bar is drawn at most ten times a second, and not before half a second has passed. */
#include "progress.h"

#include "engine.h"

#include <time.h>
#include <unistd.h>

static double started, drawn; /* seconds; drawn = 0: not yet */

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void draw(const char *doing, size_t done, size_t of)
{
    enum { WIDTH = 40 };
    static const char bar[WIDTH + 1] = "########################################";
    double t = now();
    if (t - started < 0.5 || t - drawn < 0.1 || of == 0)
        return;
    drawn = t;
    int full = (int)((double)done / (double)of * WIDTH);
    fprintf(stderr, "\r%s [%.*s%*s] %3d %%", doing, full, bar, WIDTH - full, "",
            full * 100 / WIDTH);
    fflush(stderr);
}

void progress_start(void)
{
    if (!isatty(STDERR_FILENO))
        return;
    started = now();
    drawn = 0;
    columns_watch(draw);
}

void progress_stop(void)
{
    columns_watch(NULL);
    if (drawn > 0)
        fputs("\r\033[K", stderr);
    drawn = 0;
}
