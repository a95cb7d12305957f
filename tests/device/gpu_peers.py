# SPDX-License-Identifier: MIT
"""What the caching allocators of PyTorch and CuPy take, where those are installed: lines of JSON, as the
benchmark writes them. Their figures include the interpreter's own work for each call, which is measured
with an empty function and told beside."""
import json
import time


def measure(job, peer, count, acquire, empty):
    def once(make, operations):
        before = time.perf_counter_ns()
        for _ in range(operations):
            arrays = [make() for _ in range(count)]
            del arrays
        return (time.perf_counter_ns() - before) / operations

    once(acquire, 50)
    times = sorted(once(acquire, 200) for _ in range(31))
    idle = sorted(once(empty, 200) for _ in range(31))
    print(json.dumps({"case": job, "variant": peer, "ns_min": times[0], "ns_median": times[15],
                      "unit": "scope", "n": 31 * 200, "interpreter_ns": idle[15]}), flush=True)


def both(peer, acquire):
    for job, size, count in (("device-cuda-acquire", 1 << 20, 1), ("device-cuda-scope32", 4096, 32)):
        measure(job, peer, count, lambda: acquire(size), lambda: size)


def main():
    try:
        import torch
        if torch.cuda.is_available():
            both("pytorch", lambda size: torch.empty(size, dtype=torch.uint8, device="cuda"))
    except ImportError:
        pass
    try:
        import cupy
        if cupy.cuda.runtime.getDeviceCount() > 0:
            both("cupy", lambda size: cupy.cuda.alloc(size))
    except ImportError:
        pass


main()
