/* SPDX-License-Identifier: MIT */
/* A program without any shared library: its threads have pools, and its sites are known. */
#include <stdio.h>

#include <tidepool/site.h>
#include <tidepool/tidepool.h>

static void use(tide_pool *pool)
{
    TIDE_SCOPE(pool);
    double *values = tide_acquire(pool, double, 8);
    if (values != NULL)
        values[0] = 1;
}

int main(void)
{
    tide_pool *pool = tide_pool_local();
    if (pool == NULL || tide_site_count() == 0) {
        fprintf(stderr, "alone: %zu sites; %s\n", tide_site_count(), tide_error_message());
        return 1;
    }
    use(pool);
    return 0;
}
