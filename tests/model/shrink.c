/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "shrink.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- trials ----------------------------------------------------------------------------- */

/* What a trial's process tells this one. */
static char *shared_text(void)
{
    static char *text;
    if (text == NULL) {
        text = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (text == MAP_FAILED)
            abort();
    }
    return text;
}

static void run_trial(const struct trial *trial, const uint8_t *bytes, size_t length)
{
    enum { SECONDS = 60 };
    struct program program = {bytes, length};
    alarm(SECONDS);
    model_run(&program, trial->forms, trial->plant, shared_text());
    _exit(shared_text()[0] != '\0');
}

bool trial_fails(const struct trial *trial, const uint8_t *bytes, size_t length, char wrong[640])
{
    shared_text()[0] = '\0';
    fflush(NULL);
    pid_t child = fork();
    if (child == 0)
        run_trial(trial, bytes, length);
    int status;
    if (child < 0 || waitpid(child, &status, 0) != child)
        abort();
    if (status == 0)
        return false;
    if (WIFSIGNALED(status))
        snprintf(wrong, 640, "killed by signal %d, %s", WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
    else if (shared_text()[0] == '\0')
        snprintf(wrong, 640, "exit status %d", WEXITSTATUS(status));
    else
        memcpy(wrong, shared_text(), 640);
    return true;
}

/* ---- shrinking -------------------------------------------------------------------------- */

enum { TRIALS_MAX = 5000 };

struct shrinking {
    const struct trial *trial;
    uint8_t *best;
    size_t length;
    char *wrong;
    unsigned trials;
};

static bool try(struct shrinking *state, const uint8_t *bytes, size_t length)
{
    if (state->trials++ >= TRIALS_MAX || !trial_fails(state->trial, bytes, length, state->wrong))
        return false;
    memcpy(state->best, bytes, length);
    state->length = length;
    return true;
}

static bool try_without(struct shrinking *state, size_t first, size_t last)
{
    uint8_t bytes[PROGRAM_BYTES];
    memcpy(bytes, state->best, first);
    memcpy(bytes + first, state->best + last, state->length - last);
    return try(state, bytes, state->length - (last - first));
}

static size_t operations(const struct shrinking *state)
{
    return program_operations(&(struct program){state->best, state->length});
}

static size_t at(size_t operation)
{
    return PROGRAM_HEADER + operation * OPERATION_BYTES;
}

/* Ever smaller pieces, from the end, where what comes after the failure stands. */
static bool remove_pieces(struct shrinking *state)
{
    bool progress = false;
    for (size_t piece = operations(state); piece > 0; piece /= 2)
        for (size_t end = operations(state); end >= piece;) {
            bool removed = try_without(state, at(end - piece), at(end));
            progress |= removed;
            end = removed ? operations(state) < end ? operations(state) : end : end - 1;
            if (piece > 1 && !removed)
                end = end > piece ? end - piece + 1 : 0;
        }
    return progress;
}

/* Two at a time: an enter and its leave, say. */
static bool remove_pairs(struct shrinking *state)
{
    enum { FEW = 40 };
    bool progress = false;
    for (size_t i = 0; operations(state) <= FEW && i < operations(state); i++)
        for (size_t j = i + 1; j < operations(state); j++) {
            uint8_t bytes[PROGRAM_BYTES];
            size_t length = state->length - OPERATION_BYTES;
            memcpy(bytes, state->best, at(j));
            memcpy(bytes + at(j), state->best + at(j + 1), state->length - at(j + 1));
            memmove(bytes + at(i), bytes + at(i + 1), length - at(i + 1));
            progress |= try(state, bytes, length - OPERATION_BYTES);
        }
    return progress;
}

static bool try_byte(struct shrinking *state, size_t position, uint8_t value)
{
    uint8_t bytes[PROGRAM_BYTES];
    if (value >= state->best[position])
        return false;
    memcpy(bytes, state->best, state->length);
    bytes[position] = value;
    return try(state, bytes, state->length);
}

static bool simplify_bytes(struct shrinking *state)
{
    bool progress = false;
    for (size_t i = 0; i < state->length; i++) {
        if (i >= PROGRAM_HEADER && (i - PROGRAM_HEADER) % OPERATION_BYTES == 0) {
            struct program program = {state->best, state->length};
            size_t operation = (i - PROGRAM_HEADER) / OPERATION_BYTES;
            if (operation < program_operations(&program))
                try_byte(state, i, operation_byte(program_operation(&program, operation).code));
            continue;
        }
        if (try_byte(state, i, 0)) {
            progress = true;
            continue;
        }
        while (try_byte(state, i, state->best[i] / 2) || try_byte(state, i, state->best[i] - 1))
            progress = true;
    }
    return progress;
}

size_t trial_shrink(const struct trial *trial, uint8_t *bytes, size_t length, char wrong[640])
{
    struct shrinking state = {.trial = trial, .best = bytes, .length = length, .wrong = wrong};
    bool progress = true;
    while (progress && state.trials < TRIALS_MAX) {
        progress = remove_pieces(&state);
        progress |= remove_pairs(&state);
        progress |= simplify_bytes(&state);
    }
    trial_fails(trial, bytes, state.length, wrong);
    return state.length;
}

void trial_report(const uint8_t *bytes, size_t length, const char *wrong, FILE *out)
{
    struct program program = {bytes, length};
    fprintf(out, "%s\n%zu operations:\n", wrong, program_operations(&program));
    program_print(&program, out);
    fprintf(out, "run again: --program ");
    for (size_t i = 0; i < length; i++)
        fprintf(out, "%02x", bytes[i]);
    fputc('\n', out);
}
