# SPDX-License-Identifier: MIT
"""gpu_torch.py LIBRARY: PyTorch with Tidepool's memory, on a GPU. Graphs in each capture mode,
make_graphed_callables, a MemPool, a pair's time and what a training program takes: a line each, "ok" or the
reason. Each case is a process of its own, for the allocator is chosen before the first tensor.
Exits 0 if all cases passed, 77 without PyTorch or a GPU, else 1."""
import json
import subprocess
import sys
import time

CASES = ["graph-global", "graph-thread_local", "graph-relaxed", "graphed-callables", "mempool-cold",
         "mempool-warm", "pair-tidepool", "pair-pytorch", "train-tidepool", "train-pytorch"]


def allocator(torch, library):
    return torch.cuda.memory.CUDAPluggableAllocator(library, "tide_torch_malloc", "tide_torch_free")


def spoiled(torch, replay, count=50):
    """Tensors made beside a graph that a replay of it changes."""
    tensors = [torch.full((1000 + 64 * i,), float(i), device="cuda") for i in range(count)]
    for _ in range(10):
        replay()
    torch.cuda.synchronize()
    return sum(not bool((t == float(i)).all()) for i, t in enumerate(tensors))


def graph(torch, mode, pool=None):
    x = torch.ones(4096, device="cuda")
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            y = (x * 2 + 1).relu().sum()
    torch.cuda.current_stream().wait_stream(side)
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured, capture_error_mode=mode, **({"pool": pool} if pool else {})):
        parts = [(x * float(i) + 1).relu() for i in range(8)]
        y = torch.stack(parts).sum()
    x.fill_(2.0)
    captured.replay()
    torch.cuda.synchronize()
    wanted = sum(4096 * (2.0 * i + 1) for i in range(8))
    assert abs(y.item() - wanted) < 1e-3 * wanted, (y.item(), wanted)
    bad = spoiled(torch, captured.replay)
    assert bad == 0, f"{bad} of 50 tensors were spoiled by replays"
    assert abs(y.item() - wanted) < 1e-3 * wanted, "the graph's result was spoiled"


def graphed_callables(torch):
    model = torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.ReLU(), torch.nn.Linear(256, 256)).cuda()
    sample = torch.randn(64, 256, device="cuda", requires_grad=True)
    plain = model(sample).detach().clone()
    quick = torch.cuda.make_graphed_callables(model, (sample,))
    out = quick(sample)
    out.sum().backward()
    torch.cuda.synchronize()
    assert torch.allclose(out, plain, atol=1e-4)
    bad = spoiled(torch, lambda: quick(sample).sum().backward())
    assert bad == 0, f"{bad} of 50 tensors were spoiled by replays"


def mempool(torch, library, warm):
    pool = torch.cuda.MemPool(allocator(torch, library)._allocator)
    if warm:
        with torch.cuda.use_mem_pool(pool):
            tensors = [torch.full((1 << 20,), float(i), device="cuda") for i in range(8)]
            assert all(bool((t == float(i)).all()) for i, t in enumerate(tensors))
        del tensors
    graph(torch, "global", pool.id)


def pair(torch):
    def once(count):
        before = time.perf_counter_ns()
        for _ in range(count):
            t = torch.empty(1 << 20, dtype=torch.uint8, device="cuda")
            del t
        return (time.perf_counter_ns() - before) / count

    once(1000)
    times = sorted(once(2000) for _ in range(31))
    return f"{times[0]:.0f} ns at best, {times[15]:.0f} in the middle"


def train(torch):
    """An MLP with a random batch: milliseconds a step, and the device's memory at the end."""
    torch.manual_seed(1)
    free_before = torch.cuda.mem_get_info()[0]
    model = torch.nn.Sequential(*[m for _ in range(6) for m in (torch.nn.Linear(1024, 1024), torch.nn.ReLU())]).cuda()
    optimiser = torch.optim.AdamW(model.parameters())
    batches = torch.randint(64, 1024, (200,)).tolist()

    def step(n):
        x = torch.randn(n, 1024, device="cuda")
        loss = model(x).square().mean()
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        optimiser.step()

    times = []
    for n in batches:
        before = time.perf_counter()
        step(n)
        torch.cuda.synchronize()
        times.append((time.perf_counter() - before) * 1e3)
    used = (free_before - torch.cuda.mem_get_info()[0]) >> 20
    return f"{sorted(times)[100]:.2f} ms a step, {used} MiB taken"


def run(case, library):
    import torch
    if not torch.cuda.is_available():
        sys.exit(77)
    own = case.startswith(("graph", "pair-tidepool", "train-tidepool"))
    if own:
        torch.cuda.memory.change_current_allocator(allocator(torch, library))
    said = None
    if case.startswith("graph-"):
        graph(torch, case[len("graph-"):])
    elif case == "graphed-callables":
        graphed_callables(torch)
    elif case.startswith("mempool"):
        mempool(torch, library, case.endswith("warm"))
    elif case.startswith("pair"):
        said = pair(torch)
    else:
        said = train(torch)
    print(said or "ok", flush=True)


def main():
    library = sys.argv[1]
    if len(sys.argv) > 2:
        run(sys.argv[2], library)
        return 0
    failed = 0
    for case in CASES:
        try:
            done = subprocess.run([sys.executable, __file__, library, case], capture_output=True, text=True,
                                  timeout=90)
        except subprocess.TimeoutExpired:
            done = subprocess.CompletedProcess([], 1, "", "it did not end in 90 s")
        if done.returncode == 77 or "No module named 'torch'" in done.stderr:
            print("PyTorch with a GPU is not here")
            return 77
        passed = done.returncode == 0
        said = done.stdout.strip() if passed else (done.stderr.strip().splitlines() or ["no words"])[-1]
        print(json.dumps({"torch": case, "said": said[:300], "passed": bool(passed), "status": done.returncode}), flush=True)
        failed += not passed
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
