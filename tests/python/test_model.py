# SPDX-License-Identifier: MIT
"""Random programs of scopes against a model of the arrays that are alive."""
import gc

import numpy
import pytest
from hypothesis import HealthCheck, settings, strategies
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

import tidepool

DTYPES = ("f8", "f4", "i8", "u1", "c16", "S7")


class Scopes(RuleBasedStateMachine):
    """Each array is filled with bytes of its own. None overlaps another, and all keep theirs."""

    @initialize(handler=strategies.booleans())
    def begin(self, handler):
        self.pool = tidepool.Pool()
        self.scopes, self.levels, self.escaped, self.serial = [], [], [], 0
        if handler:
            tidepool.numpy.use()

    def add(self, array):
        self.serial = self.serial % 250 + 1
        array.reshape(-1).view("u1")[:] = self.serial
        self.levels[-1].append((self.serial, array))

    @rule()
    def open_scope(self):
        if len(self.scopes) < 6:
            self.scopes.append(self.pool.scope("model"))
            self.scopes[-1].__enter__()
            self.levels.append([])

    @precondition(lambda self: self.scopes)
    @rule(n=strategies.integers(0, 3000), dtype=strategies.sampled_from(DTYPES))
    def acquire(self, n, dtype):
        self.add(self.scopes[-1].empty(n, dtype))

    @precondition(lambda self: self.scopes)
    @rule(n=strategies.integers(1, 40), fortran=strategies.booleans())
    def acquire_zeros(self, n, fortran):
        a = self.scopes[-1].zeros((n, 7), "f4", "F" if fortran else "C")
        assert not a.any()
        self.add(a.T if fortran else a)

    @precondition(lambda self: self.scopes)
    @rule(n=strategies.integers(1, 5), data=strategies.data())
    def leave(self, n, data):
        """Perhaps several at once, by ending an outer one; some arrays are held on to."""
        n = min(n, len(self.scopes))
        for _ in range(n):
            for serial, array in self.levels.pop():
                if data.draw(strategies.booleans()):
                    self.escaped.append((serial, array[:]))
        array = None
        scopes, self.scopes = self.scopes[-n:], self.scopes[:-n]
        scopes[0].__exit__(None, None, None)
        self.look()

    @precondition(lambda self: self.escaped)
    @rule(data=strategies.data())
    def drop(self, data):
        self.escaped.pop(data.draw(strategies.integers(0, len(self.escaped) - 1)))

    @rule()
    def trim(self):
        self.pool.trim()

    @rule()
    def plain(self):
        """NumPy's own temporaries use the same buffers."""
        assert (numpy.full(20_000, 3.0) + 1 == 4).all()

    @rule()
    def look(self):
        alive = [one for level in self.levels for one in level] + self.escaped
        spans = []
        for serial, array in alive:
            data = array.reshape(-1).view("u1")
            assert (data == serial).all()
            if data.size:
                spans.append((data.ctypes.data, data.ctypes.data + data.size))
        spans.sort()
        for (_, end), (start, _) in zip(spans, spans[1:]):
            assert end <= start
        self.pool.check()

    def teardown(self):
        tidepool.numpy.off()
        if hasattr(self, "pool"):
            self.look()
            if self.scopes:
                self.scopes[0].__exit__(None, None, None)
            self.pool.close()
            self.levels, self.scopes = [], []
            self.look_escaped()
            gc.collect()

    def look_escaped(self):
        for serial, array in self.escaped:
            assert (array.reshape(-1).view("u1") == serial).all()


TestScopes = pytest.mark.filterwarnings("ignore::tidepool.EscapeWarning")(Scopes.TestCase)
TestScopes.settings = settings(max_examples=30, stateful_step_count=30, deadline=None, database=None,
                               suppress_health_check=list(HealthCheck))
