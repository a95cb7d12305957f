/* SPDX-License-Identifier: MIT */
/* Reads a module's text: directives, kernels, registers, labels, instructions. The first thing that
 * it does not understand ends it, with the line. */
#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "program.h"

enum { NAME_BYTES = 128 };

typedef enum symbol_kind { SYMBOL_REGISTER, SYMBOL_VALUE, SYMBOL_LABEL } symbol_kind;

typedef struct symbol {
    char name[NAME_BYTES];
    symbol_kind kind;
    uint8_t bits;   /* of a register */
    uint32_t index; /* register, or the first of `many`; instruction */
    uint32_t many;  /* %r<9> is nine */
    uint64_t value; /* address */
} symbol;

typedef struct branch {
    char label[NAME_BYTES];
    size_t instruction;
    unsigned line;
} branch;

typedef struct reader {
    const char *at;
    unsigned line;
    char token[NAME_BYTES]; /* the next one; empty at the end */
    unsigned token_line;
    char *error;
    jmp_buf give_up;
    ptx_module *module;
    ptx_kernel *kernel;
    symbol *symbols;
    size_t symbol_count;
    branch *branches;
    size_t branch_count;
    unsigned depth; /* of braces */
} reader;

__attribute__((format(printf, 2, 3), noreturn)) static void give_up(reader *r, const char *format,
                                                                    ...)
{
    va_list arguments;
    int used = snprintf(r->error, PTX_ERROR_BYTES, "line %u: ", r->token_line);
    va_start(arguments, format);
    vsnprintf(r->error + used, (size_t)(PTX_ERROR_BYTES - used), format, arguments);
    va_end(arguments);
    longjmp(r->give_up, 1);
}

/* One more of an array. */
static void *grow_array(reader *r, void *array, size_t *count, size_t size)
{
    void *grown = (*count & (*count - 1)) == 0
                      ? realloc(array, (*count == 0 ? 1 : 2 * *count) * size)
                      : array;
    if (grown == NULL)
        give_up(r, "no memory");
    memset((char *)grown + *count * size, 0, size);
    ++*count;
    return grown;
}

/* ---- tokens --------------------------------------------------------------------------------- */

static void skip_blanks(reader *r)
{
    for (;;) {
        if (r->at[0] == '/' && r->at[1] == '/') {
            r->at += strcspn(r->at, "\n");
        } else if (r->at[0] == '/' && r->at[1] == '*') {
            const char *end = strstr(r->at, "*/");
            end = end != NULL ? end + 2 : r->at + strlen(r->at);
            for (; r->at < end; r->at++)
                r->line += *r->at == '\n';
        } else if (isspace((unsigned char)*r->at)) {
            r->line += *r->at++ == '\n';
        } else {
            return;
        }
    }
}

static bool in_name(const char *at)
{
    return isalnum((unsigned char)*at) || strchr("_$%.", *at) != NULL ||
           (at[0] == ':' && at[1] == ':') || (at[0] == ':' && at[-1] == ':');
}

/* The next token: a name with its dots, a number, a string, or one character. */
static void next_token(reader *r)
{
    skip_blanks(r);
    r->token_line = r->line;
    const char *start = r->at;
    if (*start == '"')
        r->at += 1 + strcspn(start + 1, "\"") + 1;
    else
        while (*r->at != '\0' && in_name(r->at))
            r->at++;
    if (r->at == start && *start != '\0')
        r->at++;
    size_t length = (size_t)(r->at - start);
    if (length >= NAME_BYTES)
        give_up(r, "a name of %zu characters", length);
    memcpy(r->token, start, length);
    r->token[length] = '\0';
}

static bool sees(const reader *r, const char *what)
{
    return strcmp(r->token, what) == 0;
}

static bool takes(reader *r, const char *what)
{
    bool seen = sees(r, what);
    if (seen)
        next_token(r);
    return seen;
}

static void expect_token(reader *r, const char *what)
{
    if (!takes(r, what))
        give_up(r, "'%s' where '%s' is expected", r->token, what);
}

