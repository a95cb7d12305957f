# SPDX-License-Identifier: MIT
"""gpu_torch.py LIBRARY HOOKS SECONDS: PyTorch with Tidepool's memory, on a GPU (HOOKS: include/python/source/torch.cc as a
library). Graphs in each capture mode, make_graphed_callables, torch.compile, a MemPool, a pair's time, what is free in
pieces and what training programs take, beside PyTorch's own allocator, its segments fixed and expandable: a line each,
"ok" or the reason.
Each case is a process of its own, for the allocator is chosen before the first tensor.
Exits 0 if all cases passed, 77 without PyTorch, a GPU or the time for all, else 1. What fails with PyTorch's own
allocator is said and no more, and so is a torch.compile that has no Triton."""
import ctypes
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import time
import types

# By their value, where there is not the time for all.
CASES = ["graph-global", "graph-thread_local", "graph-relaxed", "dropped", "recorded", "mempool-cold", "mempool-warm",
         "untold-graph", "graphed-callables"]
CASES += [f"train-{program}-{whose}" for program in ("mlp", "transformer", "streams")
          for whose in ("tidepool", "pytorch", "expandable")]
CASES += [f"{what}-{whose}" for what in ("pair", "fragments") for whose in ("tidepool", "pytorch", "expandable")]
CASES += ["compiled"]


def allocator(hooks):
    """tidepool.torch.allocator(), with HOOKS in place of the package's module."""
    package, core = types.ModuleType("tidepool"), types.ModuleType("tidepool._core")
    package.__path__ = [str(pathlib.Path(__file__).resolve().parents[2] / "include/python/tidepool")]
    core.__file__, core.torch_told = hooks, ctypes.CDLL(hooks).tide_torch_told
    sys.modules.update({"tidepool": package, "tidepool._core": core})
    return importlib.import_module("tidepool.torch").allocator()


class Statistics(ctypes.Structure):
    """tide_torch_statistics"""
    _fields_ = [(name, ctypes.c_size_t) for name in ("live", "bytes_live", "bytes_cached", "pools", "bytes_graphs",
                                                     "hits", "misses")]


def stats(library):
    now = Statistics()
    assert ctypes.CDLL(library).tide_torch_stats(0, ctypes.byref(now)) == 0
    return now


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


def mempool(torch, library, hooks, warm):
    """That its memory is ours. Whether PyTorch tells the hooks of a MemPool's own allocator of a capture is not known."""
    pool = torch.cuda.MemPool(allocator(hooks).allocator())
    if warm:
        with torch.cuda.use_mem_pool(pool):
            tensors = [torch.full((1 << 20,), float(i), device="cuda") for i in range(8)]
            assert all(bool((t == float(i)).all()) for i, t in enumerate(tensors))
        del tensors
    graph(torch, "global", pool.id)
    assert stats(library).misses > 0, "the pool had no memory of ours"


def dropped(torch, library):
    """The memory of graphs of one pool, and that it comes back by empty_cache when they are gone."""
    x = torch.ones(1 << 20, device="cuda")
    graphs = []
    for _ in range(3):
        graphs.append(torch.cuda.CUDAGraph())
        with torch.cuda.graph(graphs[-1], **({"pool": graphs[0].pool()} if graphs[1:] else {})):
            y = (x * 2 + 1).relu().sum()
        del y
    held = stats(library)
    assert held.pools == 1, f"{held.pools} pools"
    for g in graphs:
        g.replay()
    del g
    graphs.clear()
    torch.cuda.empty_cache()
    assert stats(library).pools == 0, "the pool is still there"
    return f"3 graphs held {held.bytes_graphs >> 10} KiB together"


def recorded(torch):
    side = torch.cuda.Stream()
    for i in range(200):
        t = torch.full((1 << 22,), float(i), device="cuda")
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            torch.cuda._sleep(100000)
            wrong = (t != float(i)).sum()
        t.record_stream(side)
        del t
        torch.full((1 << 22,), -1.0, device="cuda")
        side.synchronize()
        assert wrong.item() == 0, f"{wrong.item()} elements were overwritten"


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


def fragments(torch):
    """80 % of the memory in 48 pieces, of which three of four are given back; then 60 % at once."""
    part = torch.cuda.get_device_properties(0).total_memory // 60
    pieces = [torch.empty(part, dtype=torch.uint8, device="cuda") for _ in range(48)]
    pieces = pieces[::4]
    before = time.perf_counter_ns()
    try:
        torch.empty(36 * part, dtype=torch.uint8, device="cuda")
    except RuntimeError:
        return "60 % in one piece: refused"
    return f"60 % in one piece: there in {time.perf_counter_ns() - before} ns"


def compiled(torch):
    """torch.compile with graphs of its own, without trees: these ask what a plugged allocator cannot tell."""
    if importlib.util.find_spec("triton") is None:
        return "not run: torch.compile needs triton, which is not here"
    model = torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.ReLU(), torch.nn.Linear(256, 256)).cuda()
    torch._inductor.config.triton.cudagraph_trees = False
    quick = torch.compile(model, mode="reduce-overhead")
    with torch.no_grad():
        for _ in range(6):
            x = torch.randn(64, 256, device="cuda")
            assert torch.allclose(quick(x).clone(), model(x), atol=1e-2), "its result is not the model's"


