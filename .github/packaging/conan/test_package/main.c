/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <tidepool/tidepool.h>

int main(void)
{
    TIDE_FRAME(tide_pool_local(), (double, x, 1000));
    printf("tidepool: %s\n", x != NULL ? "an array" : tide_error_message());
    return x == NULL;
}
