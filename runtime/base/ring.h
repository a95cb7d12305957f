/* SPDX-License-Identifier: MIT */
/* The rings around the core (buffers, devices, profile, learning), through which alone it meets what
 * stands above it: each is a table of functions, and runtime/rings.c lists those that a build has. A
 * core that is built alone has the core's own.
 *
 * Each site has one hook more, its plan pointer (tidepool/site.h). Beyond these the runtime knows
 * no profile, no learning and no environment. */
#ifndef TIDEPOOL_RUNTIME_BASE_RING_H
#define TIDEPOOL_RUNTIME_BASE_RING_H

#include <tidepool/device.h>
#include <tidepool/site.h>

/* Each may be NULL. */
typedef struct tide_ring {
    /* Once in the process, before its first pool, setting or published site; again in the child of a
     * fork that came in the middle. Before locks of the ring's are taken. */
    void (*attach)(void);
    /* The device has been closed; nothing is on it, and its methods still work: what has been made
     * for it goes. Nothing locked. */
    void (*close)(tide_device *device);
    /* Something is cached that has to go by age, or is to be looked after in the background. Quick;
     * locks of outer ranks than BACKGROUND may be held. */
    void (*need)(void);
    /* A pool or an instance of buffers was made: where a thread that is at work may be put to what has
     * to wait for one.
     * Nothing locked; quick. */
    void (*made)(void);
    /* A scope that is about to end has acquired what its plan did not save, and with it the plan's
     * misses have come to its `alarm`. Nothing locked; quick. */
    void (*missed)(const tide_scope *scope);
    /* Memory of the device is short: gives back so many bytes of what is kept free, or all there is where
     * that is less; `memory`: which kind is short (TIDE_MEMORY_…). Nothing is locked, and what wants the
     * memory is shut. Returns how many. */
    size_t (*press)(tide_device *device, int memory, size_t bytes);
    /* The same where the program trims the device's memory, of what it cannot trim itself. */
    size_t (*trim)(tide_device *device, int memory, size_t bytes);
    /* Writes what is held of the device's memory, for a message: "pools hold 5 bytes"; or nothing. */
    void (*tell)(const tide_device *device, char *text, size_t room);
    /* A pool is emptied, or destroyed with everything in it rewound: what rooms above keep in it ends. */
    void (*end_pool)(tide_pool *pool, bool destroyed);
    /* A rewind has come to an entry of the log that a room above has pushed (TIDE_UNDO_IMPORT). */
    void (*undo)(tide_pool *pool, const struct tide_entry *entry);
    /* A slot or a buffer (type 0) has got memory of a device, for an acquire of that place: nothing
     * locked. Memory of a device is given back, whoever had it: any lock may be held. */
    void (*took)(const void *data, size_t bytes, tide_type type, tide_place place);
    void (*gave)(const void *data);
    /* The plan to publish where the ring below would publish `plan`; may return `plan` itself.
     * Called with the registry locked, the outermost ring first. */
    const tide_plan *(*publish)(tide_site *site, const tide_plan *plan);
    /* Forget what was observed and learned. `going`: the site's module is being unloaded, so no
     * scope can be inside it; else scopes may be. Called with the registry locked, the outermost
     * ring first. */
    void (*forget)(tide_site *site, bool going);
    /* Fills in what the ring knows of a site. Called with the registry locked. */
    void (*describe)(const tide_site *site, tide_site_information *out);
} tide_ring;

/* The innermost first, the core's own. */
extern const tide_ring *const tide_rings[];
extern const size_t tide_ring_count;

/* Calls a member of each ring that has it, the innermost first or last. */
#define TIDE_RINGS_CALL(member, ...)                      \
    for (size_t ring = 0; ring < tide_ring_count; ring++) \
        if (tide_rings[ring]->member != NULL)             \
    tide_rings[ring]->member(__VA_ARGS__)
#define TIDE_RINGS_CALL_INWARD(ring, member)         \
    for (size_t ring = tide_ring_count; ring-- > 0;) \
        if (tide_rings[ring]->member != NULL)

/* Attaches the rings, once in the process: a second caller waits until the first has attached.
 * A plugin that holds this copy of the library stays loaded from here on. Any thread. */
void tide_attach(void);

#endif
