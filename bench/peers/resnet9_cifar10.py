#!/usr/bin/env python3
"""Train in PyTorch what configs/resnet9-cifar10.yaml trains, and print the accuracy it reaches.

The same network with the same initial distributions, Adam with weight decay added to the gradient,
global batch 128 over the ranks (DistributedDataParallel over gloo, with --device cuda over NCCL),
pixels divided by 255, a new permutation in each epoch cut into global batches. Evaluation averages
nothing: running statistics are those of rank 0, as DistributedDataParallel leaves them.

Prints one JSON object on one line, or exits with 77 and says why it cannot run.
"""
import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before torch is loaded

import argparse
import glob
import gzip
import json
import math
import sys
import tempfile
import time

try:
    import numpy as np
    import torch
    import torch.distributed as dist
    import torch.multiprocessing as mp
    import torch.nn.functional as F
    from torch import nn
except ImportError as error:
    print(f"no PyTorch here: {error} (Debian: python3-torch)", file=sys.stderr)
    sys.exit(77)

RECORD = 1 + 3 * 32 * 32


def conv_bn(cin, cout, kernel, stride):
    return nn.Sequential(nn.Conv2d(cin, cout, kernel, stride, (kernel - 1) // 2),
                         nn.BatchNorm2d(cout), nn.ReLU())


class Residual(nn.Module):
    def __init__(self, body):
        super().__init__()
        self.body = body

    def forward(self, x):
        return self.body(x) + x


def make_model():
    model = nn.Sequential(
        conv_bn(3, 16, 7, 4), conv_bn(16, 32, 3, 2),
        Residual(nn.Sequential(conv_bn(32, 32, 3, 1), conv_bn(32, 32, 3, 1))),
        conv_bn(32, 64, 3, 2), conv_bn(64, 128, 3, 2),
        Residual(nn.Sequential(conv_bn(128, 128, 3, 1), conv_bn(128, 128, 3, 1))),
        nn.Flatten(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 10))
    for layer in model.modules():
        if isinstance(layer, nn.Conv2d):
            fan_in = layer.in_channels * layer.kernel_size[0] ** 2
            bound = math.sqrt(2) * math.sqrt(3 / fan_in)
            nn.init.uniform_(layer.weight, -bound, bound)
            nn.init.uniform_(layer.bias, -1 / math.sqrt(fan_in), 1 / math.sqrt(fan_in))
        elif isinstance(layer, nn.Linear):
            bound = math.sqrt(2) * math.sqrt(3 / layer.in_features)
            nn.init.uniform_(layer.weight, -bound, bound)
            bound = math.sqrt(2) * math.sqrt(3 / layer.out_features)
            nn.init.uniform_(layer.bias, -bound, bound)
    assert sum(p.numel() for p in model.parameters()) == 431946
    return model


def load(paths):
    raw = b"".join((gzip.open if p.endswith(".gz") else open)(p, "rb").read() for p in paths)
    records = np.frombuffer(raw, np.uint8).reshape(-1, RECORD)
    pixels = torch.from_numpy(records[:, 1:].astype(np.float32) / 255)
    return pixels.view(-1, 3, 32, 32), torch.from_numpy(records[:, 0].astype(np.int64))


def evaluate(model, data, label):
    model.eval()
    with torch.no_grad():
        scores = torch.cat([model(part) for part in data.split(500)])
    model.train()
    loss = F.cross_entropy(scores, label).item()
    return loss, (scores.argmax(1) == label).float().mean().item()


def rank_main(rank, options, rendezvous):
    cores = sorted(os.sched_getaffinity(0))
    if options.ranks > 1:
        os.sched_setaffinity(0, {cores[rank % len(cores)]})
    torch.set_num_threads(1)
    torch.manual_seed(options.seed)
    if options.device == "cuda":
        torch.cuda.set_device(rank)
    model = make_model().to(options.device)
    step_model = model
    if options.ranks > 1:
        backend = "nccl" if options.device == "cuda" else "gloo"
        dist.init_process_group(backend, init_method=f"file://{rendezvous}", rank=rank,
                                world_size=options.ranks)
        step_model = nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.001, weight_decay=0.001)
    data, label, *test = [
        tensor.to(options.device)
        for files in ("data_batch_*.bin*", "test_batch.bin*")
        for tensor in load(sorted(glob.glob(os.path.join(options.data, files))))]
    started = time.monotonic()
    for epoch in range(options.epochs):
        order = torch.randperm(len(label), generator=torch.Generator().manual_seed(
            options.seed + epoch)).to(options.device)
        for index in order.split(options.batch):
            index = index.chunk(options.ranks)[rank]
            optimizer.zero_grad(set_to_none=True)
            F.cross_entropy(step_model(data[index]), label[index]).backward()
            optimizer.step()
    if options.device == "cuda":
        torch.cuda.synchronize()
    seconds = time.monotonic() - started
    if rank == 0:
        loss, accuracy = evaluate(model, *test)
        print(json.dumps({"ranks": options.ranks, "epochs": options.epochs, "seed": options.seed,
                          "train_seconds": round(seconds, 2), "test_loss": round(loss, 4),
                          "test_accuracy": round(accuracy, 4)}))
    if options.ranks > 1:
        dist.barrier()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", help="folder of CIFAR-10's binary files, gzip or not")
    parser.add_argument("-n", "--ranks", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--seed", type=int, default=1234)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rendezvous = os.path.join(folder, "rendezvous")
        if options.ranks == 1:
            rank_main(0, options, rendezvous)
        else:
            mp.spawn(rank_main, (options, rendezvous), nprocs=options.ranks)


if __name__ == "__main__":
    main()
