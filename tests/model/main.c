/* SPDX-License-Identifier: MIT */
/* Runs random programs in every form of scope until enough operations are done, or programs
 * from files or the command line. A failure is printed, and ends in status 1. */
#define _GNU_SOURCE
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "interpret.h"

enum { FILES_MAX = 256, MANY = 20 };

struct options {
    uint64_t seed;
    double operations; /* in each form */
    unsigned forms;
    const char *files[FILES_MAX], *program;
    size_t file_count;
};

/* What the process that runs programs leaves for the one that watches it. */
struct progress {
    uint64_t seed, programs, operations;
    char wrong[640];
};

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static unsigned count_bits(unsigned bits)
{
    return (unsigned)__builtin_popcount(bits);
}

/* ---- many programs ---------------------------------------------------------------------- */

static bool compiled_code_ran(const struct options *options)
{
    return (options->forms >> FORM_COMPILED & 1) == 0 || !machine_can_compile() ||
           machine_compiled_runs() > 0;
}

static void work(const struct options *options, struct progress *progress)
{
    static uint8_t bytes[PROGRAM_BYTES];
    double wanted = options->operations * count_bits(options->forms);
    while ((double)progress->operations < wanted && progress->wrong[0] == '\0') {
        progress->seed = options->seed + progress->programs++;
        struct program program = {bytes, program_generate(progress->seed, bytes)};
        progress->operations += model_run(&program, options->forms, PLANT_NOTHING, progress->wrong);
    }
    if (progress->wrong[0] == '\0' && progress->programs >= MANY && !compiled_code_ran(options))
        strcpy(progress->wrong, "compiled code was never run");
    exit(progress->wrong[0] != '\0');
}

static int report_failure(const struct progress *progress, int status)
{
    static uint8_t bytes[PROGRAM_BYTES];
    struct program program = {bytes, program_generate(progress->seed, bytes)};
    fprintf(stderr, "model: --seed %llu failed (status %#x)\n", (unsigned long long)progress->seed,
            (unsigned)status);
    program_report(&program, progress->wrong, stderr);
    return EXIT_FAILURE;
}

static int run_many(const struct options *options)
{
    struct progress *progress =
        mmap(NULL, sizeof *progress, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (progress == MAP_FAILED)
        abort();
    double start = now();
    pid_t child = fork();
    if (child == 0)
        work(options, progress);
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child)
        abort();
    if (status != 0)
        return report_failure(progress, status);
    double seconds = now() - start;
    printf("model: %llu programs, %llu operations in %u forms, %.1f s, %.0f operations/s\n",
           (unsigned long long)progress->programs, (unsigned long long)progress->operations,
           count_bits(options->forms), seconds, (double)progress->operations / seconds);
    return EXIT_SUCCESS;
}

/* ---- one program ------------------------------------------------------------------------ */

static size_t from_hex(const char *text, uint8_t bytes[PROGRAM_BYTES])
{
    size_t length = 0;
    unsigned byte;
    while (length < PROGRAM_BYTES && sscanf(text, "%2x", &byte) == 1) {
        bytes[length++] = (uint8_t)byte;
        text += text[1] == '\0' ? 1 : 2;
    }
    return length;
}

static size_t from_file(const char *path, uint8_t bytes[PROGRAM_BYTES])
{
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        perror(path);
        exit(2);
    }
    size_t length = fread(bytes, 1, PROGRAM_BYTES, file);
    fclose(file);
    return length;
}

/* In this process: for a debugger. */
static int run_one(const struct options *options, const uint8_t *bytes, size_t length)
{
    char wrong[640];
    struct program program = {bytes, length};
    size_t done = model_run(&program, options->forms, PLANT_NOTHING, wrong);
    if (wrong[0] == '\0') {
        printf("model: %zu operations in %u forms\n", done, count_bits(options->forms));
        return EXIT_SUCCESS;
    }
    program_report(&program, wrong, stderr);
    return EXIT_FAILURE;
}

static int run_given(const struct options *options)
{
    static uint8_t bytes[PROGRAM_BYTES];
    int status = EXIT_SUCCESS;
    if (options->program != NULL)
        return run_one(options, bytes, from_hex(options->program, bytes));
    for (size_t i = 0; i < options->file_count; i++)
        status |= run_one(options, bytes, from_file(options->files[i], bytes));
    return status;
}

/* ---- options ---------------------------------------------------------------------------- */

static unsigned form_bit(const char *name)
{
    for (unsigned form = 0; form < FORM_COUNT; form++)
        if (strcmp(name, form_names[form]) == 0)
            return 1u << form;
    fprintf(stderr, "model: no form '%s'\n", name);
    exit(2);
}

static struct options read_options(int count, char **words)
{
    static const struct option known[] = {{"seed", 1, NULL, 's'},    {"operations", 1, NULL, 'o'},
                                          {"form", 1, NULL, 'f'},    {"bytes", 1, NULL, 'b'},
                                          {"program", 1, NULL, 'p'}, {0}};
    struct options options = {.seed = 1, .operations = 100000};
    for (int c; (c = getopt_long(count, words, "", known, NULL)) != -1;) {
        switch (c) {
        case 's': options.seed = strtoull(optarg, NULL, 0); break;
        case 'o': options.operations = strtod(optarg, NULL); break;
        case 'f': options.forms |= form_bit(optarg); break;
        case 'b':
            if (options.file_count < FILES_MAX)
                options.files[options.file_count++] = optarg;
            break;
        case 'p': options.program = optarg; break;
        default:
            fprintf(stderr,
                    "usage: %s [--seed N] [--operations N] [--form NAME]… "
                    "[--bytes FILE… | --program HEX]\n",
                    words[0]);
            exit(2);
        }
    }
    const char *scale = getenv("TIDE_TEST_SCALE");
    options.operations *= scale != NULL ? strtod(scale, NULL) : 1;
    options.forms = options.forms != 0 ? options.forms : model_all_forms();
    return options;
}

int main(int count, char **words)
{
    struct options options = read_options(count, words);
    if (!machine_can_compile())
        puts("model: no stager: the compiled form is left out");
    model_prepare();
    bool given = options.file_count > 0 || options.program != NULL;
    return given ? run_given(&options) : run_many(&options);
}
