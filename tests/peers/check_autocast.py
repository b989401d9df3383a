"""bf16 is as good as PyTorch's autocast: both are held against PyTorch in double precision.

    check_autocast.py PROGRAM PEER_MODEL

One step from the same weights: an error is the distance of a tensor from PyTorch's in double
precision over the length of that, for the loss, the output and every gradient. Cohort's, with bf16,
O1 and O2, must be at most SHARE of autocast's, in the mean and in the worst tensor. Then some steps of
training: the weights end as near to where double precision ends as autocast's do. All errors must be
those of 16 bits: much smaller ones would mean that nothing was rounded.

What has 16 bits differs a little: autocast leaves additions and the output in BF16 and takes
gradients of weights in BF16, Cohort takes those in fp32. Dropout is off: masks differ.
"""
import contextlib
import copy
import json
import os
import subprocess
import sys

from common import (F, LeNet5, MnistNet, ResNet9, kept, make_data, read_safetensors, settle, skip,
                    torch, train, weights, workplace, write_safetensors)

if not hasattr(torch, "autocast"):
    skip(f"PyTorch {torch.__version__} has no autocast for processors")

SHARE = 1.25
ROUNDED = 1e-3  # fp32 stays far below
STEPS = 10
LEVELS = {"bf16": {"level": "bf16"}, "O1": {"level": "O1", "dtype": "bf16"},
          "O2": {"level": "O2", "dtype": "bf16"}}


def quiet(network):
    """Without dropout."""
    for module in network.modules():
        if isinstance(module, (torch.nn.Dropout, torch.nn.Dropout2d)):
            module.p = 0
    return network


def distance(a, b):
    return ((a.double() - b).norm() / b.norm()).item()


def by_torch(model, image, label, loss, low):
    """Output, loss and gradients; with `low`, under autocast."""
    model = copy.deepcopy(model)
    with torch.autocast("cpu", torch.bfloat16) if low else contextlib.nullcontext():
        output = model(image)
        each = loss(output, label, reduction="none")
    each.mean().backward()
    return {"output": output.detach(), "loss": each.detach(),
            **{f"grad.{k}": v.grad for k, v in model.named_parameters()}}


def step(peer, folder, name, make, shape, batch=32):
    """One batch through all of them."""
    torch.manual_seed(7)
    model = settle(quiet(make())).train()
    image, label = torch.randn(batch, *shape), torch.arange(batch) * 7 % 10
    loss = F.nll_loss if isinstance(model, MnistNet) else F.cross_entropy
    paths = [os.path.join(folder, f"{each}.safetensors") for each in ("weights", "batch", "out")]
    write_safetensors(paths[0], kept(model.state_dict()))
    write_safetensors(paths[1], {"input": image, "label": label.int()})
    truth = by_torch(copy.deepcopy(model).double(), image.double(), label, loss, False)
    # A bias in front of a batch norm has the gradient 0, and everything there is noise.
    names = [k for k, v in truth.items() if v.norm() > 1e-6]
    theirs = {k: distance(v, truth[k]) for k, v in by_torch(model, image, label, loss, True).items()
              if k in names}
    mean, most = sum(theirs.values()) / len(theirs), max(theirs.values())
    for level, precision in LEVELS.items():
        subprocess.run([peer, f"auto,{json.dumps(precision)}", f"{{name: {name}, classes: 10}}",
                        f"{{name: {loss.__name__}}}"] + paths,
                       check=True, timeout=100)
        found = read_safetensors(paths[2])
        ours = {k: distance(found[k], truth[k]) for k in names}
        worst = max(ours, key=ours.get)
        own = sum(ours.values()) / len(ours)
        print(f"{name}, {level}: {len(ours)} tensors, off by {own:.4f} of their length (autocast "
              f"{mean:.4f}), at most {ours[worst]:.4f} ({most:.4f}), {worst}", flush=True)
        assert ours[worst] < SHARE * most, (name, level, worst)
        assert ROUNDED < own < SHARE * mean, (name, level, own, mean)


def train_torch(model, start, image, label, low):
    model.load_state_dict(start)
    model = model if low else model.double()
    image = image if low else image.double()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    for _ in range(STEPS):
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16) if low else contextlib.nullcontext():
            loss = F.nll_loss(model(image), label)
        loss.backward()
        optimizer.step()
    return model.state_dict()


def training(program, folder):
    image, label = make_data(folder)
    config = {"data": {"name": "mnist", "path": folder}, "model": "lenet5", "batch": len(image),
              "evaluate": False, "epochs": 1, "optimizer": {"name": "sgd", "lr": 1e-30}}
    start = weights(train(program, folder, "start", config))
    truth = train_torch(LeNet5(), start, image, label, False)
    theirs = train_torch(LeNet5(), start, image, label, True)
    moved = {k: (truth[k] - start[k]).norm().item() for k in truth}
    config.update(epochs=STEPS, optimizer={"name": "sgd", "lr": 0.02, "momentum": 0.9})

    def off(state):  # of the way that the weights went
        return sum((state[k].double() - truth[k]).norm().item() / moved[k] for k in truth) / len(truth)

    for level, precision in LEVELS.items():
        own = off(weights(train(program, folder, level, {**config, "precision": precision})))
        print(f"lenet5, {level}: {STEPS} steps end {own:.4f} of their way off, autocast's "
              f"{off(theirs):.4f}")
        assert ROUNDED < own < SHARE * off(theirs), (level, own)


def main():
    program, peer = sys.argv[1:3]
    try:
        with torch.autocast("cpu", torch.bfloat16):
            torch.nn.Conv2d(1, 1, 3)(torch.zeros(1, 1, 3, 3))
    except RuntimeError as error:
        skip(f"PyTorch {torch.__version__} cannot compute with BF16 on this processor: {error}")
    with workplace() as folder:
        step(peer, folder, "mnist-net", MnistNet, (1, 28, 28))
        step(peer, folder, "resnet9", ResNet9, (3, 32, 32))
        training(program, folder)


main()
