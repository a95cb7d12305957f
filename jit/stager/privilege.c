/* SPDX-License-Identifier: MIT */
/* Raised privileges, of which the kernel tells in the auxiliary vector, and present ones. */
#define _GNU_SOURCE
#include "jit/stager/privilege.h"
#include "jit/stager/test_hooks.h"

#include <grp.h>
#include <linux/capability.h>
#include <stddef.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { GROUPS = 256 }; /* of more only the number is known */

bool (*tide_privileges_hook)(void);

bool tide_privileges_raised(void)
{
    return tide_privileges_hook != NULL ? tide_privileges_hook() : getauxval(AT_SECURE) != 0;
}

static uint64_t privilege_digest_groups(void)
{
    gid_t groups[GROUPS];
    int count = getgroups(GROUPS, groups);
    uint64_t digest = (uint64_t)(count >= 0 ? count : getgroups(0, NULL));
    for (int i = 0; i < count; i++)
        digest = (digest ^ groups[i]) * UINT64_C(0x100000001b3);
    return digest;
}

static uint64_t privilege_read_capabilities(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {{0}};
    if (syscall(SYS_capget, &header, data) != 0)
        return 0;
    return (uint64_t)data[1].permitted << 32 | data[0].permitted;
}

tide_privileges tide_privileges_now(void)
{
    return (tide_privileges){.user = geteuid(),
                             .group = getegid(),
                             .groups = privilege_digest_groups(),
                             .capabilities = privilege_read_capabilities()};
}

bool tide_privileges_kept(const tide_privileges *then)
{
    tide_privileges now = tide_privileges_now();
    return now.user == then->user && now.group == then->group && now.groups == then->groups &&
           (then->capabilities & ~now.capabilities) == 0;
}
