"""20 steps of AdamW on a language model beside PyTorch's, from the same weights and batches: the loss
of each.

    check_language_training.py COHORT PEER_MODEL gpt2|llama

The text is one window long, so that every batch is that window. Both are compared with PyTorch in
double precision: our error is at most twice that of PyTorch in single precision, or the rounding of
a float where PyTorch happens to be nearer.
"""
import copy
import json
import os
import sys

from common import F, read_safetensors, torch, train, workplace
from language import SMALL, by_torch

CONTEXT, STEPS, WARMUP = 48, 20, 5
TIMES = 2
ROUNDING = 2.0 ** -22  # of losses from 2 to 4: an ulp
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


def main():
    name = sys.argv[3]
    torch.manual_seed(11)
    with workplace() as folder:
        path = os.path.join(folder, "text")
        letters = "".join(chr(97 + i) for i in torch.randint(0, 26, (2 * (CONTEXT + 1),)))
        with open(path, "w") as file:
            file.write(letters)
        config = {
            "model": {"name": name, **SMALL[name]},
            "data": {"name": "text", "path": path, "context": CONTEXT, "test_fraction": 0.5},
            "batch": 1, "epochs": STEPS, "log_every": 1, "evaluate": False,
            "optimizer": {"name": "adamw", **OPTIMIZER}, "clip": {"norm": 1.0},
            "schedule": {"name": "cosine", "unit": "step", "warmup": WARMUP, "final": 0.1}}
        start = train(sys.argv[1], folder, "start", {
            **config, "epochs": 1, "schedule": "constant",
            "optimizer": {"name": "adamw", "lr": 1e-30}})
        weights = read_safetensors(os.path.join(start, "final.safetensors"))
        vocab = sorted(set(letters))
        model = by_torch(name, SMALL[name], CONTEXT, len(vocab))
        model.load_state_dict(weights)
        run = train(sys.argv[1], folder, "run", config)
        with open(os.path.join(run, "metrics.jsonl")) as file:
            events = [json.loads(line) for line in file]
    ours = [event["train_loss"] for event in events if event["event"] == "step"]
    token = torch.tensor([[vocab.index(c) for c in letters[:CONTEXT + 1]]])
    truth, single = (losses(model, token, p) for p in (torch.float64, torch.float32))
    assert len(ours) == STEPS, ours
    assert truth[-1] < truth[0] - 0.5, "it hardly learns"
    status = 0
    for step, loss in enumerate(truth):
        error, peer = abs(ours[step] - loss), abs(single[step] - loss)
        print(f"step {step + 1}: loss {loss:.7f}, error {error:.1e}, PyTorch's {peer:.1e}")
        if not error <= max(TIMES * peer, ROUNDING):
            status = 1
    return status


sys.exit(main())
