/* SPDX-License-Identifier: MIT */
/* A program of pool operations as a string of bytes: what the seed makes and the fuzzer mutates.
 *
 * Two bytes choose the pool, then each four bytes are one operation {code, a, b, c}. Any string
 * means something: there is no malformed program. All-zero is the plainest operation. */
#ifndef MODEL_PROGRAM_H
#define MODEL_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <tidepool/pool.h>

/* Name, and how many of the 256 values of the first byte mean it. What is new is cut from the tail
 * of what was there, so that old programs, written with the smallest values, keep their meaning. */
#define MODEL_OPERATIONS(X)                                                                  \
    X(ACQUIRE, "acquire", 46)                                                                \
    X(ARRAY, "array", 20)  /* acquire an N-D array               */                          \
    X(VIEW, "view", 12)    /* a part or another shape of an array */                         \
    X(WRITE, "write", 14)  /* change a live array, or grow it    */                          \
    X(EXPORT, "export", 4) /* hand an array to a consumer        */                          \
    X(ENTER, "enter", 34)  /* open a scope of the form under test */                         \
    X(LEAVE, "leave", 32)                                                                    \
    X(TURN, "turn", 14) /* leave and enter again; next round of a loop */                    \
    X(LEAK, "leak", 6)  /* longjmp out of scopes, which are skipped */                       \
    X(MARK, "mark", 14)                                                                      \
    X(REWIND, "rewind", 12) /* any mark so far, stale ones too    */                         \
    X(DROP, "drop", 4)      /* a consumer writes, or lets go      */                         \
    X(TRIM, "trim", 6)                                                                       \
    X(COMPACT, "compact", 5)                                                                 \
    X(RESET, "reset", 2)                                                                     \
    X(EMPTY, "empty", 1)                                                                     \
    X(REGISTER, "register", 4)  /* a type, at run time                */                     \
    X(IMPORT, "import", 4)      /* take a producer's tensor           */                     \
    X(REFUSE, "refuse", 8)      /* a call that must fail              */                     \
    X(REQUEST, "request", 2)    /* ask for a trim or compact from outside */                 \
    X(PIN, "pin", 5)            /* another plan for the site          */                     \
    X(HANDOVER, "hand over", 1) /* another thread adopts the pool and goes on for a while */ \
    X(FOREIGN, "foreign", 1)    /* another thread uses the pool without adopting it */       \
    X(INSPECT, "inspect", 3)    /* print the pool, verify every byte  */                     \
    X(ESCAPE, "escape", 2)      /* does this pointer outlive its scope? */

enum operation_code {
#define X(code, name, weight) OPERATION_##code,
    MODEL_OPERATIONS(X)
#undef X
        OPERATION_COUNT
};

struct operation {
    enum operation_code code;
    uint8_t a, b, c;
};

/* The forms of scope that a program runs in. */
#define MODEL_FORMS(X)                                                    \
    X(FULL, "full")         /* TIDE_SCOPE at the full tier             */ \
    X(TABLE, "table")       /* TIDE_SCOPE at the table tier            */ \
    X(OBSERVED, "observed") /* TIDE_SCOPE while profiles are taken     */ \
    X(TYPES, "types")       /* TIDE_SCOPE_TYPES                        */ \
    X(FRAME, "frame")       /* TIDE_FRAME                              */ \
    X(LOOP, "loop")         /* TIDE_LOOP                               */ \
    X(MARKS, "marks")       /* tide_checkpoint, tide_rewind            */ \
    X(FFI, "ffi")           /* tide_scope_enter, tide_scope_leave      */ \
    X(MIXED, "mixed")       /* each scope another one                  */ \
    X(COMPILED, "compiled") /* TIDE_SCOPE at the compiled tier         */

enum form {
#define X(form, name) FORM_##form,
    MODEL_FORMS(X)
#undef X
        FORM_COUNT
};

extern const char *const form_names[FORM_COUNT];

enum { PROGRAM_HEADER = 2, OPERATION_BYTES = 4, PROGRAM_MAX = 1024 };

struct program {
    const uint8_t *bytes;
    size_t length;
};

/* How the first two bytes want the pool. */
struct pool_choice {
    tide_check check;
    bool disabled, exchange_all;
    unsigned guard_sample;
    unsigned trim_after;
    size_t limit_bytes;   /* 0: none */
    size_t memory_bytes;  /* of the program's that slots lie in; 0: none                 */
    size_t process_bytes; /* that the process may hold more than it does now; 0: no limit */
    bool group;           /* it is the most that a control group wants, and no limit      */
    bool buffers;         /* slots are taken from a cache                               */
};

struct pool_choice program_pool(const struct program *program);
size_t program_operations(const struct program *program);
struct operation program_operation(const struct program *program, size_t index);

const char *operation_name(enum operation_code code);

/* Fills `bytes` with a program for the seed, mostly small sizes; returns its length. */
enum { PROGRAM_BYTES = PROGRAM_HEADER + PROGRAM_MAX * OPERATION_BYTES };
size_t program_generate(uint64_t seed, uint8_t bytes[PROGRAM_BYTES]);

/* Operands: what each byte means, for the interpreter and the printer alike. */
size_t operand_count(uint8_t b, size_t bits); /* elements of an array      */
size_t operand_scope_count(uint8_t b, uint8_t c, unsigned i, size_t bits); /* at entry */
enum fault { FAULT_NONE, FAULT_FIRST, FAULT_ALL } operand_fault(uint8_t c);
enum fill { FILL_PLAIN, FILL_INLINE, FILL_ZEROS, FILL_ONES, FILL_VALUE, FILL_COUNT };
enum fill operand_fill(uint8_t c);

/* Does a write make the array longer instead? */
bool operand_grows(uint8_t c);

/* How an array comes about. */
enum mode {
    MODE_PLAIN,
    MODE_INLINE,
    MODE_COLD,
    MODE_COLUMN,
    MODE_ZEROS,
    MODE_ONES,
    MODE_FILL,
    MODE_SIMILAR,
    MODE_COUNT
};
enum mode operand_mode(uint8_t c);

/* The form of a scope where forms are mixed. */
enum form operand_form(uint8_t a, uint8_t c);

/* What went wrong, the program for a person, indented by scope ([in brackets] a scope's form where they mix), and
 * what runs it again. */
void program_report(const struct program *program, const char *wrong, FILE *out);

#endif
