"""Losses of values are PyTorch's: nn.MSELoss and nn.BCEWithLogitsLoss, whose mean is over all elements
of a batch. Outputs, the loss of each sample and every gradient of one batch, from the same weights;
then the weights after steps of training on arrays, on one rank and on two, and the figures of the
test split.

    check_losses.py PROGRAM PEER_MODEL
"""
import json
import os
import subprocess
import sys

from common import (F, nn, read_safetensors, summary, torch, train, weights, workplace,
                    write_safetensors)

LIMIT = 1e-4
BATCH, FEATURES, OUTPUTS = 13, 7, 5
STEPS = 30


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(FEATURES, 16)
        self.fc2 = nn.Linear(16, OUTPUTS)

    def forward(self, x):
        return self.fc2(F.relu(self.fc1(x)))


LOSSES = {
    "mse_loss": (nn.MSELoss(), nn.MSELoss(reduction="none"), lambda: torch.randn(BATCH, OUTPUTS)),
    "bce_with_logits_loss": (nn.BCEWithLogitsLoss(), nn.BCEWithLogitsLoss(reduction="none"),
                             lambda: torch.randint(0, 2, (BATCH, OUTPUTS)).float()),
}


def check(peer, folder, name):
    mean, each, target = LOSSES[name]
    torch.manual_seed(3)
    model, x, t = Mlp(), torch.randn(BATCH, FEATURES), target()
    paths = [os.path.join(folder, f"{part}.safetensors") for part in ("weights", "batch", "out")]
    write_safetensors(paths[0], model.state_dict())
    write_safetensors(paths[1], {"input": x, "target": t})
    config = {"name": "mlp", "hidden": [16], "classes": OUTPUTS}
    subprocess.run([peer, "auto", json.dumps(config), json.dumps({"name": name})] + paths,
                   check=True, timeout=100)
    ours = read_safetensors(paths[2])
    model, x, t = model.double(), x.double(), t.double()
    output = model(x)
    loss = mean(output, t)
    loss.backward()
    theirs = {"eval.output": output, "output": output, "loss": each(output, t).mean(1)}
    theirs.update({f"grad.{key}": value.grad for key, value in model.named_parameters()})
    assert set(ours) == set(theirs), set(ours) ^ set(theirs)
    assert abs(ours["loss"].double().mean() - loss) < LIMIT * loss
    for key, value in theirs.items():
        error = ((ours[key].double() - value).abs().max() / value.abs().max()).item()
        assert error < LIMIT, (name, key, error)
    print(f"{name}: loss {loss.item():.6f}, {len(theirs)} tensors agree")


def check_training(program, folder, name):
    """All samples are one batch, so that their order plays no part."""
    mean, _, target = LOSSES[name]
    torch.manual_seed(5)
    x, t = torch.randn(BATCH, FEATURES), target()
    path = os.path.join(folder, f"{name}.safetensors")
    write_safetensors(path, {f"{split}.{field}": value for split in ("train", "test")
                             for field, value in (("input", x), ("target", t))})
    config = {"model": {"name": "mlp", "hidden": [16]}, "loss": name, "batch": BATCH,
              "data": {"name": "arrays", "path": path}}
    start = weights(train(program, folder, f"{name}-start", {
        **config, "epochs": 1, "optimizer": {"name": "sgd", "lr": 1e-30}}))
    model = Mlp()
    model.load_state_dict(start)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
    for _ in range(STEPS):
        optimizer.zero_grad()
        mean(model(x), t).backward()
        optimizer.step()
    with torch.no_grad():
        output = model(x)
    loss = mean(output, t).item()
    right = ((output > 0) == (t > 0.5)).all(1).double().mean().item()
    for ranks in (1, 2):
        run_dir = train(program, folder, f"{name}-{ranks}", {
            **config, "epochs": STEPS, "optimizer": {"name": "sgd", "lr": 0.2}}, ranks)
        found, figures = weights(run_dir), summary(run_dir)
        worst = max(((found[key] - value).norm() / value.norm()).item()
                    for key, value in model.state_dict().items())
        print(f"{name}, ranks {ranks}: weights differ by {worst:.1e} of their norm; test loss "
              f"{figures['test_loss']:.6f}, PyTorch {loss:.6f}")
        assert worst < LIMIT, worst
        assert abs(figures["test_loss"] - loss) < LIMIT * loss
        if name == "mse_loss":
            assert figures["test_accuracy"] is None
        else:
            assert abs(figures["test_accuracy"] - right) < 1e-6


with workplace() as place:
    for loss_name in LOSSES:
        check(sys.argv[2], place, loss_name)
        check_training(sys.argv[1], place, loss_name)
