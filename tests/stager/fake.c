/* SPDX-License-Identifier: MIT */
/* A compiler process that does not compile, and does one thing wrong: the one it is called by. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern char **environ;
static const char *name, *directory;

static bool is(const char *behaviour)
{
    return strcmp(name, behaviour) == 0;
}

static int remove_entry(const char *path, const struct stat *seen, int type, struct FTW *ftw)
{
    (void)seen, (void)type, (void)ftw;
    return remove(path);
}

/* The program was killed. */
static void end_of_input(void)
{
    nftw(directory, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
    _exit(0);
}

static void say(const char *text)
{
    if (write(STDOUT_FILENO, text, strlen(text)) <= 0)
        end_of_input();
}

static void sleep_for_ever(void)
{
    for (;;)
        pause();
}

static void read_exactly(char *to, size_t bytes)
{
    while (bytes > 0) {
        ssize_t got = read(STDIN_FILENO, to, bytes);
        if (got <= 0)
            end_of_input();
        to += got;
        bytes -= (size_t)got;
    }
}

static void read_order(unsigned long long *number, char **text)
{
    char line[128];
    size_t at = 0, bytes;
    do
        read_exactly(line + at, 1);
    while (line[at++] != '\n');
    line[at] = '\0';
    if (sscanf(line, "order %llu %zu", number, &bytes) != 2 || (*text = calloc(1, bytes + 1)) == 0)
        _exit(4);
    read_exactly(*text, bytes);
}

static void answer(unsigned long long number, const char *text)
{
    char path[512], line[256];
    snprintf(path, sizeof path, "%s/u%llu.so", directory, number);
    int file = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
    snprintf(line, sizeof line, strncmp(text, "error", 5) == 0 ? "error %.100s\n" : "ok 1000\n",
             text);
    if (file < 0 || write(file, text, strlen(text)) < 0 || close(file) != 0)
        snprintf(line, sizeof line, "error it cannot write\n");
    say(line);
}

static void hang_with_a_child(void)
{
    signal(SIGTERM, SIG_IGN);
    (void)fork();
    sleep_for_ever();
}

static void misbehave(unsigned long long number, const char *text)
{
    if (is("dies-with-order"))
        raise(SIGKILL);
    else if (is("dies-in-answer"))
        say("ok 1"), raise(SIGKILL);
    else if (is("hangs"))
        hang_with_a_child();
    else if (is("stops"))
        raise(SIGSTOP);
    else if (is("garbage"))
        say("what?\n");
    else if (is("no-number"))
        say("ok x\n");
    else if (is("no-file"))
        say("ok 1\n");
    else if (is("no-text"))
        say("error \n");
    else if (is("bells"))
        say("error \a\n");
    else if (is("twice"))
        answer(number, text), answer(number + 1, text);
    else if (is("endless"))
        for (;;)
            say("xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx");
    else
        answer(number, text);
}

/* What it was promised: environment, group, signals. */
static void check_start(void)
{
    size_t count = 0;
    sigset_t blocked;
    struct sigaction action;
    while (environ[count] != NULL)
        count++;
    sigprocmask(SIG_SETMASK, NULL, &blocked);
    sigaction(SIGUSR2, NULL, &action);
    if (count != 3u + (getenv("LD_LIBRARY_PATH") != NULL) || getenv("PATH") == NULL ||
        strcmp(getenv("TMPDIR"), directory) != 0 || getpgrp() != getpid() ||
        sigismember(&blocked, SIGUSR1) || action.sa_handler != SIG_DFL)
        _exit(5);
}

int main(int argc, char **argv)
{
    if (argc != 3 || strcmp(argv[1], "--serve") != 0)
        return 2;
    name = strrchr(argv[0], '/') + 1;
    directory = argv[2];
    check_start();
    signal(SIGPIPE, SIG_IGN);
    if (is("dies-at-once"))
        return 1;
    if (is("rude") || is("speaks-first"))
        say(is("rude") ? "hi there\n" : "ok 1\n");
    if (is("deaf") || is("speaks-first")) /* an order that it answered would be answered rightly */
        sleep_for_ever();
    for (;;) {
        char *text;
        unsigned long long number;
        read_order(&number, &text);
        misbehave(number, text);
        free(text);
    }
}
