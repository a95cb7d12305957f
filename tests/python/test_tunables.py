# SPDX-License-Identifier: MIT
"""Knobs, variants and measured bodies that Python declares."""
import os
import subprocess
import sys
import threading

import pytest

import tidepool


def listed(name):
    return [one for one in tidepool.facts()["tunables"] if one["name"] == name]


def row_of(variants, key=0):
    return next(row for row in variants.rows() if row["key"] == key)


def use(variants, key, costs, times=200):
    """So many uses, of which each variant takes what it is said to take."""
    for _ in range(times):
        with (context := tidepool.measure(variants, key)) as which:
            context.cost(costs[which])


def test_a_tunable_is_listed_before_it_is_used():
    tidepool.tunable("listed knob", 8, 64)
    tidepool.variants("listed variants", "one", "other")
    tidepool.measured("listed body")
    assert [listed(name)[0]["kind"] for name in ("listed knob", "listed variants", "listed body")] == ["knob", "variants", "measured"]
    assert listed("listed knob")[0]["file"] == __file__ and listed("listed knob")[0]["line"] > 20


def test_a_knob_is_an_integer_with_a_range():
    tile = tidepool.tunable("a knob", 8, 64, 16)
    assert (tile.value, int(tile), len(range(tile))) == (16, 16, 16)
    tile.value = 64
    assert tile.value == listed("a knob")[0]["value"] == 64
    for value in (7, 65, -1, 10**30):
        with pytest.raises(ValueError, match=str(value)):
            tile.value = value
    assert tile.value == 64
    tile.reset()
    assert tile.value == 16


def test_the_fastest_variant_is_kept_for_each_key():
    product = tidepool.variants("product", "first", "second", "third")
    use(product, 7, (1000, 300, 2000))
    use(product, 8, (300, 1000, 2000))
    row = row_of(product, 7)
    assert row["settled"] and not row["pinned"] and row["choice"] == "second" and row["uses"] == 200
    assert row_of(product, 8)["choice"] == "first"
    assert [one["ns"] for one in row["candidates"]] == [1000, 300, 2000]
    assert all(one["uses"] >= 6 and not one["loaded"] for one in row["candidates"])
    product.reset()
    assert row_of(product, 7)["uses"] == 200 and not row_of(product, 7)["settled"]


def test_functions_are_variants_by_their_names():
    ran = []

    def even(n, *, more=0):
        ran.append("even")
        return n + more

    def odd(n, *, more=0):
        ran.append("odd")
        return n + more

    both = tidepool.variants("functions", even, odd, key=lambda n, more=0: n)
    assert [both(3, more=1) for _ in range(16)] == [4] * 16
    assert set(ran) == {"even", "odd"} == set(both.names) and row_of(both, 3)["uses"] == 16
    both.pin(3, "odd")
    del ran[:]
    assert both(3) == 3 and ran == ["odd"] and row_of(both, 3)["pinned"]
    with pytest.raises(KeyError, match="none of these"):
        both.pin(3, "none of these")


def test_what_an_exception_leaves_counts_for_nothing():
    body = tidepool.measured("fails")
    for _ in range(20):
        with pytest.raises(ZeroDivisionError), tidepool.measure(body):
            1 / 0
    assert row_of(body)["uses"] == 20 and row_of(body)["candidates"][0]["uses"] == 0
    with tidepool.measure(body):
        pass
    assert row_of(body)["candidates"][0]["uses"] == 1


def test_a_use_is_one():
    body = tidepool.measured("once")
    one = tidepool.measure(body)
    with one:
        with pytest.raises(RuntimeError, match="once"), one:
            pass
    with pytest.raises(ValueError, match="is a knob"):
        tidepool.measure(tidepool.tunable("no body", 0, 1))
    for key in (-1, 1 << 63):
        with pytest.raises(ValueError, match="key"):
            tidepool.measure(body, key)


def test_a_tuner_has_data_of_its_own():
    def declare():
        return tidepool.tunable("with data", 0, 9)
    one = declare()
    assert one.user is None and one in tidepool.tunables()
    one.user = {"tried": [3]}
    assert declare() is one and declare().user == {"tried": [3]}


@pytest.mark.parametrize("declare, words", [
    (lambda: tidepool.tunable("bad", 5, 4), "high is 4"),
    (lambda: tidepool.tunable("bad", -1, 4), "low is -1"),
    (lambda: tidepool.tunable("bad", 0, 1 << 53), "high is"),
    (lambda: tidepool.tunable("bad", 0, 4, 5), "initial is 5"),
    (lambda: tidepool.tunable("x" * 64, 0, 4), "64 bytes"),
    (lambda: tidepool.tunable("", 0, 4), "0 bytes"),
    (lambda: tidepool.variants("bad"), "0 variants"),
    (lambda: tidepool.variants("bad", *map(str, range(17))), "17 variants"),
    (lambda: tidepool.variants("bad", "one", "one"), "two variants"),
    (lambda: (tidepool.tunable("twice", 0, 4), tidepool.tunable("twice", 0, 5)), "otherwise at .*test_tunables.py")])
def test_a_wrong_declaration_is_refused(declare, words):
    with pytest.raises(ValueError, match=words):
        declare()
    assert not listed("bad")


def test_names_and_functions_are_not_mixed():
    with pytest.raises(TypeError, match="not both"):
        tidepool.variants("mixed", "one", len)
    with pytest.raises(TypeError, match="no functions"):
        tidepool.variants("names", "one")()


def test_threads_measure_together():
    shared = tidepool.variants("shared", "slow", "fast")
    threads = [threading.Thread(target=use, args=(shared, 1, (900, 100))) for _ in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert row_of(shared, 1)["uses"] == 800 and row_of(shared, 1)["choice"] == "fast"


PROGRAM = """
import sys, tidepool
knob, work = tidepool.tunable("kept knob", 0, 99), tidepool.variants("kept work", "slow", "fast")
print(knob.value, [(row["choice"], row["settled"]) for row in work.rows()])
for _ in range(int(sys.argv[1])):
    with (context := tidepool.measure(work, 5)) as which:
        context.cost((900, 100)[which])
print([(row["choice"], row["settled"], row["candidates"][0]["loaded"]) for row in work.rows()])
knob.value = 42
"""


def test_the_next_run_begins_with_what_was_found(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)

    def run(uses):
        done = subprocess.run([sys.executable, program, str(uses)], capture_output=True, text=True, check=True, timeout=240,
                              env={**os.environ, "TIDEPOOL_PROFILE": str(tmp_path / "profile")})
        assert done.stderr == ""
        return done.stdout.splitlines()
    assert run(200) == ["0 []", "[('fast', True, False)]"]
    assert run(1) == ["42 []", "[('fast', True, True)]"]
