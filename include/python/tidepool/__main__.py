# SPDX-License-Identifier: MIT
"""python -m tidepool [-m MODULE | SCRIPT] ARGUMENTS…: runs a program of Python with NumPy's arrays in buffers.

SCRIPT may be a folder or an archive with a `__main__.py`. As `python SCRIPT ARGUMENTS…` and `python -m MODULE ARGUMENTS…` do, with tidepool.numpy.use(all_threads=True) before."""
from __future__ import annotations

import builtins
import importlib.machinery
import io
import os
import pkgutil
import runpy
import sys
import types
from typing import Any

from . import numpy
from .page import command

USAGE = "usage: python -m tidepool [-m MODULE | SCRIPT] ARGUMENTS…"


def begin() -> dict[str, Any]:
    """A module `__main__` of the program's own, which stays: threads and pickles look for it. (That of runpy.run_path
    and run_module goes at the end.)"""
    module = sys.modules["__main__"] = types.ModuleType("__main__")
    module.__dict__["__builtins__"] = builtins
    return module.__dict__


def run_script(path: str) -> None:
    whole = os.path.abspath(path)
    try:
        with io.open_code(whole) as file:
            code = compile(file.read(), whole, "exec", dont_inherit=True)
    except OSError as error:
        print(f"python -m tidepool: cannot read {path!r}: {error.strerror}", file=sys.stderr)
        sys.exit(2)
    names = begin()
    names.update(__file__=whole, __loader__=importlib.machinery.SourceFileLoader("__main__", whole))
    sys.path[0] = os.path.dirname(os.path.realpath(path))
    exec(code, names)


def main(words: list[str]) -> None:
    module = words[0] == "-m" if words else False
    program = words[module:]
    if not program or (program[0].startswith("-") and not module):
        print(USAGE, file=sys.stderr)
        sys.exit(0 if words in (["-h"], ["--help"]) else 2)
    sys.argv = program
    numpy.use(all_threads=True)
    if module:
        begin()
        runpy._run_module_as_main(program[0])  # type: ignore[attr-defined]
    elif pkgutil.get_importer(program[0]) is not None:  # of a folder, of an archive: its __main__.py
        sys.path[0] = os.path.abspath(program[0])
        begin()
        runpy._run_module_as_main("__main__", alter_argv=False)  # type: ignore[attr-defined]
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
