"""Steps of training end in PyTorch's weights, for every optimizer, on one rank and on two.

All 64 samples are one batch, so that their order plays no part; PyTorch starts from the weights
that Cohort starts from. The optimizers run on a network without ReLU and max pooling: where one of
those switches over by a rounding error, Adam makes a visible difference of it.
"""
import os
import sys

from common import (SMOOTH, F, LeNet5, PsgdCnn, Smooth, make_data, torch, train, weights,
                    workplace)

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


def train_torch(model, start, make, arguments, image, label):
    model.load_state_dict(start)
    optimizer = make(model.parameters(), **arguments)
    for _ in range(STEPS):
        optimizer.zero_grad()
        F.nll_loss(model(image), label).backward()
        optimizer.step()
    return model.state_dict()


def distance(a, b):
    return ((a - b).norm() / b.norm()).item()


class Check:
    def __init__(self, program, folder):
        self.program, self.folder = program, folder
        self.image, self.label = make_data(folder, SAMPLES)

    def train(self, name, network, optimizer, steps, ranks=1):
        return weights(train(self.program, self.folder, name, {
            "data": {"name": "mnist", "path": self.folder}, **network, "batch": SAMPLES,
            "epochs": steps, "optimizer": {"name": "sgd", **optimizer}, "evaluate": False}, ranks))

    def run(self, name, network, model, optimizer, limit):
        ours, make, arguments = OPTIMIZERS[optimizer]
        # A step this small leaves the initial weights.
        start = self.train(f"{name}-start", network, {"lr": 1e-30}, 1)
        expected = train_torch(model, start, make, arguments, self.image, self.label)
        moved = max(distance(start[key], expected[key]) for key in expected)
        assert moved > 0.01, f"{name}: the weights hardly move: {moved}"
        for ranks in (1, 2):
            found = self.train(f"{name}-{ranks}", network, ours, STEPS, ranks)
            assert set(found) == set(expected), set(found) ^ set(expected)
            worst = max(distance(found[key], expected[key]) for key in expected)
            print(f"{name}, ranks {ranks}: weights differ by {worst:.1e} of their norm")
            assert worst < limit, (name, ranks, worst)


with workplace() as place:
    check = Check(sys.argv[1], place)
    for each in OPTIMIZERS:
        check.run(each, SMOOTH, Smooth(), each, limit=2e-5)
    check.run("lenet5", {"model": "lenet5"}, LeNet5(), "momentum", limit=1e-3)
    check.run("psgd-cnn", {
        "model": {"name": "psgd-cnn", "dropout": 0},
        "data": {"name": "mnist", "path": place, "resize": 32},
    }, PsgdCnn(dropout=0), "momentum", limit=1e-3)
