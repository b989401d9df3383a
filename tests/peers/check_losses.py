"""Losses of values are PyTorch's: nn.MSELoss and nn.BCEWithLogitsLoss, whose mean is over all elements
of a batch. Outputs, the loss of each sample and every gradient of one batch, from the same weights.

    check_losses.py PROGRAM PEER_MODEL
"""
import json
import os
import subprocess
import sys

from common import F, nn, read_safetensors, torch, workplace, write_safetensors

LIMIT = 1e-4
BATCH, FEATURES, OUTPUTS = 13, 7, 5


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


with workplace() as place:
    for loss_name in LOSSES:
        check(sys.argv[2], place, loss_name)
