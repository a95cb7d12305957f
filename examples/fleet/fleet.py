#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""fleet.py [--workers N] [--partitions N] [--store URL]: a job on Dask distributed whose workers share what they learn
by a Redis server. Workers start cold, then anew and warm, then they choose alike.

The job: a field of random numbers too large for one machine is smoothed by moving averages, partition by
partition. Two widths are two operations to tune: summing shifted copies wins for a narrow one, a difference of
running sums for a wide one. Each rank measures both on its own partitions."""
import argparse
import contextlib
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

import smoothing  # beside this file
import tidepool
from smoothing import NARROW, WIDE

PROGRAM = "fleet-example"  # Python programs of one interpreter are told apart in the store by a name

# ---- processes -----------------------------------------------------------------------------------


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


@contextlib.contextmanager
def whole():
    """Who is asked to end meanwhile does so later: what is begun here is not left half done."""
    stopped = []
    before = {number: signal.signal(number, lambda *_: stopped.append(True)) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if stopped:
        raise KeyboardInterrupt


def end(processes):
    """Asks them to end, and waits: a worker tells the store what it has seen as it exits. Nobody is left behind."""
    with whole():
        for one in processes:
            one.terminate()
        for one in processes:
            with contextlib.suppress(subprocess.TimeoutExpired):
                one.wait(timeout=60)
            one.kill()
            one.wait()


@contextlib.contextmanager
def started(*commands, **environment):
    """Each in a session of its own: Ctrl-C reaches this process alone, which ends them."""
    processes = []
    try:
        for command in commands:
            processes.append(subprocess.Popen(command, env={**os.environ, **environment}, start_new_session=True,
                                              stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=LOG))
        yield processes
    finally:
        end(processes[::-1])


@contextlib.contextmanager
def redis(given):
    """The address of the store that was given, or of one of its own, which forgets everything at its end."""
    if given:
        yield given
        return
    port = free_port()
    with tempfile.TemporaryDirectory() as folder, started(
            ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", folder]):
        wait_for(lambda: socket.create_connection(("127.0.0.1", port)).close() is None, "redis-server")
        yield f"redis://127.0.0.1:{port}#{PROGRAM}"


@contextlib.contextmanager
def cluster(count, store):
    """A scheduler and so many workers, one thread each, on the loopback; a client of them. Workers import this
    file before they take any work, so its tunables are listed and what the store has is there."""
    from distributed import Client

    port = free_port()
    dask = [sys.executable, "-m", "distributed.cli.dask_"]
    scheduler = [*dask[:2], dask[2] + "scheduler", "--host", "127.0.0.1", "--port", str(port), "--no-dashboard"]
    worker = [*dask[:2], dask[2] + "worker", f"tcp://127.0.0.1:{port}", "--host", "127.0.0.1", "--nthreads", "1", "--no-nanny",
              "--no-dashboard", "--preload", "smoothing", "--memory-limit", "0"]
    folder = os.pathsep.join(filter(None, [str(pathlib.Path(smoothing.__file__).parent), os.environ.get("PYTHONPATH")]))
    with started(scheduler, PYTHONPATH=folder), started(*[worker] * count, PYTHONPATH=folder, TIDEPOOL_FLEET=store):
        client = Client(f"tcp://127.0.0.1:{port}", timeout=120)
        try:
            client.wait_for_workers(count, timeout=120)
            yield client
        finally:
            with whole():
                client.close()


def wait_for(condition, what):
    limit = time.monotonic() + 120
    while True:
        with contextlib.suppress(OSError):
            if condition():
                return
        if time.monotonic() > limit:
            raise TimeoutError(f"{what}: not in time")
        time.sleep(0.05)


# ---- the job -------------------------------------------------------------------------------------


def job(client, partitions):
    """The sum over all partitions, in their order."""
    tasks = [client.submit(smoothing.partition, number, width, pure=False, key=f"{width}-{number}-{time.monotonic_ns()}")
             for number in range(partitions) for width in (NARROW, WIDE)]
    return sum(client.gather(tasks))


def first_uses(client):
    """One use of each width on each rank, and what there is before and after it."""
    for rank in ranks(client):
        client.gather([client.submit(smoothing.partition, number, width, workers=[rank], pure=False)
                       for number, width in enumerate((NARROW, WIDE))])
    return client.run(smoothing.state)


def ranks(client):
    return sorted(client.scheduler_info(n_workers=-1)["workers"])


def show(states):
    for number, rank in enumerate(sorted(states)):
        rows, site = states[rank]
        for width, (choice, settled, pinned, uses, others) in sorted(rows.items()):
            say(f"  rank {number}  width {width:2}  {choice:6} {'pinned' if pinned else 'settled' if settled else 'measuring':9}"
                f" uses {uses:3}, timed of others {others:2};  site: tier {site[1]}, observed {site[0]}")


def say(words):
    print(words, flush=True)


def learn(count, partitions, store):
    say(f"== first start: {count} ranks know nothing")
    with cluster(count, store) as client:
        cold = first_uses(client)
        total, rounds = job(client, partitions), 1
        while any(not row[1] for rows, _ in client.run(smoothing.state).values() for row in rows.values()) and rounds < 50:
            total, rounds = job(client, partitions), rounds + 1
        client.run(smoothing.settle)
        show(client.run(smoothing.state))
        say(f"  result {total!r}, after {rounds} times {partitions} partitions")
    return not any(row[1] for rows, _ in cold.values() for row in rows.values())


def start_warm(count, partitions, store):
    say(f"== second start: {count} new ranks take what the first have pushed")
    with cluster(count, store) as client:
        wait_for(lambda: all(known >= 2 for known in client.run(smoothing.knows).values()), "the store's profiles")
        client.run(smoothing.settle)  # a round of learning gives each site the plan that the profiles call for
        states = first_uses(client)
        show(states)
        right = sum(row[1] and row[4] == 0 for rows, _ in states.values() for row in rows.values())
        planned = sum(site[1] != "full" and site[0] == 0 for _, site in states.values())
        say(f"  {right} of {2 * count} choices and {planned} of {count} sites were right before their first window")
        leader = ranks(client)[0]
        chosen = client.run(smoothing.choices, workers=[leader])[leader]
        client.run(smoothing.pin, chosen)
        say(f"== all ranks choose as their leader, by the store: {chosen}")
        results = {job(client, partitions), job(client, partitions)}
        alike = {tuple(sorted(one.items())) for one in client.run(smoothing.choices).values()}
        show(client.run(smoothing.state))
        say(f"  {len(alike)} choice of {count} ranks; {len(results)} result of two runs, to the last bit: {results.pop()!r}")
    return right == 2 * count and planned == count and len(alike) == 1 and not results


def missing(store):
    try:
        import distributed  # noqa: F401
    except ImportError:
        return "no Dask (pip install distributed)"
    if store is None and shutil.which("redis-server") is None:
        return "no redis-server (Debian: apt-get install redis-server), and no --store"
    if not (pathlib.Path(tidepool.__file__).parent / "libtidepool-fleet.so").exists():
        return "the package was built without hiredis (Debian: apt-get install libhiredis-dev)"
    return None


def main():
    global LOG
    options = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    options.add_argument("--workers", type=int, default=3)
    options.add_argument("--partitions", type=int, default=60)
    options.add_argument("--store", help="redis://HOST[:PORT][#NAME]; else one of its own")
    given = options.parse_args()
    why = missing(given.store)
    if why:
        print(f"skipped: {why}")
        return 77
    with tempfile.TemporaryFile() as LOG, redis(given.store) as store:
        try:
            was_cold = learn(given.workers, given.partitions, store) or given.store is not None
            return 0 if start_warm(given.workers, given.partitions, store) and was_cold else 1
        except BaseException as error:
            if not isinstance(error, KeyboardInterrupt):
                LOG.seek(0)
                sys.stderr.write(LOG.read().decode(errors="replace")[-4000:])
            raise


LOG = None
if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        say("stopped")
        sys.exit(130)
