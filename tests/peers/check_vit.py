"""vit-s16 beside torchvision's VisionTransformer, from the same weights and batch: its state_dict
loads strictly, logits are its to 1e-4, gradients agree with those in double precision as far as its
own in single precision do, and what `cohort import` writes loads there strictly, byte-equal.

    check_vit.py COHORT PEER_MODEL

COHORT_ONNX_PYTHON may name the interpreter of a virtual environment that has torchvision.
"""
import json
import math
import os
import subprocess
import sys

OTHER = os.environ.get("COHORT_ONNX_PYTHON")
if OTHER and sys.executable != OTHER:
    os.execv(OTHER, [OTHER] + sys.argv)

from common import F, read_safetensors, skip, torch, workplace, write_safetensors  # noqa: E402

try:
    from torchvision.models import VisionTransformer
except ImportError as missing:
    skip(f"{missing}; COHORT_ONNX_PYTHON can name a Python that has torchvision")

TIMES = 2
CASES = [  # image, patch, layers, heads, width, hidden, classes, batch
    (32, 8, 3, 4, 48, 80, 10, 5),
    (28, 4, 2, 2, 32, 128, 7, 3),
    (224, 16, 12, 6, 384, 1536, 1000, 2),
]


def passes(model, image, label):
    """Logits, and the gradient of the mean loss."""
    model.zero_grad()
    output = model(image)
    F.cross_entropy(output, label).backward()
    return output.detach().double(), {n: p.grad.double() for n, p in model.named_parameters()}


def apart(a, b):
    return math.sqrt(sum((a[name] - b[name]).norm().item() ** 2 for name in b)
                     / sum(b[name].norm().item() ** 2 for name in b))


def check(program, peer, folder, case):
    size, patch, layers, heads, width, hidden, classes, batch = case
    torch.manual_seed(size)
    theirs = VisionTransformer(size, patch, layers, heads, width, hidden, num_classes=classes)
    for weight in theirs.parameters():  # class token and head are 0 at first
        weight.data += 0.02 * torch.randn_like(weight)
    state = {name: value.detach().clone() for name, value in theirs.state_dict().items()}
    source, again, given, out = (os.path.join(folder, f"{name}.safetensors")
                                 for name in ("theirs", "ours", "batch", "out"))
    config = json.dumps({"name": "vit-s16", "layers": layers, "heads": heads, "width": width,
                         "hidden": hidden, "patch": patch, "classes": classes})
    image, label = torch.randn(batch, 3, size, size), torch.randint(0, classes, (batch,))
    write_safetensors(source, state)
    write_safetensors(given, {"input": image, "label": label.int()})
    subprocess.run([peer, "auto", config, "cross_entropy", source, given, out],
                   check=True, timeout=100)
    subprocess.run([program, "import", source, again, "--model", config, "--shape",
                    f"3,{size},{size}", "--classes", str(classes)],
                   check=True, timeout=100, stdout=subprocess.DEVNULL)
    ours, saved = read_safetensors(out), read_safetensors(again)
    single = passes(theirs.train(), image, label)
    truth = passes(theirs.double(), image.double(), label)
    theirs.load_state_dict(saved)
    error = (ours["eval.output"] - single[0]).abs().max().item()
    gradient = apart({name: ours[f"grad.{name}"].double() for name in truth[1]}, truth[1])
    peers = apart(single[1], truth[1])
    same = set(saved) == set(state) and all(torch.equal(saved[n], state[n]) for n in state)
    print(f"{size}/{patch}: logits of size {single[0].abs().max():.2f} are {error:.1e} apart, error "
          f"of the gradient {gradient:.1e}, PyTorch's {peers:.1e}, same tensors: {same}")
    return error <= 1e-4 and gradient <= TIMES * peers and same


def main():
    good = True
    for case in CASES:
        with workplace() as folder:
            good = check(*sys.argv[1:3], folder, case) and good
    return 0 if good else 1


sys.exit(main())
