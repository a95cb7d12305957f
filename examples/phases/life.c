/* SPDX-License-Identifier: MIT */
#include "life.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tidepool/learn.h>
#include <tidepool/site.h>

/* An event's texts, but for the reason, and its site are the library's own: what is kept is
 * copied. */
typedef struct moment {
    uint64_t round;
    tide_event_kind kind;
    tide_tier tier;
    char name[32];
    const char *reason;
    char detail[120];
} moment;

static struct {
    moment *moments;
    size_t count, room;
    bool lost;
} kept;

/* The background thread's thread tells; this program's main thread reads, at the end. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static bool reserve(void)
{
    if (kept.count < kept.room)
        return true;
    size_t room = kept.room == 0 ? 64 : 2 * kept.room;
    moment *moments = realloc(kept.moments, room * sizeof *moments);
    if (moments == NULL)
        return false;
    kept.moments = moments;
    kept.room = room;
    return true;
}

static void hear(const tide_event *event, void *user)
{
    (void)user;
    pthread_mutex_lock(&mutex);
    if (reserve()) {
        moment *m = &kept.moments[kept.count++];
        *m = (moment){.round = event->round,
                      .kind = event->kind,
                      .tier = event->tier,
                      .reason = event->reason};
        snprintf(m->name, sizeof m->name, "%s", event->name);
        snprintf(m->detail, sizeof m->detail, "%s", event->detail);
    } else {
        kept.lost = true;
    }
    pthread_mutex_unlock(&mutex);
}

void life_begin(void)
{
    tide_event_set_handler(hear, NULL);
}

/* ---- telling ---- */

static void print_types(const tide_site_information *info)
{
    for (uint32_t i = 0; i < info->type_count && i < TIDE_SITE_TYPES; i++)
        printf("%s %s", i == 0 ? ", for" : "", tide_type_name(info->types[i]));
}

static void print_site(const work *w)
{
    tide_site_information info;
    tide_site *site = work_site(w);
    if (site == NULL || tide_site_info(site, &info) != TIDE_OK)
        return;
    const char *file = strrchr(info.file, '/');
    printf("\n%s, a site of kind %s", info.name, tide_kind_name(info.kind));
    if (info.line != 0)
        printf(" (%s:%u)", file != NULL ? file + 1 : info.file, info.line);
    printf(": %s", tide_tier_name(info.tier));
    print_types(&info);
    printf("\n  %llu plans published, %llu compiled; %llu uses watched, %llu misses\n",
           (unsigned long long)info.generation, (unsigned long long)info.compiles,
           (unsigned long long)info.samples, (unsigned long long)info.misses);
}

static void print_moments(const work *w)
{
    for (size_t i = 0; i < kept.count; i++) {
        const moment *m = &kept.moments[i];
        if (strcmp(m->name, w->name) != 0)
            continue;
        printf("  round %5llu  %-9s  %-8s  %s%s%s\n", (unsigned long long)m->round,
               tide_event_name(m->kind), tide_tier_name(m->tier), m->reason,
               m->detail[0] != '\0' ? ": " : "", m->detail);
    }
}

static void print_totals(void)
{
    tide_learning_statistics all;
    if (tide_learning_stats(&all) != TIDE_OK)
        return;
    printf("\nIn all: %llu rounds, %llu windows, %llu decisions; %llu compiled, %llu failed; "
           "%llu earlier plans used again; trials: %llu won, %llu lost\n",
           (unsigned long long)all.rounds, (unsigned long long)all.windows,
           (unsigned long long)all.decisions, (unsigned long long)all.compiled,
           (unsigned long long)all.failed, (unsigned long long)all.reused,
           (unsigned long long)all.won, (unsigned long long)all.lost);
}

bool life_print(void)
{
    tide_event_set_handler(NULL, NULL);
    pthread_mutex_lock(&mutex);
    for (size_t i = 0; i < WORKS; i++) {
        print_site(&works[i]);
        print_moments(&works[i]);
    }
    print_totals();
    bool all = !kept.lost;
    free(kept.moments);
    kept.moments = NULL;
    kept.count = kept.room = 0;
    pthread_mutex_unlock(&mutex);
    return all;
}
