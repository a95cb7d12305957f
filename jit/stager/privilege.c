/* SPDX-License-Identifier: MIT */
/* Does the program run with raised privileges? The kernel says it in the auxiliary vector. */
#include "jit/stager/privilege.h"
#include "jit/stager/test_hooks.h"

#include <stddef.h>
#include <sys/auxv.h>

bool (*tide_privileges_hook)(void);

bool tide_privileges_raised(void)
{
    return tide_privileges_hook != NULL ? tide_privileges_hook() : getauxval(AT_SECURE) != 0;
}