static void take_name(reader *r, char out[NAME_BYTES])
{
    if (!isalpha((unsigned char)r->token[0]) && strchr("_$%.", r->token[0]) == NULL)
        give_up(r, "'%s' where a name is expected", r->token);
    memcpy(out, r->token, NAME_BYTES);
    next_token(r);
}

/* 12, 0x1F, 12U, 0f3F800000 (the bits of a float). */
static uint64_t take_number(reader *r)
{
    bool negative = takes(r, "-");
    const char *digits = r->token;
    char *end;
    bool real = digits[0] == '0' && strchr("fFdD", digits[1]) != NULL && digits[1] != '\0';
    uint64_t value = real ? strtoull(digits + 2, &end, 16) : strtoull(digits, &end, 0);
    end += *end == 'U';
    if (!isdigit((unsigned char)digits[0]) || *end != '\0')
        give_up(r, "'%s' where a number is expected", r->token);
    next_token(r);
    return negative ? 0 - value : value;
}

/* ---- names ---------------------------------------------------------------------------------- */

/* %r<9> stands in the table as "%r" with nine. */
static bool symbol_is(const symbol *one, const char *name, uint32_t *number)
{
    size_t length = strlen(one->name);
    char *end;
    *number = 0;
    if (one->many == 0)
        return strcmp(one->name, name) == 0;
    if (strncmp(one->name, name, length) != 0 || !isdigit((unsigned char)name[length]))
        return false;
    unsigned long found = strtoul(name + length, &end, 10);
    *number = (uint32_t)found;
    return *end == '\0' && found < one->many;
}

/* The innermost one comes last. */
static const symbol *find_symbol(const reader *r, const char *name, uint32_t *number)
{
    for (size_t i = r->symbol_count; i-- > 0;)
        if (symbol_is(&r->symbols[i], name, number))
            return &r->symbols[i];
    return NULL;
}

static symbol *new_symbol(reader *r, const char *name, symbol_kind kind)
{
    r->symbols = grow_array(r, r->symbols, &r->symbol_count, sizeof *r->symbols);
    symbol *made = &r->symbols[r->symbol_count - 1];
    memcpy(made->name, name, NAME_BYTES);
    made->kind = kind;
    return made;
}

static ptx_type take_type(reader *r)
{
    ptx_type type;
    if (r->token[0] != '.' || !type_decode(r->token + 1, &type))
        give_up(r, "'%s' is no type that is known", r->token);
    next_token(r);
    return type;
}

static void declare_registers(reader *r)
{
    ptx_type type = take_type(r);
    do {
        char name[NAME_BYTES];
        take_name(r, name);
        symbol *made = new_symbol(r, name, SYMBOL_REGISTER);
        made->bits = type.bits;
        made->index = r->kernel->registers;
        if (takes(r, "<")) {
            made->many = (uint32_t)take_number(r);
            expect_token(r, ">");
        }
        r->kernel->registers += made->many != 0 ? made->many : 1;
    } while (takes(r, ","));
    expect_token(r, ";");
}

/* .align 8 .b8 name[12]: its bytes; places it after what is there already. */
static uint64_t take_variable(reader *r, size_t *used, char name[NAME_BYTES], size_t *bytes)
{
    size_t align = takes(r, ".align") ? (size_t)take_number(r) : 0;
    ptx_type type = take_type(r);
    if (takes(r, ".ptr")) { /* what a pointer points to: nothing to check that is not checked */
        if (sees(r, ".global") || sees(r, ".const") || sees(r, ".local") || sees(r, ".shared"))
            next_token(r);
        if (takes(r, ".align"))
            (void)take_number(r);
    }
    take_name(r, name);
    *bytes = type.bits / 8;
    align = align != 0 ? align : *bytes;
    while (takes(r, "[")) {
        *bytes *= (size_t)take_number(r);
        expect_token(r, "]");
    }
    if (align == 0 || (align & (align - 1)) != 0)
        give_up(r, "an alignment of %zu", align);
    uint64_t at = (*used + align - 1) / align * align;
    *used = at + *bytes;
    return at;
}

static void declare_memory(reader *r, size_t *used)
{
    char name[NAME_BYTES];
    size_t bytes;
    uint64_t at = take_variable(r, used, name, &bytes);
    new_symbol(r, name, SYMBOL_VALUE)->value = at;
    expect_token(r, ";");
}

