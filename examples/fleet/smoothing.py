# SPDX-License-Identifier: MIT
"""What runs on the workers. They import it before they take work, so its tunables are listed, and what the store has
is there before the first use."""
import pathlib
import tempfile

import numpy

import tidepool

ROWS, COLUMNS = 16, 20_000
NARROW, WIDE = 2, 48


def shifts(x, width, out, scope):
    """Shifted copies are summed: as many passes as the window is wide."""
    numpy.copyto(out, x[:, : out.shape[1]])
    for i in range(1, width):
        out += x[:, i : i + out.shape[1]]
    out /= width


def sums(x, width, out, scope):
    """Differences of running sums: some passes, whatever the width. Rounds otherwise than `shifts`."""
    total = scope.empty((x.shape[0], x.shape[1] + 1))
    total[:, 0] = 0
    numpy.cumsum(x, axis=1, out=total[:, 1:])
    numpy.subtract(total[:, width:], total[:, :-width], out=out)
    out /= width


average = tidepool.variants("moving average", shifts, sums, key=lambda x, width, out, scope: width)  # listed before any use


tidepool.local().scope("partition")  # lists the site of that name, likewise


def partition(number, width):
    """Smooths one partition; its temporaries are the pool's. A number stands for the result."""
    with tidepool.local().scope("partition") as scope:
        x = scope.empty((ROWS, COLUMNS))
        numpy.random.default_rng(number).random(out=x)
        out = scope.empty((ROWS, COLUMNS - width + 1))
        average(x, width, out, scope)
        result = float(numpy.abs(out).sum())
        del x, out
    return result


def knows():
    """How many choices this process knows, of its own or the store's: its profile has a line for each."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "profile"
        tidepool.profile.save(path)
        return sum(line.startswith("tuned ") and line.split()[2] != "0" for line in path.read_text().splitlines())


def state():
    """Of each width: the choice, is it settled or pinned, uses, timed uses of what was not chosen. Of the site: how
    many uses were observed, its tier, its types."""
    rows = {row["key"]: (row["choice"], row["settled"], row["pinned"], row["uses"],
                         sum(one["uses"] for one in row["candidates"] if one["name"] != row["choice"] and not one["loaded"]))
            for row in average.rows()}
    site = next((one for one in tidepool.sites() if one.name == "partition"), None)
    return rows, site and (site.samples, site.tier, site.types)


def choices():
    return {row["key"]: row["choice"] for row in average.rows()}


def pin(chosen):
    for key, variant in chosen.items():
        average.pin(key, variant)


def settle():
    tidepool.settle(60_000)
