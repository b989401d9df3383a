#!/usr/bin/env python3
"""Writes golden.h: what PyTorch's optimizers, schedules and clipping do, and what the papers of
those say that PyTorch has not. Made with PyTorch 2.15:

    python3 golden.py | clang-format --assume-filename=golden.h > golden.h
"""
import math

import torch

N, STEPS = 7, 5          # elements, updates
PER_EPOCH, TOTAL = 3, 24  # steps of the schedules


def param():
    return torch.tensor([((k * 37) % 17 - 8) / 8 for k in range(N)])


def grad(t):
    return torch.tensor([((t * 31 + k * 13) % 23 - 11) / 16 for k in range(N)])


class Needle:
    """u = m u + (1 - m) (g + weight_decay p), p = p - lr u, in Python's doubles."""
    def __init__(self, params, lr, momentum, weight_decay):
        self.p, self.m, self.wd = params[0], momentum, weight_decay
        self.param_groups, self.u = [{"lr": lr}], [0.0] * N

    def step(self):
        p, g = self.p.tolist(), self.p.grad.tolist()
        for k in range(N):
            self.u[k] = self.m * self.u[k] + (1 - self.m) * (g[k] + self.wd * p[k])
            p[k] -= self.param_groups[0]["lr"] * self.u[k]
        self.p.data = torch.tensor(p)


def norm(v):
    return math.sqrt(sum(x * x for x in v))


class Lars:
    """You, Gitman & Ginsburg, arXiv:1708.03888, algorithm 1, on one layer."""
    def __init__(self, params, lr, momentum=0.9, trust=0.001, weight_decay=0.0):
        self.p, self.m, self.eta, self.beta = params[0], momentum, trust, weight_decay
        self.param_groups, self.v = [{"lr": lr}], [0.0] * N

    def step(self):
        w, g = self.p.tolist(), self.p.grad.tolist()
        local = self.eta * norm(w) / (norm(g) + self.beta * norm(w))
        for k in range(N):
            self.v[k] = (self.m * self.v[k]
                         + self.param_groups[0]["lr"] * local * (g[k] + self.beta * w[k]))
            w[k] -= self.v[k]
        self.p.data = torch.tensor(w)


class Lamb:
    """You et al., arXiv:1904.00962, algorithm 2, on one layer, phi(z) = z."""
    def __init__(self, params, lr, betas=(0.9, 0.999), eps=1e-6, weight_decay=0.01):
        self.p, self.betas, self.eps, self.wd = params[0], betas, eps, weight_decay
        self.param_groups, self.t = [{"lr": lr}], 0
        self.mean, self.square = [0.0] * N, [0.0] * N

    def step(self):
        x, g, (b1, b2) = self.p.tolist(), self.p.grad.tolist(), self.betas
        self.t += 1
        self.mean = [b1 * m + (1 - b1) * d for m, d in zip(self.mean, g)]
        self.square = [b2 * v + (1 - b2) * d * d for v, d in zip(self.square, g)]
        r = [m / (1 - b1 ** self.t) / (math.sqrt(v / (1 - b2 ** self.t)) + self.eps) + self.wd * w
             for m, v, w in zip(self.mean, self.square, x)]
        ratio = norm(x) / norm(r)
        self.p.data = torch.tensor([w - self.param_groups[0]["lr"] * ratio * s
                                    for w, s in zip(x, r)])


OPTIMIZERS = [
    ("sgd", 0.1, {}),
    ("sgd", 0.1, {"weight_decay": 0.05}),
    ("sgd", 0.1, {"momentum": 0.5}),
    ("sgd", 0.1, {"momentum": 0.9, "weight_decay": 0.01}),
    ("sgd", 0.1, {"momentum": 0.9, "dampening": 0.3}),
    ("sgd", 0.1, {"momentum": 0.9, "dampening": 0.3, "weight_decay": 0.1}),
    ("sgd", 0.1, {"momentum": 0.9, "nesterov": True}),
    ("sgd", 0.1, {"momentum": 0.85, "nesterov": True, "weight_decay": 0.02}),
    ("adam", 0.01, {}),
    ("adam", 0.01, {"betas": [0.8, 0.95], "eps": 0.001}),
    ("adam", 0.01, {"weight_decay": 0.1}),
    ("adamw", 0.01, {}),
    ("adamw", 0.01, {"weight_decay": 0.5, "betas": [0.5, 0.9]}),
    ("adadelta", 1.0, {}),
    ("adadelta", 0.5, {"rho": 0.7, "eps": 0.001, "weight_decay": 0.1}),
    ("lars", 2.0, {}),
    ("lars", 1.0, {"momentum": 0.5, "trust": 0.02, "weight_decay": 0.1}),
    ("lamb", 0.01, {}),
    ("lamb", 0.1, {"betas": [0.8, 0.95], "eps": 0.001, "weight_decay": 0.3}),
    ("needle", 0.1, {"momentum": 0.9, "weight_decay": 0.01}),
]
CLASSES = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam, "adamw": torch.optim.AdamW,
           "adadelta": torch.optim.Adadelta, "lars": Lars, "lamb": Lamb, "needle": Needle}
# What Cohort calls it, where that is not the class's name and its keys.
KEYS = {"needle": lambda o: ("sgd", {**o, "dampening": o["momentum"], "dampen_first": True})}

