// SPDX-License-Identifier: MIT
// C++ exceptions through scopes: of C++, of C compiled for exceptions, and of plain C, whose
// frames are passed without a word and are cleaned up by the scope around them.
#include "forms.h"

#include <stdexcept>
#include <string>

#include <tidepool/upkeep.h>

extern "C" const form forms_c_exceptions[]; // tests/forms_c_exceptions.c

namespace
{

struct Thrown : std::runtime_error {
    using std::runtime_error::runtime_error;
};

struct Throw {
    int after = 0; // bodies to run before the one that throws
};

void acquire_and_throw(tide_pool *pool, void *state)
{
    auto *how = static_cast<Throw *>(state);
    take(pool, TIDE_F64, 20, 1);
    take(pool, TIDE_U16, 30, 2);
    CHECK_POOL(pool);
    if (how->after-- == 0)
        throw Thrown("thrown inside");
}

// Does an exception pass through this form's frame with its scope ended at once?
bool ends_at_once(const form *f)
{
    return f->block && std::string(f->name).rfind("c ", 0) != 0;
}

// False if nothing was thrown.
bool run_and_catch(const form *f, tide_pool *pool, int after = 0)
{
    Throw how{after};
    try {
        form_repeat(f, pool, 5, acquire_and_throw, &how);
    } catch (const Thrown &thrown) {
        return std::string(thrown.what()) == "thrown inside";
    }
    return false;
}

// ---- one form, and what is around it ----

void expect_cleaned(const scene *s, const form *f)
{
    counts before = counts_of(s->pool);
    for (int after = 0; after < 3; after++) {
        note("%s, after %d", f->name, after);
        {
            TIDE_SCOPE(s->pool);
            auto *kept = take(s->pool, TIDE_F64, 10, 7);
            counts inside = counts_of(s->pool);
            assert_true(run_and_catch(f, s->pool, after));
            CHECK_POOL(s->pool);
            if (ends_at_once(f))
                counts_same(inside, s->pool);
            else
                assert_int_equal(tide_pool_depth(s->pool), inside.depth + 1);
            expect_bytes(kept, 10 * sizeof(double), 7);
            take(s->pool, TIDE_F64, 20, 8);
            expect_bytes(kept, 10 * sizeof(double), 7);
        }
        counts_same(before, s->pool);
    }
}

void a_throw_through_a_scope_cleans_it_up(const scene *s)
{
    expect_cleaned(s, s->form);
}

void a_throw_through_c_compiled_for_exceptions_cleans_up(const scene *s)
{
    for (const form *f = forms_c_exceptions; f->name != nullptr; f++)
        expect_cleaned(s, f);
}

struct Inner {
    const form *f;
    bool caught;
};

void catch_inside(tide_pool *pool, void *state)
{
    auto *inner = static_cast<Inner *>(state);
    auto *kept = take(pool, TIDE_U16, 50, 5);
    inner->caught = run_and_catch(inner->f, pool);
    expect_bytes(kept, 50 * sizeof(uint16_t), 5);
    take(pool, TIDE_U16, 50, 6);
    expect_bytes(kept, 50 * sizeof(uint16_t), 5);
    CHECK_POOL(pool);
}

// Every form cleans up what an exception left behind in every other.
void the_scope_around_a_throw_cleans_up_after_it(const scene *s)
{
    counts before = counts_of(s->pool);
    EACH_FORM(f)
    {
        note("inner %s", f->name);
        Inner inner = {f, false};
        form_run(s->form, s->pool, catch_inside, &inner);
        assert_true(inner.caught);
        counts_same(before, s->pool);
        form_repeat(s->form, s->pool, 3, catch_inside, &inner);
        counts_same(before, s->pool);
    }
}

// ---- many levels ----

void throw_from_depth(tide_pool *pool, int depth)
{
    TIDE_SCOPE(pool);
    take(pool, TIDE_F32, 9, 1);
    TIDE_FRAME(pool, (double, d, 9), (float, f, 9));
    d[8] = f[8] = 1;
    TIDE_LOOP(pool, i, 3)
    {
        TIDE_SCOPE_TYPES(pool, float);
        take(pool, TIDE_I8, 9, 2);
        if (i == 1 && depth == 0)
            throw Thrown("deep");
        if (i == 2)
            throw_from_depth(pool, depth - 1);
    }
}

void scopes_of_all_forms_unwind_together(const scene *s)
{
    counts before = counts_of(s->pool);
    for (int depth = 0; depth < 4; depth++) {
        bool caught = false;
        try {
            throw_from_depth(s->pool, depth);
        } catch (const Thrown &) {
            caught = true;
        }
        assert_true(caught);
        counts_same(before, s->pool);
    }
}

// ---- other ways to throw ----

void catch_and_throw_again(tide_pool *pool)
{
    TIDE_SCOPE(pool);
    take(pool, TIDE_F64, 9, 1);
    try {
        TIDE_FRAME(pool, (double, d, 9));
        d[8] = 1;
        throw Thrown("first");
    } catch (const Thrown &) {
        assert_int_equal(tide_pool_depth(pool), 1);
        TIDE_SCOPE(pool);
        take(pool, TIDE_F64, 9, 2);
        throw;
    }
}

struct ThrowsWhenBuilt {
    explicit ThrowsWhenBuilt(tide_pool *pool)
    {
        TIDE_SCOPE(pool);
        take(pool, TIDE_F64, 9, 1);
        throw 42;
    }
};

struct CleansWhenUnwound {
    tide_pool *pool;
    ~CleansWhenUnwound() // runs scopes while an exception is on its way
    {
        TIDE_SCOPE(pool);
        take(pool, TIDE_F64, 9, 3);
        Throw how;
        try {
            acquire_and_throw(pool, &how);
        } catch (const Thrown &) {
            CHECK_POOL(pool);
        }
    }
};

void throws_are_rethrown_and_nested(void **)
{
    tide_pool *pool = pool_of(TIDE_CHECK_POISON);
    int caught = 0;
    for (int i = 0; i < 3; i++) {
        try {
            catch_and_throw_again(pool);
        } catch (const Thrown &) {
            caught++;
        }
        counts_same(counts{0, 0, 0, 0}, pool);
        try {
            TIDE_SCOPE(pool);
            CleansWhenUnwound cleaner{pool};
            take(pool, TIDE_F64, 9, 4);
            ThrowsWhenBuilt thrower(pool);
        } catch (int thrown) {
            caught += thrown == 42;
        }
        counts_same(counts{0, 0, 0, 0}, pool);
    }
    assert_int_equal(caught, 6);
    expect_ok(tide_pool_destroy(pool));
}

const form_case cases[] = {
    CASE(a_throw_through_a_scope_cleans_it_up),
    CASE(the_scope_around_a_throw_cleans_up_after_it),
    CASE(scopes_of_all_forms_unwind_together),
    CASE(a_throw_through_c_compiled_for_exceptions_cleans_up),
};

const struct CMUnitTest others[] = {
    cmocka_unit_test(throws_are_rethrown_and_nested),
};

} // namespace

int main()
{
    forms_prepare(forms_c_exceptions);
    return FORMS_MAIN("exceptions", cases, others);
}
