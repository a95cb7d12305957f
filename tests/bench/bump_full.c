/* SPDX-License-Identifier: MIT */
/* The cold end of the bump arena, which is made large enough never to come here. */
#include "plain.h"

void *bench_bump_full(bench_bump *bump, size_t bytes)
{
    bench_die("bump: no room for %zu bytes after %td", bytes, bump->top - bump->first);
}
