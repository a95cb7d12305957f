/* SPDX-License-Identifier: MIT */
/* film: a camera shoots a noisy film of a photograph, and each frame is denoised by a pyramid of
 * guided filters. Each function needs images of its own, whose sizes it knows when it is called;
 * none passes a workspace on. It says what this took, and writes a frame as it was shot and as it
 * came out. `compare` runs it once for each way to hold the images (ways.h). */
#include <argp.h>
#include <pthread.h>
#include <sys/resource.h>
#include <time.h>

#include <tidepool/dynamic.h>
#include <tidepool/tune.h>

#include "ways.h"

/* ---- denoising ------------------------------------------------------------------------------- */

static void blur(float *restrict out, const float *in, int w, int h)
{
    const size_t row = (size_t)w;
    FRAME((float, across, row *(size_t)h));
    film_have(across);
    for (int y = 0; y < h; y++) {
        const float *from = in + (size_t)y * row;
        float *to = across + (size_t)y * row;
        to[0] = from[0];
        to[w - 1] = from[w - 1];
        for (int x = 1; x < w - 1; x++)
            to[x] = .25f * from[x - 1] + .5f * from[x] + .25f * from[x + 1];
    }
    for (int y = 0; y < h; y++) {
        const float *here = across + (size_t)y * row;
        const float *above = y > 0 ? here - row : here, *below = y < h - 1 ? here + row : here;
        for (int x = 0; x < w; x++)
            out[(size_t)y * row + (size_t)x] = .25f * above[x] + .5f * here[x] + .25f * below[x];
    }
}

/* The guided filter of He, Sun and Tang, the image being its own guide: it keeps edges, whose
 * variance is above `noise`. */
static void filter(float *restrict out, const float *in, int w, int h, float noise)
{
    const size_t n = (size_t)w * (size_t)h;
    FRAME((float, mean, n), (float, square, n), (float, variance, n), (float, gain, n));
    film_have(mean); /* a frame has all its arrays, or none */
    blur(mean, in, w, h);
    for (size_t i = 0; i < n; i++)
        square[i] = in[i] * in[i];
    blur(variance, square, w, h);
    for (size_t i = 0; i < n; i++) {
        float own = variance[i] - mean[i] * mean[i];
        gain[i] = own / (own + noise);
    }
    blur(square, gain, w, h); /* smooth gains: no seams */
    for (size_t i = 0; i < n; i++)
        out[i] = mean[i] + square[i] * (in[i] - mean[i]);
}

/* One level of the pyramid: splits the image into a base and details, shrinks small details to
 * nothing, and does the same to a quarter of the base's pixels, as an image of half the size. */
static void denoise(float *restrict out, const float *in, int w, int h, int depth)
{
    const size_t n = (size_t)w * (size_t)h;
    FRAME((float, base, n), (float, detail, n));
    film_have(base);
    filter(base, in, w, h, .02f / (float)(depth + 1));
    for (size_t i = 0; i < n; i++)
        detail[i] = in[i] - base[i];
    if (depth < 3 && w > 16 && h > 16) {
        const size_t row = (size_t)w, half_w = row / 2, half_h = (size_t)h / 2;
        FRAME((float, small, half_w *half_h), (float, calm, half_w *half_h)); /* this block's */
        film_have(small);
        for (size_t y = 0; y < half_h; y++)
            for (size_t x = 0; x < half_w; x++)
                small[y * half_w + x] = base[2 * y * row + 2 * x];
        denoise(calm, small, w / 2, h / 2, depth + 1);
        for (size_t y = 0; y < half_h; y++)
            for (size_t x = 0; x < half_w; x++)
                base[2 * y * row + 2 * x] = calm[y * half_w + x];
    }
    for (size_t i = 0; i < n; i++)
        out[i] = base[i] + (fabsf(detail[i]) < .05f ? 0 : detail[i] * .9f);
}

