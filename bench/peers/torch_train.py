#!/usr/bin/env python3
"""Time the training steps of one of bench/works' networks in PyTorch.

One rank runs without torch.distributed, more run DistributedDataParallel over gloo. One compute
thread a rank, each rank on a core of its own, denormals flushed to zero. The data lies in memory
as ready tensors and a step only gathers its batch, so nothing but the step is timed: gather,
forward, backward, all-reduce, optimizer. With --device cuda the tensors are in the memory of a GPU,
ranks have a GPU each and NCCL between them, and --graphs replays a step as one CUDA graph: captured
here, or by torch.compile. fp32 computes without TF32.

Prints one JSON object on one line, or exits with 77 and says why it cannot run.
"""
import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before torch is loaded

import argparse
import contextlib
import json
import resource
import sys
import tempfile
import time

try:
    import torch
    import torch.distributed as dist
    import torch.multiprocessing as mp
    import torch.nn.functional as F
except ImportError as error:
    print(f"no PyTorch here: {error} (Debian: python3-torch)", file=sys.stderr)
    sys.exit(77)

import nets


def peak_bytes(options):
    if options.device == "cuda":
        return torch.cuda.max_memory_reserved()
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def process_start():
    """When this process started, on time.clock_gettime's CLOCK_BOOTTIME."""
    with open("/proc/self/stat", "rb") as stat:
        fields = stat.read().rsplit(b")", 1)[1].split()
    return int(fields[19]) / os.sysconf("SC_CLK_TCK")


def make_step(options, net, data, label, local):
    """One training step as a function; `net` is on this rank, wrapped or not."""
    optimizer = nets.optimizer(options.net, net.parameters())
    order = torch.randperm(len(data), device=data.device)
    begin = 0
    low = options.precision == "bf16"
    max_norm = nets.max_norm(options.net)

    def compute(index):
        optimizer.zero_grad(set_to_none=True)
        x = data[index]
        if options.channels_last:
            x = x.contiguous(memory_format=torch.channels_last)
        with torch.autocast(options.device, torch.bfloat16) if low else contextlib.nullcontext():
            loss = F.cross_entropy(net(x), label[index])
        loss.backward()
        if max_norm:
            torch.nn.utils.clip_grad_norm_(net.parameters(), max_norm)
        optimizer.step()

    run = captured(compute, optimizer, order[:local]) if options.captures else compute

    def step():
        nonlocal begin
        if begin + local > len(data):
            begin = 0
        run(order[begin:begin + local])
        begin += local

    return step


def captured(compute, optimizer, index):
    """The same as one CUDA graph, after a few steps on a stream of their own."""
    for group in optimizer.param_groups:
        if "capturable" in group:
            group["capturable"] = True
    index = index.clone()
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            compute(index)
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        compute(index)

    def run(other):
        index.copy_(other)
        graph.replay()

    return run


def compiled(options, net):
    if options.device == "cuda" and options.graphs:
        return torch.compile(net, mode="reduce-overhead")
    return torch.compile(net)


def finish(options):
    """Wait for what was queued, and for the other ranks."""
    if options.device == "cuda":
        torch.cuda.synchronize()
    if options.ranks > 1:
        dist.barrier()


def rank_main(rank, options, rendezvous, started):
    cores = sorted(os.sched_getaffinity(0))
    if options.ranks > 1:
        os.sched_setaffinity(0, {cores[rank % len(cores)]})
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    torch.manual_seed(1234)
    if options.device == "cuda":
        torch.cuda.set_device(rank)
        torch.backends.cuda.matmul.allow_tf32 = options.precision == "tf32"
        torch.backends.cudnn.allow_tf32 = options.precision == "tf32"
        torch.backends.cudnn.benchmark = True
    options.captures = options.graphs and not options.compile
    local = options.batch // options.ranks
    net, shape, classes = nets.make(options.net)
    net = net.to(options.device)
    if options.channels_last:
        net = net.to(memory_format=torch.channels_last)
    if options.ranks > 1:
        backend = "nccl" if options.device == "cuda" else "gloo"
        dist.init_process_group(backend, init_method=f"file://{rendezvous}", rank=rank,
                                world_size=options.ranks)
        net = torch.nn.parallel.DistributedDataParallel(net, gradient_as_bucket_view=True)
    if options.compile:
        net = compiled(options, net)
    samples = max(options.samples // options.ranks, local)
    if len(shape) == 1:  # tokens, and after each of them the next one
        text = torch.randint(0, classes, (samples, shape[0] + 1))
        data, label = text[:, :-1], text[:, 1:]
    else:
        data, label = torch.randn(samples, *shape), torch.randint(0, classes, (samples,))
    data, label = data.to(options.device), label.to(options.device)
    step = make_step(options, net, data, label, local)
    step()
    start_seconds = time.clock_gettime(time.CLOCK_BOOTTIME) - started
    for _ in range(options.warmup):
        step()
    finish(options)
    begun = time.perf_counter()
    for _ in range(options.steps):
        step()
    finish(options)
    seconds = time.perf_counter() - begun
    if rank == 0:
        print(json.dumps({
            "bench": "train",
            "peer": " ".join(["pytorch", torch.__version__.split("+")[0],
                              "compile" if options.compile else "eager",
                              *(["graphs"] if options.graphs else []),
                              "channels-last" if options.channels_last else "contiguous"]),
            "ranks": options.ranks,
            "batch": options.batch,
            "samples_per_second": options.steps * options.batch / seconds,
            "start_seconds": start_seconds,
            "peak_memory_bytes": peak_bytes(options),
        }))
    if options.ranks > 1:
        dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("net", choices=nets.NETS)
    parser.add_argument("-n", "--ranks", type=int, default=1)
    parser.add_argument("--batch", type=int, default=128, help="over all ranks")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--warmup", type=int, default=3)
    parser.add_argument("--samples", type=int, default=2048, help="in the data, over all ranks")
    parser.add_argument("--precision", choices=["fp32", "tf32", "bf16"], default="fp32")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--graphs", action="store_true", help="CUDA graphs")
    parser.add_argument("--compile", action="store_true", help="torch.compile")
    parser.add_argument("--channels-last", action="store_true")
    options = parser.parse_args()
    started = process_start()
    if options.compile and not hasattr(torch, "compile"):
        print(f"PyTorch {torch.__version__} has no torch.compile", file=sys.stderr)
        sys.exit(77)
    if options.device == "cuda" and torch.cuda.device_count() < options.ranks:
        print(f"PyTorch finds {torch.cuda.device_count()} GPUs", file=sys.stderr)
        sys.exit(77)
    if options.ranks == 1:
        rank_main(0, options, None, started)
        return
    with tempfile.TemporaryDirectory() as folder:
        arguments = (options, os.path.join(folder, "rendezvous"), started)
        mp.start_processes(rank_main, args=arguments, nprocs=options.ranks,
                           start_method="spawn" if options.device == "cuda" else "fork")


if __name__ == "__main__":
    main()
