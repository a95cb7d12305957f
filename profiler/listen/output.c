/* SPDX-License-Identifier: MIT */
/* Lines that wait for one client to take them. */
#include <stdlib.h>
#include <string.h>

#include "profiler/listen/server.h"
#include "runtime/base/assert.h"

bool listen_output_add(listen_output *output, const char *bytes, size_t count)
{
    tide_assert(output->first == 0 || output->count > 0);
    if (count == 0)
        return true; /* there may be no memory to point into yet */
    if (count > LISTEN_ANSWER_MAX || output->count > LISTEN_ANSWER_MAX - count)
        return false;
    size_t wanted = output->first + output->count + count;
    if (wanted > output->room) {
        char *larger = realloc(output->bytes, wanted + wanted / 2);
        if (larger == NULL)
            return false;
        output->bytes = larger;
        output->room = wanted + wanted / 2;
    }
    memcpy(output->bytes + output->first + output->count, bytes, count);
    output->count += count;
    return true;
}

/* Nothing is moved while something waits; once all is taken, the room of a large answer goes. */
void listen_output_drop(listen_output *output, size_t count)
{
    tide_assert(count <= output->count);
    output->first += count;
    output->count -= count;
    if (output->count == 0 && output->room > 4 * LISTEN_BACKLOG)
        listen_output_free(output);
    else if (output->count == 0)
        output->first = 0;
}

void listen_output_free(listen_output *output)
{
    free(output->bytes);
    *output = (listen_output){0};
}
