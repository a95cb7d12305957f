/* SPDX-License-Identifier: MIT */
/* Ends what would make other system calls than those of memory and locks: from then on the setting
 * `locked` is asked wherever such a thing begins. */
#include <tidepool/tune.h>

#include <tidepool/listen.h>

#include "jit/learn/background.h"
#include "jit/learn/round.h"
#include "jit/stager/stager.h"
#include "runtime/base/error.h"
#include "runtime/base/os.h"
#include "runtime/base/registry.h"
#include "runtime/base/ring.h"
#include "runtime/base/settings.h"
#include "runtime/device/group.h"

tide_status tide_lock_down(void)
{
    tide_attach();
    TIDE_FORWARD(tide_registry_admit("tide_lock_down"));
    if (!tide_locked_down())
        tide_group_look_first();
    tide_setting_set(TIDE_SETTING_locked, 1);
    TIDE_FORWARD(tide_listen_end());
    tide_background_end();
    tide_round_lock();
    tide_stager_refuse("the program is locked down");
    tide_round_unlock();
    (void)tide_round_leave();
    tide_registry_lock(); /* who asks the system about a thread (runtime/pool/press.h) has done so */
    tide_registry_unlock();
    return TIDE_OK;
}
