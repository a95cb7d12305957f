/* SPDX-License-Identifier: MIT */
#include "program.h"

#include <string.h>

#include "shape.h"
#include "tests/random.h"
#include "types.h"

static const unsigned char weights[OPERATION_COUNT] = {
#define X(code, name, weight) weight,
    MODEL_OPERATIONS(X)
#undef X
};

#define X(code, name, weight) +weight
_Static_assert(0 MODEL_OPERATIONS(X) == 256, "every byte is an operation");
#undef X

static const char *const names[OPERATION_COUNT] = {
#define X(code, name, weight) name,
    MODEL_OPERATIONS(X)
#undef X
};

const char *const form_names[FORM_COUNT] = {
#define X(form, name) name,
    MODEL_FORMS(X)
#undef X
};

const char *operation_name(enum operation_code code)
{
    return names[code];
}

static enum operation_code code_of(uint8_t byte)
{
    unsigned code = 0, end = weights[0];
    while (byte >= end)
        end += weights[++code];
    return code;
}

struct pool_choice program_pool(const struct program *program)
{
    struct pool_choice choice = {.check = TIDE_CHECK_NONE, .guard_sample = 1, .trim_after = 1};
    if (program->length < PROGRAM_HEADER)
        return choice;
    unsigned check = program->bytes[0] & 3;
    bool guarded = check >= 2 && (program->bytes[0] & 128) != 0;
    choice.check = check == 1 ? TIDE_CHECK_POISON : guarded ? TIDE_CHECK_GUARD : TIDE_CHECK_NONE;
    choice.guard_sample = check == 2 ? 1 : 3;
    choice.disabled = (program->bytes[0] & 12) == 4;
    choice.exchange_all = (program->bytes[0] & 16) != 0;
    choice.trim_after = 1 + (program->bytes[1] & 1);
    if (program->bytes[1] >= 192)
        choice.limit_bytes = (size_t)(program->bytes[1] - 191) * 4096;
    else if (program->bytes[1] >= 160)
        choice.memory_bytes = (size_t)(program->bytes[1] - 159) * 16384;
    else if (program->bytes[1] >= 96)
        choice.process_bytes = (size_t)(program->bytes[1] - 95) * 16384;
    else
        choice.buffers = program->bytes[1] >= 64;
    choice.group = choice.process_bytes != 0 && (program->bytes[1] & 2) != 0;
    if (choice.memory_bytes != 0 && choice.check == TIDE_CHECK_GUARD)
        choice.check = TIDE_CHECK_POISON; /* as the library does */
    return choice;
}

size_t program_operations(const struct program *program)
{
    if (program->length < PROGRAM_HEADER)
        return 0;
    size_t count = (program->length - PROGRAM_HEADER) / OPERATION_BYTES;
    return count < PROGRAM_MAX ? count : PROGRAM_MAX;
}

struct operation program_operation(const struct program *program, size_t index)
{
    const uint8_t *at = program->bytes + PROGRAM_HEADER + index * OPERATION_BYTES;
    return (struct operation){code_of(at[0]), at[1], at[2], at[3]};
}

/* ---- operands --------------------------------------------------------------------------- */

static size_t at_max(size_t n, size_t bits)
{
    enum { MOST_BYTES = 2 << 20 };
    size_t most = (size_t)MOST_BYTES * 8 / bits;
    return n < most ? n : most;
}

size_t operand_count(uint8_t b, size_t bits)
{
    size_t n = b;
    if (b >= 240)
        n = (size_t)(b - 239) * (1 << 20) / bits; /* by bytes: 128 KiB to 2 MiB */
    else if (b >= 192)
        n = (size_t)(b - 191) * 512;
    else if (b >= 128)
        n = (size_t)(b - 127) * 16;
    return at_max(n, bits);
}

size_t operand_scope_count(uint8_t b, uint8_t c, unsigned i, size_t bits)
{
    size_t n = (b >> i % 4) % 64;
    return at_max(c >= 250 ? n * 400 : n, bits);
}

enum fault operand_fault(uint8_t c)
{
    return c >= 248 ? FAULT_FIRST : c >= 240 ? FAULT_ALL : FAULT_NONE;
}

enum fill operand_fill(uint8_t c)
{
    return c < 64 ? FILL_INLINE : c % FILL_COUNT;
}

bool operand_grows(uint8_t c)
{
    return c >= 160;
}

enum mode operand_mode(uint8_t c)
{
    return c % MODE_COUNT;
}

enum form operand_form(uint8_t a, uint8_t c)
{
    enum form form = (a + c) % FORM_MIXED;
    return form == FORM_TABLE && c >= 128 ? FORM_COMPILED : form;
}

/* ---- from a seed ------------------------------------------------------------------------ */

/* Large arrays are rare, or the machine would do nothing but fill them. */
static uint8_t random_size(rng *random)
{
    uint64_t r = rng_next(random);
    unsigned byte = (unsigned)(r >> 16), in_1024 = r % 1024;
    if (in_1024 < 4)
        return (uint8_t)(240 + byte % 16);
    if (in_1024 < 40)
        return (uint8_t)(192 + byte % 48);
    if (in_1024 < 160)
        return (uint8_t)(128 + byte % 64);
    return (uint8_t)(byte % 128);
}

/* A program often keeps to few types, so that their rows grow long. */
static uint8_t random_type(rng *random, unsigned types)
{
    return (uint8_t)(rng_next(random) % types);
}

/* And often to few shapes, so that they come back. */
static uint8_t random_shape(rng *random, unsigned shapes)
{
    return (uint8_t)(rng_next(random) % shapes * 37);
}

