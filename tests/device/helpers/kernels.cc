// SPDX-License-Identifier: MIT
// The generated text itself, and its kernels by name.
#include "cuda_words.h"

#include <cstring>

namespace
{
#include "kernels_cuda.inc" // made by the generator when this is built

struct call {
    segments table;
    U8 *block;
    void (*plain)(const segments);
    void (*with_block)(const segments, U8 *);
};

void body(const void *user)
{
    const auto *c = static_cast<const call *>(user);
    if (c->plain != nullptr)
        c->plain(c->table);
    else
        c->with_block(c->table, c->block);
}

const struct {
    const char *name;
    void (*plain)(const segments);
    void (*with_block)(const segments, U8 *);
} kernels[] = {{"tide_fill", tide_fill, nullptr}, {"tide_check", nullptr, tide_check},
               {"tide_pack", nullptr, tide_pack}, {"tide_unpack", nullptr, tide_unpack},
               {"tide_hash", nullptr, tide_hash}, {"tide_finish", nullptr, tide_finish}};
} // namespace

int emulation_kernel(const char *name, unsigned groups, unsigned group, const void *table,
                     const void *block)
{
    for (const auto &kernel : kernels)
        if (std::strcmp(kernel.name, name) == 0) {
            call c = {{},
                      const_cast<U8 *>(static_cast<const U8 *>(block)),
                      kernel.plain,
                      kernel.with_block};
            std::memcpy(&c.table, table, sizeof c.table);
            emulation_run(groups, group, body, &c);
            return 1;
        }
    return 0;
}
