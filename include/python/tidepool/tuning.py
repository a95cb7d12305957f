# SPDX-License-Identifier: MIT
"""Numbers that a program can run with, and several implementations of one operation: the library, or a tuner
outside, finds out which is best. Each is listed (`facts()["tunables"]`, the command `tidepool tunables`) from
its declaration on, before any use, so declare them where a module begins."""
from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from . import _core

__all__ = ["Knob", "Tunable", "Variants", "measure", "measured", "tunable", "tunables", "variants"]

_declared: dict[int, Tunable] = {}


class Tunable:
    """What is declared once and listed until the process ends. It is found again in another run by its name
    and the last part of its file's name.

    user: the tuner's own data; the library neither reads nor changes it.
    """

    def __init__(self, number: int, name: str, file: str, line: int) -> None:
        self._number = number
        self.name, self.file, self.line = name, file, line
        self.user: Any = None

    def __repr__(self) -> str:
        return f"<tidepool.{type(self).__name__} {self.name!r}>"

    def reset(self) -> None:
        """It begins anew: a knob at its initial value; figures and choices of all keys are forgotten."""
        _core.tunable_reset(self._number)


class Knob(Tunable):
    """An integer with a range, which serves as an index.

    >>> tile = tunable("tile", 8, 64)
    >>> tile.value, tile.low, tile.high, len(range(tile))
    (8, 8, 64, 8)
    >>> tile.value = 32
    >>> int(tile)
    32
    """

    def __init__(self, number: int, name: str, file: str, line: int, low: int, high: int, initial: int) -> None:
        super().__init__(number, name, file, line)
        self.low, self.high, self.initial = low, high, initial

    @property
    def value(self) -> int:
        """What the program runs with now. ValueError where it is set out of its range."""
        return _core.tunable_value(self._number)

    @value.setter
    def value(self, value: int) -> None:
        _core.tunable_set(self._number, value)

    def __index__(self) -> int:
        return _core.tunable_value(self._number)


class Variants(Tunable):
    """Implementations of one operation, of which each key's uses run the fastest; one: it is only measured."""

    def __init__(self, number: int, name: str, file: str, line: int, names: list[str],
                 functions: tuple[Callable[..., Any], ...], key: Callable[..., int] | None) -> None:
        super().__init__(number, name, file, line)
        self.names, self._functions, self._key = names, functions, key

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        """Runs the function whose turn it is, measured, where the variants are functions."""
        if not self._functions:
            raise TypeError(f"the variants of {self.name!r} are no functions: use `with tidepool.measure(…) as which`")
        with _core.tunable_use(self._number, self._key(*args, **keywords) if self._key else 0) as which:
            return self._functions[which](*args, **keywords)

    def pin(self, key: int, variant: str) -> None:
        """From now on uses of this key run that variant. KeyError: there is none of the name."""
        _core.tunable_pin(self._number, key, variant)

    def rows(self) -> list[dict[str, Any]]:
        """What is known of each key: uses, the choice, whether that is settled or pinned, and of all candidates
        how often they were timed, the mean and its standard error in nanoseconds, and whether they were loaded."""
        return _core.tunable_rows(self._number)


def _caller() -> tuple[str, int]:
    frame = sys._getframe(2)
    return frame.f_code.co_filename, frame.f_lineno


def _known(made: Any) -> Any:
    """The same declaration again is the same tunable."""
    return _declared.setdefault(made._number, made)


def tunable(name: str, low: int, high: int, initial: int | None = None) -> Knob:
    """Declares a knob, from `low` to `high`, which begins at `initial` (else `low`) and is set by a tuner."""
    file, line = _caller()
    first = low if initial is None else initial
    number = _core.tunable_knob(name, file, line, low, high, first)
    made: Knob = _known(Knob(number, name, file, line, low, high, first))
    return made


def variants(name: str, *variants: str | Callable[..., Any], key: Callable[..., int] | None = None) -> Variants:
    """Declares variants, 1 to 16: names, of which `measure` says which to run, or functions, by whose names
    they go. Of functions the result is called like any of them; `key`, if given, gets the same arguments and
    gives the number that says which uses are alike: each key is measured and decided apart.

    >>> def doubled(x): return x + x
    >>> def shifted(x): return x << 1
    >>> twice = variants("twice", doubled, shifted, key=int.bit_length)
    >>> twice(21)
    42
    >>> [(row["key"], row["uses"]) for row in twice.rows()]
    [(5, 1)]
    """
    file, line = _caller()
    functions = tuple(one for one in variants if callable(one))
    if functions and len(functions) != len(variants):
        raise TypeError("variants are names, or functions, not both")
    names = [getattr(one, "__name__", repr(one)) if callable(one) else one for one in variants]
    number = _core.tunable_variants(name, file, line, names)
    made: Variants = _known(Variants(number, name, file, line, names, functions, key))
    made._functions, made._key = functions, key  # those of a module that was loaded again
    return made


def measured(name: str) -> Variants:
    """Declares a body of which only the time is taken: what a tuner of knobs looks at."""
    file, line = _caller()
    made: Variants = _known(Variants(_core.tunable_variants(name, file, line, ["body"]), name, file, line, ["body"], (), None))
    return made


def measure(tunable: Variants, key: int = 0) -> _core.Use:
    """A context: its block is a use, of which the time is taken now and then. It gives the number of the variant
    to run. A block that is left by an exception counts for nothing. `cost(ns)` of the context has the use
    count as so much, for what the clock of the wall does not tell.

    >>> step = measured("step")
    >>> with measure(step) as which:
    ...     which
    0
    """
    if not isinstance(tunable, Tunable):
        raise TypeError(f"what variants() or measured() gave is wanted, not {tunable!r}")
    return _core.tunable_use(tunable._number, key)


def tunables() -> list[Tunable]:
    """What this process has declared in Python; `facts()["tunables"]` has those of C and C++, too."""
    return list(_declared.values())
