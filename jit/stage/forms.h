/* SPDX-License-Identifier: MIT */
/* Forms: the code of sites, without their names, as assembler text.
 *
 * What is made of a site depends on its kind, its items and whether it counts, and on nothing else:
 * what differs from site to site is in the plan that its code is handed. So a stager compiles each
 * form once, and writes it under the name of every site that has it. */
#ifndef TIDEPOOL_JIT_STAGE_FORMS_H
#define TIDEPOOL_JIT_STAGE_FORMS_H

#include <stdio.h>

#include "jit/spec/spec.h"

typedef struct stage_form {
    tide_spec spec;     /* its stem is the form's own */
    char *text;         /* NULL: not compiled yet     */
    size_t bytes;       /* of the text                */
    uint32_t functions; /* in the text                */
} stage_form;

/* Before the forms of so many sites are asked for: they shall have room. Forms that were got before
 * may be gone. */
void stage_forms_begin(uint32_t sites);

/* The form of a site; the same one for all sites that have it. */
stage_form *stage_form_get(const tide_spec *spec);

/* Gives forms the functions that the compiler made under their stems: all that had none. False: the
 * text is not what is expected of it, or there is no memory. Then all forms are to be forgotten, as
 * after a compile that failed. */
bool stage_forms_take(const char *text);
void stage_forms_forget(void);

/* Writes the code of a form for the site of that stem, the number-th in this file. */
void stage_form_write(const stage_form *form, const char *stem, uint32_t number, FILE *out);

#endif
