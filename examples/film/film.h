/* SPDX-License-Identifier: MIT */
/* A frame of film, shot and denoised, in three ways to hold the temporaries that this takes: one
 * source, denoise.inc, compiled once for each. */
#ifndef FILM_H
#define FILM_H

#include <stddef.h>

#include <tidepool/tidepool.h>
#include <tidepool/type.h>

typedef struct image { /* brightness from 0 to 1, rows from the top */
    int width, height;
    float *pixels; /* malloc's */
} image;

/* The camera shoots `scene` in pixels of its own type, with noise that `number` chooses; `out` gets
 * the frame denoised. Without memory the program ends with a message. Any thread. */
typedef void film_frame(const image *scene, tide_type pixel, int number, float *out);
film_frame film_frame_by_frames; /* Tidepool: the types are named, so the scope is inlined */
film_frame film_frame_by_sites;  /* Tidepool: a call site that learns what it acquires */
film_frame film_frame_by_calls;  /* malloc and free, or what film_cut has been given */

/* From now on film_frame_by_calls cuts the calling thread's images from a block that is sized
 * beforehand, for frames of so many pixels. The block lasts as long as the process. */
void film_cut(size_t pixels);

/* Reads an image of a frame (in Tidepool's words) that has ended: the bug of --bug. */
float film_dangle(size_t pixels);

/* ---- pixels of a type that is known at run time: u8, u16, f16 or f32 ------------------------- */

size_t pixel_bytes(tide_type pixel); /* 0: it is none of these */
void pixels_shoot(const image *scene, tide_type pixel, int number, void *shot);
void pixels_widen(float *to, tide_type pixel, const void *from, size_t n);

void *film_have(void *memory); /* ends the program if it is NULL */

/* PNG files. False: what is wrong, and where in the file, has been said. */
bool png_read(const char *path, image *out, tide_type *pixel);
bool png_write(const char *folder, const char *name, const image *in); /* whole, or not at all */

#endif
