/* SPDX-License-Identifier: MIT */
/* What a plugin with a copy of the library of its own offers to programs, which may have another
 * copy, or none. */
#ifndef TIDEPOOL_TESTS_COPIES_COPIED_H
#define TIDEPOOL_TESTS_COPIES_COPIED_H

#include <tidepool/buffers.h> /* not scope.h: a program without the library includes this, too */
#include <tidepool/device.h>
#include <tidepool/pool.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { COPIED_BYTES = 480, COPIED_COUNT = 100 };

typedef struct copied_calls {
    /* Uses the calling thread's own pool, buffers and messages; how much of that worked. */
    int (*use)(void);
    int (*use_all)(void); /* what `use` gives when all of it works */
    tide_pool *(*make_pool)(void);
    tide_status (*destroy_pool)(tide_pool *pool);
    /* COPIED_COUNT elements of the plugin's own type, of COPIED_BYTES each, all written, by each
     * form of scope; how many arrays it got. */
    int (*acquire)(tide_pool *pool);
    int (*acquire_builtin)(tide_pool *pool, size_t n); /* doubles, written */
    tide_status (*cold)(
        tide_pool *pool); /* the first status other than TIDE_OK of its cold calls */
    tide_type (*type)(void);
    tide_type (*register_type)(const char *name, size_t size, size_t align);
    tide_type (*type_in_visitor)(void); /* registered by a visitor of sites */
    tide_buffers *(*make_buffers)(void);
    int (*use_buffers)(tide_buffers *buffers); /* how many buffers it got */
    tide_status (*destroy_buffers)(tide_buffers *buffers);
    tide_device *(*host)(void);
    const char *(*message)(void);
    tide_status (*status)(void);
    tide_status (*start_keeper)(void);
    void (*refuse_stay)(bool refuse); /* this copy cannot be kept loaded */
    size_t (*sites)(void);
} copied_calls;

__attribute__((visibility("default"))) const copied_calls *copied_get(void);

#ifdef __cplusplus
}
#endif

#endif
