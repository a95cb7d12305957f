#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""temporaries.py [--quick] [--csv FILE] [--plot FILE]: three NumPy programs, with and without buffers.

The programs know nothing of Tidepool: Black–Scholes prices, a heat stencil, k-means. Each runs with
NumPy's own memory and with tidepool.numpy, in turn, and gives the same result. k-means takes its points
from the numeric columns of a CSV file, if one is given (wants pandas), else made ones. --plot draws both
(wants matplotlib)."""
import argparse
import math
import statistics
import time

import numpy

import tidepool.numpy


def black_scholes(n):
    """Prices of n call options."""
    random = numpy.random.default_rng(1)
    spot, strike = random.uniform(10, 50, n), random.uniform(10, 50, n)
    years, rate, sigma = random.uniform(0.2, 2, n), 0.02, 0.3

    def normal(x):  # the cumulative normal distribution, after Abramowitz and Stegun 26.2.17
        t = 1 / (1 + 0.2316419 * numpy.abs(x))
        tail = numpy.exp(-x * x / 2) / math.sqrt(2 * math.pi) * t * (
            0.319381530 + t * (-0.356563782 + t * (1.781477937 + t * (-1.821255978 + t * 1.330274429))))
        return numpy.where(x >= 0, 1 - tail, tail)

    def run():
        root = sigma * numpy.sqrt(years)
        d1 = (numpy.log(spot / strike) + (rate + sigma * sigma / 2) * years) / root
        return spot * normal(d1) - strike * numpy.exp(-rate * years) * normal(d1 - root)

    return run


def stencil(side):
    """Ten steps of heat in a square plate."""
    plate = numpy.random.default_rng(2).random((side, side))

    def run():
        u = plate.copy()
        for _ in range(10):
            inner = u[1:-1, 1:-1]
            flow = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4 * inner
            u = numpy.pad(inner + 0.2 * flow, 1, mode="edge")
        return u

    return run


def made_points(n):
    random = numpy.random.default_rng(3)
    return random.normal(size=(n, 4)) + random.integers(0, 5, (n, 1)) * 3.0


def points_of_csv(path):
    try:
        import pandas
    except ImportError:
        raise ValueError("--csv wants pandas: pip install pandas") from None
    try:
        numbers = pandas.read_csv(path).select_dtypes("number").dropna()
    except (OSError, ValueError) as error:
        raise ValueError(f"cannot read the points of {path}: {error}") from None
    if len(numbers) < 5:
        raise ValueError(f"{path} has {len(numbers)} rows of numbers: five are the least, one for each centre")
    return ((numbers - numbers.mean()) / numbers.std().replace(0, 1)).to_numpy(float)


def k_means(points):
    """Five rounds for five centres."""
    def run():
        centres = points[:5].copy()
        for _ in range(5):
            distances = ((points[:, None, :] - centres[None]) ** 2).sum(2)
            nearest = distances.argmin(1)
            centres = numpy.array([points[nearest == k].mean(0) if (nearest == k).any() else centres[k]
                                   for k in range(5)])
        return centres

    return run


def measure(run, rounds):
    """Median seconds with NumPy's own memory and with buffers, taken in turn."""
    def timed():
        start = time.perf_counter()
        result = run()
        return time.perf_counter() - start, result

    plain, ours = [], []
    for _ in range(rounds):
        took, wanted = timed()
        plain.append(took)
        with tidepool.numpy.using():
            took, got = timed()
        ours.append(took)
        assert (wanted == got).all()
    return statistics.median(plain), statistics.median(ours)


def plotter():
    """The module that draws."""
    try:
        import matplotlib
    except ImportError:
        raise ValueError("--plot wants matplotlib: pip install matplotlib") from None
    matplotlib.use("Agg")
    from matplotlib import pyplot
    return pyplot


def plot(pyplot, results, path):
    figure, axes = pyplot.subplots(figsize=(7, 3.5))
    places = numpy.arange(len(results))
    axes.bar(places - 0.2, [plain * 1e3 for plain, _ in results.values()], 0.4, label="NumPy's own memory")
    axes.bar(places + 0.2, [ours * 1e3 for _, ours in results.values()], 0.4, label="tidepool.numpy")
    axes.set_xticks(places, list(results))
    axes.set_ylabel("ms a run, median")
    axes.legend()
    figure.tight_layout()
    figure.savefig(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small arrays, few rounds")
    parser.add_argument("--csv", help="points for k-means")
    parser.add_argument("--plot", help="a picture to be written")
    options = parser.parse_args()
    scale, rounds = (20, 3) if options.quick else (1, 15)
    try:
        pyplot = plotter() if options.plot else None
        points = points_of_csv(options.csv) if options.csv else made_points(200_000 // scale)
    except ValueError as error:
        parser.error(str(error))
    programs = {"Black-Scholes": black_scholes(500_000 // scale), "stencil": stencil(1000 // scale),
                "k-means": k_means(points)}
    results = {}
    for name, run in programs.items():
        plain, ours = results[name] = measure(run, rounds)
        print(f"{name:14} {plain * 1e3:9.2f} ms, with buffers {ours * 1e3:9.2f} ms: "
              f"{plain / ours:.2f} times as fast, the same result")
    print(tidepool.numpy.stats())
    if options.plot:
        plot(pyplot, results, options.plot)


if __name__ == "__main__":
    main()
