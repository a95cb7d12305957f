/* SPDX-License-Identifier: MIT */
/* An image codec's inner part, once for each FORM; programs.c includes it for each. A plane of 64
 * by 64 numbers is transformed by wavelets, three levels deep, and its 16 tiles are quantised and
 * measured for an entropy code. Each function has temporaries of its own, 64 bytes to 16 KiB:
 *
 *   encode ── transform ── line ── lift
 *          └─ tile ── entropy ── runs */
#define CODEC(function) TIDE_PASTE(codec_, TIDE_PASTE(FORM, _##function))

/* One step of a 5/3 wavelet: the line's even places become its smooth half, the odd ones the
 * rest. */
static __attribute__((noinline)) void CODEC(lift)(FORM_CONTEXT(FORM) c, tide_site *sites,
                                                  int32_t *line, size_t count)
{
    size_t half = count / 2;
    (void)sites;
    FORM_BEGIN(FORM, c, &sites[CODEC_LIFT], (int32_t), (int32_t, smooth, half),
               (int32_t, rough, half));
    for (size_t i = 0; i < half; i++) {
        int32_t next = line[i + 1 < half ? 2 * i + 2 : 2 * i];
        rough[i] = line[2 * i + 1] - ((line[2 * i] + next) >> 1);
    }
    for (size_t i = 0; i < half; i++)
        smooth[i] = line[2 * i] + ((rough[i > 0 ? i - 1 : 0] + rough[i] + 2) >> 2);
    for (size_t i = 0; i < half; i++) {
        line[i] = smooth[i];
        line[half + i] = rough[i];
    }
    FORM_END(FORM, c, rough, smooth);
}

/* A row or a column, gathered and put back. */
static __attribute__((noinline)) void CODEC(line)(FORM_CONTEXT(FORM) c, tide_site *sites,
                                                  int32_t *plane, size_t count, size_t stride)
{
    FORM_BEGIN(FORM, c, &sites[CODEC_LINE], (int32_t), (int32_t, line, count));
    for (size_t i = 0; i < count; i++)
        line[i] = plane[i * stride];
    CODEC(lift)(c, sites, line, count);
    for (size_t i = 0; i < count; i++)
        plane[i * stride] = line[i];
    FORM_END(FORM, c, line);
}

/* The first number of each row is kept on the way, as a decoder would want to know it. */
static __attribute__((noinline)) uint64_t CODEC(transform)(FORM_CONTEXT(FORM) c, tide_site *sites,
                                                           int32_t *plane)
{
    uint64_t sum = 0;
    FORM_BEGIN(FORM, c, &sites[CODEC_TRANSFORM], (uint16_t, int64_t), (uint16_t, peak, CODEC_SIDE),
               (int64_t, energy, CODEC_LEVELS));
    for (size_t level = 0; level < CODEC_LEVELS; level++) {
        size_t side = (size_t)CODEC_SIDE >> level;
        energy[level] = 0;
        for (size_t y = 0; y < side; y++)
            CODEC(line)(c, sites, plane + y * CODEC_SIDE, side, 1);
        for (size_t x = 0; x < side; x++)
            CODEC(line)(c, sites, plane + x, side, CODEC_SIDE);
        for (size_t y = 0; y < side; y++) {
            peak[y] = (uint16_t)(plane[y * CODEC_SIDE] & 0xffff);
            energy[level] += peak[y];
        }
    }
    for (size_t level = 0; level < CODEC_LEVELS; level++)
        sum += (uint64_t)energy[level];
    FORM_END(FORM, c, energy, peak);
    return sum;
}

/* Lengths of runs of equal magnitudes. */
static __attribute__((noinline)) uint64_t CODEC(runs)(FORM_CONTEXT(FORM) c, tide_site *sites,
                                                      const uint8_t *size, size_t count)
{
    uint64_t sum = 0;
    size_t runs = 0;
    (void)sites;
    FORM_BEGIN(FORM, c, &sites[CODEC_RUNS], (uint16_t, int8_t), (uint16_t, length, count),
               (int8_t, value, count));
    for (size_t i = 0; i < count; i++) {
        if (i == 0 || size[i] != size[i - 1]) {
            length[runs] = 0;
            value[runs++] = (int8_t)size[i];
        }
        length[runs - 1]++;
    }
    for (size_t i = 0; i < runs; i++)
        sum = 31 * sum + length[i] + (uint64_t)value[i];
    FORM_END(FORM, c, value, length);
    return sum;
}

static __attribute__((noinline)) uint64_t CODEC(entropy)(FORM_CONTEXT(FORM) c, tide_site *sites,
                                                         const uint8_t *size, size_t count)
{
    FORM_BEGIN(FORM, c, &sites[CODEC_ENTROPY], (uint32_t, float), (uint32_t, seen, 256),
               (float, cost, 33));
    for (size_t i = 0; i < 256; i++)
        seen[i] = 0;
    for (size_t i = 0; i < count; i++)
        seen[size[i]]++;
    for (size_t i = 0; i < 33; i++)
        cost[i] = (float)(seen[i] * (i + 1));
    uint64_t sum = CODEC(runs)(c, sites, size, count);
    for (size_t i = 0; i < 33; i++)
        sum += (uint64_t)cost[i];
    FORM_END(FORM, c, cost, seen);
    return sum;
}

static __attribute__((noinline)) uint64_t CODEC(tile)(FORM_CONTEXT(FORM) c, tide_site *sites,
                                                      const int32_t *plane)
{
    enum { COUNT = CODEC_TILE * CODEC_TILE };
    FORM_BEGIN(FORM, c, &sites[CODEC_TILES], (int16_t, uint8_t), (int16_t, level, COUNT),
               (uint8_t, size, COUNT));
    for (size_t i = 0; i < COUNT; i++)
        level[i] = (int16_t)(plane[i / CODEC_TILE * CODEC_SIDE + i % CODEC_TILE] / 4);
    for (size_t i = 0; i < COUNT; i++)
        size[i] = level[i] == 0 ? 0 : (uint8_t)(32 - __builtin_clz((unsigned)abs(level[i])));
    uint64_t sum = CODEC(entropy)(c, sites, size, COUNT);
    FORM_END(FORM, c, size, level);
    return sum;
}

static __attribute__((noinline)) uint64_t CODEC(encode)(FORM_CONTEXT(FORM) c, tide_site *sites,
                                                        uint64_t input)
{
    enum { COUNT = CODEC_SIDE * CODEC_SIDE, TILES = CODEC_SIDE / CODEC_TILE };
    FORM_BEGIN(FORM, c, &sites[CODEC_ENCODE], (int32_t, uint64_t), (int32_t, plane, COUNT),
               (uint64_t, coded, TILES * TILES));
    for (size_t i = 0; i < COUNT; i++)
        plane[i] = (int32_t)((i * (input + 3) ^ (i / CODEC_SIDE) * 5) & 255) - 128;
    uint64_t sum = CODEC(transform)(c, sites, plane);
    for (size_t i = 0; i < TILES * TILES; i++)
        coded[i] = CODEC(tile)(
            c, sites, plane + i / TILES * CODEC_TILE * CODEC_SIDE + i % TILES * CODEC_TILE);
    for (size_t i = 0; i < TILES * TILES; i++)
        sum = 131 * sum + coded[i];
    FORM_END(FORM, c, coded, plane);
    return sum;
}
#undef CODEC
