/* SPDX-License-Identifier: MIT */
/* Prints the name of the first CUDA device, asked of the driver itself: a container may have no
 * nvidia-smi. Without a device a line on stderr says why, and the status is 1. The driver is
 * libcuda.so.1, or the file that is named. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>

typedef int get_proc(const char *name, void **function, int version, uint64_t flags, int *status);

static get_proc *find;

static void *entry(const char *name)
{
    void *function = NULL;
    int status = 0;
    enum { VERSION = 2000, LEGACY_STREAM = 1 };
    return find(name, &function, VERSION, LEGACY_STREAM, &status) == 0 ? function : NULL;
}

static int refuse(const char *why)
{
    fprintf(stderr, "%s\n", why);
    return 1;
}

int main(int count, char **arguments)
{
    char name[128] = "";
    int devices = 0, device = 0;
    void *library = dlopen(count > 1 ? arguments[1] : "libcuda.so.1", RTLD_NOW);
    if (library == NULL)
        return refuse(dlerror());
    find = (get_proc *)dlsym(library, "cuGetProcAddress_v2");
    if (find == NULL)
        return refuse("the driver is older than CUDA 12.0");
    int (*start)(unsigned) = (int (*)(unsigned))entry("cuInit");
    int (*number)(int *) = (int (*)(int *))entry("cuDeviceGetCount");
    int (*get)(int *, int) = (int (*)(int *, int))entry("cuDeviceGet");
    int (*words)(char *, int, int) = (int (*)(char *, int, int))entry("cuDeviceGetName");
    if (start == NULL || number == NULL || get == NULL || words == NULL || start(0) != 0)
        return refuse("the driver does not start");
    if (number(&devices) != 0 || devices == 0 || get(&device, 0) != 0 ||
        words(name, sizeof name, device) != 0)
        return refuse("the driver has no device");
    puts(name);
    return 0;
}
