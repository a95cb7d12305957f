/* SPDX-License-Identifier: MIT */
/* What is UTF-8 and what is not: names may be any bytes, and most formats of text may not. */
#ifndef TIDEPOOL_RUNTIME_BASE_UTF8_H
#define TIDEPOOL_RUNTIME_BASE_UTF8_H

/* Bytes of the character at `text`, a C string; 0: it is none. At the end of the text it is 1. No
 * overlong forms, no surrogates, nothing above U+10FFFF. */
static inline unsigned tide_utf8_length(const char *text)
{
    const unsigned char *bytes = (const unsigned char *)text;
    unsigned char first = bytes[0];
    unsigned length = first < 0x80                    ? 1
                      : first >= 0xC2 && first < 0xE0 ? 2
                      : first >= 0xE0 && first < 0xF0 ? 3
                      : first >= 0xF0 && first < 0xF5 ? 4
                                                      : 0;
    unsigned char least = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
    unsigned char most = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
    if (length >= 2 && (bytes[1] < least || bytes[1] > most))
        return 0;
    for (unsigned i = 2; i < length; i++)
        if ((bytes[i] & 0xC0) != 0x80) /* the end of the text is no such byte */
            return 0;
    return length;
}

#endif
