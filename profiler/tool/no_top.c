/* SPDX-License-Identifier: MIT */
/* tidepool top, where it was built without ncurses. */
#include "profiler/tool/tool.h"

int tool_top(int count, char **args)
{
    (void)count;
    (void)args;
    return tool_complain(TOOL_NO, "top was not built: ncurses was not found");
}
