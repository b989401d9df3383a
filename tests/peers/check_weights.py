"""check_weights.py COHORT - weights go both ways between torchvision and Cohort: torchvision's
resnet18 evaluates in Cohort to PyTorch's loss, in every type of floats; what Cohort trains on from
it and exports loads strictly in PyTorch, and gives Cohort's loss there."""
import json
import os
import subprocess
import sys

from common import F, read_safetensors, skip, torch, workplace, write_safetensors

try:
    import torchvision
except ImportError as missing:
    skip(f"no torchvision here: {missing} (Debian: python3-torchvision)")

COHORT = sys.argv[1]
CLASSES, TESTS = 10, 12
MEAN, STD = [0.5, 0.4, 0.3], [0.2, 0.25, 0.3]


def run(*words, fails=0):
    done = subprocess.run([COHORT, *words], timeout=60, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, encoding="utf-8")
    assert done.returncode == fails, (words, done.returncode, done.stderr)
    return done.stderr if fails else done.stdout


def make_cifar(folder):
    """CIFAR-10's binary version with a few random images; the test split as PyTorch takes it."""
    os.mkdir(folder)
    generator = torch.Generator().manual_seed(1)
    for name in [f"data_batch_{i}.bin" for i in range(1, 6)] + ["test_batch.bin"]:
        n = TESTS if name.startswith("test") else 8
        label = torch.randint(CLASSES, (n, 1), generator=generator, dtype=torch.uint8)
        image = torch.randint(256, (n, 3072), generator=generator, dtype=torch.uint8)
        with open(os.path.join(folder, name), "wb") as file:
            file.write(torch.cat([label, image], 1).numpy().tobytes())
    image = image.reshape(n, 3, 32, 32) / 255.0
    scale = [torch.tensor(values)[:, None, None] for values in (MEAN, STD)]
    return (image - scale[0]) / scale[1], label[:, 0].long()


def make_model(classes=CLASSES):
    torch.manual_seed(2)
    model = torchvision.models.resnet18(num_classes=classes)
    with torch.no_grad():
        for module in model.modules():
            if isinstance(module, torch.nn.BatchNorm2d):
                module.running_mean.uniform_(-0.5, 0.5)
                module.running_var.uniform_(0.5, 1.5)
                module.num_batches_tracked.fill_(7)
    return model


def loss_of(state, image, label):
    """Of a resnet18 with these weights, which have to be all that it has."""
    model = torchvision.models.resnet18(num_classes=CLASSES)
    model.load_state_dict(state, strict=True)
    model.eval()
    with torch.no_grad():
        return F.cross_entropy(model(image), label).item()


def evaluate(*words):
    return json.loads(run("eval", *words, "--json"))["test_loss"]


def assert_near(ours, theirs, what):
    print(f"{what}: {ours:.6f}, PyTorch {theirs:.6f}")
    assert abs(ours - theirs) < 2e-5 * abs(theirs), what


def check_from_torch(place, config, image, label):
    for kind in (torch.float32, torch.float64, torch.float16, torch.bfloat16):
        state = make_model().to(kind).state_dict()
        theirs = os.path.join(place, "theirs.safetensors")
        ours = os.path.join(place, "ours.safetensors")
        write_safetensors(theirs, state)
        run("import", theirs, ours, "--model", "resnet18", "--classes", str(CLASSES), "--shape",
            "3,32,32")
        want = {k: v.float() for k, v in state.items() if not k.endswith("num_batches_tracked")}
        got = read_safetensors(ours)
        assert got.keys() == want.keys()
        assert all(torch.equal(got[k], want[k]) for k in want), kind
        if kind in (torch.float64, torch.float16):
            continue  # the same bytes as PyTorch's: nothing new to measure
        loss = loss_of({k: v.float() for k, v in state.items()}, image, label)
        assert_near(evaluate(ours, "--config", config), loss, f"from {kind}, imported")
    assert_near(evaluate(theirs, "--config", config), loss, "the same without importing")


def check_faults(place):
    path = os.path.join(place, "faults.safetensors")
    state = make_model(classes=5).state_dict()
    del state["layer1.0.bn1.running_mean"], state["conv1.weight"]
    state["head.weight"] = torch.zeros(3)
    write_safetensors(path, state)
    said = run("import", path, os.path.join(place, "imported.safetensors"), "--model", "resnet18",
               "--classes", "10", "--shape", "3,32,32", fails=3)
    for words in ("2 missing: conv1.weight, layer1.0.bn1.running_mean", "1 unexpected: head.weight",
                  "2 of another shape: fc.weight (5, 512) for (10, 512), fc.bias (5) for (10)"):
        assert words in said, said


def check_to_torch(place, config, image, label):
    five, run_dir = os.path.join(place, "five.safetensors"), os.path.join(place, "run")
    exported = os.path.join(place, "exported.safetensors")
    write_safetensors(five, make_model(classes=5).state_dict())
    run("train", config, "--run-dir", run_dir, "--quiet", "--set", "max_steps=3", "--set",
        f"init={{weights: {five}, skip: fc}}")
    run("export", run_dir, exported)
    loss = evaluate(run_dir)
    final = read_safetensors(os.path.join(run_dir, "final.safetensors"))
    assert_near(loss, loss_of(final, image, label), "trained on, final.safetensors")
    state = read_safetensors(exported)
    assert state.keys() == make_model().state_dict().keys()
    assert_near(loss, loss_of(state, image, label), "trained on, exported")
    before = make_model(classes=5).state_dict()["layer4.1.conv2.weight"]
    moved = (final["layer4.1.conv2.weight"] - before).abs().max().item()
    assert 0 < moved < 0.05, moved  # it started from there


with workplace() as folder:
    data = os.path.join(folder, "data")
    images, labels = make_cifar(data)
    settings = os.path.join(folder, "config.json")
    with open(settings, "w") as out:
        json.dump({"model": "resnet18", "batch": 8, "optimizer": {"name": "sgd", "lr": 0.001},
                   "data": {"name": "cifar10", "path": data,
                            "normalize": {"mean": MEAN, "std": STD}}}, out)  # JSON is YAML
    check_from_torch(folder, settings, images, labels)
    check_faults(folder)
    check_to_torch(folder, settings, images, labels)
