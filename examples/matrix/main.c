/* SPDX-License-Identifier: MIT */
/* A matrix product that does not know which shape of tiles suits the machine: it has eight, and the
 * library finds out, for each size apart. At the end all shapes are measured in turns, for
 * comparison. */
#define _GNU_SOURCE
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <tidepool/tidepool.h>
#include <tidepool/tunable.h>

enum { SHAPES = 8, ROUNDS = 21 };

static const struct shape {
    size_t rows, columns;
} shapes[SHAPES] = {{4, 4}, {8, 8}, {16, 16}, {64, 16}, {8, 128}, {32, 64}, {64, 64}, {32, 512}};

TIDE_VARIANTS(product, "product", "4x4", "8x8", "16x16", "64x16", "8x128", "32x64", "64x64",
              "32x512");

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* c += a * b for one tile of b, which is copied first: its rows then follow one another. */
static void multiply_tile(size_t n, const double *a, const double *tile, double *c, size_t rows,
                          size_t columns)
{
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < rows; k++) {
            double factor = a[i * n + k];
            for (size_t j = 0; j < columns; j++)
                c[i * n + j] += factor * tile[k * columns + j];
        }
}

static void multiply_by(const struct shape *shape, size_t n, const double *a, const double *b,
                        double *c)
{
    TIDE_FRAME(tide_pool_local(), (double, tile, shape->rows * shape->columns));
    if (tile == NULL)
        abort();
    memset(c, 0, n * n * sizeof *c);
    for (size_t k = 0; k < n; k += shape->rows)
        for (size_t j = 0; j < n; j += shape->columns) {
            size_t rows = least(shape->rows, n - k), columns = least(shape->columns, n - j);
            for (size_t i = 0; i < rows; i++)
                memcpy(tile + i * columns, b + (k + i) * n + j, columns * sizeof *tile);
            multiply_tile(n, a + k, tile, c + j, rows, columns);
        }
}

/* What a program calls. Sizes of the same power of two are alike. */
static void multiply(size_t n, const double *a, const double *b, double *c)
{
    TIDE_MEASURE(&product, 64 - (unsigned)__builtin_clzl(n), which);
    multiply_by(&shapes[which], n, a, b, c);
}

/* Of the processor, so that other programs' share does not count. */
static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static const tide_tunable_row *chosen(uint64_t key, tide_tunable_row *row)
{
    for (uint32_t i = 0; tide_tunable_row_get(&product, i, row); i++)
        if (row->key == key)
            return row;
    return NULL;
}

/* Multiplies until the library has chosen; then compares. The chosen shape's time over the best's. */
static double study(size_t n)
{
    TIDE_FRAME(tide_pool_local(), (double, a, n *n), (double, b, n *n), (double, c, n *n));
    if (c == NULL)
        abort();
    for (size_t i = 0; i < n * n; i++) {
        a[i] = (double)(i % 7);
        b[i] = (double)(i % 5);
    }
    tide_tunable_row row;
    uint64_t key = 64 - (unsigned)__builtin_clzl(n);
    do
        multiply(n, a, b, c);
    while (chosen(key, &row) == NULL || !row.settled);
    double took[SHAPES];
    for (int round = 0; round < ROUNDS; round++)
        for (int i = 0; i < SHAPES; i++) {
            double started = seconds();
            multiply_by(&shapes[i], n, a, b, c);
            double now = seconds() - started;
            took[i] = round == 0 || now < took[i] ? now : took[i];
        }
    int best = 0;
    printf("%zu x %zu, after %llu products: %s\n", n, n, (unsigned long long)row.uses,
           row.candidates[row.choice].name);
    for (int i = 0; i < SHAPES; i++) {
        best = took[i] < took[best] ? i : best;
        printf("  %-7s measured %4llu times: %10.1f µs ± %5.1f; at its best %10.1f µs%s\n",
               row.candidates[i].name, (unsigned long long)row.candidates[i].uses,
               row.candidates[i].ns / 1e3, row.candidates[i].error_ns / 1e3, took[i] * 1e6,
               (uint32_t)i == row.choice ? ", chosen" : "");
    }
    printf("  the best of all is %s; the chosen one takes %.3f of its time\n",
           row.candidates[best].name, took[row.choice] / took[best]);
    return took[row.choice] / took[best];
}

/* --check MOST: fails where a chosen shape takes more than so many times the best one's time. */
int main(int count, char **args)
{
    double most = count > 2 && strcmp(args[1], "--check") == 0 ? strtod(args[2], NULL) : HUGE_VAL;
    double small = study(24), large = study(144);
    if (fflush(stdout) != 0 || ferror(stdout))
        return 1;
    return small > most || large > most ? 2 : 0;
}