def mlp(torch):
    """With a random batch."""
    model = torch.nn.Sequential(*[m for _ in range(6) for m in (torch.nn.Linear(1024, 1024), torch.nn.ReLU())]).cuda()
    return model.parameters(), lambda n: model(torch.randn(n, 1024, device="cuda")).square().mean(), (64, 1024)


def transformer(torch):
    """With random lengths."""
    layer = torch.nn.TransformerEncoderLayer(512, 8, 2048, batch_first=True)
    model = torch.nn.TransformerEncoder(layer, 4).cuda()
    return model.parameters(), lambda n: model(torch.randn(8, n, 512, device="cuda")).square().mean(), (16, 512)


def streams(torch):
    """A conv net of two halves, each on a stream of its own."""
    halves = [torch.nn.Sequential(torch.nn.Conv2d(3, 64, 3, padding=1), torch.nn.ReLU(),
                                  torch.nn.Conv2d(64, 64, 3, padding=1), torch.nn.ReLU()).cuda() for _ in range(2)]
    side = torch.cuda.Stream()

    def loss(n):
        x = torch.randn(n, 3, 64, 64, device="cuda")
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            there = halves[1](x)
        x.record_stream(side)
        here = halves[0](x)
        torch.cuda.current_stream().wait_stream(side)
        there.record_stream(torch.cuda.current_stream())
        return (here - there).square().mean()

    return [p for half in halves for p in half.parameters()], loss, (8, 64)


PROGRAMS = {"mlp": mlp, "transformer": transformer, "streams": streams}


def train(torch, program):
    """Milliseconds a step, waited for and not, and the device's memory at the end."""
    torch.manual_seed(1)
    free_before = torch.cuda.mem_get_info()[0]
    parameters, loss, (least, most) = PROGRAMS[program](torch)
    optimiser = torch.optim.AdamW(parameters)

    def step(n):
        optimiser.zero_grad(set_to_none=True)
        loss(n).backward()
        optimiser.step()

    def steps(waits):
        times = []
        for n in torch.randint(least, most, (200,)).tolist():
            before = time.perf_counter()
            step(n)
            if waits:
                torch.cuda.synchronize()
            times.append((time.perf_counter() - before) * 1e3)
        torch.cuda.synchronize()
        return sorted(times)[100]

    waited, unwaited = steps(True), steps(False)
    used = (free_before - torch.cuda.mem_get_info()[0]) >> 20
    return f"{waited:.2f} ms a step, {unwaited:.2f} where nobody waits, {used} MiB taken"


def run(case, library, hooks):
    import torch
    if not torch.cuda.is_available():
        sys.exit(77)
    if case == "untold-graph":
        torch.cuda.memory.change_current_allocator(
            torch.cuda.memory.CUDAPluggableAllocator(library, "tide_torch_malloc", "tide_torch_free"))
    elif not case.startswith("mempool") and not case.endswith(("-pytorch", "-expandable")):
        torch.cuda.memory.change_current_allocator(allocator(hooks))
    said = None
    if case.startswith("graph-") or case == "untold-graph":
        graph(torch, case[len("graph-"):] if case != "untold-graph" else "global")
    elif case == "dropped":
        said = dropped(torch, library)
    elif case == "recorded":
        recorded(torch)
    elif case == "compiled":
        said = compiled(torch)
    elif case == "graphed-callables":
        graphed_callables(torch)
    elif case.startswith("mempool"):
        mempool(torch, library, hooks, case.endswith("warm"))
    elif case.startswith("pair"):
        said = pair(torch)
    elif case.startswith("fragments"):
        said = fragments(torch)
    else:
        said = train(torch, case.split("-")[1])
    print(said or "ok", flush=True)


def main():
    library, hooks, seconds = sys.argv[1:4]
    if len(sys.argv) > 4:
        run(sys.argv[4], library, hooks)
        return 0
    end = time.monotonic() + float(seconds) - 5
    failed, late = 0, []
    for case in CASES:
        left = min(90, end - time.monotonic())
        if left < 10:
            late.append(case)
            continue
        try:
            segments = f"expandable_segments:{case.endswith('-expandable')}"
            done = subprocess.run([sys.executable, __file__, library, hooks, seconds, case], capture_output=True, text=True,
                                  timeout=left, env={**os.environ, "PYTORCH_CUDA_ALLOC_CONF": segments})
        except subprocess.TimeoutExpired:
            if left < 90:
                late.append(case)
                continue
            done = subprocess.CompletedProcess([], 1, "", f"it did not end in {left:.0f} s")
        if done.returncode == 77 or "No module named 'torch'" in done.stderr:
            print("PyTorch with a GPU is not here")
            return 77
        passed = done.returncode == 0
        said = done.stdout.strip() if passed else (done.stderr.strip().splitlines() or ["no words"])[-1]
        print(json.dumps({"torch": case, "said": said[:300], "passed": bool(passed), "status": done.returncode}), flush=True)
        theirs = case.endswith(("-pytorch", "-expandable"))
        failed += not passed and not theirs
    if late:
        print("no time left for " + ", ".join(late))
    return 1 if failed else 77 if late else 0


if __name__ == "__main__":
    sys.exit(main())
