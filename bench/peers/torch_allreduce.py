#!/usr/bin/env python3
"""Time PyTorch's all-reduce over gloo, as `cohort bench comm --op allreduce` times Cohort's.

A repetition starts behind a barrier and lasts until the slowest rank is done; the figure is the
median over the repetitions. Prints one JSON object for each size, or exits with 77 and says why it
cannot run.
"""
import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before torch is loaded

import argparse
import json
import statistics
import sys
import tempfile
import time

try:
    import torch
    import torch.distributed as dist
    import torch.multiprocessing as mp
except ImportError as error:
    print(f"no PyTorch here: {error} (Debian: python3-torch)", file=sys.stderr)
    sys.exit(77)

WARMUP = 3
BUDGET = 256 << 20  # bytes moved by the repetitions of one size


def time_size(rank, ranks, size):
    data = torch.ones(size // 4)
    repeats = min(max(BUDGET // size, 10), 1000)
    seconds = []
    for _ in range(repeats + WARMUP):
        data.fill_(1)
        dist.barrier()
        begun = time.perf_counter()
        dist.all_reduce(data)
        seconds.append(time.perf_counter() - begun)
    slowest = torch.tensor(seconds[WARMUP:], dtype=torch.float64)
    dist.all_reduce(slowest, op=dist.ReduceOp.MAX)
    if rank == 0:
        print(json.dumps({"bench": "comm", "transport": f"gloo {torch.__version__.split('+')[0]}",
                          "ranks": ranks, "op": "allreduce", "bytes": size, "repeats": repeats,
                          "latency_us": statistics.median(slowest.tolist()) * 1e6}), flush=True)


def rank_main(rank, options, rendezvous):
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[rank % len(cores)]})
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{rendezvous}", rank=rank,
                            world_size=options.ranks)
    for size in options.bytes:
        time_size(rank, options.ranks, size)
    dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-n", "--ranks", type=int, default=2)
    parser.add_argument("bytes", type=int, nargs="+")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        arguments = (options, os.path.join(folder, "rendezvous"))
        mp.start_processes(rank_main, args=arguments, nprocs=options.ranks, start_method="fork")


if __name__ == "__main__":
    main()