static bool takes_type(enum operation_code code)
{
    return code == OPERATION_ACQUIRE || code == OPERATION_ARRAY || code == OPERATION_TRIM;
}

size_t program_generate(uint64_t seed, uint8_t bytes[PROGRAM_BYTES])
{
    rng random = {seed};
    size_t count = 8 + rng_next(&random) % 400;
    unsigned few = 1 + (unsigned)(rng_next(&random) % 24);
    unsigned types = rng_next(&random) % 2 != 0 ? 256 : few;
    unsigned shapes = rng_next(&random) % 4 != 0 ? 2 + few % 6 : 256;
    bytes[0] = (uint8_t)rng_next(&random);
    bytes[1] = (uint8_t)rng_next(&random);
    for (size_t i = 0; i < count; i++) {
        uint8_t *at = bytes + PROGRAM_HEADER + i * OPERATION_BYTES;
        uint64_t r = rng_next(&random);
        at[0] = (uint8_t)r;
        bool typed = takes_type(code_of(at[0]));
        at[1] = typed ? random_type(&random, types) : (uint8_t)(r >> 8);
        at[2] = code_of(at[0]) == OPERATION_ARRAY ? random_shape(&random, shapes)
                                                  : random_size(&random);
        at[3] = (uint8_t)(r >> 16);
    }
    return PROGRAM_HEADER + count * OPERATION_BYTES;
}

/* ---- for a person ----------------------------------------------------------------------- */

static void print_acquire(const struct operation *op, FILE *out)
{
    static const char *const fills[] = {"", " inline", " zeros", " ones", " filled"};
    static const char *const faults[] = {"", ", first allocation fails", ", allocations fail"};
    const struct model_type *type = &model_types[op->a % MODEL_CHOICE];
    fprintf(out, " %s x %zu%s%s", type->name, operand_count(op->b, type->bits),
            fills[operand_fill(op->c)], faults[operand_fault(op->c)]);
}

static void print_array(const struct operation *op, FILE *out)
{
    static const char *const modes[] = {"",       " inline", " cold",   " column-major",
                                        " zeros", " ones",   " filled", " similar"};
    const struct model_type *type = &model_types[op->a % MODEL_CHOICE];
    struct shape shape = shape_operand(op->b, TIDE_ROW_MAJOR, type->bits);
    fprintf(out, " %s [", type->name);
    for (int d = 0; d < shape.ndim; d++)
        fprintf(out, "%s%lld", d > 0 ? " " : "", (long long)shape.extent[d]);
    fprintf(out, "]%s (%u)", modes[operand_mode(op->c)], op->c);
}

static void print_enter(const struct operation *op, FILE *out)
{
    const struct menu *menu = &model_menus[op->a % MENU_COUNT];
    const char *comma = "";
    fputs(" {", out);
    for (unsigned i = 0; i < menu->count; i++, comma = ", ") {
        const struct model_type *type = &model_types[menu->index[i]];
        fprintf(out, "%s%s", comma, type->name);
        if (op->b > 0)
            fprintf(out, " x %zu", operand_scope_count(op->b, op->c, i, type->bits));
    }
    fprintf(out, "} [%s]", form_names[operand_form(op->a, op->c)]);
}

static void print_operands(const struct operation *op, FILE *out)
{
    if (op->code == OPERATION_ACQUIRE)
        print_acquire(op, out);
    else if (op->code == OPERATION_ARRAY)
        print_array(op, out);
    else if (op->code == OPERATION_ENTER)
        print_enter(op, out);
    else if (op->a != 0 || op->b != 0 || op->c != 0)
        fprintf(out, "%s (%u, %u, %u)",
                op->code == OPERATION_WRITE && operand_grows(op->c) ? " grow" : "", op->a, op->b,
                op->c);
}

static void print_pool(const struct program *program, FILE *out)
{
    struct pool_choice choice = program_pool(program);
    fprintf(out, "  pool%s",
            choice.check == TIDE_CHECK_POISON  ? " poison"
            : choice.check == TIDE_CHECK_GUARD ? " guard"
                                               : "");
    if (choice.check == TIDE_CHECK_GUARD)
        fprintf(out, " 1 in %u", choice.guard_sample);
    fprintf(out, "%s%s trim-after %u", choice.disabled ? " disabled" : "",
            choice.exchange_all ? " exchange-all" : "", choice.trim_after);
    if (choice.limit_bytes != 0)
        fprintf(out, " limit %zu bytes", choice.limit_bytes);
    if (choice.memory_bytes != 0)
        fprintf(out, " in %zu given bytes", choice.memory_bytes);
    if (choice.process_bytes != 0)
        fprintf(out, " %s limit %zu bytes", choice.group ? "group" : "process",
                choice.process_bytes);
    if (choice.buffers)
        fputs(" of buffers", out);
    fputc('\n', out);
}

static void print_operations(const struct program *program, FILE *out)
{
    print_pool(program, out);
    int depth = 0;
    for (size_t i = 0; i < program_operations(program); i++) {
        struct operation op = program_operation(program, i);
        if (op.code == OPERATION_LEAVE && depth > 0)
            depth--;
        fprintf(out, "  %3zu %*s%s", i, depth < 30 ? 2 * depth : 60, "", operation_name(op.code));
        print_operands(&op, out);
        fputc('\n', out);
        if (op.code == OPERATION_ENTER)
            depth++;
    }
}

void program_report(const struct program *program, const char *wrong, FILE *out)
{
    fprintf(out, "%s\n%zu operations:\n", wrong, program_operations(program));
    print_operations(program, out);
    fprintf(out, "run again: --program ");
    for (size_t i = 0; i < program->length; i++)
        fprintf(out, "%02x", program->bytes[i]);
    fputc('\n', out);
}
