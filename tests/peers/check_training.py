"""Steps of training end in PyTorch's weights, for every optimizer, on one rank and on two.

LeNet-5 on 64 samples in batches of 64, so that the order of samples plays no part; PyTorch starts
from the weights that Cohort starts from.
"""
import os
import sys

from common import F, LeNet5, torch, train, weights, workplace, write_idx

STEPS = 20
SAMPLES = 64
OPTIMIZERS = {
    "sgd": ({"lr": 0.05}, torch.optim.SGD, {"lr": 0.05}),
    "momentum": ({"lr": 0.02, "momentum": 0.9, "dampening": 0.1, "weight_decay": 0.01},
                 torch.optim.SGD,
                 {"lr": 0.02, "momentum": 0.9, "dampening": 0.1, "weight_decay": 0.01}),
    "nesterov": ({"lr": 0.02, "momentum": 0.9, "nesterov": True}, torch.optim.SGD,
                 {"lr": 0.02, "momentum": 0.9, "nesterov": True}),
    "adam": ({"name": "adam", "lr": 0.001, "weight_decay": 0.01, "eps": 1e-4}, torch.optim.Adam,
             {"lr": 0.001, "weight_decay": 0.01, "eps": 1e-4}),
    "adamw": ({"name": "adamw", "lr": 0.001, "weight_decay": 0.1, "eps": 1e-4},
              torch.optim.AdamW, {"lr": 0.001, "weight_decay": 0.1, "eps": 1e-4}),
}


def make_data(folder):
    torch.manual_seed(5)
    image = torch.randint(0, 256, (SAMPLES, 28, 28), dtype=torch.uint8)
    label = torch.randint(0, 10, (SAMPLES,), dtype=torch.uint8)
    for split in ("train", "t10k"):
        write_idx(os.path.join(folder, f"{split}-images-idx3-ubyte"), image)
        write_idx(os.path.join(folder, f"{split}-labels-idx1-ubyte"), label)
    return image[:, None] / 255.0, label.long()


def config(folder, optimizer, steps):
    return {"model": "lenet5", "data": {"name": "mnist", "path": folder}, "batch": SAMPLES,
            "epochs": steps, "optimizer": {"name": "sgd", **optimizer}, "evaluate": False}


def train_torch(start, make, arguments, image, label):
    model = LeNet5()
    model.load_state_dict(start)
    optimizer = make(model.parameters(), **arguments)
    for _ in range(STEPS):
        optimizer.zero_grad()
        F.nll_loss(model(image), label).backward()
        optimizer.step()
    return model.state_dict()


def distance(a, b):
    return ((a - b).norm() / b.norm()).item()


def check(program, folder, name, start, image, label):
    ours, make, arguments = OPTIMIZERS[name]
    expected = train_torch(start, make, arguments, image, label)
    moved = max(distance(start[key], expected[key]) for key in expected)
    assert moved > 0.01, f"{name}: the weights hardly move: {moved}"
    for ranks in (1, 2):
        found = weights(train(program, folder, f"{name}-{ranks}", config(folder, ours, STEPS),
                              ranks))
        assert set(found) == set(expected), set(found) ^ set(expected)
        worst = max(distance(found[key], expected[key]) for key in expected)
        print(f"{name}, ranks {ranks}: weights differ by {worst:.1e} of their norm")
        assert worst < 1e-4, (name, ranks, worst)


with workplace() as place:
    pixels, classes = make_data(place)
    # A step this small leaves the initial weights.
    initial = weights(train(sys.argv[1], place, "start", config(place, {"lr": 1e-30}, 1)))
    for each in OPTIMIZERS:
        check(sys.argv[1], place, each, initial, pixels, classes)
