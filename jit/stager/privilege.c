/* SPDX-License-Identifier: MIT */
/* Raised privileges, as the kernel tells them. */
#include "jit/stager/privilege.h"

#include <stddef.h>
#include <sys/auxv.h>

bool (*tide_privileges_hook)(void);

bool tide_privileges_raised(void)
{
    return tide_privileges_hook != NULL ? tide_privileges_hook() : getauxval(AT_SECURE) != 0;
}
