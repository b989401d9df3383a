"""Forward and backward of the named networks are PyTorch's: outputs in training and in evaluation,
losses, every gradient and the running statistics of one batch, from the same weights.

    check_models.py PEER_MODEL quick|all [auto|direct [NETWORK...]]

PyTorch computes in double precision, so that its own rounding plays no part; its weights load into
Cohort and its names are Cohort's, strictly. An error is the largest difference in a tensor over the
largest element of PyTorch's tensor, and must be below 1e-4; for the gradient of a bias, over the
largest element of the gradients of its layer's bias and weight: in front of a batch norm a bias has
the gradient 0, but for rounding errors.
Dropout is off: masks differ between generators.

Where the input of a ReLU lies nearer to 0 than rounding errors reach, it is on in one program and
off in another, and gradients differ by 1e-2; a large network always has such places (PyTorch in
single precision then misses its own results in double by as much). So biases are moved a little, such
that there is none.
"""
import json
import os
import subprocess
import sys

from common import (ConvBn, F, ResNet9, kept, nn, read_safetensors, settle, skip, torch, workplace,
                    write_safetensors)

try:
    import torchvision
except ImportError as missing:
    skip(f"no torchvision here: {missing} (Debian: python3-torchvision)")

LIMIT = 1e-4
CLASSES = 10


class MnistExample(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 32, 3)
        self.conv2 = nn.Conv2d(32, 64, 3)
        self.fc1 = nn.Linear(9216, 128)
        self.fc2 = nn.Linear(128, 10)
        self.relu = nn.ReLU()

    def forward(self, x):
        x = F.max_pool2d(self.relu(self.conv2(self.relu(self.conv1(x)))), 2)
        return F.log_softmax(self.fc2(self.relu(self.fc1(x.flatten(1)))), dim=1)


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.res1 = ConvBn(width, width, bias=False)
        self.res2 = ConvBn(width, width, bias=False)

    def forward(self, x):
        return x + self.res2(self.res1(x))


class WideLayer(ConvBn):
    def __init__(self, inputs, outputs, residual):
        super().__init__(inputs, outputs, bias=False)
        self.residual = Residual(outputs) if residual else nn.Identity()

    def forward(self, x):
        return self.residual(F.max_pool2d(super().forward(x), 2))


