"""A network written out in the config, with residual blocks, and the other models by name: PyTorch
computes the same test loss and accuracy from the weights that Cohort leaves."""
import os
import sys

from common import F, PsgdCnn, nn, summary, torch, train, weights, workplace, write_idx

SAMPLES = 96

LAYERS = [
    {"conv2d": {"name": "conv1", "out": 6, "kernel": 3, "stride": 2, "padding": 1, "bias": False}},
    {"batchnorm": {"name": "bn1"}},
    "relu",
    {"residual": {
        "body": [
            {"conv2d": {"name": "block1.conv1", "out": 8, "kernel": 3, "padding": 1}},
            {"batchnorm": {"name": "block1.bn1"}},
            "relu",
            {"conv2d": {"name": "block1.conv2", "out": 8, "kernel": 3, "padding": 2,
                        "dilation": 2}},
        ],
        "shortcut": [
            {"conv2d": {"name": "block1.down", "out": 8, "kernel": 1}},
        ],
    }},
    "relu",
    {"avgpool": {"kernel": 3, "stride": 2, "padding": 1}},
    {"residual": {"body": [{"conv2d": {"name": "block2.conv", "out": 8, "kernel": 3, "padding": 1,
                                       "groups": 4}}]}},
    {"adaptive_avgpool": {"size": [2, 3]}},
    "flatten",
    {"linear": {"name": "fc", "out": 10}},
]


class Layers(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 3, stride=2, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(6)
        self.block1 = nn.ModuleDict({
            "conv1": nn.Conv2d(6, 8, 3, padding=1),
            "bn1": nn.BatchNorm2d(8),
            "conv2": nn.Conv2d(8, 8, 3, padding=2, dilation=2),
            "down": nn.Conv2d(6, 8, 1),
        })
        self.block2 = nn.ModuleDict({"conv": nn.Conv2d(8, 8, 3, padding=1, groups=4)})
        self.fc = nn.Linear(48, 10)

    def forward(self, x):
        x = F.relu(self.bn1(self.conv1(x)))
        body = F.relu(self.block1["bn1"](self.block1["conv1"](x)))
        x = F.relu(self.block1["conv2"](body) + self.block1["down"](x))
        x = F.avg_pool2d(x, 3, 2, 1)
        x = self.block2["conv"](x) + x
        return self.fc(F.adaptive_avg_pool2d(x, (2, 3)).flatten(1))


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(784, 32)
        self.fc2 = nn.Linear(32, 16)
        self.fc3 = nn.Linear(16, 10)

    def forward(self, x):
        return self.fc3(F.relu(self.fc2(F.relu(self.fc1(x.flatten(1))))))


class PaddedLeNet5(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 5, padding=2)
        self.conv2 = nn.Conv2d(6, 16, 5)
        self.fc1 = nn.Linear(400, 120)
        self.fc2 = nn.Linear(120, 84)
        self.fc3 = nn.Linear(84, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        return self.fc3(F.relu(self.fc2(F.relu(self.fc1(x.flatten(1))))))


SMOOTHED = {"name": "cross_entropy", "label_smoothing": 0.1}
NETWORKS = {
    "layers": (Layers, {"layers": LAYERS}, 0),
    "mlp": (Mlp, {"model": {"name": "mlp", "hidden": [32, 16], "dropout": 0.2},
                  "loss": SMOOTHED}, 0.1),
    "lenet5": (PaddedLeNet5, {"model": {"name": "lenet5", "padding": 2}}, 0),
    "psgd-cnn": (PsgdCnn, {"model": "psgd-cnn"}, 0),
}


def make_data(folder):
    """Classes that can be told apart: noise over one bright square each."""
    torch.manual_seed(9)
    label = torch.arange(SAMPLES, dtype=torch.uint8) % 10
    image = torch.randint(0, 100, (SAMPLES, 28, 28), dtype=torch.uint8)
    for i, c in enumerate(label.tolist()):
        image[i, 5 * (c // 5) + 6:5 * (c // 5) + 10, 5 * (c % 5) + 2:5 * (c % 5) + 6] += 150
    for split in ("train", "t10k"):
        write_idx(os.path.join(folder, f"{split}-images-idx3-ubyte"), image)
        write_idx(os.path.join(folder, f"{split}-labels-idx1-ubyte"), label)
    return image[:, None] / 255.0, label.long()


def check(program, folder, name, image, label):
    make, network, smoothing = NETWORKS[name]
    data = {"name": "mnist", "path": folder, **({"resize": 32} if make is PsgdCnn else {})}
    model = make()
    for ranks in (1, 2):
        run_dir = train(program, folder, f"{name}-{ranks}", {
            **network, "data": data, "batch": 24, "epochs": 4,
            "optimizer": {"name": "adam", "lr": 0.01},
        }, ranks)
        theirs = summary(run_dir)
        missing, unexpected = model.load_state_dict(weights(run_dir), strict=False)
        assert not unexpected, unexpected
        assert all(each.endswith("num_batches_tracked") for each in missing), missing
        model.eval()
        with torch.no_grad():
            output = model(image)
        loss = F.cross_entropy(output, label, label_smoothing=smoothing).item()
        accuracy = (output.argmax(1) == label).float().mean().item()
        print(f"{name}, ranks {ranks}: loss {loss:.6f}, Cohort {theirs['test_loss']:.6f}; "
              f"accuracy {accuracy:.4f}, Cohort {theirs['test_accuracy']:.4f}")
        assert abs(loss - theirs["test_loss"]) < 5e-5 * loss
        assert abs(accuracy - theirs["test_accuracy"]) < 1.5 / SAMPLES
        count = sum(p.numel() for p in model.parameters())
        assert count == theirs["parameter_count"], (count, theirs["parameter_count"])


with workplace() as place:
    pixels, classes = make_data(place)
    for each in NETWORKS:
        check(sys.argv[1], place, each, pixels, classes)
