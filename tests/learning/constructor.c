/* SPDX-License-Identifier: MIT */
/* A module whose constructor and destructor do what the test that loads it wants, under the dynamic
 * linker's lock. */
void run_in_linker(void);

__attribute__((constructor, destructor)) static void constructor_run(void)
{
    run_in_linker();
}
