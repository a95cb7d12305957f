/* SPDX-License-Identifier: MIT */
/* Grey pictures; pixels of the camera's own type, which is u8, u16, f16 or f32; PNG files. */
#ifndef FILM_PIXELS_H
#define FILM_PIXELS_H

#include <errno.h>
#include <math.h>
#include <png.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tidepool/half.h>
#include <tidepool/tidepool.h>

typedef struct picture {
    int width, height;
    float *pixels; /* malloc's: brightness from 0 to 1, rows from the top */
} picture;

static void *film_have(void *memory) /* ends the program if it is NULL */
{
    if (memory == NULL) {
        fprintf(stderr, "film: no memory for a picture: %s\n", tide_error_message());
        exit(1);
    }
    return memory;
}

static void pixels_widen(float *to, tide_type type, const void *from, size_t n)
{
    if (type == TIDE_F32)
        memcpy(to, from, n * sizeof *to);
    else if (type == TIDE_F16)
        tide_f16_to_floats(to, from, n);
    else
        for (size_t i = 0; i < n; i++)
            to[i] = type == TIDE_U16 ? (float)((const uint16_t *)from)[i] / 65535
                                     : (float)((const uint8_t *)from)[i] / 255;
}

static void pixels_narrow(void *to, tide_type type, const float *from, size_t n)
{
    if (type == TIDE_F32)
        memcpy(to, from, n * sizeof *from);
    else if (type == TIDE_F16)
        tide_f16_from_floats(to, from, n);
    else if (type == TIDE_U16)
        for (size_t i = 0; i < n; i++)
            ((uint16_t *)to)[i] = (uint16_t)(from[i] * 65535 + .5f);
    else
        for (size_t i = 0; i < n; i++) /* what a filter made may lie outside */
            ((uint8_t *)to)[i] = (uint8_t)(fminf(fmaxf(from[i], 0), 1) * 255 + .5f);
}

/* `file`: NULL if it is not there. libpng does not tell where it has stopped, but the file does. */
static bool png_refuse(const char *path, FILE *file, const char *what)
{
    fprintf(stderr, "film: %s", path);
    if (file != NULL)
        fprintf(stderr, ", at byte %ld", ftell(file));
    fprintf(stderr, ": %s\n", what);
    return false;
}

/* Makes it smaller or larger: each pixel is the nearest one of the file, whose type `type` gets. False:
 * what is wrong, and where in the file, has been said. */
static bool png_read(const char *path, double scale, picture *out, tide_type *type)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        return png_refuse(path, NULL, strerror(errno));
    png_image png = {.version = PNG_IMAGE_VERSION};
    bool read = png_image_begin_read_from_stdio(&png, file) != 0;
    if (read) {
        *type = (png.format & PNG_FORMAT_FLAG_LINEAR) != 0 ? TIDE_U16 : TIDE_U8;
        png.format = PNG_FORMAT_GRAY;
        const int from_w = (int)png.width, w = (int)(from_w * scale), h = (int)(png.height * scale);
        uint8_t *grey = film_have(calloc(png.width, png.height));
        float *to = film_have(malloc(((size_t)w * (size_t)h + 1) * sizeof *to));
        *out = (picture){w, h, to};
        read = png_image_finish_read(&png, NULL, grey, 0, NULL) != 0;
        for (int y = 0; y < h; y++)
            for (int x = 0; x < w; x++)
                *to++ = (float)grey[(int)(y / scale) * from_w + (int)(x / scale)] / 255;
        free(grey);
    }
    if (!read)
        png_refuse(path, file, png.message);
    fclose(file);
    return read;
}

/* The whole file, or none: false, and the reason has been said. */
static bool png_write(const char *folder, const char *name, const picture *in)
{
    const size_t n = (size_t)in->width * (size_t)in->height;
    png_image png = {.version = PNG_IMAGE_VERSION, .format = PNG_FORMAT_GRAY};
    png.width = (png_uint_32)in->width, png.height = (png_uint_32)in->height;
    char path[4096], part[4104];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    snprintf(part, sizeof part, "%s.part", path);
    uint8_t *grey = film_have(malloc(n));
    pixels_narrow(grey, TIDE_U8, in->pixels, n);
    sigset_t all, before; /* Ctrl-C waits until the file has its name */
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &before);
    bool written = png_image_write_to_file(&png, part, 0, grey, 0, NULL) && rename(part, path) == 0;
    if (!written)
        remove(part);
    sigprocmask(SIG_SETMASK, &before, NULL);
    free(grey);
    return written ||
           png_refuse(path, NULL, png.message[0] != '\0' ? png.message : strerror(errno));
}

#endif
