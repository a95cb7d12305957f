/* SPDX-License-Identifier: MIT */
/* Under Valgrind: what a child has lost counts only if it was forked beside no other thread. Else
 * it has the memory of threads that are not there: what only their stacks knew of is lost to
 * Valgrind, though nothing of it is the child's. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if defined(TIDE_HAVE_VALGRIND)
#include <valgrind/valgrind.h>

static bool beside_threads; /* at the last fork */

/* What the kernel says of this process: after the name, which ends with the last parenthesis, the
 * 18th word is the number of its threads. Nothing is allocated: this runs inside of fork. */
static int count_threads(void)
{
    char text[1024];
    int from = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
    ssize_t bytes = from >= 0 ? read(from, text, sizeof text - 1) : -1;
    if (from >= 0)
        close(from);
    if (bytes <= 0)
        return 0;
    text[bytes] = '\0';
    const char *word = strrchr(text, ')');
    for (int i = 0; word != NULL && i < 18; i++)
        word = strchr(word + 1, ' ');
    return word != NULL ? atoi(word) : 0;
}

static void look_for_threads(void)
{
    beside_threads = count_threads() != 1;
}

static void ask_for_no_leaks(void)
{
    if (beside_threads)
        VALGRIND_CLO_CHANGE("--leak-check=no");
}

__attribute__((constructor)) static void notice_forks(void)
{
    if (RUNNING_ON_VALGRIND && pthread_atfork(look_for_threads, NULL, ask_for_no_leaks) != 0)
        abort();
}
#endif
