#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""hostile [SEED]: records that were changed at random (bytes, lines, values of any type): each command uses what is whole, or
refuses with one line. Without a seed, always the same ones."""
import contextlib
import io
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile

here = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(here.parents[1]))
from profiler.tool.command import run
from profiler.tool.say import BROKEN, OK, Refusal

COUNT = int(400 * float(os.environ.get("TIDE_TEST_SCALE", "1"))) or 20
VALUES = [None, True, "", "\x1b[2J", "\ud800", -1, 0, 1e308, -1e308, 10 ** 400, 0.1, float("nan"), float("inf"), [], [[]], {}, [None], {"id": 1}, "x" * 5000]
rng = random.Random(int(sys.argv[1]) if len(sys.argv) > 1 else 1)


def change_value(thing):
    """Somewhere below: another value, one more, or one less."""
    for _ in range(rng.randrange(1, 6)):
        keys = list(thing) if isinstance(thing, dict) else range(len(thing))
        if not keys:
            return
        key = rng.choice(list(keys))
        if isinstance(thing[key], (dict, list)) and rng.random() < .8:
            thing = thing[key]
            continue
        if rng.random() < .2:
            del thing[key]
        else:
            thing[key] = rng.choice(VALUES)
        return


def changed(lines):
    lines = [json.loads(line) for line in lines]
    for _ in range(rng.randrange(1, 8)):
        change_value(rng.choice(lines))
    if rng.random() < .2:
        lines.insert(rng.randrange(len(lines)), rng.choice(lines))
    text = bytearray("".join(json.dumps(line) + "\n" for line in lines).encode())
    for _ in range(rng.randrange(3) if rng.random() < .3 else 0):
        text[rng.randrange(len(text))] = rng.randrange(256)
    return text[:rng.randrange(len(text))] if rng.random() < .1 else text


def try_commands(path, folder):
    for words in (["report", path], ["report", "--json", path], ["pprof", "-o", f"{folder}/profile", path]):
        said = io.StringIO()
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            try:
                code = run(words)
            except Refusal as refusal:
                code, complaint = refusal.code, refusal.text
                assert len(complaint) < 1000 and complaint.isprintable(), complaint
        assert code in (OK, BROKEN), (words, code, said.getvalue())
        outcomes[code] += 1
        assert not [c for c in said.getvalue() if not (c.isprintable() or c == "\n")], words


with tempfile.TemporaryDirectory() as folder:
    record = pathlib.Path(folder) / "hostile.rec"
    subprocess.run([sys.executable, "-B", here / "sample.py", record], check=True)
    every = record.read_text(encoding="utf-8").splitlines()
    facts = [i for i, line in enumerate(every) if "tidepool-facts" in line][::20]
    lines = [line for i, line in enumerate(every) if i in facts or "tidepool-facts" not in line]
    outcomes = {OK: 0, BROKEN: 0}
    for number in range(COUNT):
        record.write_bytes(changed(lines))
        try:
            try_commands(str(record), folder)
        except BaseException:
            print("record", number, "of this seed")
            raise
    assert outcomes[OK] and outcomes[BROKEN], outcomes
