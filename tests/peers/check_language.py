"""Forward and backward of a language model beside PyTorch's, from the same weights and batch: logits,
losses and every gradient, that of a tied weight included.

    check_language.py COHORT PEER_MODEL gpt2|llama

Both are compared with PyTorch in double precision. The error of logits, of losses, and of the whole
gradient is the norm of the difference over the norm; it may be at most twice that of PyTorch in
single precision. That of a single tensor of the gradient, in which a few roundings count, may be at
most four times that.
"""
import json
import math
import os
import subprocess
import sys

from common import F, read_safetensors, torch, workplace, write_safetensors
from language import SMALL, by_torch

CONTEXT, VOCAB, BATCH = 48, 65, 6
TIMES, TENSOR_TIMES = 2, 4
FLOOR = 2.0 ** -24  # half a unit in the last place of a float


def passes(model, token, label):
    model.zero_grad()
    output = model(token)
    loss = F.cross_entropy(output.flatten(0, 1), label.flatten(), reduction="none")
    loss.mean().backward()
    out = {"output": output.flatten(0, 1), "loss": loss.reshape(label.shape).mean(1)}
    out.update({f"grad.{name}": p.grad for name, p in model.named_parameters()})
    return {name: value.detach().double() for name, value in out.items()}


def errors(got, truth):
    """Of each tensor, and of all gradients together."""
    wrong = {name: (got[name].double() - truth[name]).norm().item() for name in truth}
    size = {name: truth[name].norm().item() for name in truth}
    out = {name: max(wrong[name] / size[name], FLOOR) for name in truth}
    grad = [name for name in truth if name.startswith("grad.")]
    out["gradient"] = (math.hypot(*[wrong[name] for name in grad])
                       / math.hypot(*[size[name] for name in grad]))
    return out


def main():
    torch.manual_seed(7)
    name = sys.argv[3]
    model = by_torch(name, SMALL[name], CONTEXT, VOCAB)
    token = torch.randint(0, VOCAB, (BATCH, CONTEXT + 1))
    batch = {"input": token[:, :-1].int(), "label": token[:, 1:].int()}
    config = {"name": name, **SMALL[name], "vocab": VOCAB}
    with workplace() as folder:
        paths = [os.path.join(folder, f"{each}.safetensors") for each in ("weights", "batch", "out")]
        write_safetensors(paths[0], model.state_dict())
        write_safetensors(paths[1], batch)
        subprocess.run([sys.argv[2], "auto", json.dumps(config), "cross_entropy"] + paths,
                       check=True, timeout=100)
        ours = read_safetensors(paths[2])
    single = passes(model, token[:, :-1], token[:, 1:])
    truth = passes(model.double(), token[:, :-1], token[:, 1:])
    assert set(truth) <= set(ours), set(truth) - set(ours)
    ours, single = errors(ours, truth), errors(single, truth)
    status = 0
    for name in ours:
        times = TENSOR_TIMES if name.startswith("grad.") else TIMES
        if times == TIMES or ours[name] > times * single[name]:
            print(f"{name}: error {ours[name]:.2e}, PyTorch's {single[name]:.2e}")
        if ours[name] > times * single[name]:
            status = 1
    return status


sys.exit(main())
