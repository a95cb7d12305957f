/* SPDX-License-Identifier: MIT */
/* A library that is loaded late, with a variable for each thread: glibc allocates it when a thread
 * first uses it. */
char *dynamic_tls_here(void);

static _Thread_local char here[8];

char *dynamic_tls_here(void)
{
    return here;
}
