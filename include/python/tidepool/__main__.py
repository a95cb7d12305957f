# SPDX-License-Identifier: MIT
"""python -m tidepool [-m MODULE | SCRIPT] ARGUMENTS…: runs a program of Python with NumPy's arrays in buffers.

As `python SCRIPT ARGUMENTS…` and `python -m MODULE ARGUMENTS…` do, with tidepool.numpy.use(all_threads=True) before."""
from __future__ import annotations

import builtins
import io
import os
import runpy
import sys
import types

from . import numpy
from .page import command

USAGE = "usage: python -m tidepool [-m MODULE | SCRIPT] ARGUMENTS…"


def run_script(path: str) -> None:
    """In a module `__main__` of its own, which stays: threads and pickles of the program look for it."""
    try:
        with io.open_code(os.path.abspath(path)) as file:
            code = compile(file.read(), path, "exec", dont_inherit=True)
    except OSError as error:
        print(f"python -m tidepool: cannot read {path!r}: {error.strerror}", file=sys.stderr)
        sys.exit(2)
    module = types.ModuleType("__main__")
    module.__dict__.update(__file__=path, __builtins__=builtins)
    sys.modules["__main__"] = module
    sys.path[0] = os.path.dirname(os.path.realpath(path))
    exec(code, module.__dict__)


def main(words: list[str]) -> None:
    module = words[0] == "-m" if words else False
    program = words[module:]
    if not program or (program[0].startswith("-") and not module):
        print(USAGE, file=sys.stderr)
        sys.exit(0 if words in (["-h"], ["--help"]) else 2)
    sys.argv = program
    numpy.use(all_threads=True)
    if module:  # in a `__main__` that stays, as `python -m` has it; runpy.run_module would take it away at the end
        sys.modules["__main__"] = types.ModuleType("__main__")
        sys.modules["__main__"].__dict__["__builtins__"] = builtins
        runpy._run_module_as_main(program[0])  # type: ignore[attr-defined]
    else:
        run_script(program[0])


def run_command() -> None:
    """What pip installs as `tidepool`: the command, which looks into processes and makes pages."""
    try:
        program = command()
    except FileNotFoundError as error:
        sys.exit(f"tidepool: {error}")
    os.execv(sys.executable, [sys.executable, program, *sys.argv[1:]])  # it is an archive of Python


if __name__ == "__main__":
    main(sys.argv[1:])
