/* SPDX-License-Identifier: MIT */
/* The model under libFuzzer: any bytes are a program; it runs in every form. With -minimize_crash=1 FILE
 * libFuzzer makes a program that fails as short as it will go. */
#include <stdio.h>
#include <stdlib.h>

#include "interpret.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    struct program program = {bytes, length};
    char wrong[640];
    model_run(&program, model_all_forms(), PLANT_NOTHING, wrong);
    if (wrong[0] != '\0') {
        program_report(&program, wrong, stderr);
        abort();
    }
    return 0;
}
