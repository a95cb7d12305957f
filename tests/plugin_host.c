/* SPDX-License-Identifier: MIT */
/* A program that has never heard of Tidepool loads a plugin that uses it, and unloads it while a
 * thread that has used the plugin's pool is alive. Arguments: plugins. Exit status 0: all well. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct visit {
    size_t (*run)(void);
    pthread_barrier_t used, unloaded;
    size_t got;
} visit;

static void *use_and_outlive(void *state)
{
    visit *v = state;
    v->got = v->run();
    pthread_barrier_wait(&v->used);
    pthread_barrier_wait(&v->unloaded);
    return NULL; /* the thread's own pool is given back here */
}

static void *load(const char *path, size_t (**run)(void))
{
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    void *found = handle == NULL ? NULL : dlsym(handle, "plugin_run_alone");
    if (found == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        exit(EXIT_FAILURE);
    }
    memcpy(run, &found, sizeof found);
    return handle;
}

static size_t visit_once(const char *path)
{
    visit v;
    pthread_t thread;
    void *handle = load(path, &v.run);
    pthread_barrier_init(&v.used, NULL, 2);
    pthread_barrier_init(&v.unloaded, NULL, 2);
    if (pthread_create(&thread, NULL, use_and_outlive, &v) != 0)
        exit(EXIT_FAILURE);
    pthread_barrier_wait(&v.used);
    if (v.run() != v.got || dlclose(handle) != 0)
        exit(EXIT_FAILURE);
    pthread_barrier_wait(&v.unloaded);
    pthread_join(thread, NULL);
    pthread_barrier_destroy(&v.used);
    pthread_barrier_destroy(&v.unloaded);
    return v.got;
}

int main(int count, char **paths)
{
    for (int round = 0; round < 3; round++)
        for (int i = 1; i < count; i++)
            if (visit_once(paths[i]) == 0)
                return EXIT_FAILURE;
    return EXIT_SUCCESS;
}