/* ---- the film -------------------------------------------------------------------------------- */

enum { THREADS_MAX = 64 };

static struct {
    picture scene;
    size_t pixels; /* of the scene */
    tide_type type;
    int frames, threads;
    double scale;
    const char *path, *out, *type_name, *device;
    bool bug;
    double *ms; /* what each frame took */
    pthread_barrier_t ready;
} job = {.frames = 100, .threads = 1, .scale = 1, .path = FILM_PICTURE, .out = "."};

/* Uniform noise of a fifth of the range; one multiplication a pixel, so that the time is the
 * denoising's. */
static void shoot(float *out, int number)
{
    uint32_t state = 2654435761U * (uint32_t)(2 * number + 1);
    for (size_t i = 0; i < job.pixels; i++) {
        state = state * 1664525U + 1013904223U;
        float noisy = job.scene.pixels[i] + ((float)(state >> 8) / 16777216.0F - .5F) * .2F;
        out[i] = noisy < 0 ? 0 : noisy > 1 ? 1 : noisy;
    }
}

/* The camera's pixels are of a type that nobody knows before the program runs. */
static void shoot_and_denoise(float *out, int number)
{
    SCOPE;
    void *shot = film_have(ACQUIRE_TYPE(job.type, job.pixels));
    float *seen = film_have(ACQUIRE(float, job.pixels));
    shoot(seen, number);
    pixels_narrow(shot, job.type, seen, job.pixels);
    pixels_widen(seen, job.type, shot, job.pixels);
    denoise(out, seen, job.scene.width, job.scene.height, 0);
}

static double now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

/* A thread's frames are the one at `first` and every so-manieth after it, as many as threads. */
static void *work(void *first)
{
    float *out = film_have(malloc(job.pixels * sizeof *out));
    film_have(way_begin(job.device, job.pixels) ? out : NULL);
    shoot_and_denoise(out, 0); /* what is made once is made here */
    pthread_barrier_wait(&job.ready);
    pthread_barrier_wait(&job.ready); /* between the two the clock is read */
    for (int i = (int)(intptr_t)first; i < job.frames; i += job.threads) {
        const double began = now_ms();
        shoot_and_denoise(out, i);
        job.ms[i] = now_ms() - began;
    }
    return out;
}

/* A frame as it came out, and as it was shot. */
static bool write_pictures(float *out, int number)
{
    picture shown = {job.scene.width, job.scene.height, out};
    if (!png_write(job.out, "after.png", &shown))
        return false;
    shoot(out, number);
    return png_write(job.out, "before.png", &shown);
}

/* Makes the film, and says what a frame took. The sum stands for what came out last. */
static bool make_film(void)
{
    pthread_t threads[THREADS_MAX];
    void *outs[THREADS_MAX];
    struct rusage before, after;
    double slowest = 0;
    uint32_t sum = 0;
    job.ms = film_have(calloc((size_t)job.frames, sizeof *job.ms));
    pthread_barrier_init(&job.ready, NULL, (unsigned)job.threads + 1);
    for (intptr_t t = 0; t < job.threads; t++)
        if (pthread_create(&threads[t], NULL, work, (void *)t) != 0)
            return fprintf(stderr, "film: %d threads are not to be had\n", job.threads), false;
    pthread_barrier_wait(&job.ready);
    getrusage(RUSAGE_SELF, &before);
    const double began = now_ms();
    pthread_barrier_wait(&job.ready); /* no frame is made before */
    for (int t = 0; t < job.threads; t++)
        pthread_join(threads[t], &outs[t]);
    const double ms = (now_ms() - began) / job.frames;
    getrusage(RUSAGE_SELF, &after);
    for (int i = 0; i < job.frames; i++)
        slowest = fmax(slowest, job.ms[i]);
    for (int t = 0; t < job.threads; t++)
        for (size_t i = 0; i < job.pixels; i++)
            sum = sum * 31 + (uint32_t)(((float *)outs[t])[i] * 65536);
    printf("%d x %d pixels of %s, %d frames, %d thread%s:\n%.3f ms a frame, slowest %.3f, %.0f "
           "page faults, %.1f MiB at most, sum %08x\n",
           job.scene.width, job.scene.height, tide_type_name(job.type), job.frames, job.threads,
           job.threads == 1 ? "" : "s", ms, slowest,
           (double)(after.ru_minflt - before.ru_minflt) / job.frames,
           (double)after.ru_maxrss / 1024, sum);
    return job.out[0] == '\0' ||
           write_pictures(outs[0], (job.frames - 1) / job.threads * job.threads);
}

