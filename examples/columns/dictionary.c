/* SPDX-License-Identifier: MIT */
/* Interning: an open-addressed hash table of codes over an array of words. */
#include "dictionary.h"

#include <stdlib.h>
#include <string.h>

struct dictionary {
    word *words;
    uint32_t *hashes; /* of each word, so that growing need not read the texts again */
    int32_t count, room;
    int32_t *table; /* code + 1, 0: free; a power of two, at most half full */
    size_t table_size;
    size_t owners;
};

static uint32_t hash_of(const char *text, size_t bytes)
{
    uint64_t hash = 0xcbf29ce484222325u; /* FNV-1a */
    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ (unsigned char)text[i]) * 0x100000001b3u;
    return (uint32_t)(hash ^ hash >> 32);
}

dictionary *dictionary_create(void)
{
    dictionary *words = calloc(1, sizeof *words);
    if (words == NULL)
        return NULL;
    words->owners = 1;
    if (dictionary_code(words, "", 0) != 0) {
        dictionary_release(words);
        return NULL;
    }
    return words;
}

dictionary *dictionary_share(dictionary *words)
{
    words->owners++;
    return words;
}

void dictionary_release(dictionary *words)
{
    if (words == NULL || --words->owners > 0)
        return;
    for (int32_t i = 0; i < words->count; i++)
        free((char *)words->words[i].text);
    free(words->words);
    free(words->hashes);
    free(words->table);
    free(words);
}

const word *dictionary_words(const dictionary *words)
{
    return words->words;
}

/* Where the text is in the table, or the free place where it belongs. */
static int32_t *find(const dictionary *words, uint32_t hash, const char *text, size_t bytes)
{
    for (size_t i = hash;; i++) {
        int32_t *place = &words->table[i & (words->table_size - 1)];
        if (*place == 0)
            return place;
        const word *known = &words->words[*place - 1];
        if (words->hashes[*place - 1] == hash && known->bytes == bytes &&
            memcmp(known->text, text, bytes) == 0)
            return place;
    }
}

/* Room for one more word: in the arrays, and in a table kept half empty. */
static bool grow(dictionary *words)
{
    if (words->count < words->room)
        return true;
    if (words->room >= INT32_MAX / 2)
        return false;
    int32_t room = words->room == 0 ? 64 : 2 * words->room;
    word *texts = realloc(words->words, (size_t)room * sizeof *texts);
    if (texts != NULL)
        words->words = texts;
    uint32_t *hashes = realloc(words->hashes, (size_t)room * sizeof *hashes);
    if (hashes != NULL)
        words->hashes = hashes;
    int32_t *table = calloc(2 * (size_t)room, sizeof *table);
    if (texts == NULL || hashes == NULL || table == NULL) {
        free(table);
        return false;
    }
    free(words->table);
    words->table = table;
    words->table_size = 2 * (size_t)room;
    words->room = room;
    for (int32_t i = 0; i < words->count; i++) {
        const word *known = &words->words[i];
        *find(words, words->hashes[i], known->text, known->bytes) = i + 1;
    }
    return true;
}

static bool copy_word(word *out, const char *text, size_t bytes)
{
    char *copy = malloc(bytes + 1);
    if (copy == NULL)
        return false;
    if (bytes > 0)
        memcpy(copy, text, bytes);
    copy[bytes] = '\0';
    *out = (word){.text = copy, .bytes = (uint32_t)bytes};
    for (size_t i = 0; i < bytes; i++)
        out->characters += ((unsigned char)text[i] & 0xc0) != 0x80;
    return true;
}

int32_t dictionary_code(dictionary *words, const char *text, size_t bytes)
{
    uint32_t hash = hash_of(text, bytes);
    if (words->table_size > 0) {
        int32_t known = *find(words, hash, text, bytes);
        if (known != 0)
            return known - 1;
    }
    if (bytes >= UINT32_MAX || !grow(words) || !copy_word(&words->words[words->count], text, bytes))
        return -1;
    words->hashes[words->count] = hash;
    *find(words, hash, text, bytes) = words->count + 1;
    return words->count++;
}

int word_compare(const word *a, const word *b)
{
    uint32_t common = a->bytes < b->bytes ? a->bytes : b->bytes;
    int order = memcmp(a->text, b->text, common);
    return order != 0 ? order : (a->bytes > b->bytes) - (a->bytes < b->bytes);
}