/* ---- instructions --------------------------------------------------------------------------- */

static operand take_named(reader *r)
{
    char name[NAME_BYTES];
    uint32_t number, special_number;
    take_name(r, name);
    if (special_decode(name, &special_number))
        return (operand){.kind = OPERAND_SPECIAL, .index = special_number};
    const symbol *found = find_symbol(r, name, &number);
    if (found == NULL || found->kind == SYMBOL_LABEL)
        give_up(r, "'%s' is not known", name);
    if (found->kind == SYMBOL_VALUE)
        return (operand){.kind = OPERAND_VALUE, .value = found->value};
    return (operand){.kind = OPERAND_REGISTER, .bits = found->bits, .index = found->index + number};
}

static bool at_number(const reader *r)
{
    return isdigit((unsigned char)r->token[0]) || sees(r, "-");
}

static operand take_operand(reader *r)
{
    bool negated = takes(r, "!");
    operand of =
        at_number(r) ? (operand){.kind = OPERAND_VALUE, .value = take_number(r)} : take_named(r);
    of.negated = negated;
    return of;
}

/* [%rd1+8], [name], [name+8] */
static operand take_address(reader *r)
{
    expect_token(r, "[");
    operand base = take_operand(r);
    if (base.kind == OPERAND_SPECIAL || (base.kind == OPERAND_REGISTER && base.bits != 64))
        give_up(r, "no address of 64 bits");
    operand of = {.kind = OPERAND_ADDRESS,
                  .index = base.kind == OPERAND_REGISTER ? base.index : NO_REGISTER,
                  .value = base.value};
    if (takes(r, "+"))
        of.value += take_number(r);
    else if (sees(r, "-"))
        of.value += take_number(r);
    expect_token(r, "]");
    return of;
}

static void add_operand(reader *r, operand of, bool out, instruction *to)
{
    uint8_t *count = out ? &to->out_count : &to->in_count;
    if (*count == (out ? OUTS : INS))
        give_up(r, "%s has too many operands", to->text);
    (out ? to->out : to->in)[(*count)++] = of;
}

/* One operand, a vector of them, an address, or two outputs with a bar between. */
static void take_item(reader *r, bool out, instruction *to)
{
    if (sees(r, "[")) {
        add_operand(r, take_address(r), false, to);
    } else if (takes(r, "{")) {
        do
            add_operand(r, take_operand(r), out, to);
        while (takes(r, ","));
        expect_token(r, "}");
    } else {
        add_operand(r, take_operand(r), out, to);
        if (out && takes(r, "|"))
            add_operand(r, take_operand(r), out, to);
    }
}

static unsigned most_items(const instruction *of)
{
    unsigned more = of->combine != 0 || of->atomic == ATOMIC_CAS ? 1 : 0;
    return of->code->outs + of->code->ins + more;
}

static void take_operands(reader *r, instruction *to)
{
    unsigned items = 0;
    for (; !sees(r, ";"); items++) {
        if (items > 0)
            expect_token(r, ",");
        take_item(r, items < to->code->outs, to);
    }
    if (items != most_items(to))
        give_up(r, "%s has %u operands, not %u", to->text, items, most_items(to));
    for (unsigned i = 0; i < to->out_count; i++)
        if (to->out[i].kind != OPERAND_REGISTER)
            give_up(r, "%s writes what is no register", to->text);
    unsigned vector = to->vector != 0 ? to->vector : 1;
    bool load = strcmp(to->code->name, "ld") == 0, store = strcmp(to->code->name, "st") == 0;
    if ((load && to->out_count != vector) || (store && to->in_count != vector + 1))
        give_up(r, "%s has a vector of another length", to->text);
}

static void take_guard(reader *r, instruction *to)
{
    to->guard = NO_REGISTER;
    if (!takes(r, "@"))
        return;
    to->guard_negated = takes(r, "!");
    operand of = take_named(r);
    if (of.kind != OPERAND_REGISTER || of.bits != 1)
        give_up(r, "no predicate after @");
    to->guard = of.index;
}

