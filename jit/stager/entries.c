/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "jit/stager/entries.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/assert.h"

bool tide_entries_behind(int descriptor, const struct stat *folder)
{
    struct stat seen;
    return fstat(descriptor, &seen) == 0 && S_ISDIR(seen.st_mode) &&
           seen.st_dev == folder->st_dev && seen.st_ino == folder->st_ino;
}

void tide_entries_begin(tide_entries *entries, int descriptor, const struct stat *folder)
{
    entries->descriptor = descriptor;
    entries->folder = *folder;
    entries->at = entries->bytes = 0;
}

void tide_entries_open(tide_entries *entries, const char *path)
{
    struct stat folder;
    bool there = stat(path, &folder) == 0;
    int descriptor = there ? open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    tide_entries_begin(entries, descriptor, there ? &folder : &(struct stat){0});
}

static const char *entries_read(tide_entries *entries)
{
    if (entries->at == entries->bytes) {
        entries->bytes = getdents64(entries->descriptor, entries->text, sizeof entries->text);
        entries->at = 0;
    }
    if (entries->bytes <= 0 || !tide_entries_behind(entries->descriptor, &entries->folder))
        return NULL;
    const struct dirent64 *entry = (const void *)(entries->text + entries->at);
    tide_assert(entry->d_reclen > 0 && entry->d_reclen <= entries->bytes - entries->at);
    entries->at += entry->d_reclen;
    return entry->d_name;
}

const char *tide_entries_next(tide_entries *entries)
{
    const char *name = NULL;
    if (entries->descriptor < 0)
        return NULL;
    do
        name = entries_read(entries);
    while (name != NULL && (strcmp(name, ".") == 0 || strcmp(name, "..") == 0));
    return name;
}

void tide_entries_end(tide_entries *entries)
{
    if (entries->descriptor >= 0 && tide_entries_behind(entries->descriptor, &entries->folder))
        close(entries->descriptor);
    entries->descriptor = -1;
}