class ResNet9Wide(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.prep = ConvBn(3, width, bias=False)
        self.layer1 = WideLayer(width, 2 * width, True)
        self.layer2 = WideLayer(2 * width, 4 * width, False)
        self.layer3 = WideLayer(4 * width, 8 * width, True)
        self.linear = nn.Linear(8 * width, CLASSES, bias=False)

    def forward(self, x):
        x = self.layer3(self.layer2(self.layer1(self.prep(x))))
        return self.linear(x.amax((2, 3))) * 0.125


def cifar_stem(model):
    model.conv1 = nn.Conv2d(3, 64, 3, 1, 1, bias=False)
    model.maxpool = nn.Identity()
    return model


def vision(name, **keys):
    return getattr(torchvision.models, name)(num_classes=CLASSES, **keys)


SMOOTHED = 0.1
# Name: network in PyTorch, its config in Cohort, batch, shape of a sample, label smoothing.
NETWORKS = {
    "mnist-example": (MnistExample, {}, 4, (1, 28, 28), 0),
    "resnet9": (ResNet9, {}, 16, (3, 32, 32), 0),
    "resnet9-wide": (lambda: ResNet9Wide(16), {"width": 16}, 8, (3, 32, 32), SMOOTHED),
    "resnet18": (lambda: vision("resnet18"), {}, 4, (3, 64, 64), 0),
    "resnet18-cifar": (lambda: cifar_stem(vision("resnet18")),
                       {"name": "resnet18", "stem": "cifar"}, 4, (3, 24, 24), SMOOTHED),
    "alexnet": (lambda: vision("alexnet", dropout=0), {}, 4, (3, 80, 80), 0),
    "resnet9-wide-64": (lambda: ResNet9Wide(64), {"name": "resnet9-wide"}, 4, (3, 32, 32), 0),
    "resnet34": (lambda: vision("resnet34"), {}, 8, (3, 96, 96), 0),
    "resnet50": (lambda: vision("resnet50"), {}, 8, (3, 96, 96), SMOOTHED),
    "resnet101": (lambda: vision("resnet101"), {}, 8, (3, 96, 96), 0),
    "resnet152": (lambda: vision("resnet152"), {}, 8, (3, 96, 96), 0),
    "resnet50-224": (lambda: vision("resnet50"), {"name": "resnet50"}, 4, (3, 224, 224), 0),
    "alexnet-224": (lambda: vision("alexnet", dropout=0), {"name": "alexnet"}, 4, (3, 224, 224), 0),
}
# Two values of a pooling window that lie as near to each other as rounding reaches change places like
# ReLUs: the sizes are such that there are none.
for depth, side in ((11, 64), (13, 64), (16, 64), (19, 32)):
    for norm in ("", "-bn"):
        name = f"vgg{depth}{norm}"
        NETWORKS[name] = (lambda name=name: vision(name.replace("-", "_"), dropout=0), {}, 2,
                          (3, side, side), 0)
QUICK = ["mnist-example", "resnet9", "resnet9-wide", "resnet18", "resnet18-cifar"]


def steady(model, image):
    """Move biases such that no input of a ReLU is near 0: 0 goes to the middle of the widest gap
    among the inputs of a channel that lie nearest to it."""
    last = []

    def remember(module, *_):
        if module.bias is not None:
            last.append(module)

    def move(_, inputs):
        rows = inputs[0].transpose(0, 1).flatten(1)  # (channels, the rest)
        near = rows.gather(1, rows.abs().argsort(1)[:, :64]).sort(1).values
        if rows.shape[1] <= 64:  # all of them: 0 may also go to either side
            beside = rows.abs().amax(1, keepdim=True)
            near = torch.cat([near[:, :1] - beside, near, near[:, -1:] + beside], 1)
        gap, at = near.diff(dim=1).max(1)
        middle = near.gather(1, at[:, None])[:, 0] + gap / 2
        last[-1].bias.data -= middle
        return inputs[0] - middle.reshape([1, -1] + [1] * (inputs[0].dim() - 2))

    for module in model.modules():
        if isinstance(module, (nn.Conv2d, nn.Linear, nn.BatchNorm2d)):
            module.register_forward_hook(remember)
        elif isinstance(module, nn.ReLU):
            module.register_forward_pre_hook(move)
    with torch.no_grad():
        model(image)
    for module in model.modules():
        module._forward_hooks.clear()
        module._forward_pre_hooks.clear()


def by_torch(model, image, label, smoothing):
    """What peer_model writes, from PyTorch."""
    model.eval()
    with torch.no_grad():
        out = {"eval.output": model(image)}
    model.train()
    out["output"] = model(image)
    loss = F.cross_entropy(out["output"], label, reduction="none", label_smoothing=smoothing)
    out["loss"] = loss
    loss.mean().backward()
    parameters = dict(model.named_parameters())
    for name, value in kept(model.state_dict()).items():
        if name in parameters:
            out[f"grad.{name}"] = parameters[name].grad
        else:
            out[name] = value
    return {k: v.detach() for k, v in out.items()}


def error(name, ours, theirs):
    scale = theirs[name].abs().max().item()
    if name.startswith("grad.") and name.endswith(".bias"):
        scale = max(scale, theirs[name[:-len("bias")] + "weight"].abs().max().item())
    return (ours[name].double() - theirs[name]).abs().max().item() / scale


def check(peer, folder, name, convolution):
    make, keys, batch, shape, smoothing = NETWORKS[name]
    torch.manual_seed(7)
    image = torch.randn(batch, *shape)
    model = settle(make())
    statistics = {k: v.clone() for k, v in model.state_dict().items() if "running" in k}
    steady(model, image)
    model.load_state_dict(statistics, strict=False)
    label = torch.arange(batch) * 7 % CLASSES
    paths = [os.path.join(folder, f"{each}.safetensors") for each in ("weights", "batch", "out")]
    write_safetensors(paths[0], kept(model.state_dict()))
    write_safetensors(paths[1], {"input": image, "label": label.int()})
    config = {"name": name, "classes": CLASSES, **keys}
    loss = {"name": "cross_entropy", "label_smoothing": smoothing} if smoothing else None
    if isinstance(model, MnistExample):
        loss = {"name": "nll_loss"}
    subprocess.run([peer, convolution, json.dumps(config), json.dumps(loss or {"name": "cross_entropy"})]
                   + paths, check=True, timeout=600)
    ours = read_safetensors(paths[2])
    theirs = by_torch(model.double(), image.double(), label, smoothing)
    assert set(ours) == set(theirs), set(ours) ^ set(theirs)
    errors = {each: error(each, ours, theirs) for each in theirs}
    worst = sorted(errors, key=errors.get)[-1]
    print(f"{name}: {len(errors)} tensors, loss {theirs['loss'].mean():.5f}, its error "
          f"{errors['loss']:.1e}; the largest is {errors[worst]:.1e}, of {worst}", flush=True)
    return {each: e for each, e in errors.items() if not e < LIMIT}


def main():
    peer, which, convolution, *names = (sys.argv[1:] + ["auto"])[:3] + sys.argv[4:]
    names = names or [each for each in NETWORKS if (which == "quick") == (each in QUICK)]
    wrong = {}
    with workplace() as folder:
        for name in names:
            wrong.update({(name, tensor): e for tensor, e in check(peer, folder, name, convolution).items()})
    for (name, tensor), e in wrong.items():
        print(f"{name}: {tensor} is off by {e:.2e}")
    return 1 if wrong else 0


sys.exit(main())
