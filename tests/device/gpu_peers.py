# SPDX-License-Identifier: MIT
"""What the caching allocators of PyTorch and CuPy take, where those are installed, and PyTorch's in the cases of
gpu_pages.c (its segments expand where PYTORCH_CUDA_ALLOC_CONF says so): lines of JSON, as the benchmark writes them.
Their figures include the interpreter's own work for each call, which is measured with an empty function and told
beside."""
import json
import os
import statistics
import time

PARTS, PIECES = 60, 48


def report(name, variant, times, unit, **more):
    print(json.dumps({"case": name, "variant": variant, "ns_min": min(times), "ns_median": statistics.median(times),
                      "unit": unit, **more}), flush=True)


def timed(call):
    before = time.perf_counter_ns()
    call()
    return time.perf_counter_ns() - before


def both(peer, acquire):
    for job, size, count in (("device-cuda-acquire", 1 << 20, 1), ("device-cuda-scope32", 4096, 32)):
        def scopes(make, operations):
            for _ in range(operations):
                arrays = [make(size) for _ in range(count)]
                del arrays

        scopes(acquire, 50)
        times = [timed(lambda: scopes(acquire, 200)) / 200 for _ in range(31)]
        idle = [timed(lambda: scopes(int, 200)) / 200 for _ in range(31)]
        report(job, peer, times, "scope", n=31 * 200, interpreter_ns=statistics.median(idle))


def pages(torch, variant):
    total = torch.cuda.get_device_properties(0).total_memory

    def take(size):
        return torch.empty(size, dtype=torch.uint8, device="cuda")

    def pair():
        take(min(total // 16, 64 << 20))
        torch.cuda.empty_cache()

    report("device-memory", variant, [timed(pair) for _ in range(31)], "64 MiB or less, taken and given back")
    pieces = [take(total // PARTS) for _ in range(PIECES)]
    for i in range(PIECES):
        if i % 4:
            pieces[i] = None
    before = time.perf_counter_ns()
    try:
        large, said = take(total // PARTS * (PIECES // 4 * 3)), "there"
    except torch.cuda.OutOfMemoryError:
        said = "refused"
    report("device-fragments", variant, [time.perf_counter_ns() - before], f"60 % in one piece: {said}",
           bytes_reserved_peak=torch.cuda.max_memory_reserved())


def main():
    expands = "expandable_segments:True" in os.environ.get("PYTORCH_CUDA_ALLOC_CONF", "")
    try:
        import torch
        if torch.cuda.is_available():
            variant = "torch-expand" if expands else "torch"
            both(variant, lambda size: torch.empty(size, dtype=torch.uint8, device="cuda"))
            pages(torch, variant)
    except ImportError:
        pass
    try:
        import cupy
        if not expands and cupy.cuda.runtime.getDeviceCount() > 0:
            both("cupy", lambda size: cupy.cuda.alloc(size))
    except ImportError:
        pass


main()
