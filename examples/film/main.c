/* SPDX-License-Identifier: MIT */
/* film: makes a noisy film of a photograph, denoises it, and measures what the temporaries cost that
 * this takes, held in eight ways. Each way runs in processes of its own, for an allocator is its
 * process's. They take turns, so whatever else the machine does slows all of them alike. */
#include <errno.h>
#include <getopt.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <tidepool/dynamic.h>
#include <tidepool/tune.h>

#include "film.h"

enum { TURNS = 10, THREADS_MAX = 64 };

static const struct way {
    const char *name;
    film_frame *frame;
    bool cut;            /* from one block */
    bool tuned;          /* glibc is told to keep what is freed */
    const char *preload; /* a library whose malloc takes the C library's place */
} ways[] = {
    {"one block, cut by hand", film_frame_by_calls, true, false, NULL},
    {"Tidepool, frames", film_frame_by_frames, false, false, NULL},
    {"Tidepool, sites that learn", film_frame_by_sites, false, false, NULL},
    {"glibc's malloc", film_frame_by_calls, false, false, NULL},
    {"glibc's malloc, tuned *", film_frame_by_calls, false, true, NULL},
    {"jemalloc", film_frame_by_calls, false, false, "libjemalloc.so.2"},
    {"mimalloc", film_frame_by_calls, false, false, "libmimalloc.so.2"},
    {"tcmalloc", film_frame_by_calls, false, false, "libtcmalloc_minimal.so.4"},
};
enum { WAYS = sizeof ways / sizeof *ways };

static struct {
    image scene;
    tide_type pixel;
    int frames, threads;
    const char *picture, *out, *type;
    double scale;
    int way; /* of this process; -1: it is the one that starts the others */
    bool bug;
} job = {.frames = 10, .threads = 1, .picture = FILM_PICTURE, .out = ".", .scale = 1, .way = -1};

typedef struct figures {                     /* of one turn */
    double ms, slowest_ms, faults, peak_mib; /* page faults are of a frame */
    unsigned long sum;                       /* of the last frames: all ways make the same film */
} figures;

static double larger(double a, double b)
{
    return a > b ? a : b;
}

static size_t pixels(void)
{
    return (size_t)job.scene.width * (size_t)job.scene.height;
}

/* ---- a turn of one way, and its line of figures ---------------------------------------------- */

typedef struct worker {
    pthread_t thread;
    int first; /* its frames: this one, and every so-manieth after it */
    float *out;
    figures seen;
} worker;

static double now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

static double thread_faults(void)
{
    struct rusage used;
    getrusage(RUSAGE_THREAD, &used);
    return (double)(used.ru_minflt + used.ru_majflt);
}

/* What getrusage says of memory begins with the parent's. */
static double peak_mib(void)
{
    char line[256];
    double kib = 0;
    FILE *status = fopen("/proc/self/status", "r");
    while (status != NULL && fgets(line, sizeof line, status) != NULL)
        (void)sscanf(line, "VmHWM: %lf", &kib);
    if (status != NULL)
        fclose(status);
    return kib / 1024;
}

static void *work(void *given)
{
    worker *w = given;
    film_frame *frame = ways[job.way].frame;
    if (ways[job.way].cut)
        film_cut(pixels());
    frame(&job.scene, job.pixel, 0, w->out); /* what is made once is made here */
    const double began = now_ms(), faults = thread_faults();
    for (int i = w->first; i < job.frames; i += job.threads) {
        const double frame_began = now_ms();
        frame(&job.scene, job.pixel, i, w->out);
        w->seen.slowest_ms = larger(w->seen.slowest_ms, now_ms() - frame_began);
    }
    w->seen.ms = now_ms() - began;
    w->seen.faults = thread_faults() - faults;
    return NULL;
}

static int take_turn(void)
{
    worker workers[THREADS_MAX] = {0};
    figures all = {0};
    for (int i = 0; i < job.threads; i++) {
        workers[i].first = i;
        workers[i].out = film_have(malloc(pixels() * sizeof(float)));
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0)
            return 1;
    }
    for (int i = 0; i < job.threads; i++) {
        pthread_join(workers[i].thread, NULL);
        all.ms = larger(all.ms, workers[i].seen.ms / job.frames);
        all.slowest_ms = larger(all.slowest_ms, workers[i].seen.slowest_ms);
        all.faults += workers[i].seen.faults / job.frames;
        for (size_t p = 0; p < pixels(); p++)
            all.sum = all.sum * 31 + (unsigned long)(workers[i].out[p] * 65536);
    }
    return printf("%f %f %f %f %lu\n", all.ms, all.slowest_ms, all.faults, peak_mib(), all.sum) < 0;
}

