/* SPDX-License-Identifier: MIT */
/* A module whose constructor does what the test that loads it wants, under the dynamic linker's
 * lock. */
void begin_in_linker(void);

__attribute__((constructor)) static void constructor_run(void)
{
    begin_in_linker();
}
