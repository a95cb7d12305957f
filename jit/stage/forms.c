/* SPDX-License-Identifier: MIT */
/* The compiler's text is cut at the end of each function, of which it tells the size; names and
 * labels are put in when it is written. Nothing else of the text is understood, and no machine is
 * known here. */
#include "jit/stage/forms.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/assert.h"
#include "runtime/scope/kind.h"

enum { FORMS_MAX = 256 };

static const char form_stem[] = "tide_form_";

static stage_form forms[FORMS_MAX];
static uint32_t form_count;

_Static_assert((int)FORMS_MAX >= (int)TIDE_SPEC_SITES, "the forms of a request have room");

/* ---- the forms ------------------------------------------------------------------------------ */

void stage_forms_forget(void)
{
    tide_assert(form_count <= FORMS_MAX);
    for (uint32_t i = 0; i < form_count; i++)
        free(forms[i].text);
    form_count = 0;
}

void stage_forms_begin(uint32_t sites)
{
    tide_assert(sites <= TIDE_SPEC_SITES);
    if (form_count + sites > FORMS_MAX)
        stage_forms_forget();
}

static bool form_same_item(const tide_spec_item *a, const tide_spec_item *b)
{
    tide_assert(a->ndim >= 0 && a->ndim <= TIDE_NDIM_MAX);
    return a->type == b->type && a->ndim == b->ndim &&
           memcmp(a->shape, b->shape, (size_t)a->ndim * sizeof *a->shape) == 0;
}

/* Is the same code made of both? */
static bool form_same(const tide_spec *a, const tide_spec *b)
{
    if (a->kind != b->kind || a->count != b->count || a->item_count != b->item_count)
        return false;
    for (uint32_t i = 0; i < a->item_count; i++)
        if (!form_same_item(&a->items[i], &b->items[i]))
            return false;
    return true;
}

stage_form *stage_form_get(const tide_spec *spec)
{
    for (uint32_t i = 0; i < form_count; i++)
        if (form_same(&forms[i].spec, spec))
            return &forms[i];
    tide_assert(form_count < FORMS_MAX); /* stage_forms_begin has made room */
    stage_form *made = &forms[form_count];
    *made = (stage_form){.spec = *spec};
    snprintf(made->spec.stem, sizeof made->spec.stem, "%s%" PRIu32, form_stem, form_count++);
    return made;
}

/* ---- the compiler's text -------------------------------------------------------------------- */

/* The form that a function is of, by its name. */
static stage_form *form_named(const char *name)
{
    char *end;
    if (strncmp(name, form_stem, sizeof form_stem - 1) != 0)
        return NULL;
    unsigned long number = strtoul(name + sizeof form_stem - 1, &end, 10);
    return *end == '_' && number < form_count ? &forms[number] : NULL;
}

/* A function must be in one piece, in the section that the text is in: what was switched to would
 * be in force for the next one. */
static bool form_in_one_section(const char *text, size_t bytes)
{
    static const char *const switches[] = {"\t.section", "\t.data", "\t.bss", "\t.comm"};
    for (size_t i = 0; i < sizeof switches / sizeof *switches; i++)
        if (memmem(text, bytes, switches[i], strlen(switches[i])) != NULL)
            return false;
    return true;
}

static bool form_append(stage_form *form, const char *text, size_t bytes)
{
    char *longer = form != NULL && form_in_one_section(text, bytes)
                       ? realloc(form->text, form->bytes + bytes)
                       : NULL;
    if (longer == NULL)
        return false;
    memcpy(longer + form->bytes, text, bytes);
    form->text = longer;
    form->bytes += bytes;
    form->functions++;
    return true;
}

/* Where the first function begins: behind the lines that belong to the file. */
static const char *forms_skip_head(const char *text)
{
    static const char section[] = "\t.text\n";
    const char *found = strstr(text, section);
    return found != NULL ? found + sizeof section - 1 : NULL;
}

/* Each function ends with the line that tells its size: "\t.size\tNAME, .-NAME". */
static bool forms_cut(const char *text)
{
    static const char size[] = "\t.size\t";
    const char *end;
    for (const char *at; (at = strstr(text, size)) != NULL; text = end + 1) {
        end = strchr(at, '\n');
        if (end == NULL ||
            !form_append(form_named(at + sizeof size - 1), text, (size_t)(end + 1 - text)))
            return false;
    }
    return true;
}

static bool forms_are_whole(void)
{
    for (uint32_t i = 0; i < form_count; i++)
        if (forms[i].functions != (tide_kind_opens_level(forms[i].spec.kind) ? 2u : 1u))
            return false;
    return true;
}

bool stage_forms_take(const char *text)
{
    const char *first = forms_skip_head(text);
    return first != NULL && forms_cut(first) && forms_are_whole();
}

/* ---- writing -------------------------------------------------------------------------------- */

/* Labels begin with ".L", and a number of the site's own makes them its own. */
void stage_form_write(const stage_form *form, const char *stem, uint32_t number, FILE *out)
{
    const char *own = form->spec.stem, *end = form->text + form->bytes;
    size_t length = strlen(own);
    tide_assert(form->text != NULL && form->functions > 0);
    for (const char *at = form->text; at < end;) {
        size_t left = (size_t)(end - at);
        if (left > length && at[length] == '_' && memcmp(at, own, length) == 0) {
            fputs(stem, out);
            at += length;
        } else if (left > 2 && at[0] == '.' && at[1] == 'L') {
            fprintf(out, ".L%" PRIu32 "_", number);
            at += 2;
        } else
            putc(*at++, out);
    }
}
