# SPDX-License-Identifier: MIT
"""Pools of Python on a GPU, with PyTorch, CuPy and JAX where they are installed, and a pair of CuPy's with our memory and with
its own: a line each. Exits 0 if all cases passed, 77 without the package, a GPU or one of the libraries, 1 if one failed."""
import importlib
import json
import os
import sys
import time

N = 1 << 22


def count(what):
    return int(what.sum())


def frames(take, streams, tidepool, lib):
    """`streams`: the pool's, and one that the second array is used on."""
    pool = tidepool.Pool(device="cuda:0", stream=streams[0])
    for i in range(200):
        with pool.frame(((N,), "f4"), ((N,), "f4")) as (a, b):
            with lib.on(streams[0]):
                x = take(a)
                x[:] = float(i)
            with lib.on(streams[1]):
                y = take(a)
                z = take(b)
                z[:] = y + 1
                wrong = count(z != float(i + 1))
            del a, b, x, y, z
        assert wrong == 0, f"{wrong} elements are wrong in round {i}"
    assert pool.stats()["pinned"] == 0, "arrays were held"


def outlives(take, streams, tidepool, lib):
    pool = tidepool.Pool(device="cuda:0", stream=streams[0])
    for i in range(50):
        with pool.scope() as s, lib.on(streams[1]):
            kept = take(s.zeros(N, "f4"))
        with pool.scope() as s, lib.on(streams[0]):
            take(s.empty(N, "f4"))[:] = -1
        with lib.on(streams[1]):
            kept += float(i)
            wrong = count(kept != float(i))
            kept += 1
            del kept
        assert wrong == 0, f"{wrong} elements were overwritten in round {i}"


def through_jax(take, streams, tidepool, lib):
    """What the library writes JAX reads, which has streams of its own; its result comes back."""
    os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
    jax = importlib.import_module("jax")
    if jax.default_backend() != "gpu":
        raise ImportError("JAX has no GPU")
    pool = tidepool.Pool(device="cuda:0", stream=streams[0])
    for i in range(20):
        with pool.scope() as s, lib.on(streams[0]):
            a = s.empty(N, "f4")
            x = take(a)
            x[:] = float(i)
            there = (jax.dlpack.from_dlpack(a) * 2 + 1).block_until_ready()
            back = take(there)
            wrong = count(back != 2.0 * i + 1) + count(x != float(i))
            del a, x, there, back
        assert wrong == 0, f"{wrong} elements are wrong in round {i}"


class Torch:
    def __init__(self):
        import torch
        self.lib, self.take = torch, torch.from_dlpack
        assert torch.cuda.is_available(), "no GPU"

    def on(self, stream):
        return self.lib.cuda.stream(stream)

    def streams(self):
        return self.lib.cuda.Stream(), self.lib.cuda.Stream()


class Cupy:
    def __init__(self):
        import cupy
        self.lib, self.take = cupy, cupy.from_dlpack
        assert cupy.cuda.runtime.getDeviceCount() > 0, "no GPU"

    def on(self, stream):
        return stream

    def streams(self):
        return self.lib.cuda.Stream(non_blocking=True), self.lib.cuda.Stream(non_blocking=True)


def pair(allocate):
    def once():
        before = time.perf_counter_ns()
        for _ in range(2000):
            allocate(1 << 20)
        return (time.perf_counter_ns() - before) / 2000

    once()
    return sorted(once() for _ in range(31))[15]


def say(case, passed, said="ok"):
    print(json.dumps({"python": case, "said": said, "passed": passed}), flush=True)
    return not passed


def main():
    try:
        import tidepool
        import tidepool.cupy
    except ImportError as error:
        print(f"the Python package is not here: {error}")
        return 77
    failed, missing = 0, []
    for kind in (Torch, Cupy):
        try:
            lib = kind()
        except Exception as error:
            missing.append(f"{kind.__name__} with a GPU is not here: {error}")
            continue
        for case in (frames, outlives, through_jax):
            name = f"{case.__name__}-{kind.__name__.lower()}"
            try:
                case(lib.take, lib.streams(), tidepool, lib)
                failed += say(name, True)
            except ImportError as error:
                missing.append(f"{name}: {error}")
            except Exception as error:
                failed += say(name, False, str(error)[:300])
        if kind is Cupy:
            own, ours = pair(lib.lib.get_default_memory_pool().malloc), pair(tidepool.cupy.allocator())
            say("pair-cupy", True, f"{ours:.0f} ns, its own pool {own:.0f}")
    print("; ".join(missing))
    return 1 if failed else 77 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