/* ---- the turns of all ways, and the table ---------------------------------------------------- */

typedef struct result {
    bool absent; /* the allocator is not installed */
    double ms[TURNS];
    figures worst; /* the largest of each; the sum is the last turn's */
} result;

static bool is_there(const char *library)
{
    static const char *const folders[] = {"/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib",
                                          "/usr/local/lib", "/usr/lib/aarch64-linux-gnu"};
    char path[128];
    for (size_t i = 0; library != NULL && i < sizeof folders / sizeof *folders; i++) {
        snprintf(path, sizeof path, "%s/%s", folders[i], library);
        if (access(path, R_OK) == 0)
            return true;
    }
    return library == NULL;
}

static void become(const struct way *way, char **again)
{
    if (way->tuned) {
        setenv("MALLOC_TRIM_THRESHOLD_", "1000000000", 1);
        setenv("MALLOC_MMAP_THRESHOLD_", "1000000000", 1);
    }
    if (way->preload != NULL)
        setenv("LD_PRELOAD", way->preload, 1);
    execv("/proc/self/exe", again);
    _exit(127);
}

static bool have_turn(const struct way *way, char **again, int turn, result *out)
{
    int line[2], status = 0;
    figures f = {0};
    if (pipe(line) != 0)
        return false;
    pid_t child = fork();
    if (child == 0) {
        dup2(line[1], STDOUT_FILENO);
        become(way, again);
    }
    close(line[1]);
    FILE *from = fdopen(line[0], "r");
    bool well = from != NULL && fscanf(from, "%lf %lf %lf %lf %lu", &f.ms, &f.slowest_ms, &f.faults,
                                       &f.peak_mib, &f.sum) == 5;
    if (from != NULL)
        fclose(from);
    out->ms[turn] = f.ms;
    f.slowest_ms = larger(out->worst.slowest_ms, f.slowest_ms);
    f.faults = larger(out->worst.faults, f.faults);
    f.peak_mib = larger(out->worst.peak_mib, f.peak_mib);
    out->worst = f;
    return waitpid(child, &status, 0) == child && status == 0 && well;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void print_row(const char *name, const result *r, double floor, double longest)
{
    const double ms = r->ms[TURNS / 2];
    if (r->absent) {
        printf("%-27s not installed\n", name);
        return;
    }
    printf("%-27s %10.2f %8.2f %8.0f %9.1f  %5.2f ", name, ms, r->worst.slowest_ms, r->worst.faults,
           r->worst.peak_mib, ms / floor);
    for (int i = 0; i < (int)(ms / longest * 30 + .5); i++)
        fputs("█", stdout);
    putchar('\n');
}

static bool print_table(result *results)
{
    double longest = 0;
    for (int w = 0; w < WAYS; w++) {
        qsort(results[w].ms, TURNS, sizeof *results[w].ms, compare);
        longest = larger(longest, results[w].ms[TURNS / 2]);
    }
    printf(
        "%d x %d pixels of %s, %d turns of %d frames, %d thread%s\n\n%-27s ms a frame  slowest   "
        "faults  peak MiB\n",
        job.scene.width, job.scene.height, tide_type_name(job.pixel), TURNS, job.frames,
        job.threads, job.threads == 1 ? "" : "s", "");
    for (int w = 0; w < WAYS; w++) {
        print_row(ways[w].name, &results[w], results[0].ms[TURNS / 2], longest);
        if (!results[w].absent && results[w].worst.sum != results[0].worst.sum)
            return fprintf(stderr, "film: '%s' made another film\n", ways[w].name), false;
    }
    puts(
        "\nThe last figure is the time against the block cut by hand, whose author knew all sizes\n"
        "beforehand. A page fault is memory that the system had taken back and zeroes again.\n"
        "* MALLOC_TRIM_THRESHOLD_ and MALLOC_MMAP_THRESHOLD_ at 1 000 000 000: what is freed "
        "stays\n"
        "in the process. Where page faults are the whole cost, these two variables do.\n");
    return true;
}

/* `again` starts this program once more for the same job: the words are argc, with room for three. */
static bool race(char **again, int argc)
{
    static result results[WAYS];
    char number[16];
    again[argc] = "--way";
    again[argc + 1] = number;
    for (int t = 0; t < TURNS; t++)
        for (int w = 0; w < WAYS; w++) {
            if (isatty(STDERR_FILENO))
                fprintf(stderr, "\rturn %d of %d: %-28s\r", t + 1, TURNS, ways[w].name);
            snprintf(number, sizeof number, "%d", w);
            results[w].absent = !is_there(ways[w].preload);
            if (!results[w].absent && !have_turn(&ways[w], again, t, &results[w]))
                return fprintf(stderr, "film: '%s' has failed\n", ways[w].name), false;
        }
    return print_table(results);
}

/* ---- what is wanted -------------------------------------------------------------------------- */

static int usage(void)
{
    fputs(
        "usage: film [options] [PICTURE.png]\n"
        "  --type T       of the camera's pixels: u8, u16, f16, f32 (as the picture's: u8 or u16)\n"
        "  --frames N     of each of ten turns, 1 to 100000 (10)\n"
        "  --threads N    that share them, 1 to 64 (1)\n"
        "  --scale F      makes the picture smaller or larger, 0.05 to 8 (1)\n"
        "  --out FOLDER   where before.png and after.png go (.)\n"
        "  --bug          uses an image after its frame has ended, and is caught\n",
        stderr);
    return 2;
}

/* A number of the option just read, or 0: it is out of bounds. */
static double within(double least, double most)
{
    char *end;
    double n = strtod(optarg, &end);
    return end != optarg && *end == '\0' && n >= least && n <= most ? n : 0;
}

static bool take_options(int argc, char **argv)
{
    static const struct option names[] = {{"type", 1, NULL, 't'},    {"frames", 1, NULL, 'f'},
                                          {"threads", 1, NULL, 'p'}, {"scale", 1, NULL, 's'},
                                          {"out", 1, NULL, 'o'},     {"bug", 0, NULL, 'b'},
                                          {"way", 1, NULL, 'w'},     {0}};
    for (int option; (option = getopt_long(argc, argv, "", names, NULL)) != -1;)
        switch (option) {
        case 't': job.type = optarg; break;
        case 'f': job.frames = (int)within(1, 100000); break;
        case 'p': job.threads = (int)within(1, THREADS_MAX); break;
        case 's': job.scale = within(.05, 8); break;
        case 'o': job.out = optarg; break;
        case 'b': job.bug = true; break;
        case 'w': job.way = atoi(optarg); break;
        default: return false;
        }
    if (optind < argc)
        job.picture = argv[optind++];
    return optind == argc && job.frames > 0 && job.threads > 0 && job.scale > 0 && job.way < WAYS;
}

/* Each pixel is the nearest one of the old picture. */
static void scale(void)
{
    const image old = job.scene;
    job.scene.width = (int)((double)old.width * job.scale);
    job.scene.height = (int)((double)old.height * job.scale);
    float *to = job.scene.pixels = film_have(malloc(pixels() * sizeof *to));
    for (int y = 0; y < job.scene.height; y++)
        for (int x = 0; x < job.scene.width; x++)
            *to++ =
                old.pixels[(size_t)(y / job.scale) * (size_t)old.width + (size_t)(x / job.scale)];
    free(old.pixels);
}

/* A frame as it was shot, and as it comes out. */
static bool write_pictures(void)
{
    image shown = job.scene;
    void *shot = film_have(malloc(pixels() * pixel_bytes(job.pixel)));
    shown.pixels = film_have(malloc(pixels() * sizeof(float)));
    pixels_shoot(&job.scene, job.pixel, 0, shot);
    pixels_widen(shown.pixels, job.pixel, shot, pixels());
    bool written = png_write(job.out, "before.png", &shown);
    film_frame_by_frames(&job.scene, job.pixel, 0, shown.pixels);
    written = written && png_write(job.out, "after.png", &shown);
    if (written)
        printf("A frame as it was shot and as it came out: before.png and after.png in %s\n",
               job.out);
    free(shot);
    free(shown.pixels);
    return written;
}

static int be_caught(void)
{
    puts("An image is read after its frame has ended, at check level 2:");
    fflush(stdout);
    if (tide_tune_set("check", 2) == TIDE_OK)
        printf("%g\n", (double)film_dangle(pixels())); /* the library ends the program here */
    return 1;
}

int main(int argc, char **argv)
{
    char **again = calloc((size_t)argc + 3, sizeof *again); /* getopt moves the words about */
    if (again == NULL)
        return 1;
    memcpy(again, argv, (size_t)argc * sizeof *argv);
    if (!take_options(argc, argv))
        return usage();
    if (!png_read(job.picture, &job.scene, &job.pixel))
        return 1;
    if (job.type != NULL)
        job.pixel = tide_type_find(job.type);
    scale();
    if (pixel_bytes(job.pixel) == 0 || job.scene.width < 16 || job.scene.height < 16)
        return usage();
    if (job.way >= 0)
        return take_turn();
    if (job.bug)
        return be_caught();
    bool well = race(again, argc) && write_pictures();
    free(job.scene.pixels);
    free(again);
    return well ? 0 : 1;
}
