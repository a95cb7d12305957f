/* SPDX-License-Identifier: MIT */
/* File descriptors that are held from one call to the next.
 *
 * A program may close what it does not know, all of it at once (closefrom, on its way to being a
 * daemon), and then open files of its own, which get the same numbers. So a number alone is not
 * believed: before each use it is asked whether the file behind it is still the one that was put
 * there, by device, inode, type and time of birth. (The first two alone would not do: what is made
 * after ours was closed and removed may get the same ones. A program that closes descriptors of
 * others *while* they are used cannot be helped: then no library can open a file.)
 *
 * That tells files, folders and sockets apart. It does not tell epoll, event or process descriptors
 * from each other, which share one inode: those are never held. */
#ifndef TIDEPOOL_RUNTIME_BASE_DESCRIPTOR_H
#define TIDEPOOL_RUNTIME_BASE_DESCRIPTOR_H

#include <stdbool.h>
#include <stdint.h>

typedef struct tide_descriptor {
    int number;    /* -1: none */
    uint32_t type; /* S_IFMT of its mode */
    uint64_t device, inode;
    int64_t born_s; /* when the file was made; both 0: the file system does not tell */
    uint32_t born_ns;
} tide_descriptor;

#define TIDE_DESCRIPTOR_NONE ((tide_descriptor){.number = -1})

/* Takes an open descriptor over. */
tide_descriptor tide_descriptor_hold(int number);

/* Is the same file behind both? The numbers do not matter. */
bool tide_descriptor_same(const tide_descriptor *a, const tide_descriptor *b);

/* Its number; -1: there is none, or it was closed by somebody else, or is somebody else's now. */
int tide_descriptor_get(const tide_descriptor *held);

/* Closes it if it is still the same, and forgets it. */
void tide_descriptor_close(tide_descriptor *held);

/* Moves a descriptor (-1 is passed on) out of the places of the standard streams: a program
 * that has closed those may read from them, print to them or put others there. -1 with
 * errno: it is closed. */
int tide_descriptor_lift(int number);

#endif
