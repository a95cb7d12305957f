# SPDX-License-Identifier: MIT
"""gpu_pages.py: the cases of gpu_pages.c with PyTorch's allocator, whose segments expand where
PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True. Writes nothing where there is no PyTorch or no GPU."""
import json
import os
import statistics
import sys
import time

try:
    import torch
except ImportError:
    sys.exit(0)
if not torch.cuda.is_available():
    sys.exit(0)

ROUNDS, PARTS, PIECES = 31, 60, 48
variant = "torch-expand" if "expandable_segments:True" in os.environ.get("PYTORCH_CUDA_ALLOC_CONF", "") else "torch"
total = torch.cuda.get_device_properties(0).total_memory


def take(size):
    return torch.empty(size, dtype=torch.uint8, device="cuda")


def report(name, times, unit):
    print(json.dumps({"case": name, "variant": variant, "ns_min": min(times), "ns_median": statistics.median(times),
                      "unit": unit, "bytes_reserved_peak": torch.cuda.max_memory_reserved()}))


times = []
for _ in range(ROUNDS):
    before = time.perf_counter_ns()
    x = take(min(total // 16, 64 << 20))
    del x
    torch.cuda.empty_cache()
    times.append(time.perf_counter_ns() - before)
report("device-memory", times, "64 MiB or less, taken and given back")

pieces = [take(total // PARTS) for _ in range(PIECES)]
for i in range(PIECES):
    if i % 4:
        pieces[i] = None
before = time.perf_counter_ns()
try:
    large, said = take(total // PARTS * (PIECES // 4 * 3)), "there"
except torch.cuda.OutOfMemoryError:
    said = "refused"
report("device-fragments", [time.perf_counter_ns() - before], f"60 % in one piece: {said}")
