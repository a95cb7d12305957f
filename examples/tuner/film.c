/* SPDX-License-Identifier: MIT */
/* Frames that are smoothed in strips: knob "strip", temporaries from a pool. */
#include <stdlib.h>

#include <tidepool/scope.h>
#include <tidepool/tunable.h>

#include "worker.h"

static void film_smooth(tide_pool *pool, const float *from, float *to, size_t width, size_t rows)
{
    TIDE_SCOPE_NAMED(pool, "smooth");
    float *line = tide_acquire(pool, float, width);
    if (line == NULL)
        abort();
    for (size_t y = 1; y + 1 < rows; y++) {
        for (size_t x = 0; x < width; x++)
            line[x] =
                (from[(y - 1) * width + x] + from[y * width + x] + from[(y + 1) * width + x]) / 3;
        for (size_t x = 1; x + 1 < width; x++)
            to[y * width + x] = (line[x - 1] + line[x] + line[x + 1]) / 3;
    }
}

void worker_work(tide_pool *pool)
{
    enum { WIDTH = 256, HEIGHT = 128 };
    TIDE_FRAME(pool, (float, frame, WIDTH *HEIGHT), (float, smooth, WIDTH *HEIGHT));
    if (frame == NULL)
        abort();
    for (size_t i = 0; i < WIDTH * HEIGHT; i++)
        frame[i] = (float)(i % 255);
    size_t strip = (size_t)tide_tunable("strip", 3, HEIGHT);
    for (size_t y = 0; y + strip <= HEIGHT; y += strip - 2)
        film_smooth(pool, frame + y * WIDTH, smooth + y * WIDTH, WIDTH, strip);
}
