/* SPDX-License-Identifier: MIT */
/* A file that is written whole or not at all. */
#define _GNU_SOURCE
#include "profiler/record/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/assert.h"

static bool output_refuse(const char *path, const char *why)
{
    fprintf(stderr, "tidepool: %s: %s\n", path, why);
    return false;
}

bool tide_output_open(tide_output *output, const char *path)
{
    struct stat there;
    *output = (tide_output){.path = path};
    if (strcmp(path, "-") == 0) {
        output->file = stdout;
        return !isatty(STDOUT_FILENO) ||
               output_refuse("the standard output", "is a terminal: name a file with -o FILE");
    }
    if (stat(path, &there) == 0 && !S_ISREG(there.st_mode)) /* a rename would replace a device */
        return output_refuse(path, "is there and is no regular file");
    if (asprintf(&output->temporary, "%s.tmp-%ld", path, (long)getpid()) < 0) {
        output->temporary = NULL;
        return output_refuse(path, strerror(ENOMEM));
    }
    (void)unlink(output->temporary); /* of a dead process; what stays is another user's */
    int fd = open(output->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
    output->file = fd >= 0 ? fdopen(fd, "w") : NULL;
    if (output->file == NULL) {
        output_refuse(path, strerror(errno));
        if (fd >= 0)
            close(fd);
        free(output->temporary);
        return false;
    }
    return true;
}

bool tide_output_end(tide_output *output)
{
    tide_assert(output->file != NULL);
    bool good = !ferror(output->file);
    if (output->temporary == NULL) {
        good = fflush(stdout) == 0 && good;
        return good || output_refuse("the standard output", "could not be written");
    }
    good = fclose(output->file) == 0 && good;
    good = good && rename(output->temporary, output->path) == 0;
    if (!good) {
        output_refuse(output->path, errno != 0 ? strerror(errno) : "could not be written");
        unlink(output->temporary);
    }
    free(output->temporary);
    return good;
}

void tide_output_drop(tide_output *output)
{
    tide_assert(output->file != NULL);
    if (output->temporary == NULL)
        return;
    fclose(output->file);
    unlink(output->temporary);
    free(output->temporary);
}
