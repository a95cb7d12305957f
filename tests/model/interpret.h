/* SPDX-License-Identifier: MIT */
/* The interpreter: runs a program on a pool in one form of scope, with the oracle beside it.
 *
 * A scope that is bound to a block can only be opened by C code that then stays inside it, so
 * "enter" calls a function that opens a scope of the form and interprets on, and "leave" returns
 * from it. A leak is a longjmp to an outer one of these functions. */
#ifndef MODEL_INTERPRET_H
#define MODEL_INTERPRET_H

#include <setjmp.h>

#include <tidepool/buffers.h>

#include "oracle.h"
#include "program.h"

/* What can be seen after an operation. The same in every form. */
struct observation {
    uint64_t operation, status, depth, live, slots, bytes_held, bytes_live, allocations, releases,
        exchanges, content, bytes_exported, requests;
};

enum { TRACE_MAX = 4 * PROGRAM_MAX };

struct trace {
    size_t count;
    struct observation seen[TRACE_MAX];
};

/* Runs the program in one form. `trace` is filled; `reference`, when not NULL, is the trace of
 * another form and must be the same. What is wrong is written to `wrong`, which is empty when
 * nothing is. Returns the number of operations done. */
size_t model_run_form(const struct program *program, enum form form, enum plant plant,
                      struct trace *trace, const struct trace *reference, char wrong[512]);

/* Has the sites of the forms ready, once for a process: what a fork inherits need not be compiled
 * again. Called by whoever runs the first program, if not before. */
void model_prepare(void);

/* All forms that can be run here, a bit each: without a stager none is compiled. */
unsigned model_all_forms(void);

/* The same in each form of `forms` (a bit each), compared with each other. */
size_t model_run(const struct program *program, unsigned forms, enum plant plant, char wrong[640]);

/* ---- for the files of the interpreter ---------------------------------------------------- */

enum outcome { OUTCOME_LEAVE, OUTCOME_TURN, OUTCOME_STOP };

/* One function that interprets inside a scope. */
struct frame {
    struct frame *outer; /* NULL: the root of its thread */
    jmp_buf landing;
    uint64_t level;
    struct operation op; /* that entered */
    enum form form;      /* never mixed  */
    const struct menu *menu;
    bool furnished; /* acquires the menu's arrays at entry                        */
    bool adrift;    /* turned after its level was taken away by a reset or a rewind */
};

enum { MARKS = 16, DEPTH_MAX = 24 };

struct kept_mark {
    tide_mark mark;
    uint64_t level;
};

struct machine {
    const struct program *program;
    size_t next, end; /* the operations still to be done */
    enum form form;
    tide_pool *pool;
    void *memory;          /* that the pool lies in, or NULL */
    tide_buffers *buffers; /* that its slots are taken from, or NULL */
    struct oracle oracle;
    struct frame *frame; /* innermost            */
    size_t depth;        /* frames    */
    struct kept_mark marks[MARKS];
    size_t mark_count;   /* ever made */
    unsigned registered; /* types of the family, a bit each */
    unsigned threads;    /* that wait for this one */
    size_t done;
    tide_status status; /* of the operation under way */
    struct trace *trace;
    const struct trace *reference;
};

/* Opens a scope of the frame's form, interprets in it until it is left, as often as it turns. */
void machine_enter(struct machine *machine, struct frame *frame);

/* Called inside the scope; `data` are a frame's arrays, NULL in other forms. */
enum outcome machine_inside(struct machine *machine, struct frame *frame, void *const *data);

/* Called when the scope has ended. True when it turns and is to be opened again. */
bool machine_after(struct machine *machine, struct frame *frame, enum outcome outcome);

/* Pins the sites of the forms that have sites; once for a process. */
void machine_prepare_sites(void);

/* Before each program in the observed form: its sites are at the plans they begin with. */
void machine_pin_observed(void);

/* Is there a stager? And how often did compiled code run? */
bool machine_can_compile(void);
uint64_t machine_compiled_runs(void);

/* A site's plan is changed while scopes of it are open. */
void machine_repin(struct machine *machine, const struct operation *op);

/* One operation other than those that open, end or skip scopes. */
void machine_operate(struct machine *machine, const struct operation *op);

/* For the files of operations. A type that the program may name; faults injected from here on, if
 * the operand says so; may an acquire fail like this, given that it got as far as looking for
 * memory; is an array filled as it should be. */
unsigned machine_type(const struct machine *machine, uint8_t a);
void machine_faults(struct machine *machine, uint8_t c);
bool machine_may_fail(const struct machine *machine, unsigned type, size_t n, tide_status status);
extern const unsigned char model_fill_value[8192];
void machine_check_filled(struct machine *machine, unsigned type, const unsigned char *data,
                          size_t n, enum fill fill);

/* Operations on N-D arrays. */
void machine_array(struct machine *machine, const struct operation *op);
void machine_view(struct machine *machine, const struct operation *op);
void machine_export(struct machine *machine, const struct operation *op);
void machine_drop(struct machine *machine, const struct operation *op);
void machine_import(struct machine *machine, const struct operation *op);
void machine_escape(struct machine *machine, const struct operation *op);

/* A live array becomes longer. */
void machine_grow(struct machine *machine, const struct operation *op);

/* Interprets until `end`; on another thread that has adopted the pool. */
void machine_hand_over(struct machine *machine, const struct operation *op);

static inline bool machine_failed(const struct machine *machine)
{
    return machine->oracle.wrong[0] != '\0';
}

#endif