static void take_branch(reader *r)
{
    r->branches = grow_array(r, r->branches, &r->branch_count, sizeof *r->branches);
    branch *made = &r->branches[r->branch_count - 1];
    made->instruction = r->kernel->count - 1;
    made->line = r->token_line;
    take_name(r, made->label);
}

static void take_instruction(reader *r)
{
    ptx_kernel *k = r->kernel;
    k->code = grow_array(r, k->code, &k->count, sizeof *k->code);
    instruction *made = &k->code[k->count - 1];
    take_guard(r, made);
    made->line = r->token_line;
    snprintf(made->text, sizeof made->text, "%.39s", r->token);
    if (!opcode_decode(r->token, made))
        give_up(r, "the instruction '%s' is not known", r->token);
    next_token(r);
    made->ends_block = made->code->flow != FLOW_ON;
    if (made->code->flow == FLOW_BRANCH)
        take_branch(r);
    else
        take_operands(r, made);
    made->out_type = opcode_out_type(made, 0);
    for (unsigned i = 0; i < made->in_count; i++)
        made->in_types[i] = opcode_in_type(made, i);
    const char *wrong = opcode_mistyped(made);
    if (wrong != NULL)
        give_up(r, "%s %s", made->text, wrong);
    expect_token(r, ";");
}

static void take_label(reader *r, const char *name)
{
    new_symbol(r, name, SYMBOL_LABEL)->index = (uint32_t)r->kernel->count;
    if (r->kernel->count > 0)
        r->kernel->code[r->kernel->count - 1].ends_block = true;
}

static void take_statement(reader *r)
{
    char name[NAME_BYTES];
    const char *after = r->at + strspn(r->at, " \t");
    if (*after == ':' && after[1] != ':') {
        take_name(r, name);
        expect_token(r, ":");
        take_label(r, name);
    } else if (takes(r, ".reg")) {
        declare_registers(r);
    } else if (takes(r, ".shared")) {
        declare_memory(r, &r->kernel->shared_bytes);
    } else if (takes(r, ".local")) {
        declare_memory(r, &r->kernel->local_bytes);
    } else if (sees(r, ".loc") || sees(r, ".pragma")) {
        r->at += strcspn(r->at, sees(r, ".loc") ? "\n" : ";");
        next_token(r);
        (void)takes(r, ";");
    } else {
        take_instruction(r);
    }
}

/* ---- kernels -------------------------------------------------------------------------------- */

static void take_parameters(reader *r)
{
    ptx_kernel *k = r->kernel;
    expect_token(r, "(");
    while (!takes(r, ")")) {
        char name[NAME_BYTES];
        size_t bytes;
        expect_token(r, ".param");
        uint64_t at = take_variable(r, &k->parameter_bytes, name, &bytes);
        new_symbol(r, name, SYMBOL_VALUE)->value = at;
        k->parameters = grow_array(r, k->parameters, &k->parameter_count, sizeof *k->parameters);
        k->parameters[k->parameter_count - 1] = (parameter){at, bytes};
        (void)takes(r, ",");
    }
}

/* Between the parameters and the body. */
static void take_promises(reader *r)
{
    static const char *const known[] = {".maxntid", ".reqntid", ".minnctapersm", ".maxnreg",
                                        ".maxnctapersm"};
    while (!sees(r, "{")) {
        size_t i = 0;
        while (i < sizeof known / sizeof *known && !sees(r, known[i]))
            i++;
        if (i == sizeof known / sizeof *known)
            give_up(r, "the directive '%s' is not known", r->token);
        next_token(r);
        uint64_t product = take_number(r);
        while (takes(r, ","))
            product *= take_number(r);
        if (i <= 1)
            r->kernel->most_threads = (unsigned)product;
    }
}

static void resolve_branches(reader *r)
{
    for (size_t i = 0; i < r->branch_count; i++) {
        const branch *one = &r->branches[i];
        uint32_t number;
        const symbol *found = find_symbol(r, one->label, &number);
        r->token_line = one->line;
        if (found == NULL || found->kind != SYMBOL_LABEL || found->index >= r->kernel->count)
            give_up(r, "there is no label '%s' before an instruction", one->label);
        r->kernel->code[one->instruction].target = found->index;
    }
}

