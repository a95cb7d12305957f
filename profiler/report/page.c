/* SPDX-License-Identifier: MIT */
/* The page: a template with places for its parts. */
#include "profiler/report/page.h"

#include <stdlib.h>
#include <string.h>

#include "profiler/report/data.h"
#include "runtime/base/assert.h"

/* Made from the files beside this one and from the charting library, when the tool is built. Each
 * ends in a 0. */
extern const unsigned char tide_page_template[], tide_page_style[], tide_page_script[],
    tide_page_charts[];

static const char *page_part(const unsigned char *bytes)
{
    return (const char *)bytes;
}

bool tide_page_is_built(void)
{
    return tide_page_charts[0] != 0;
}

/* What is left for the data. */
static size_t page_room(void)
{
    size_t fixed = strlen(page_part(tide_page_template)) + strlen(page_part(tide_page_style)) +
                   strlen(page_part(tide_page_script)) + strlen(page_part(tide_page_charts));
    tide_assert(fixed < TIDE_PAGE_BYTES / 2 + TIDE_PAGE_BYTES / 5);
    return TIDE_PAGE_BYTES - fixed;
}

/* Less cannot be taken. */
static bool page_takes_nothing(const tide_data_limits *limits)
{
    tide_assert(limits->points >= 2);
    return limits->sites + limits->pools + limits->buffers + limits->events == 0;
}

char *tide_page_data(tide_history *history, const char *damage)
{
    tide_data_limits limits = {
        .sites = 200, .pools = 40, .buffers = 20, .events = 800, .points = 400, .codes = 24};
    for (;;) {
        json_t *data = tide_data_of(history, damage, &limits);
        char *text = tide_data_text(data);
        json_decref(data);
        if (strlen(text) < page_room())
            return text;
        if (page_takes_nothing(&limits))
            return text; /* what is left has bounds of its own, far below */
        free(text);
        if (limits.points > 40) { /* first less of each, then fewer */
            limits.points /= 2;
            limits.codes /= 2;
            limits.events = limits.events * 3 / 4;
        } else {
            limits = (tide_data_limits){limits.sites / 2,
                                        limits.pools / 2,
                                        limits.buffers / 2,
                                        limits.events / 2,
                                        limits.points > 4 ? limits.points / 2 : 2,
                                        0};
        }
    }
}

/* The template's parts: {{NAME}} alone. What is put in is not looked at again. */
void tide_page_write(FILE *out, const char *data, bool live)
{
    const struct {
        const char *name, *text;
    } parts[] = {{"{{STYLE}}", page_part(tide_page_style)},
                 {"{{CHARTS}}", page_part(tide_page_charts)},
                 {"{{SCRIPT}}", page_part(tide_page_script)},
                 {"{{DATA}}", data},
                 {"{{LIVE}}", live ? "live" : "report"}};
    const char *from = page_part(tide_page_template);
    while (*from != 0) {
        size_t plain = strcspn(from, "{"), part = 0;
        fwrite(from, 1, plain, out);
        from += plain;
        while (part < sizeof parts / sizeof *parts &&
               strncmp(from, parts[part].name, strlen(parts[part].name)) != 0)
            part++;
        if (part < sizeof parts / sizeof *parts) {
            fputs(parts[part].text, out);
            from += strlen(parts[part].name);
        } else if (*from != 0) {
            fputc(*from++, out);
        }
    }
}
