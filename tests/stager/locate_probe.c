/* SPDX-License-Identifier: MIT */
/* The library inside a shared object that can be put anywhere. */
#include "jit/stager/locate.h"
#include "jit/stager/test_hooks.h"

bool probe(char *path, size_t room, char *error, size_t error_room);

bool probe(char *path, size_t room, char *error, size_t error_room)
{
    bool found = tide_locate_stager(path, room, error, error_room);
    tide_locate_environment_forget();
    return found;
}
