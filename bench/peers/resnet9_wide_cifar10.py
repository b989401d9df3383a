#!/usr/bin/env python3
"""Train in PyTorch what configs/resnet9-wide-cifar10.yaml trains, and print the accuracy it reaches.

One process. Everything is on the device before the clock starts: a batch is drawn, cropped, flipped
and cut out there, as Cohort does on a GPU. Random numbers are PyTorch's, so that single accuracies
differ as those of two seeds do; compare means of --seed. Seconds are those of training, evaluations
left out; --bf16 is torch.autocast.

Prints one JSON object on a line for each evaluation, or exits with 77 and says why it cannot run.
"""
import argparse
import functools
import glob
import json
import os
import sys
import time

try:
    import torch
    import torch.nn.functional as F
except ImportError as error:
    print(f"no PyTorch here: {error} (Debian: python3-torch)", file=sys.stderr)
    sys.exit(77)

import nets
from resnet9_cifar10 import evaluate, load

MEAN, STD = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)
PADDING, HOLE = 4, 8


def inside(n, size, device):
    """Which of `size` rows or columns a square covers, around a random one: (n, size)."""
    begin = torch.randint(0, size, (n, 1), device=device) - HOLE // 2
    line = torch.arange(size, device=device)
    return (line >= begin) & (line < begin + HOLE)


def augmented(x):
    """Of (n, 3, h, w) with a border of PADDING: crops, half of them flipped, a square of 0 in each."""
    n, _, high, wide = x.shape
    high, wide = high - 2 * PADDING, wide - 2 * PADDING
    at = torch.randint(0, 2 * PADDING + 1, (2, n, 1), device=x.device)
    rows = at[0] + torch.arange(high, device=x.device)
    columns = at[1] + torch.arange(wide, device=x.device)
    columns = torch.where(torch.rand(n, 1, device=x.device) < 0.5, columns, columns.flip(1))
    image = torch.arange(n, device=x.device)[:, None, None]
    out = x[image, :, rows[:, :, None], columns[:, None, :]].permute(0, 3, 1, 2)
    in_row, in_column = inside(n, high, x.device), inside(n, wide, x.device)
    return out.masked_fill((in_row[:, :, None] & in_column[:, None, :])[:, None], 0)


def normalised(pixels, device):
    mean, std = (torch.tensor(v).view(3, 1, 1) for v in (MEAN, STD))
    return ((pixels - mean) / std).to(device)


def make_optimizer(model, steps):
    of_norms = {id(p) for m in model.modules() if isinstance(m, torch.nn.BatchNorm2d)
                for p in m.parameters()}
    groups = [{"params": [p for p in model.parameters() if (id(p) in of_norms) == norms],
               "weight_decay": 0 if norms else 0.0005} for norms in (False, True)]
    optimizer = torch.optim.SGD(groups, lr=0.15, momentum=0.9, nesterov=True)
    return optimizer, torch.optim.lr_scheduler.OneCycleLR(
        optimizer, 0.15, total_steps=steps, pct_start=0.2, anneal_strategy="linear",
        cycle_momentum=False)


def train(options):
    torch.manual_seed(options.seed)
    device = torch.device(options.device)
    autocast = functools.partial(torch.autocast, device.type, torch.bfloat16, options.bf16)
    model = nets.resnet9_wide(48).to(device, memory_format=torch.channels_last)
    (pixels, label), (test, test_label) = [
        load(sorted(glob.glob(os.path.join(options.data, files))))
        for files in ("data_batch_*.bin*", "test_batch.bin*")]
    data = F.pad(normalised(pixels, device), [PADDING] * 4, mode="reflect")
    test = normalised(test, device).contiguous(memory_format=torch.channels_last)
    label, test_label = label.to(device), test_label.to(device)
    steps = options.epochs * -(-len(label) // options.batch)
    optimizer, schedule = make_optimizer(model, steps)
    step_model = torch.compile(model) if options.compile else model
    wait = torch.cuda.synchronize if device.type == "cuda" else lambda: None
    seconds = 0.0
    for epoch in range(1, options.epochs + 1):
        wait()
        began = time.monotonic()
        for index in torch.randperm(len(label), device=device).split(options.batch):
            x = augmented(data[index]).contiguous(memory_format=torch.channels_last)
            optimizer.zero_grad(set_to_none=True)
            with autocast():
                loss = F.cross_entropy(step_model(x), label[index], label_smoothing=0.1)
            loss.backward()
            optimizer.step()
            schedule.step()
        wait()
        seconds += time.monotonic() - began
        if epoch % 6 == 0 or epoch == options.epochs:
            with autocast():
                loss, accuracy = evaluate(model, test, test_label)
            print(json.dumps({"epoch": epoch, "seed": options.seed,
                              "train_seconds": round(seconds, 2), "test_loss": round(loss, 4),
                              "test_accuracy": round(accuracy, 4)}), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", help="folder of CIFAR-10's binary files, gzip or not")
    parser.add_argument("--epochs", type=int, default=18)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--seed", type=int, default=1234)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cuda")
    parser.add_argument("--bf16", action="store_true")
    parser.add_argument("--compile", action="store_true")
    train(parser.parse_args())


main()
