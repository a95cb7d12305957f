/* SPDX-License-Identifier: MIT */
/* An operation is called by a thread with a request to cancel it pending, so the thread ends at the
 * first point of cancellation, if the operation is one. Include it after cmocka.h. */
#ifndef TIDEPOOL_TESTS_CANCELLED_H
#define TIDEPOOL_TESTS_CANCELLED_H

#include <pthread.h>
#include <stdbool.h>

typedef struct cancelled_operation {
    const char *name;
    void (*function)(void);
} cancelled_operation;

/* Before and after it, on its thread, which is not cancelled there; NULL: nothing. */
typedef struct cancelled_frame {
    void (*prepare)(void), (*finish)(void);
    const cancelled_operation *operation;
    bool came_through;
} cancelled_frame;

/* AddressSanitizer does not hear of it when a cancelled thread leaves a frame: this one shall have
 * nothing that it watches. */
__attribute__((no_sanitize_address)) static inline void *cancelled_run(void *argument)
{
    cancelled_frame *frame = argument;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    if (frame->prepare != NULL)
        frame->prepare();
    pthread_cancel(pthread_self());
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
    frame->operation->function();
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    frame->came_through = true;
    if (frame->finish != NULL)
        frame->finish();
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
    pthread_testcancel();
    return NULL;
}

/* The operation is no point of cancellation. */
static inline void expect_not_cancelled_in(const cancelled_operation *operation,
                                           void (*prepare)(void), void (*finish)(void))
{
    pthread_t thread;
    void *result = NULL;
    cancelled_frame frame = {.prepare = prepare, .finish = finish, .operation = operation};
    assert_int_equal(pthread_create(&thread, NULL, cancelled_run, &frame), 0);
    assert_int_equal(pthread_join(thread, &result), 0);
    assert_ptr_equal(result, PTHREAD_CANCELED); /* by then, since it was asked for before */
    if (!frame.came_through)
        fail_msg("%s: a point of cancellation", operation->name);
}

#endif
