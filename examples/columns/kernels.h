/* SPDX-License-Identifier: MIT */
/* Kernels: the tight loops over batches. They know neither queries nor pools; whoever calls them
 * has the memory ready.
 *
 * A vector is `rows` values of a type known at run time. Where a node may be null, its vector
 * has one flag for each row; a null row still holds a valid value. A constant vector has one
 * value for all rows. Outputs are never constant and overlap no input. */
#ifndef COLUMNS_KERNELS_H
#define COLUMNS_KERNELS_H

#include "query.h"

typedef struct vector {
    tide_type type;
    bool constant;
    void *values;
    bool *nulls; /* NULL: none is null */
} vector;

/* a op b, numbers of one type. What has no answer becomes null. */
void kernel_arithmetic(operation op, size_t rows, const vector *a, const vector *b, vector *out);

/* a op b, of one type; texts are equal by code, ordered by their bytes. */
void kernel_compare(operation op, const dictionary *words, size_t rows, const vector *a,
                    const vector *b, vector *out);

/* With nulls as "unknown": false and null is false, true or null is true. */
void kernel_logic(operation op, size_t rows, const vector *a, const vector *b, vector *out);
void kernel_not(size_t rows, const vector *a, vector *out);
void kernel_is_null(operation op, size_t rows, const vector *a, vector *out);

/* true where it is true; false where it is false or null. */
void kernel_truth(size_t rows, const vector *a, bool *mask);

/* yes where the mask is true, else no */
void kernel_if(size_t rows, const bool *mask, const vector *yes, const vector *no, vector *out);

/* To the type of `out`. Into text: false when the dictionary has no memory. */
bool kernel_cast(dictionary *words, size_t rows, const vector *a, vector *out);

void kernel_math(operation op, size_t rows, const vector *a, vector *out);

/* Functions of texts, arguments as the query has them. False: no memory. */
bool kernel_text(operation op, dictionary *words, size_t rows, const vector *args, vector *out);

/* Writes the numbers of the rows where the mask is true, and returns how many they are. */
size_t kernel_select(size_t rows, const bool *mask, int32_t *selection);

/* out[i] = column[selection[i]]; both are of out's type. */
void kernel_gather(size_t rows, const vector *from, const int32_t *selection, vector *out);

/* out[i] = from[i] */
void kernel_copy(size_t rows, const vector *from, vector *out);

/* A value as a number that is the same for equal values; nulls all have one. */
uint64_t vector_key(const vector *a, size_t row);

/* Mixes each value into a hash. */
void kernel_hash(size_t rows, const vector *a, uint64_t *hashes);

/* out's nulls: where one of the inputs is null. For kernels. */
void nulls_of(size_t rows, const vector *a, const vector *b, vector *out);

#endif
