#!/usr/bin/env python3
"""Time PyTorch on the training steps that `cohort bench train configs/mnist-net.yaml` takes.

Eager mode; one rank without torch.distributed, more with DistributedDataParallel over gloo. One
compute thread a rank, each rank bound to a core of its own. The data lies in memory as ready
tensors, and a step only gathers its batch, so nothing but the step is timed: gather, forward,
backward, all-reduce, SGD with momentum.

Prints one JSON object on one line, or exits with 77 and says why it cannot run.
"""
import os
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before torch is loaded

import argparse
import json
import sys
import tempfile

try:
    import torch
    import torch.distributed as dist
    import torch.multiprocessing as mp
    import torch.nn.functional as F
    from torch import nn
except ImportError as error:
    print(f"no PyTorch here: {error} (Debian: python3-torch)", file=sys.stderr)
    sys.exit(77)


class Net(nn.Module):
    """Two convolutions and two linear layers: 21,840 parameters."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 10, kernel_size=5)
        self.conv2 = nn.Conv2d(10, 20, kernel_size=5)
        self.drop2 = nn.Dropout2d(0.5)
        self.fc1 = nn.Linear(320, 50)
        self.drop1 = nn.Dropout(0.5)
        self.fc2 = nn.Linear(50, 10)

    def forward(self, x):
        x = F.relu(F.max_pool2d(self.conv1(x), 2))
        x = F.relu(F.max_pool2d(self.drop2(self.conv2(x)), 2))
        x = F.relu(self.fc1(x.flatten(1)))
        return F.log_softmax(self.fc2(self.drop1(x)), dim=1)


def process_start():
    """When this process started, on time.clock_gettime's CLOCK_BOOTTIME."""
    with open("/proc/self/stat", "rb") as stat:
        fields = stat.read().rsplit(b")", 1)[1].split()
    return int(fields[19]) / os.sysconf("SC_CLK_TCK")


def rank_main(rank, options, rendezvous, started):
    cores = sorted(os.sched_getaffinity(0))
    if options.ranks > 1:
        os.sched_setaffinity(0, {cores[rank % len(cores)]})
    torch.set_num_threads(1)
    torch.manual_seed(options.seed)
    local = options.batch // options.ranks
    model = Net()
    if options.ranks > 1:
        dist.init_process_group("gloo", init_method=f"file://{rendezvous}", rank=rank,
                                world_size=options.ranks)
        model = nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.5)
    data = torch.randn(options.samples, 1, 28, 28)
    label = torch.randint(0, 10, (options.samples,))
    order = torch.randperm(options.samples)
    begin = 0

    def step():
        nonlocal begin
        if begin + local > options.samples:
            begin = 0
        index = order[begin : begin + local]
        begin += local
        optimizer.zero_grad()
        loss = F.nll_loss(model(data[index]), label[index])
        loss.backward()
        optimizer.step()

    step()
    start_seconds = time.clock_gettime(time.CLOCK_BOOTTIME) - started
    for _ in range(options.warmup):
        step()
    if options.ranks > 1:
        dist.barrier()
    begun = time.perf_counter()
    for _ in range(options.steps):
        step()
    if options.ranks > 1:
        dist.barrier()
    seconds = time.perf_counter() - begun
    if rank == 0:
        print(json.dumps({
            "bench": "train",
            "peer": f"pytorch {torch.__version__}, eager"
                    + (", DistributedDataParallel over gloo" if options.ranks > 1 else "")
                    + (", oneDNN" if torch.backends.mkldnn.is_available() else ", no oneDNN"),
            "ranks": options.ranks,
            "batch": options.batch,
            "steps": options.steps,
            "samples_per_second": options.steps * options.batch / seconds,
            "step_ms": seconds / options.steps * 1e3,
            "start_seconds": start_seconds,
        }))
    if options.ranks > 1:
        dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-n", "--ranks", type=int, default=1)
    parser.add_argument("--batch", type=int, default=128, help="over all ranks")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--warmup", type=int, default=20)
    parser.add_argument("--samples", type=int, default=8192)
    parser.add_argument("--seed", type=int, default=1234)
    options = parser.parse_args()
    started = process_start()
    if options.ranks == 1:
        rank_main(0, options, None, started)
        return
    with tempfile.TemporaryDirectory() as folder:
        arguments = (options, os.path.join(folder, "rendezvous"), started)
        mp.start_processes(rank_main, args=arguments, nprocs=options.ranks, start_method="fork")


if __name__ == "__main__":
    main()
