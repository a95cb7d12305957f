// SPDX-License-Identifier: MIT
// The generated text itself, and its kernels by name.
#include "cuda_words.h"

#include <cstring>

namespace {
#include "kernels_cuda.inc" // made by the generator when this is built

template <class Table> struct call {
    Table table;
    U8 *block;
    void (*plain)(const Table);
    void (*with_block)(const Table, U8 *);
};

template <class Table> void body(const void *user)
{
    const auto *c = static_cast<const call<Table> *>(user);
    if (c->plain != nullptr)
        c->plain(c->table);
    else
        c->with_block(c->table, c->block);
}

template <class Table>
int run(unsigned groups, unsigned group, const void *table, const void *block,
        void (*plain)(const Table), void (*with_block)(const Table, U8 *))
{
    call<Table> c = {{}, const_cast<U8 *>(static_cast<const U8 *>(block)), plain, with_block};
    std::memcpy(&c.table, table, sizeof c.table);
    emulation_run(groups, group, body<Table>, &c);
    return 1;
}
} // namespace

#define TRY(name_, size)                                                                    \
    if (std::strcmp(name, "tide_" #name_ "_" #size) == 0)                                   \
    return run<table_##size>(groups, group, table, block, nullptr, tide_##name_##_##size)
#define TRY_FILL(size)                                                                      \
    if (std::strcmp(name, "tide_fill_" #size) == 0)                                         \
    return run<table_##size>(groups, group, table, block, tide_fill_##size, nullptr)

int emulation_kernel(const char *name, unsigned groups, unsigned group, const void *table,
                     const void *block)
{
    TRY_FILL(8);
    TRY_FILL(100);
    TRY(check, 8);
    TRY(check, 100);
    TRY(pack, 8);
    TRY(pack, 100);
    TRY(unpack, 8);
    TRY(unpack, 100);
    TRY(hash, 8);
    TRY(hash, 100);
    TRY(finish, 8);
    TRY(finish, 100);
    return 0;
}
