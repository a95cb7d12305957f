/* SPDX-License-Identifier: MIT */
/* Pixels of four types, the camera's noise, and PNG files. */
#include "film.h"

#include <errno.h>
#include <png.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tidepool/half.h>

size_t pixel_bytes(tide_type pixel)
{
    return pixel == TIDE_U8    ? 1
           : pixel == TIDE_U16 ? 2
           : pixel == TIDE_F16 ? 2
           : pixel == TIDE_F32 ? 4
                               : 0;
}

void pixels_widen(float *to, tide_type pixel, const void *from, size_t n)
{
    if (pixel == TIDE_F32)
        memcpy(to, from, n * sizeof *to);
    else if (pixel == TIDE_F16)
        tide_f16_to_floats(to, from, n);
    else
        for (size_t i = 0; i < n; i++)
            to[i] = pixel == TIDE_U16 ? (float)((const uint16_t *)from)[i] / 65535
                                      : (float)((const uint8_t *)from)[i] / 255;
}

static void pixels_narrow(void *to, tide_type pixel, const float *from, size_t n)
{
    if (pixel == TIDE_F32)
        memcpy(to, from, n * sizeof *from);
    else if (pixel == TIDE_F16)
        tide_f16_from_floats(to, from, n);
    else if (pixel == TIDE_U16)
        for (size_t i = 0; i < n; i++)
            ((uint16_t *)to)[i] = (uint16_t)(from[i] * 65535 + .5f);
    else
        for (size_t i = 0; i < n; i++)
            ((uint8_t *)to)[i] = (uint8_t)(from[i] * 255 + .5f);
}

static float clamp(float value)
{
    return value < 0 ? 0 : value > 1 ? 1 : value;
}

/* Uniform noise of a fifth of the range; one multiplication a pixel, so that the figures are of the
 * denoising. */
void pixels_shoot(const image *scene, tide_type pixel, int number, void *shot)
{
    enum { AT_ONCE = 256 };
    const size_t n = (size_t)scene->width * (size_t)scene->height;
    uint32_t state = 2654435761U * (uint32_t)(2 * number + 1);
    for (size_t at = 0; at < n; at += AT_ONCE) {
        const size_t count = n - at < AT_ONCE ? n - at : AT_ONCE;
        float noisy[AT_ONCE];
        for (size_t i = 0; i < count; i++) {
            state = state * 1664525U + 1013904223U;
            float noise = (float)(state >> 8) / 16777216.0F - .5F;
            noisy[i] = clamp(scene->pixels[at + i] + noise * .2F);
        }
        pixels_narrow((char *)shot + at * pixel_bytes(pixel), pixel, noisy, count);
    }
}

/* ---- files ----------------------------------------------------------------------------------- */

enum { SIDE_LEAST = 16, SIDE_MOST = 16384 };

static bool png_refuse(const char *path, FILE *file, const char *what)
{
    if (file != NULL) /* libpng does not tell where it has stopped, but the file does */
        fprintf(stderr, "film: %s, at byte %ld: %s\n", path, ftell(file), what);
    else
        fprintf(stderr, "film: %s: %s\n", path, what);
    return false;
}

static bool png_decode(const char *path, FILE *file, image *out, tide_type *pixel)
{
    png_image png = {.version = PNG_IMAGE_VERSION};
    if (!png_image_begin_read_from_stdio(&png, file))
        return png_refuse(path, file, png.message);
    *pixel = (png.format & PNG_FORMAT_FLAG_LINEAR) != 0 ? TIDE_U16 : TIDE_U8;
    png.format = PNG_FORMAT_GRAY;
    *out = (image){.width = (int)png.width, .height = (int)png.height};
    const size_t n = (size_t)png.width * png.height;
    if (png.width < SIDE_LEAST || png.height < SIDE_LEAST || png.width > SIDE_MOST ||
        png.height > SIDE_MOST) {
        png_image_free(&png);
        return png_refuse(path, file, "a picture has 16 x 16 to 16384 x 16384 pixels");
    }
    uint8_t *grey = film_have(malloc(n));
    bool read = png_image_finish_read(&png, NULL, grey, 0, NULL) != 0;
    if (read) {
        out->pixels = film_have(malloc(n * sizeof(float)));
        pixels_widen(out->pixels, TIDE_U8, grey, n);
    }
    free(grey);
    return read || png_refuse(path, file, png.message);
}

bool png_read(const char *path, image *out, tide_type *pixel)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        return png_refuse(path, NULL, strerror(errno));
    bool read = png_decode(path, file, out, pixel);
    fclose(file);
    return read;
}

bool png_write(const char *folder, const char *name, const image *in)
{
    const size_t n = (size_t)in->width * (size_t)in->height;
    png_image png = {.version = PNG_IMAGE_VERSION,
                     .width = (png_uint_32)in->width,
                     .height = (png_uint_32)in->height,
                     .format = PNG_FORMAT_GRAY};
    char path[4096], part[4104];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    snprintf(part, sizeof part, "%s.part", path);
    uint8_t *grey = film_have(malloc(n));
    for (size_t i = 0; i < n; i++)
        grey[i] = (uint8_t)(clamp(in->pixels[i]) * 255 + .5F);
    bool written = png_image_write_to_file(&png, part, 0, grey, 0, NULL) && rename(part, path) == 0;
    free(grey);
    if (!written)
        remove(part);
    return written ||
           png_refuse(path, NULL, png.message[0] != '\0' ? png.message : "no such folder");
}