static void take_body(reader *r)
{
    expect_token(r, "{");
    r->depth = 1;
    while (r->depth > 0) {
        if (r->token[0] == '\0')
            give_up(r, "the end of the text within a kernel");
        if (takes(r, "{"))
            r->depth++;
        else if (sees(r, "}")) {
            r->depth--;
            if (r->depth > 0)
                next_token(r);
        } else
            take_statement(r);
    }
    const ptx_kernel *k = r->kernel;
    if (k->count == 0 || k->code[k->count - 1].code->flow == FLOW_ON ||
        k->code[k->count - 1].guard != NO_REGISTER)
        give_up(r, "a kernel that goes on past its end");
    resolve_branches(r);
    expect_token(r, "}");
}

static void take_kernel(reader *r)
{
    ptx_module *m = r->module;
    m->kernels = grow_array(r, m->kernels, &m->count, sizeof *m->kernels);
    r->kernel = &m->kernels[m->count - 1];
    r->symbol_count = r->branch_count = 0;
    free(r->symbols);
    free(r->branches);
    r->symbols = NULL;
    r->branches = NULL;
    take_name(r, r->kernel->name);
    take_parameters(r);
    take_promises(r);
    take_body(r);
}

static void take_target(reader *r)
{
    if (strncmp(r->token, "sm_", 3) != 0)
        give_up(r, "'%s' is no target that is known", r->token);
    r->module->target = (unsigned)strtoul(r->token + 3, NULL, 10);
    next_token(r);
    while (takes(r, ","))
        next_token(r);
}

static void take_module(reader *r)
{
    next_token(r);
    while (r->token[0] != '\0')
        if (takes(r, ".version"))
            next_token(r);
        else if (takes(r, ".target"))
            take_target(r);
        else if (takes(r, ".address_size")) {
            if (take_number(r) != 64)
                give_up(r, "addresses that are not of 64 bits");
        } else if (takes(r, ".visible") || takes(r, ".weak"))
            continue;
        else if (takes(r, ".entry"))
            take_kernel(r);
        else
            give_up(r, "the directive '%s' is not known", r->token);
    if (r->module->target == 0)
        give_up(r, "there is no .target");
}

/* False: the error is told. */
static bool reader_run(reader *r)
{
    if (setjmp(r->give_up) != 0)
        return false;
    take_module(r);
    return true;
}

ptx_module *ptx_load(const char *text, char error[PTX_ERROR_BYTES])
{
    reader *r = calloc(1, sizeof *r);
    if (r == NULL)
        abort();
    r->at = text;
    r->line = r->token_line = 1;
    r->error = error;
    error[0] = '\0';
    r->module = calloc(1, sizeof *r->module);
    if (r->module == NULL)
        abort();
    bool whole = reader_run(r);
    ptx_module *made = r->module;
    free(r->symbols);
    free(r->branches);
    free(r);
    if (whole)
        return made;
    ptx_unload(made);
    return NULL;
}

void ptx_unload(ptx_module *module)
{
    for (size_t i = 0; i < module->count; i++) {
        free(module->kernels[i].code);
        free(module->kernels[i].parameters);
    }
    free(module->kernels);
    free(module);
}

unsigned ptx_target(const ptx_module *module)
{
    return module->target;
}

const ptx_kernel *ptx_find(const ptx_module *module, const char *name)
{
    for (size_t i = 0; i < module->count; i++)
        if (strcmp(module->kernels[i].name, name) == 0)
            return &module->kernels[i];
    return NULL;
}

const char *ptx_kernel_name(const ptx_kernel *kernel)
{
    return kernel->name;
}

size_t ptx_parameter(const ptx_kernel *kernel, size_t i, size_t *offset)
{
    if (i >= kernel->parameter_count)
        return 0;
    *offset = kernel->parameters[i].offset;
    return kernel->parameters[i].bytes;
}

size_t ptx_parameter_bytes(const ptx_kernel *kernel)
{
    return kernel->parameter_bytes;
}