/* ---- a mistake -------------------------------------------------------------------------------- */

static const float *dangle(void)
{
    FRAME((float, image, job.pixels));
    film_have(image);
    image[0] = 1;
    return image; /* the bug: the frame ends here, and its image with it */
}

static bool be_caught(void)
{
    puts("An image is read after its frame has ended, at check level 2:");
    fflush(stdout);
    if (tide_tune_set("check", 2) == TIDE_OK && way_begin(NULL, 0))
        printf("%g\n", (double)*dangle()); /* the library ends the program here */
    return false;
}

/* ---- what is wanted -------------------------------------------------------------------------- */

static const struct argp_option options[] = {
    {"type", 't', "T", 0, "the camera's pixels: u8, u16, f16, f32 (as the picture's)", 0},
    {"frames", 'f', "N", 0, "1 to 100000 (100)", 0},
    {"threads", 'p', "N", 0, "that share them, 1 to 64 (1)", 0},
    {"scale", 's', "F", 0, "makes the picture smaller or larger, 0.05 to 8 (1)", 0},
    {"out", 'o', "FOLDER", 0, "where before.png and after.png go (.); '': none", 0},
    {"device", 'd', "NAME", 0, "images lie in managed memory of it: cuda:0 (the host's)", 0},
    {"bug", 'b', NULL, 0, "uses an image after its frame has ended, and is caught", 0},
    {0}};

static double number_of(const char *text, double least, double most, struct argp_state *state)
{
    char *end;
    double number = strtod(text, &end);
    if (end == text || *end != '\0' || !(number >= least && number <= most))
        argp_error(state, "'%s' is not from %g to %g", text, least, most);
    return number;
}

static error_t take_option(int key, char *text, struct argp_state *state)
{
    switch (key) {
    case 't': job.type_name = text; break;
    case 'f': job.frames = (int)number_of(text, 1, 100000, state); break;
    case 'p': job.threads = (int)number_of(text, 1, THREADS_MAX, state); break;
    case 's': job.scale = number_of(text, .05, 8, state); break;
    case 'o': job.out = text; break;
    case 'd': job.device = text; break;
    case 'b': job.bug = true; break;
    case ARGP_KEY_ARG: job.path = text; break;
    default: return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

int main(int argc, char **argv)
{
    const struct argp about = {options, take_option, "[PICTURE.png]", NULL, NULL, NULL, NULL};
    argp_err_exit_status = 2;
    argp_parse(&about, argc, argv, 0, NULL, NULL);
    if (!png_read(job.path, job.scale, &job.scene, &job.type))
        return 1;
    job.pixels = (size_t)job.scene.width * (size_t)job.scene.height;
    if (job.type_name != NULL)
        job.type = tide_type_find(job.type_name);
    const bool known =
        job.type == TIDE_U8 || job.type == TIDE_U16 || job.type == TIDE_F16 || job.type == TIDE_F32;
    if (!known || job.scene.width < 16 || job.scene.height < 16) {
        fputs("film: pixels are u8, u16, f16 or f32, 16 x 16 at least\n", stderr);
        return 2;
    }
    return (job.bug ? be_caught() : make_film()) ? 0 : 1;
}
