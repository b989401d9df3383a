"""20 steps of AdamW on a language model beside PyTorch's, from the same weights and batches: the loss
of each.

    check_language_training.py COHORT PEER_MODEL gpt2|llama

The text is one window long, so that every batch is that window. Both are compared with PyTorch in
double precision: our error at each step is at most twice that of PyTorch in single precision. One
error of some roundings is chance on either side, so errors are root mean squares over TEXTS texts
and weights.
"""
import copy
import json
import os
import sys

from common import F, read_safetensors, torch, train, workplace
from language import SMALL, by_torch

CONTEXT, STEPS, WARMUP = 48, 20, 5
TIMES = 2
TEXTS = 8
OPTIMIZER = {"lr": 1e-3, "betas": [0.9, 0.99], "weight_decay": 0.1}


def losses(model, token, precision):
    model = copy.deepcopy(model).to(precision)
    matrices = [p for p in model.parameters() if p.dim() == 2]
    others = [p for p in model.parameters() if p.dim() != 2]
    optimizer = torch.optim.AdamW([{"params": matrices}, {"params": others, "weight_decay": 0}],
                                  **OPTIMIZER)
    rate = torch.optim.lr_scheduler
    schedule = rate.SequentialLR(optimizer, [
        rate.LinearLR(optimizer, 1 / WARMUP, 1, WARMUP - 1),
        rate.CosineAnnealingLR(optimizer, STEPS - WARMUP, 0.1 * OPTIMIZER["lr"])], [WARMUP])
    out = []
    for _ in range(STEPS):
        loss = F.cross_entropy(model(token[:, :-1]).flatten(0, 1), token[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        out.append(loss.item())
    return out


def letters_of(seed):
    torch.manual_seed(seed)
    return "".join(chr(97 + i) for i in torch.randint(0, 26, (2 * (CONTEXT + 1),)))


def train_ours(cohort, folder, name, letters, seed):
    """The weights at the start, and the loss of each step."""
    path = os.path.join(folder, f"text{seed}")
    with open(path, "w") as file:
        file.write(letters)
    config = {
        "model": {"name": name, **SMALL[name]}, "seed": seed,
        "data": {"name": "text", "path": path, "context": CONTEXT, "test_fraction": 0.5},
        "batch": 1, "epochs": STEPS, "log_every": 1, "evaluate": False,
        "optimizer": {"name": "adamw", **OPTIMIZER}, "clip": {"norm": 1.0},
        "schedule": {"name": "cosine", "unit": "step", "warmup": WARMUP, "final": 0.1}}
    start = train(cohort, folder, f"start{seed}", {
        **config, "epochs": 1, "schedule": "constant",
        "optimizer": {"name": "adamw", "lr": 1e-30}})
    run = train(cohort, folder, f"run{seed}", config)
    with open(os.path.join(run, "metrics.jsonl")) as file:
        events = [json.loads(line) for line in file]
    return (read_safetensors(os.path.join(start, "final.safetensors")),
            [event["train_loss"] for event in events if event["event"] == "step"])


def errors(cohort, folder, name, seed):
    """Of each step: the loss in double precision, our error and PyTorch's."""
    letters = letters_of(seed)
    weights, ours = train_ours(cohort, folder, name, letters, seed)
    vocab = sorted(set(letters))
    model = by_torch(name, SMALL[name], CONTEXT, len(vocab))
    model.load_state_dict(weights)
    token = torch.tensor([[vocab.index(c) for c in letters[:CONTEXT + 1]]])
    truth, single = (losses(model, token, p) for p in (torch.float64, torch.float32))
    assert len(ours) == STEPS, ours
    assert truth[-1] < truth[0] - 0.5, "it hardly learns"
    return [(t, o - t, p - t) for t, o, p in zip(truth, ours, single)]


def main():
    with workplace() as folder:
        runs = [errors(sys.argv[1], folder, sys.argv[3], 11 + i) for i in range(TEXTS)]
    status = 0
    for step, of_texts in enumerate(zip(*runs)):
        loss, error, peer = ((sum(x * x for x in values) / TEXTS) ** 0.5
                             for values in zip(*of_texts))
        print(f"step {step + 1}: loss {loss:.5f}, error {error:.1e}, PyTorch's {peer:.1e}, "
              f"{error / peer:.2f} times")
        if not error <= TIMES * peer:
            status = 1
    return status


sys.exit(main())