LR = torch.optim.lr_scheduler
SCHEDULES = [
    ("{name: constant}", "step", lambda o: LR.ConstantLR(o, 1.0, 1)),
    ("{name: step, every: 3, gamma: 0.5}", "epoch", lambda o: LR.StepLR(o, 3, 0.5)),
    ("{name: step, every: 7, gamma: 0.9, unit: step}", "step", lambda o: LR.StepLR(o, 7, 0.9)),
    ("{name: multi-step, milestones: [2, 5, 7]}", "epoch",
     lambda o: LR.MultiStepLR(o, [2, 5, 7], 0.1)),
    ("{name: multi-step, milestones: [1, 20], gamma: 0.2, unit: step}", "step",
     lambda o: LR.MultiStepLR(o, [1, 20], 0.2)),
    ("{name: cosine}", "step", lambda o: LR.CosineAnnealingLR(o, TOTAL)),
    ("{name: cosine, final: 0.1}", "step", lambda o: LR.CosineAnnealingLR(o, TOTAL, 0.1)),
    ("{name: polynomial}", "step", lambda o: LR.PolynomialLR(o, TOTAL, 1.0)),
    ("{name: polynomial, power: 2.5}", "step", lambda o: LR.PolynomialLR(o, TOTAL, 2.5)),
    ("{name: one-cycle}", "step", lambda o: LR.OneCycleLR(o, 1.0, TOTAL)),
    ("{name: one-cycle, pct_start: 0.2, div_factor: 10, final_div_factor: 100, anneal: linear}",
     "step", lambda o: LR.OneCycleLR(o, 1.0, TOTAL, pct_start=0.2, div_factor=10,
                                     final_div_factor=100, anneal_strategy="linear")),
    ("{name: constant, warmup: 8, unit: step}", "step",
     lambda o: LR.LinearLR(o, 1 / 8, 1, 7)),
    ("{name: constant, warmup: 2, warmup_start: 0.25}", "step",
     lambda o: LR.LinearLR(o, 0.25 + 0.75 / 6, 1, 5)),
    ("{name: cosine, warmup: 3, unit: step, after_warmup: false}", "step",
     lambda o: LR.ChainedScheduler([LR.CosineAnnealingLR(o, TOTAL), LR.LinearLR(o, 1 / 3, 1, 2)])),
    ("{name: cosine, warmup: 3, unit: step, final: 0.1}", "step",
     lambda o: LR.SequentialLR(o, [LR.LinearLR(o, 1 / 3, 1, 2),
                                   LR.CosineAnnealingLR(o, TOTAL - 3, 0.1)], [3])),
]

CLIP = [((k * 29) % 31 - 15) / 8 for k in range(23)]


def yaml(value):
    return {True: "true"}.get(value) if isinstance(value, bool) else str(value)


def optimizers():
    for name, lr, options in OPTIMIZERS:
        p = torch.nn.Parameter(param())
        opt = CLASSES[name]([p], lr=lr, **options)
        rows = []
        for t in range(STEPS):
            opt.param_groups[0]["lr"] = lr / (1 + t)
            p.grad = grad(t)
            opt.step()
            rows.append(", ".join("%.9gF" % x if x % 1 else "%.1fF" % x for x in p.tolist()))
        name, options = KEYS.get(name, lambda o: (name, o))(options)
        keys = "".join(f", {k}: {yaml(v)}" for k, v in options.items())
        body = ",\n      ".join("{%s}" % row for row in rows)
        print(f'    {{"{{name: {name}, lr: {lr}{keys}}}",\n     {{{body}}}}},')


def schedules():
    for text, unit, make in SCHEDULES:
        opt = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
        schedule = make(opt)
        factors = []
        for t in range(TOTAL):
            factors.append(opt.param_groups[0]["lr"])
            if unit == "step" or t % PER_EPOCH == PER_EPOCH - 1:
                opt.step()
                schedule.step()
        print(f'    {{"{text}",\n     {{{", ".join("%.17g" % f for f in factors)}}}}},')


def clip(name, limit, what):
    p = torch.nn.Parameter(torch.zeros(len(CLIP)))
    p.grad = torch.tensor(CLIP)
    norm = what([p], limit)
    print(f"static const float golden_{name}[GOLDEN_CLIP] = {{"
          + ", ".join("%.9gF" % x if x % 1 else "%.1fF" % x for x in p.grad.tolist()) + "};")
    return norm


print("/* golden.h - written by golden.py with PyTorch %s. */" % torch.__version__.split("+")[0])
print(f"#define GOLDEN_N {N}\n#define GOLDEN_STEPS {STEPS}\n#define GOLDEN_CLIP {len(CLIP)}")
print(f"#define GOLDEN_PER_EPOCH {PER_EPOCH}\n#define GOLDEN_TOTAL {TOTAL}\n")
print("static const struct {\n    const char *optimizer;\n"
      "    float param[GOLDEN_STEPS][GOLDEN_N]; /* after each update */\n} golden_updates[] = {")
optimizers()
print("};\n\nstatic const struct {\n    const char *schedule;\n"
      "    double factor[GOLDEN_TOTAL];\n} golden_factors[] = {")
schedules()
print("};\n")
before = clip("norm", 1.5, torch.nn.utils.clip_grad_norm_)
clip("norm_unclipped", 100.0, torch.nn.utils.clip_grad_norm_)
clip("value", 0.3, torch.nn.utils.clip_grad_value_)
print("static const double golden_norm_before = %.9g;" % before.item())
